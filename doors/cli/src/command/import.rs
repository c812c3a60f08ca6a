use std::collections::HashSet;
use std::io::{BufReader, Read};
use std::path::PathBuf;

use clap::Args;
use indicatif::HumanCount;
use keyward::{Code, Commit, ErrorKind, Expect, Outcome, Store, SystemClock};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::args::Target;
use crate::batch::{self, Batch, Numbered, Size};
use crate::failure::{Failure, Result};
use crate::guard::Guard;
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;

/// Read entries from JSON lines
///
/// Takes what export writes (and what scan --json writes, leaving its versions out), replacing keys
/// that are there already unless --if-absent is given. Lines are committed in batches, in their
/// order. Entries that have expired are left out. If a line is wrong, everything before it is
/// stored, and importing the same input again is safe.
///
/// Records of a schema, agents' entries and Keyward's own keys are refused, as put refuses them. The export
/// of a store that holds such keys goes into a new store with --raw, which takes their indexes along; copy
/// does the same in one step.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward import all.jsonl
  keyward import all.jsonl --if-absent
  keyward -s embedded:./data export | keyward -s embedded:./copy import --raw
  keyward -s embedded:./new import rest.jsonl --raw"#)]
pub struct Arguments {
    /// The file to read, or - for standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Leave keys alone that are there already
    #[arg(long)]
    if_absent: bool,
    /// For repair: write any key, past schemas, indexes, locks and Keyward's own keys
    #[arg(long)]
    raw: bool,
}

#[derive(Debug, Default, Serialize)]
struct Tally {
    /// Entries that were stored.
    imported: u64,
    /// Entries that were left out, since they had ended.
    expired: u64,
    /// Keys that were there already and left alone.
    kept: u64,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let (input, length) = input::open_lines(&arguments.file)?;
    let mut guard = Guard::new(target, arguments.raw).await?;
    let store = guard.over(target.open().await?).await?;
    let interrupt = Interrupt::listen().await;
    let progress = Progress::of_bytes("importing", length, output);
    let mut import = Import { store, if_absent: arguments.if_absent, tally: Tally::default() };
    let result = import.all(input, interrupt, &progress).await;
    drop(progress);
    let tally = import.tally;
    if let Err(failure) = result {
        let imported = entries(tally.imported);
        return Err(failure.also(&format!(
            "Imported before that: {imported}. Importing the same input again is safe."
        )));
    }
    if output.json() {
        return output.write_json(&tally);
    }
    write!(output, "imported {}", entries(tally.imported))?;
    if tally.expired > 0 {
        write!(output, ", left out {} expired", HumanCount(tally.expired))?;
    }
    if tally.kept > 0 {
        write!(output, ", left {} existing alone", HumanCount(tally.kept))?;
    }
    writeln!(output)
}

fn entries(count: u64) -> String {
    match count {
        1 => "1 entry".to_owned(),
        count => format!("{} entries", HumanCount(count)),
    }
}

struct Import {
    store: Store,
    if_absent: bool,
    tally: Tally,
}

impl Import {
    /// Reads on a thread of its own, so that the next batch is read while one is committed, and
    /// Ctrl-C is heard while the input is silent.
    async fn all(
        &mut self,
        input: Box<dyn Read + Send>,
        mut interrupt: Interrupt,
        progress: &Progress,
    ) -> Result {
        let size = Size::fitting(self.store.limits());
        let (sender, mut batches) = mpsc::channel(1);
        let reading = tokio::task::spawn_blocking(move || {
            batch::read(BufReader::new(input), size, &SystemClock, |batch| {
                sender.blocking_send(batch).is_ok()
            })
        });
        loop {
            let batch: Option<Batch> = tokio::select! {
                batch = batches.recv() => batch,
                () = interrupt.wait() => return Err(Failure::interrupted("interrupted")),
            };
            let Some(batch) = batch else { break };
            // The commit itself is not cut off: its outcome would be unknown.
            self.store(&batch.entries).await?;
            self.tally.expired += batch.expired;
            progress.advance(batch.read);
        }
        reading.await.map_err(|error| {
            Failure::new(Code::Internal, format!("reading the input failed: {error}"))
        })?
    }

    /// Stores a batch. If the store will not have it, its entries are stored one by one up to the one
    /// that is to blame.
    async fn store(&mut self, entries: &[Numbered]) -> Result {
        match self.commit(entries).await {
            Ok(()) => Ok(()),
            Err(error) if entries.len() > 1 && is_refusal(error.kind()) => {
                for entry in entries.chunks(1) {
                    self.commit(entry).await.map_err(|error| failed_at(entry, error))?;
                }
                Ok(())
            }
            Err(error) => Err(failed_at(entries, error)),
        }
    }

    /// Stores entries in one commit, leaving out those that are there already if so asked.
    async fn commit(&mut self, entries: &[Numbered]) -> keyward::Result<()> {
        let mut entries = entries.to_vec();
        let mut kept = 0;
        while !entries.is_empty() {
            let mut commit = Commit::new();
            for Numbered { key, put, .. } in entries.iter().cloned() {
                if self.if_absent {
                    commit = commit.check(key.clone(), Expect::Absent);
                }
                commit = commit.put(key, put);
            }
            match self.store.commit(commit).await? {
                Outcome::Applied { .. } => {
                    self.tally.imported += entries.len() as u64;
                    break;
                }
                // The checks stand in the order of the entries.
                Outcome::Conflicted { failed } => {
                    let there: HashSet<usize> = failed.into_iter().collect();
                    let before = entries.len();
                    let mut at = 0..;
                    entries.retain(|_| !at.next().is_some_and(|at| there.contains(&at)));
                    if entries.len() == before {
                        let message = "the store refused a condition without naming it";
                        return Err(keyward::Error::new(ErrorKind::Internal, message));
                    }
                    kept += (before - entries.len()) as u64;
                }
            }
        }
        self.tally.kept += kept;
        Ok(())
    }
}

/// Whether nothing was done because of what was asked, rather than because of how the store is.
fn is_refusal(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Invalid
            | ErrorKind::LimitExceeded
            | ErrorKind::Unsupported
            | ErrorKind::Reserved
    )
}

/// What to do about a line that a plain write must leave alone.
const RESERVED: &str = "import reads plain entries. To copy a whole store, with its records and their indexes, \
                        use keyward copy SOURCE TARGET, or import its export into a new store with --raw. \
                        Single records are written with keyward record, agents' entries with keyward agent.";

fn failed_at(entries: &[Numbered], error: keyward::Error) -> Failure {
    let kind = error.kind();
    let failure = Failure::from(error);
    let failure = if kind == ErrorKind::Reserved { failure.hint(RESERVED) } else { failure };
    match entries {
        [] => failure,
        [only] => failure.at(format_args!("line {}", only.line)),
        [first, .., last] => failure.at(format_args!("lines {} to {}", first.line, last.line)),
    }
}

#[cfg(test)]
mod tests {
    use keyward::{Json, Key, Put};

    use super::*;
    use crate::exit::Exit;

    async fn import(url: &str, if_absent: bool) -> Import {
        Import { store: keyward::open(url).await.unwrap(), if_absent, tally: Tally::default() }
    }

    fn numbered(keys: &[&str]) -> Vec<Numbered> {
        let entry = |(key, line): (&&str, u64)| Numbered {
            line,
            key: Key::parse(key).unwrap(),
            put: Put::new(Json::from_integer(1)),
        };
        keys.iter().zip(1..).map(entry).collect()
    }

    #[tokio::test]
    async fn keys_that_are_there_are_left_alone_if_so_asked() {
        for url in ["memory:", "memory:?tier=recoverable"] {
            let mut import = import(url, true).await;
            let there = Key::parse("b").unwrap();
            let old = Put::new(Json::from_integer(0));
            import.store.put(there.clone(), old.clone()).await.unwrap();
            for entry in
                numbered(&["a", "b", "c"]).chunks(import.store.limits().commit_keys_max.min(3))
            {
                import.store(entry).await.unwrap();
            }
            assert_eq!((import.tally.imported, import.tally.kept), (2, 1));
            let kept = import.store.get(&there).await.unwrap().unwrap();
            assert_eq!(kept.value, old.value);
        }
    }

    #[tokio::test]
    async fn an_entry_the_store_will_not_have_is_found_by_its_line() {
        let mut import = import("memory:", false).await;
        let long = "k".repeat(import.store.limits().key_bytes_max + 1);
        let failure = import.store(&numbered(&["a", "b", &long, "d"])).await.unwrap_err();
        assert_eq!(failure.code(), Exit::Unable.code());
        let mut told = Vec::new();
        failure.tell(&mut told, false).unwrap();
        assert!(told.starts_with(b"error: line 3: the key kkk"));
        assert_eq!(import.tally.imported, 2);
    }

    #[tokio::test]
    async fn a_store_that_cannot_compare_says_so_at_the_first_line() {
        let mut import = import("memory:?tier=advisory", true).await;
        let failure = import.store(&numbered(&["a"])).await.unwrap_err();
        assert_eq!(failure.code(), Exit::Unable.code());
        assert_eq!(import.tally.imported, 0);
    }
}
