use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use indicatif::HumanCount;
use keyward::agents::{Error, Imported, Options, UserData};
use serde::Serialize;
use tokio::sync::mpsc;

use super::documents::{self, Batch};
use super::reach::Reach;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;

/// Read a user's entries from JSON documents
///
/// Takes what agent export writes, and what other programs write in the same form: documents one after
/// the other, or in an array. Each entry has then exactly what its document says, its times and accesses
/// too; how long it lives is said by its namespace. Documents are taken in batches, in their order. If
/// one is wrong, or another user's, everything before it is taken, and importing the same input again is
/// safe.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent import local.jsonl
  keyward agent import ada.json --user ada
  keyward -s embedded:./data agent export | keyward -s embedded:./copy agent import"#)]
pub struct Arguments {
    /// The file to read, or - for standard input
    #[arg(default_value = "-")]
    file: PathBuf,
}

#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Tally {
    imported: u64,
    created: u64,
    replaced: u64,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let (input, length) = input::open_lines(&arguments.file)?;
    let bytes_max = document_bytes_max(&reach.options()?);
    let work = async |user: UserData, output: &mut Output| {
        let interrupt = Interrupt::listen().await;
        let progress = Progress::of_bytes("importing", length, output);
        let mut tally = Tally::default();
        let result = import(&user, (input, bytes_max), interrupt, &progress, &mut tally).await;
        drop(progress);
        if let Err(failure) = result {
            let imported = entries(tally.imported);
            return Err(failure.also(&format!(
                "Imported before that: {imported}. Importing the same input again is safe."
            )));
        }
        if output.json() {
            return output.write_json(&tally);
        }
        let replaced = HumanCount(tally.replaced);
        writeln!(output, "imported {}, of which {replaced} were there", entries(tally.imported))
    };
    reach.to_write(output, work).await
}

fn entries(count: u64) -> String {
    match count {
        1 => "1 entry".to_owned(),
        count => format!("{} entries", HumanCount(count)),
    }
}

/// Reads on a thread of its own, so that the next batch is read while one is taken, and Ctrl-C is heard
/// while the input is silent.
async fn import(
    user: &UserData,
    (input, bytes_max): (Box<dyn Read + Send>, usize),
    mut interrupt: Interrupt,
    progress: &Progress,
    tally: &mut Tally,
) -> Result {
    let owner = user.user_id().to_owned();
    let (sender, mut batches) = mpsc::channel(1);
    let reading = tokio::task::spawn_blocking(move || {
        documents::read(input, &owner, bytes_max, |batch| sender.blocking_send(batch).is_ok())
    });
    loop {
        let batch: Option<Batch> = tokio::select! {
            batch = batches.recv() => batch,
            () = interrupt.wait() => return Err(Failure::interrupted("interrupted")),
        };
        let Some(Batch { documents, read }) = batch else { break };
        // The commit itself is not cut off: its outcome would be unknown.
        let taken = user.import(documents).await;
        if let Err(Error::Partly { done, .. }) = &taken {
            tally.imported += *done as u64;
        }
        let Imported { created, replaced } = taken?;
        tally.created += created as u64;
        tally.replaced += replaced as u64;
        tally.imported += (created + replaced) as u64;
        progress.advance(read);
    }
    reading.await.map_err(|error| {
        Failure::new(Exit::Internal, "internal", format!("reading the input failed: {error}"))
    })?
}

/// How long a document may be: white space and escapes do not count in a value.
fn document_bytes_max(options: &Options) -> usize {
    options.value_bytes_max.saturating_add(options.metadata_bytes_max).saturating_mul(8)
}
