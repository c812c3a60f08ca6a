//! `keyward export --salvage`: what a damaged embedded store still gives.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use indicatif::HumanCount;
use keyward::{Code, KeyRange, Prefix, Salvaged};

use super::Done;
use crate::args::Target;
use crate::destination::Destination;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::line::{self, Fields};
use crate::output::{Output, note};
use crate::progress::Progress;

/// How many damaged places are named.
const NAMED_MAX: usize = 20;

pub async fn run(
    prefix: &Prefix,
    file: Option<&Path>,
    target: &Target,
    output: &mut Output,
) -> Result {
    target.refuse_server(
        "salvaging",
        "Stop the server, and run keyward export --salvage where the store is, without --server and \
         KEYWARD_SERVER.",
    )?;
    let url = target.url()?;
    let range = KeyRange::under(prefix);
    let interrupt = Interrupt::listen().await;
    let progress = if output.terminal() && file.is_none() {
        Progress::none()
    } else {
        Progress::counted("salvaging", "entries", None, output)
    };
    let salvage = |write: &mut dyn FnMut(&[u8]) -> Result| {
        tokio::task::block_in_place(|| {
            read(&url, &range, |line| {
                if interrupt.pressed() {
                    return Err(Failure::interrupted("interrupted"));
                }
                progress.advance(1);
                write(line)
            })
        })
    };
    let (exported, salvaged) = match file {
        None => salvage(&mut |line| output.write_all(line))?,
        Some(file) => into_file(file, salvage)?,
    };
    drop(progress);
    if let Some(file) = file {
        let file = file.display().to_string();
        match output.json() {
            true => output.write_json(&Done { file, exported })?,
            false => writeln!(output, "exported {} entries to {file}", HumanCount(exported))?,
        }
    }
    output.flush()?;
    conclude(&salvaged)
}

/// Hands over the line of each entry in a range that can be read.
fn read(
    url: &str,
    range: &KeyRange,
    mut write: impl FnMut(&[u8]) -> Result,
) -> Result<(u64, Salvaged)> {
    let (mut exported, mut failed, mut line) = (0, None, Vec::new());
    let salvaged = keyward::salvage(url, |row| {
        let Some(entry) = row.entry.filter(|_| range.contains(&row.key)) else {
            return ControlFlow::Continue(());
        };
        line.clear();
        line::write(&mut line, &row.key, &entry, Fields::Portable);
        line.push(b'\n');
        match write(&line) {
            Ok(()) => {
                exported += 1;
                ControlFlow::Continue(())
            }
            Err(failure) => {
                failed = Some(failure);
                ControlFlow::Break(())
            }
        }
    });
    match failed {
        Some(failure) => Err(failure),
        None => Ok((exported, salvaged?)),
    }
}

fn into_file(
    file: &Path,
    salvage: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result) -> Result<(u64, Salvaged)>,
) -> Result<(u64, Salvaged)> {
    let destination = Destination::of(file);
    let failed = |error: std::io::Error| destination.failed(&error);
    let into = || {
        let file = File::create(destination.written()).map_err(failed)?;
        let mut to = BufWriter::with_capacity(64 << 10, file);
        let done = salvage(&mut |line| to.write_all(line).map_err(failed))?;
        let file = to.into_inner().map_err(|error| failed(error.into_error()))?;
        destination.finish(&file).map_err(failed)?;
        Ok(done)
    };
    let done = into();
    if done.is_err() {
        destination.discard();
    }
    done
}

/// Says on standard error what was read and what was not. Damage is a failure, so that nobody takes
/// a part for the whole.
fn conclude(salvaged: &Salvaged) -> Result {
    let Salvaged { entries, expired, expected, orphaned, .. } = *salvaged;
    let read = entries + expired;
    note(format_args!(
        "read {} of {} entries ({} expired, left out)",
        HumanCount(read),
        HumanCount(expected.max(read)),
        HumanCount(expired)
    ));
    if orphaned > 0 {
        let orphaned = HumanCount(orphaned);
        note(format_args!("{orphaned} of them lie on pages that no index page leads to any more"));
    }
    if salvaged.without_last_commit {
        note("the last commit may be missing: its meta page or its list of tables is damaged");
    }
    for place in salvaged.damaged.iter().take(NAMED_MAX) {
        note(format_args!("damaged: {place}"));
    }
    let unnamed = salvaged.damaged.len().saturating_sub(NAMED_MAX) as u64 + salvaged.damaged_more;
    if unnamed > 0 {
        note(format_args!("damaged: {} more places", HumanCount(unnamed)));
    }
    if salvaged.damaged.is_empty() && !salvaged.without_last_commit {
        return Ok(());
    }
    let message = match expected.saturating_sub(read) {
        0 => "the store is damaged; every entry it counts was read".to_owned(),
        1 => "the store is damaged; 1 entry could not be read".to_owned(),
        lost => format!("the store is damaged; {} entries could not be read", HumanCount(lost)),
    };
    Err(Failure::new(Code::Corrupt, message).hint(
        "What was read is exported. Keep a copy of the damaged store, and import the lines into a new \
         one: keyward -s embedded:NEW import FILE --raw.",
    ))
}
