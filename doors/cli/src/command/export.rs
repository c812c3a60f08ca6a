mod salvage;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::HumanCount;
use keyward::{Entry, ErrorKind, Json, Key, KeyRange, Prefix, Store, Want};
use serde::Serialize;

use crate::args::Target;
use crate::destination::Destination;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::line::{self, Fields};
use crate::output::Output;
use crate::pages::Pages;
use crate::progress::Progress;

/// Write entries as JSON lines
///
/// In key order, one line each with key, value, and metadata and expiry if there are any; values
/// byte for byte as they are stored. A store that changes meanwhile is read page by page, each at its own
/// moment; for a copy of one moment there is backup.
///
/// import reads plain entries back. A store with records or other keys of Keyward's own goes into a new
/// store with import --raw, which takes their indexes along, or with copy.
///
/// A damaged store is refused with exit code 8. --salvage exports what can still be read of a damaged
/// embedded store, in any order: nobody may have it open meanwhile, and it is not changed. It says on
/// standard error what was skipped, and exits with 8 if anything is damaged.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward export > all.jsonl
  keyward export user:7 -o ada.jsonl
  keyward export --salvage > rest.jsonl
  keyward -s embedded:./data export | keyward -s embedded:./copy import --raw"#)]
pub struct Arguments {
    /// Export what lies below this prefix, for example user:7; everything if left out
    prefix: Option<String>,
    /// Write to this file, which appears, or is replaced, once it is whole
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Export what can still be read of a damaged embedded store
    #[arg(long)]
    salvage: bool,
}

#[derive(Serialize)]
struct Done {
    file: String,
    exported: u64,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let prefix = super::prefix(arguments.prefix.as_deref())?;
    if arguments.salvage {
        return salvage::run(&prefix, arguments.output.as_deref(), target, output).await;
    }
    let store = target.open_existing().await?;
    let checking = Progress::working("checking", output);
    store.verify(&KeyRange::under(&prefix)).await?;
    drop(checking);
    let Some(file) = arguments.output else {
        let progress = if output.terminal() {
            Progress::none()
        } else {
            progress(&store, &prefix, output).await?
        };
        export(&store, &prefix, &progress, |lines| output.write_all(lines)).await?;
        return Ok(());
    };
    let exported = into_file(&store, &prefix, &file, output).await?;
    let file = file.display().to_string();
    if output.json() {
        return output.write_json(&Done { file, exported });
    }
    writeln!(output, "exported {} entries to {file}", HumanCount(exported))
}

/// The number of entries is known beforehand only of a whole store that need not be read for it.
async fn progress(store: &Store, prefix: &Prefix, output: &Output) -> Result<Progress> {
    let total = match prefix.depth() {
        0 if !store.counts_by_reading() => Some(store.stats().await?.entries),
        _ => None,
    };
    Ok(Progress::counted("exporting", "entries", total, output))
}

/// Hands over lines, a page at a time; gives the number of entries.
async fn export(
    store: &Store,
    prefix: &Prefix,
    progress: &Progress,
    mut write: impl FnMut(&[u8]) -> Result,
) -> Result<u64> {
    let mut exported = 0;
    let mut lines = Vec::new();
    let mut pages = Pages::new(store, KeyRange::under(prefix), Want::Entries);
    while let Some(rows) = pages.next().await? {
        lines.clear();
        for row in &rows {
            let Some(entry) = &row.entry else { continue };
            refuse_damaged(&row.key, entry)?;
            line::write(&mut lines, &row.key, entry, Fields::Portable);
            lines.push(b'\n');
        }
        write(&lines)?;
        exported += rows.len() as u64;
        progress.advance(rows.len() as u64);
    }
    Ok(exported)
}

/// What is no JSON makes no line: a damaged store may hold anything.
fn refuse_damaged(key: &Key, entry: &Entry) -> Result {
    let is_json = |json: &Json| Json::parse(json.to_bytes()).is_ok_and(|parsed| parsed == *json);
    let what = if Key::from_bytes(key.to_bytes()).is_err() {
        "the key is not valid"
    } else if !is_json(&entry.value) {
        "the value is not JSON"
    } else if !entry.metadata.as_ref().is_none_or(is_json) {
        "the metadata is not JSON"
    } else {
        return Ok(());
    };
    let message = format!("the entry {key} is damaged: {what}");
    Err(keyward::Error::new(ErrorKind::Corrupt, message).into())
}

async fn into_file(store: &Store, prefix: &Prefix, file: &Path, output: &Output) -> Result<u64> {
    let progress = progress(store, prefix, output).await?;
    let destination = Destination::of(file);
    let exported = into(&destination, store, prefix, &progress).await;
    if exported.is_err() {
        destination.discard();
    }
    exported
}

async fn into(
    destination: &Destination<'_>,
    store: &Store,
    prefix: &Prefix,
    progress: &Progress,
) -> Result<u64> {
    let failed = |error: io::Error| destination.failed(&error);
    let interrupt = Interrupt::listen().await;
    let file = File::create(destination.written()).map_err(failed)?;
    let mut to = BufWriter::with_capacity(64 << 10, file);
    let exported = export(store, prefix, progress, |lines| {
        if interrupt.pressed() {
            return Err(Failure::interrupted("interrupted"));
        }
        to.write_all(lines).map_err(failed)
    });
    let exported = exported.await?;
    let file = to.into_inner().map_err(|error| failed(error.into_error()))?;
    destination.finish(&file).map_err(failed)?;
    Ok(exported)
}
