//! `keyward agent copy`: entries from one store to another, whatever their layouts.

use std::cell::RefCell;

use clap::{Args, ValueEnum};
use indicatif::HumanCount;
use keyward::agents::{CopiedEntries, DocumentId, EntryCopy, OnConflict};
use serde::Serialize;

use super::reach::Reach;
use super::skipped::{self, Allowing};
use crate::args;
use crate::confirm;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;

/// Copy entries to another store, from any layout to any other
///
/// Each entry keeps its user, namespace and key, and so its _id, with its value, metadata, times, who made it and who
/// accessed it. So agent data moves between a store of Keyward's and a CouchDB database, a DynamoDB table or a
/// Firestore collection that is opened with layout=document, or between two of those.
///
/// --plan shows what would be copied and what the target would refuse, and changes nothing; --apply does it; without
/// either, the plan is shown and you are asked. What the target holds already is not written: a copy that was
/// interrupted goes on when it is run again, and a later one brings what has changed since. Entries that only the
/// target holds stay there. History and settings are each store's own; entries that expire are left out where the
/// target's cannot. Exits with 10 if the source, with layout=document, holds documents that cannot be copied, unless
/// --allow-skipped is given; all others are copied.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward -s embedded:./data agent copy --to embedded:./copy --user ada --plan
  keyward -s embedded:./data agent copy --to "couchdb://user:password@127.0.0.1:5984/agents?layout=document" --apply
  keyward -s "dynamodb://eu-west-1/agent_data_store?layout=document" agent copy --user ada --to embedded:./data --apply
  keyward agent copy --to embedded:./copy --all-users -n notes --on-conflict newer --apply"#)]
pub struct Arguments {
    /// The store to write, for example embedded:./copy
    #[arg(long, value_name = "URL")]
    to: String,
    /// Only this namespace; all of them if left out
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Copy the entries of all users; stores with layout=document cannot list theirs
    #[arg(long)]
    all_users: bool,
    /// What happens to an entry that is something else in the target
    #[arg(long, value_enum, default_value_t)]
    on_conflict: Policy,
    /// Show what would be copied, and change nothing
    #[arg(long, visible_alias = "dry-run", conflicts_with = "apply")]
    plan: bool,
    /// Copy
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    allowing: Allowing,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Policy {
    /// The copy stops there
    #[default]
    Stop,
    /// The target's entry stays
    Keep,
    /// The source's entry takes its place
    Replace,
    /// The one that was updated later counts
    Newer,
}

impl From<Policy> for OnConflict {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Stop => Self::Stop,
            Policy::Keep => Self::Keep,
            Policy::Replace => Self::Replace,
            Policy::Newer => Self::Newer,
        }
    }
}

/// What was copied, or would be.
#[derive(Serialize)]
struct Copied {
    outcome: &'static str,
    added: u64,
    replaced: u64,
    /// Entries that the target holds already.
    equal: u64,
    /// Entries that are something else in the target, and stay so.
    kept: u64,
    /// Entries that expire, which the target's cannot.
    expiring: u64,
    /// The first of those that are something else in the target.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differing: Vec<String>,
    /// Entries that the target refuses, by a plan.
    refused: u64,
    /// The first of those.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refusals: Vec<Refusal>,
    /// Documents of the source that are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_skipped: Option<String>,
}

#[derive(Serialize)]
struct Refusal {
    #[serde(rename = "_id")]
    id: String,
    reason: String,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    if !arguments.plan && !arguments.apply && !confirm::can_ask(output) {
        return Err(confirm::unsaid());
    }
    if !arguments.apply {
        let planned = work(&arguments, reach, false, output).await?;
        tell(&planned, false, output)?;
        output.flush()?;
        skipped::tell(&planned.skipped);
        if arguments.plan || planned.added + planned.replaced == 0 {
            return Ok(());
        }
        confirm::ask(format_args!("Copy this to {}?", args::shown(&arguments.to)))?;
    }
    let copied = work(&arguments, reach, true, output).await?;
    tell(&copied, true, output)?;
    output.flush()?;
    arguments.allowing.check(&copied.skipped, "copy")
}

/// Plans or copies, and shows how far it is.
async fn work(
    arguments: &Arguments,
    reach: &Reach<'_>,
    apply: bool,
    output: &Output,
) -> Result<CopiedEntries> {
    let (source, target) = reach.both(&arguments.to, apply).await?;
    let mut copy = EntryCopy::new(source, target).on_conflict(arguments.on_conflict.into());
    if !arguments.all_users {
        copy = copy.user(reach.user());
    }
    if let Some(namespace) = &arguments.namespace {
        copy = copy.namespace(namespace);
    }
    let mut interrupt = Interrupt::listen().await;
    let what = if apply { "copying" } else { "comparing" };
    let progress = Progress::counted(what, "entries", None, output);
    let so_far = RefCell::new(CopiedEntries::default());
    let reached = |copied: &CopiedEntries| {
        progress.reach(copied.entries());
        so_far.replace(copied.clone());
    };
    let working = async {
        match apply {
            true => copy.apply(reached).await,
            false => copy.plan(reached).await,
        }
    };
    let done = tokio::select! {
        done = working => done.map_err(Failure::from),
        () = interrupt.wait() => Err(Failure::interrupted("interrupted")),
    };
    drop(progress);
    done.map_err(|failure| {
        if !apply {
            return failure;
        }
        let written = entries(so_far.borrow().added + so_far.borrow().replaced);
        failure.also(&format!("Copied before that: at least {written}. Running it again goes on."))
    })
}

fn tell(copied: &CopiedEntries, applied: bool, output: &mut Output) -> Result {
    let &CopiedEntries { added, replaced, equal, kept, expiring, refused, .. } = copied;
    let CopiedEntries { differing, refusals, .. } = copied;
    if output.json() {
        let outcome = if applied { "copied" } else { "planned" };
        let differing = differing.iter().map(ToString::to_string).collect();
        let refusal = |(id, reason): &(DocumentId, String)| Refusal {
            id: id.to_string(),
            reason: reason.clone(),
        };
        let refusals = refusals.iter().map(refusal).collect();
        return output.write_json(&Copied {
            outcome,
            added,
            replaced,
            equal,
            kept,
            expiring,
            differing,
            refused,
            refusals,
            skipped: Some(copied.skipped.documents).filter(|count| *count > 0),
            last_skipped: copied.skipped.last_id.clone(),
        });
    }
    let copied = entries(added + replaced);
    write!(output, "{} {copied}", if applied { "copied" } else { "to copy:" })?;
    for (count, what) in [
        (replaced, "of which the target has another state"),
        (equal, "equal already"),
        (kept, "different in the target and kept"),
        (expiring, "left out because they expire"),
        (refused, "refused by the target, where the copy would stop"),
    ] {
        if count > 0 {
            write!(output, ", {} {what}", HumanCount(count))?;
        }
    }
    writeln!(output)?;
    for id in differing {
        writeln!(output, "differs  {id}")?;
    }
    for (id, reason) in refusals {
        writeln!(output, "refused  {id}: {reason}")?;
    }
    Ok(())
}

fn entries(count: u64) -> String {
    match count {
        1 => "1 entry".to_owned(),
        count => format!("{} entries", HumanCount(count)),
    }
}
