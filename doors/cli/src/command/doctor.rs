use clap::Args;
use indicatif::HumanCount;
use keyward::migrate::{Doctor, Probed, Report, probe};
use keyward::{KeyRange, SystemClock};
use serde::Serialize;

use super::migrate::Waiting;
use crate::args::Target;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::progress::Progress;

/// Look through whole stores for what is not as it should be
///
/// Finds keys that no pattern of the schema matches, index entries that are missing, orphaned or of
/// no index, values that do not fit their schema or a limit, marks that writers left, and indexes
/// that are not as declared. Others may read and write meanwhile: on engines without commits of
/// several keys, what may be a writer's work is looked at again after a second. --repair removes and adds index
/// entries and removes marks; it never touches a record. Exits with 10 if something is left, and with 8
/// if the data file of an embedded store is damaged.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<String>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let data = target.data().await?;
    let mut left = 0;
    for store in &data.schema().stores {
        let Some(records) = data.existing_records(&store.name).await? else { continue };
        let locks = data.schema().locks.iter().filter(|tree| tree.store == store.name);
        let roots = locks.map(|tree| tree.root.clone());
        let probed = match arguments.probe {
            true => Some(probe(records.store(), &SystemClock).await?),
            false => None,
        };
        records.store().verify(&KeyRange::all()).await?;
        let entries = records.store().stats().await?.entries;
        let progress = Progress::counted("examining", "keys", Some(entries), output);
        let doctor = Doctor::new(records).knowing(roots).repair(arguments.repair).pausing(Waiting);
        let report = doctor.run(|so_far| progress.reach(so_far.keys)).await?;
        drop(progress);
        left += report.left() + u64::from(matches!(probed, Some(Probed::Broken(_))));
        tell(&store.name, &report, probed, output)?;
    }
    if left > 0 { Err(Failure::told(Exit::Differs)) } else { Ok(()) }
}

fn tell(store: &str, report: &Report, probed: Option<Probed>, output: &mut Output) -> Result {
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
        return output.write_json(&Examined { store, report, left, probe, broken });
    }
    for found in &report.found {
        let outcome = match (found.repaired, found.repairable) {
            (true, _) => " (repaired)",
            (false, true) => " (--repair mends it)",
            (false, false) => "",
        };
        writeln!(output, "{} {}: {}{outcome}", found.code, found.key, found.message)?;
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
    if let Some(probe) = probe {
        write!(output, ", the engine is {probe}")?;
    }
    if let Some(broken) = broken {
        write!(output, ": {broken}")?;
    }
    writeln!(output)
}
