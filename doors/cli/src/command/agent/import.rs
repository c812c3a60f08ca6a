use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use indicatif::HumanCount;
use keyward::Code;
use keyward::agents::{DocumentReader, Error, Imported, Options, UserData};
use serde::Serialize;
use tokio::sync::mpsc;

use super::documents::{self, Batch};
use super::reach::Reach;
use crate::failure::{Failure, Result};
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;

/// Import entries from JSON documents
///
/// Reads what agent export writes, and what other databases write: documents one after the other or in an
/// array, the answer of CouchDB to _all_docs?include_docs=true, and that of DynamoDB to a scan or its
/// exports, with or without types. Design documents are skipped.
///
/// Each entry then has exactly what its document says, its times and accesses too; the time to live comes
/// from its namespace. Documents are written in batches, in their order. If one is bad, everything before
/// it is imported, and importing the same input again is safe.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent import local.jsonl
  keyward agent import ada.json --user ada
  curl -s "$COUCHDB/agent_data_store/_all_docs?include_docs=true" | keyward agent import --all-users
  aws dynamodb scan --table-name agent_data_store | keyward agent import --all-users
  keyward -s embedded:./data agent export | keyward -s embedded:./copy agent import"#)]
pub struct Arguments {
    /// The file to read, or - for standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Import documents of all users, each for the user that it names
    #[arg(long)]
    all_users: bool,
}

#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Tally {
    imported: u64,
    created: u64,
    replaced: u64,
    /// Design documents, and documents that were deleted.
    skipped: u64,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let (input, length) = input::open_lines(&arguments.file)?;
    let bytes_max = document_bytes_max(&reach.options()?);
    let work = async |user: UserData, output: &mut Output| {
        let interrupt = Interrupt::listen().await;
        let progress = Progress::of_bytes("importing", length, output);
        let mut tally = Tally::default();
        let all_users = arguments.all_users;
        let reader = DocumentReader::new(bytes_max);
        let reader = if all_users { reader } else { reader.only_of(user.user_id()) };
        let result =
            import(&user, (input, reader), all_users, interrupt, &progress, &mut tally).await;
        drop(progress);
        let skipped = match tally.skipped {
            0 => String::new(),
            1 => "; skipped 1 design or deleted document".to_owned(),
            count => format!("; skipped {} design or deleted documents", HumanCount(count)),
        };
        if let Err(failure) = result {
            let imported = entries(tally.imported);
            return Err(failure.also(&format!(
                "Imported before that: {imported}{skipped}. Importing the same input again is safe."
            )));
        }
        if output.json() {
            return output.write_json(&tally);
        }
        let replaced = HumanCount(tally.replaced);
        let imported = entries(tally.imported);
        writeln!(output, "imported {imported}, of which {replaced} were there{skipped}")
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
    (input, reader): (Box<dyn Read + Send>, DocumentReader),
    all_users: bool,
    mut interrupt: Interrupt,
    progress: &Progress,
    tally: &mut Tally,
) -> Result {
    let (sender, mut batches) = mpsc::channel(1);
    let reading = tokio::task::spawn_blocking(move || {
        documents::read(input, reader, |batch| sender.blocking_send(batch).is_ok())
    });
    loop {
        let batch: Option<Batch> = tokio::select! {
            batch = batches.recv() => batch,
            () = interrupt.wait() => return Err(Failure::interrupted("interrupted")),
        };
        let Some(Batch { documents, skipped, read }) = batch else { break };
        tally.skipped += skipped as u64;
        // The commit itself is not cut off: its outcome would be unknown.
        let taken = match all_users {
            true => {
                let (agents, actor) = (user.agents(), user.actor());
                let reach = |id: &str| Ok(agents.user(id, actor.clone()));
                agents.import_all_users(documents, reach).await
            }
            false => user.import_read(documents).await,
        };
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
        Failure::new(Code::Internal, format!("reading the input failed: {error}"))
    })?
}

/// How long a document may be: white space and escapes do not count in a value.
fn document_bytes_max(options: &Options) -> usize {
    options.value_bytes_max.saturating_add(options.metadata_bytes_max).saturating_mul(8)
}
