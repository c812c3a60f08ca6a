use std::num::NonZeroU64;

use clap::Args;
use futures_util::StreamExt;
use keyward::{Change, ChangeKind, Code, Entry, Event, KeyRange, Revision, Store, WatchSupport};

use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::line;
use crate::output::{Output, note};

const AGAIN: &str = "Read what is there now (scan), and watch from now on, without --since.";

/// Print changes as they happen
///
/// One line each, until Ctrl-C (which exits with 0). Changes of other processes are seen too. To go
/// on where an earlier watch ended, give --since the last revision it printed; if that history is no
/// longer kept, the command says so and exits with 9. On CouchDB and DynamoDB, only a server can go on:
/// use --server.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward watch
  keyward watch user:7 --values
  keyward watch jobs --since 1042 --json | jq -r .key
  keyward watch --key config --count 1"#)]
pub struct Arguments {
    /// Watch what lies below this prefix, for example user:7; everything if left out
    #[arg(conflicts_with = "key")]
    prefix: Option<String>,
    /// Watch this one key
    #[arg(long)]
    key: Option<String>,
    /// Begin with what changed after this revision, rather than now
    #[arg(long, value_name = "REVISION")]
    since: Option<u64>,
    /// Show what a key that was set holds; if it has changed again meanwhile, the newer value
    #[arg(long)]
    values: bool,
    /// Stop after so many changes
    #[arg(long, value_name = "N")]
    count: Option<NonZeroU64>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let (range, what) = match &arguments.key {
        Some(key) => {
            let key = super::key(key)?;
            (KeyRange::exactly(&key), format!("of {key}"))
        }
        None => {
            let prefix = super::prefix(arguments.prefix.as_deref())?;
            (KeyRange::under(&prefix), super::below(&prefix))
        }
    };
    let store = target.open().await?;
    // A live watch resumes in the process that has the store open: a server's, and not this one's.
    let can_resume = store.capabilities().watch != WatchSupport::Live || target.server()?.is_some();
    let mut interrupt = Interrupt::listen().await;
    let mut events = store.watch(range, arguments.since.map(Revision));
    let mut left = arguments.count.map_or(u64::MAX, NonZeroU64::get);
    let mut begun = false;
    let mut at = None;
    loop {
        let event = tokio::select! {
            event = events.next() => event.transpose()?,
            () = interrupt.wait() => {
                if let (Some(at), true, false) = (at, can_resume, output.json_lines()) {
                    note(format_args!("go on with --since {at}"));
                }
                return Ok(());
            }
        };
        match event {
            Some(Event::Reached(revision)) => {
                if !begun && !output.json_lines() {
                    note(format_args!(
                        "watching for changes {what}, after revision {revision} (Ctrl-C ends)"
                    ));
                }
                begun = true;
                at = Some(revision);
            }
            Some(Event::Changed { revision, changes }) => {
                at = Some(revision);
                let shown = changes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                show(&store, revision, &changes[..shown], arguments.values, output).await?;
                output.flush()?;
                left -= shown as u64;
                if left == 0 {
                    return Ok(());
                }
            }
            Some(Event::TooOld { earliest }) => {
                return Err(match (arguments.since, can_resume) {
                    (Some(since), false) => foreign(&store, since),
                    (since, _) => too_old(&store, since, earliest).await?,
                });
            }
            None => {
                let message = "the store ended the watch";
                return Err(Failure::new(Code::Unavailable, message));
            }
        }
    }
}

async fn show(
    store: &Store,
    revision: Revision,
    changes: &[Change],
    values: bool,
    output: &mut Output,
) -> Result {
    let entries = if values {
        let keys: Vec<_> = changes.iter().map(|change| change.key.clone()).collect();
        store.get_many(&keys).await?
    } else {
        vec![None; changes.len()]
    };
    for (change, entry) in changes.iter().zip(entries) {
        let entry = entry.filter(|_| change.kind == ChangeKind::Put);
        if output.json_lines() {
            output.write_all(&json_line(revision, change, entry.as_ref()))?;
            continue;
        }
        let text = format!("{revision}  {:<7}  {}", kind(change.kind), change.key);
        match entry {
            Some(entry) => output.write_columns(&text, entry.value.as_str())?,
            None => writeln!(output, "{text}")?,
        }
    }
    Ok(())
}

fn json_line(revision: Revision, change: &Change, entry: Option<&Entry>) -> Vec<u8> {
    let kind = kind(change.kind);
    let mut line = format!("{{\"revision\":{revision},\"kind\":\"{kind}\",\"key\":").into_bytes();
    line::write_text(&mut line, &change.key.to_string());
    if let Some(entry) = entry {
        line.extend_from_slice(b",\"value\":");
        line.extend_from_slice(entry.value.as_bytes());
        line.extend_from_slice(b",\"version\":");
        line::write_text(&mut line, &entry.version.to_string());
    }
    line.extend_from_slice(b"}\n");
    line
}

fn kind(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Put => "put",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Expired => "expired",
    }
}

/// A revision of another process, on an engine whose watches are live.
fn foreign(store: &Store, since: u64) -> Failure {
    let message = format!(
        "a watch cannot resume from revision {since}: the {} engine numbers changes anew in each process",
        store.capabilities().engine
    );
    Failure::new(Code::Gone, message).hint(AGAIN)
}

async fn too_old(store: &Store, since: Option<u64>, earliest: Revision) -> Result<Failure> {
    // Elsewhere there is none, and to say so the store might be counted.
    let latest = match store.capabilities().watch {
        WatchSupport::Resumable => store.stats().await?.revision,
        WatchSupport::Live | WatchSupport::Unsupported => None,
    };
    let message = match (since, latest) {
        (Some(since), Some(latest)) if since > latest.0 => {
            format!("revision {since} is yet to come: the store is at {latest}")
        }
        (Some(since), _) => {
            format!(
                "the history after revision {since} is no longer kept; it begins after {earliest}"
            )
        }
        (None, _) => format!(
            "this watch fell behind the history that is kept, which begins after {earliest}"
        ),
    };
    let failure = Failure::new(Code::Gone, message);
    Ok(failure.hint(AGAIN))
}
