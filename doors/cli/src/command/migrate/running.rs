//! What all migrations have in common here.

use std::time::Duration;

use futures_util::future::BoxFuture;
use indicatif::HumanCount;
use keyward::migrate::{Migration, Migrator, Pause, Preview, State};
use keyward::records::Records;
use keyward::{Code, Data};
use serde::Serialize;

use super::How;
use crate::args::{HOW_TO_MAKE_ONE, no_store};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;

/// Waits by the machine's clock.
pub struct Waiting;

impl Pause for Waiting {
    fn pause(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// Migrations of a store, in the name of whoever is at the keyboard.
pub fn migrator(records: Records, how: &How) -> Migrator {
    let who = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    Migrator::new(records, Waiting).rate(how.rate).by(who.unwrap_or_else(|| "keyward".to_owned()))
}

/// The records of the store that a space lives in, which must be there.
pub async fn records_of(data: &Data, space: &str) -> Result<Records> {
    let store = data.store_of(space)?;
    match data.existing_records(store).await? {
        Some(records) => Ok(records),
        None => {
            let message = no_store(&data.url(store)?);
            Err(Failure::new(Code::NotFound, message).hint(HOW_TO_MAKE_ONE))
        }
    }
}

/// Runs a migration with its progress shown, until it ends or Ctrl-C is pressed.
pub async fn shown<F>(
    run: impl FnOnce(Progress) -> F,
    what: &str,
    output: &Output,
) -> Result<Migration>
where
    F: Future<Output = keyward::migrate::Result<Migration>>,
{
    let mut interrupt = Interrupt::listen().await;
    let progress = Progress::counted(what, "records", None, output);
    tokio::select! {
        migration = run(progress) => Ok(migration?),
        () = interrupt.wait() => Err(Failure::interrupted("interrupted")
            .hint("Running it again goes on from there.")),
    }
}

/// How far a migration came, as one number that only rises.
pub fn reached(migration: &Migration) -> u64 {
    let counts = &migration.counts;
    counts.records + counts.checked + counts.swept
}

#[derive(Serialize)]
struct Would<'p> {
    would: &'p str,
    rows: u64,
    changed: u64,
    /// Whether all rows were counted.
    whole: bool,
    examples: &'p [(String, String)],
    problem_count: u64,
    problems: &'p [keyward::migrate::Problem],
}

/// Shows what would be done.
pub fn tell_preview(
    would: &str,
    rows: &str,
    preview: &Preview,
    how: &How,
    output: &mut Output,
) -> Result {
    if output.json() {
        return output.write_json(&Would {
            would,
            rows: preview.rows,
            changed: preview.changed,
            whole: preview.is_whole,
            examples: &preview.examples,
            problem_count: preview.problem_count,
            problems: &preview.problems,
        });
    }
    let more = if preview.is_whole { "" } else { "more than " };
    writeln!(output, "would {would}: {more}{} {rows}", HumanCount(preview.rows))?;
    for (old, new) in &preview.examples {
        writeln!(output, "  {old} → {new}")?;
    }
    let shown = how.problems.min(preview.problems.len());
    if preview.problem_count > 0 {
        write!(output, "could not: {}", HumanCount(preview.problem_count))?;
        tell_shown(shown, preview.problem_count, output)?;
        if shown < preview.problems.len() {
            write!(output, "; --problems {} shows more", preview.problems.len())?;
        }
        writeln!(output)?;
    }
    for problem in &preview.problems[..shown] {
        writeln!(output, "  {}: {}", problem.key, problem.message)?;
    }
    Ok(())
}

/// Says how many of the problems follow, if not all do.
fn tell_shown(shown: usize, problems: u64, output: &mut Output) -> Result {
    let shown = shown as u64;
    if shown == problems {
        return Ok(());
    }
    write!(output, ", {} of {} shown", HumanCount(shown), HumanCount(problems))
}

/// Says that nothing was done.
pub fn tell_how(output: &mut Output) -> Result {
    if output.json() { Ok(()) } else { writeln!(output, "nothing was done; --yes does it") }
}

/// Shows what was done, with what could not be.
pub fn tell(migration: &Migration, output: &mut Output) -> Result {
    if output.json() {
        return output.write_json(migration);
    }
    let state = match migration.state {
        State::Running => "stopped",
        State::Done => "done",
        State::Failed => "failed",
        State::Abandoned => "abandoned",
    };
    write!(output, "{state}: {}", migration.definition)?;
    let counts = &migration.counts;
    for (count, what) in [
        (counts.records, "records"),
        (counts.changed, "changed"),
        (counts.entries, "entries added"),
        (counts.swept, "entries removed"),
        (counts.problems, "problems"),
    ] {
        if count > 0 {
            write!(output, ", {} {what}", HumanCount(count))?;
        }
    }
    if migration.best_effort {
        write!(output, " (best effort: the last writer wins here; keyward doctor finds the rest)")?;
    }
    tell_shown(migration.problems.len(), counts.problems, output)?;
    writeln!(output)?;
    for problem in &migration.problems {
        writeln!(output, "  {}: {}", problem.key, problem.message)?;
    }
    Ok(())
}

/// Ends well only if all was done.
pub fn conclude<'m>(migrations: impl IntoIterator<Item = &'m Migration>) -> Result {
    let failed = migrations.into_iter().any(|migration| migration.state != State::Done);
    if failed { Err(Failure::told(Exit::Differs)) } else { Ok(()) }
}
