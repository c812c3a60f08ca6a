use clap::Args;
use indicatif::HumanCount;
use keyward::migrate::{Found, Probed, Report, probe};
use keyward::{KeyRange, SystemClock};
use serde::Serialize;

use super::migrate::Waiting;
use crate::args::{HOW_TO_MAKE_ONE, Target, no_store};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::guard;
use crate::output::Output;
use crate::progress::Progress;

/// Look through whole stores for what is not as it should be
///
/// Finds keys that no pattern of the schema matches, index entries that are missing, orphaned or of
/// no index, values that do not fit their schema or a limit, marks that writers left, and indexes
/// that are not as declared. Two records with one value of a unique index are both named: which of them
/// keeps it is for you to decide. Keyward's own entries are known: locks, cached results, queues, and
/// what registries and agreements keep. Without a schema, keys and values are not compared with one, and
/// everything else is checked. Expired entries whose space is not reclaimed yet are counted; they are no
/// finding. Others may read and write meanwhile: on engines without commits of
/// several keys, what may be a writer's work is looked at again after a second. --repair removes and adds index
/// entries, removes marks and reclaims the space of expired entries; it never touches a record. Exits
/// with 10 if something is left, and with 8 if the data file of an embedded store is damaged.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward doctor
  keyward doctor --repair
  keyward doctor --probe --json"#)]
pub struct Arguments {
    /// Mend what is safe to mend
    #[arg(long)]
    repair: bool,
    /// Also try on scratch keys whether the engine keeps its promises: one of several writers wins,
    /// what was written is there, versions are new, commits whole, scans complete and in order
    #[arg(long)]
    probe: bool,
}

#[derive(Serialize)]
struct Examined<'r> {
    store: &'r str,
    #[serde(flatten)]
    report: &'r Report,
    left: u64,
    /// Whether keys and values were compared with a schema.
    schema: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<String>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let named = target.server()?.is_some() || target.schema_file_if_any()?.is_some();
    let data = target.data_or_store().await?;
    // Where no space is declared, there is nothing to compare keys and values with.
    let schema = !data.schema().spaces.is_empty();
    let mut left = 0;
    for store in &data.schema().stores {
        let Some(records) = data.existing_records(&store.name).await? else {
            if named {
                continue;
            }
            let missing = no_store(&data.url(&store.name)?);
            return Err(Failure::new(Exit::Absent, "not-found", missing).hint(HOW_TO_MAKE_ONE));
        };
        let rules = guard::rules_of(target, &data, &store.name)?;
        let probed = match arguments.probe {
            true => Some(probe(records.store(), &SystemClock).await?),
            false => None,
        };
        records.store().verify(&KeyRange::all()).await?;
        let entries = records.store().stats().await?.entries;
        let progress = Progress::counted("examining", "keys", Some(entries), output);
        let doctor = keyward::doctor(records, rules).await?;
        let doctor = if schema { doctor } else { doctor.without_schema() };
        let doctor = doctor.repair(arguments.repair).pausing(Waiting);
        let report = doctor.run(|so_far| progress.reach(so_far.keys)).await?;
        drop(progress);
        left += report.left() + u64::from(matches!(probed, Some(Probed::Broken(_))));
        let examined = Looked { store: &store.name, report: &report, schema, probed };
        examined.tell(arguments.repair, output)?;
    }
    if left > 0 { Err(Failure::told(Exit::Differs)) } else { Ok(()) }
}

/// What came of looking at one store.
struct Looked<'r> {
    store: &'r str,
    report: &'r Report,
    schema: bool,
    probed: Option<Probed>,
}

impl Looked<'_> {
    fn tell(&self, repair: bool, output: &mut Output) -> Result {
        let Self { store, report, schema, probed } = *self;
        let probe = probed.map(|probed| match probed {
            Probed::Sound { .. } => "sound",
            Probed::Broken(_) => "broken",
            Probed::Unclear => "unclear",
            Probed::Unsupported => "unsupported",
        });
        let broken = match probed {
            Some(Probed::Broken(promise)) => Some(promise.to_string()),
            _ => None,
        };
        if output.json() {
            let left = report.left();
            return output.write_json(&Examined { store, report, left, schema, probe, broken });
        }
        for found in &report.found {
            let Found { code, key, message, .. } = found;
            writeln!(output, "{code} {key}: {message}{}", outcome(found, repair))?;
        }
        let found: u64 = report.counts.values().sum();
        let shown = report.found.len() as u64;
        if shown < found {
            writeln!(output, "{} of {} findings shown", HumanCount(shown), HumanCount(found))?;
        }
        match (report.expired.unwrap_or_default(), report.reclaimed) {
            (0, _) => {}
            (expired, 0) => {
                let expired = HumanCount(expired);
                writeln!(
                    output,
                    "{expired} expired entries still take space (--repair reclaims it)"
                )?;
            }
            (expired, reclaimed) => {
                let (expired, reclaimed) = (HumanCount(expired), HumanCount(reclaimed));
                writeln!(output, "{reclaimed} of {expired} expired entries reclaimed")?;
            }
        }
        write!(output, "{store}: {} keys, ", HumanCount(report.keys))?;
        match (report.left(), report.repaired) {
            (0, 0) => write!(output, "all well")?,
            (left, 0) => write!(output, "{} findings", HumanCount(left))?,
            (left, repaired) => {
                let (left, repaired) = (HumanCount(left), HumanCount(repaired));
                write!(output, "{repaired} findings repaired, {left} left")?;
            }
        }
        if !schema {
            write!(output, " (no schema to compare with)")?;
        }
        if let Some(probe) = probe {
            write!(output, ", the engine is {probe}")?;
        }
        if let Some(broken) = broken {
            write!(output, ": {broken}")?;
        }
        writeln!(output)
    }
}

/// What became of a finding, or can.
fn outcome(found: &Found, repair: bool) -> &'static str {
    match (found.repaired, found.repairable, repair) {
        (true, _, _) => " (repaired)",
        (false, true, false) => " (--repair mends it)",
        (false, true, true) => " (not repaired: it changed meanwhile; run doctor again)",
        (false, false, _) => "",
    }
}
