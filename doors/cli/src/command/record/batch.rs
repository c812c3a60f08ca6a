use std::io::BufReader;
use std::path::PathBuf;

use clap::Args;
use keyward::records::{self, Operation, Space, Written};
use keyward::{Code, ErrorKind, Tier};
use tokio::sync::mpsc;

use super::operation::{self, Numbered, Size};
use super::reach::Reach;
use super::written::{self, accepted};
use crate::failure::{Failure, Result};
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// Change many records of a space
///
/// Reads a change a line, as JSON: op (put, create, merge or delete) and key; value for all but
/// delete; metadata and ttl ("7d", or "never") for put and create; if_match, a version, for all but
/// create. Changes are made in the order of the lines, and each is told as put tells it. The first
/// that is refused ends it: what stands before it is done, what comes after is not.
///
/// With --together all changes are made in one commit, or none of them; engines of the atomic tier
/// can do that.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward record batch notes changes.jsonl --as ada
  echo '{"op":"merge","key":"user:ada:notes:n1","value":{"done":true}}' | keyward record batch notes
  keyward record batch accounts transfer.jsonl --together"#)]
pub struct Arguments {
    /// The space, as the schema calls it
    space: String,
    /// The file to read, or - for standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Make all changes in one commit, or none of them
    #[arg(long)]
    together: bool,
}

pub async fn run(arguments: Arguments, reach: &Reach, output: &mut Output) -> Result {
    let Arguments { space: name, file, together } = arguments;
    reach.declaration(&name)?;
    let (input, _) = input::open_lines(&file)?;
    let limits = reach.limits(&name).await?;
    let size = if together { Size::whole(&limits) } else { Size::pieces(&limits) };
    let mut interrupt = Interrupt::listen().await;
    let (sender, mut pieces) = mpsc::channel(1);
    let reading = tokio::task::spawn_blocking(move || {
        operation::read(BufReader::new(input), size, |piece| sender.blocking_send(piece).is_ok())
    });
    let mut done = 0;
    let mut changed = Ok(());
    while changed.is_ok() {
        let piece: Option<Vec<Numbered>> = tokio::select! {
            piece = pieces.recv() => piece,
            () = interrupt.wait() => {
                changed = Err(Failure::interrupted("interrupted"));
                break;
            }
        };
        let Some(piece) = piece else { break };
        if piece.is_empty() {
            continue;
        }
        let attempt = async |space: &Space| match together {
            true => made_together(space, &piece).await.map(drop),
            // What comes after the first may be refused, and it is still done.
            false => made(space, &piece[0]).await.map(drop),
        };
        changed = match reach.to_write(&name, attempt).await {
            Ok(space) if together => whole(&space, &piece, &mut done, output).await,
            Ok(space) => one_by_one(&space, &piece, &mut done, output).await,
            Err(failure) => Err(failure),
        };
    }
    drop(pieces);
    if changed.is_ok() {
        changed = reading.await.map_err(|error| {
            Failure::new(Code::Internal, format!("reading the input failed: {error}"))
        })?;
    }
    changed.map_err(|failure| match done {
        0 => failure,
        1 => failure.also("The change before that was made."),
        done => failure.also(&format!("The {done} changes before that were made.")),
    })
}

/// All changes or none.
async fn whole(space: &Space, piece: &[Numbered], done: &mut usize, output: &mut Output) -> Result {
    for (one, written) in piece.iter().zip(made_together(space, piece).await?) {
        *done += 1;
        tell(one, written, output)?;
    }
    Ok(())
}

async fn made_together(space: &Space, piece: &[Numbered]) -> Result<Vec<Written>> {
    let written = space.together(operations(piece)).await?;
    for (one, written) in piece.iter().zip(&written) {
        accepted(one.key(), one.expected(), written).map_err(|failure| at_line(one, failure))?;
    }
    Ok(written)
}

/// Changes in their order, up to one that is refused. In one commit if all can be made, since that is
/// faster.
async fn one_by_one(
    space: &Space,
    piece: &[Numbered],
    done: &mut usize,
    output: &mut Output,
) -> Result {
    if piece.len() > 1 && space.guarantee() == Tier::Atomic {
        match space.together(operations(piece)).await {
            Ok(written) if written.iter().all(Written::is_accepted) => {
                for (one, written) in piece.iter().zip(written) {
                    *done += 1;
                    tell(one, written, output)?;
                }
                return Ok(());
            }
            Err(records::Error::Store(error)) if !is_refusal(error.kind()) => {
                return Err(error.into());
            }
            // Nothing was done: one at a time tells which is to blame.
            Ok(_) | Err(_) => {}
        }
    }
    for one in piece {
        let written = made(space, one).await?;
        *done += 1;
        tell(one, written, output)?;
    }
    Ok(())
}

async fn made(space: &Space, one: &Numbered) -> Result<Written> {
    let written = match &one.operation {
        Operation::Put(key, draft) => space.put(key, draft.clone()).await,
        Operation::Merge(key, merge, expect) => {
            space.merge(key, merge.clone(), expect.clone()).await
        }
        Operation::Delete(key, expect) => space.delete(key, expect.clone()).await,
    };
    let written = written.map_err(|error| at_line(one, error.into()))?;
    accepted(one.key(), one.expected(), &written).map_err(|failure| at_line(one, failure))?;
    Ok(written)
}

fn operations(piece: &[Numbered]) -> Vec<Operation> {
    piece.iter().map(|one| one.operation.clone()).collect()
}

fn is_refusal(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Invalid | ErrorKind::LimitExceeded)
}

fn tell(one: &Numbered, written: Written, output: &mut Output) -> Result {
    written::tell(one.key(), one.expected(), written, output)
}

fn at_line(one: &Numbered, failure: Failure) -> Failure {
    failure.at(format_args!("line {}", one.line))
}
