use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::HumanCount;
use keyward::agents::UserData;
use serde::Serialize;

use super::reach::Reach;
use super::skipped::Allowing;
use crate::destination::Destination;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;

/// How many entries are read at a time: each may be as large as a value may be.
const PAGE: usize = 64;

/// Write a user's entries as JSON documents, one a line
///
/// With the field names of the agent data store (_id, userId, namespace, key, value, metadata,
/// createdByAgent, accessCount and so on), in the order of namespaces and keys. agent import reads it.
/// A store that changes meanwhile is read page by page, each at its own moment. When entries end is not
/// in it. Exits with 10, and writes no file, if a store with layout=document holds documents that cannot be exported,
/// unless --allow-skipped is given.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent export > local.jsonl
  keyward agent export --user ada -n files:apache/repo -o repo.jsonl
  keyward -s embedded:./data agent export | keyward -s embedded:./copy agent import"#)]
pub struct Arguments {
    /// Only this namespace; all of them if left out
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Write to this file, which appears, or is replaced, once it is whole
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    allowing: Allowing,
}

#[derive(Serialize)]
struct Done {
    file: String,
    exported: u64,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { namespace, output: file, allowing } = arguments;
    let namespace = namespace.as_deref();
    let work = async |user: UserData, output: &mut Output| {
        let progress = match output.terminal() && file.is_none() {
            true => Progress::none(),
            false => Progress::counted("exporting", "entries", None, output),
        };
        let Some(file) = file else {
            export(&user, namespace, &progress, |lines| output.write_all(lines)).await?;
            drop(progress);
            output.flush()?;
            return allowing.check(&user.skipped(namespace).await?, "export");
        };
        let exported = into_file(&user, namespace, &file, &progress, allowing).await?;
        drop(progress);
        let file = file.display().to_string();
        if output.json() {
            return output.write_json(&Done { file, exported });
        }
        writeln!(output, "exported {} entries to {file}", HumanCount(exported))
    };
    reach.existing(output, work).await
}

/// Hands over lines, a page at a time; gives the number of entries.
async fn export(
    user: &UserData,
    namespace: Option<&str>,
    progress: &Progress,
    mut write: impl FnMut(&[u8]) -> Result,
) -> Result<u64> {
    let mut exported = 0;
    let (mut lines, mut after) = (Vec::new(), None);
    loop {
        let page = user.export(namespace, after, PAGE).await?;
        lines.clear();
        for document in &page.documents {
            lines.extend_from_slice(document.as_bytes());
            lines.push(b'\n');
        }
        write(&lines)?;
        exported += page.documents.len() as u64;
        progress.advance(page.documents.len() as u64);
        after = page.next;
        if after.is_none() {
            return Ok(exported);
        }
    }
}

async fn into_file(
    user: &UserData,
    namespace: Option<&str>,
    file: &Path,
    progress: &Progress,
    allowing: Allowing,
) -> Result<u64> {
    let destination = Destination::of(file);
    let exported = into(&destination, user, namespace, progress, allowing).await;
    if exported.is_err() {
        destination.discard();
    }
    exported
}

async fn into(
    destination: &Destination<'_>,
    user: &UserData,
    namespace: Option<&str>,
    progress: &Progress,
    allowing: Allowing,
) -> Result<u64> {
    let failed = |error: io::Error| destination.failed(&error);
    let interrupt = Interrupt::listen().await;
    let file = File::create(destination.written()).map_err(failed)?;
    let mut to = BufWriter::with_capacity(64 << 10, file);
    let exported = export(user, namespace, progress, |lines| {
        if interrupt.pressed() {
            return Err(Failure::interrupted("interrupted"));
        }
        to.write_all(lines).map_err(failed)
    });
    let exported = exported.await?;
    allowing.check(&user.skipped(namespace).await?, "export")?;
    let file = to.into_inner().map_err(|error| failed(error.into_error()))?;
    destination.finish(&file).map_err(failed)?;
    Ok(exported)
}
