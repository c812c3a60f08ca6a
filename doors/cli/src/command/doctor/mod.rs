mod verdict;

use clap::Args;
use indicatif::HumanCount;
use keyward::migrate::{Found, Report};
use keyward::records::Records;
use keyward::{Code, Data, ErrorKind, KeyRange, Sharing};
use serde::Serialize;

use self::verdict::Verdict;
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
/// with 10 if something is left or the probe finds a broken promise, and with 8 if the data file of an embedded
/// store is damaged.
///
/// --probe ends with a verdict: whether this server keeps what the engine promises, and if it does not, what that
/// voids. Some servers acknowledge stale writes. Run it once against every new server or version, before data is
/// entrusted to it. A store with layout=document is probed, and its database asked for conflicts of replication, but
/// not looked through: its index lists one user at a time.
#[derive(Debug, Args)]
#[command(after_help = r##"Examples:
  keyward doctor
  keyward doctor --repair
  keyward doctor --probe --json
  keyward doctor --probe -s "couchdb://user:password@127.0.0.1:5984/app""##)]
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
    /// Whether the store was looked through.
    examined: bool,
    /// Whether keys and values were compared with a schema.
    schema: bool,
    #[serde(flatten)]
    verdict: Option<&'r Verdict>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    // A store that a schema declares may not be there yet.
    let may_lack = target.server()?.is_some() || target.schema_file_if_any()?.is_some();
    let may_lack = may_lack && !target.store_is_asked_for();
    let data = target.data_or_store().await?;
    // Where no space is declared, there is nothing to compare keys and values with.
    let schema = !data.schema().spaces.is_empty();
    let mut left = 0;
    for store in &data.schema().stores {
        let Some(records) = data.existing_records(&store.name).await? else {
            if may_lack {
                continue;
            }
            let missing = no_store(&data.url(&store.name)?);
            return Err(Failure::new(Code::NotFound, missing).hint(HOW_TO_MAKE_ONE));
        };
        let has_layout = keyward::has_document_layout(&data.url(&store.name)?);
        if has_layout && !arguments.probe {
            let message = "a store with layout=document cannot be looked through: its index lists one user at a time";
            return Err(Failure::new(Code::Unsupported, message)
                .hint("Add --probe to try whether its database keeps what the engine promises."));
        }
        let verdict = match arguments.probe {
            true => Some(Verdict::of(records.store(), has_layout).await?),
            false => None,
        };
        let report = match has_layout {
            true => conflicts(&records, output).await?,
            false => {
                let mode = Mode { schema, repair: arguments.repair };
                examine(records, mode, &store.name, &data, target, output).await?
            }
        };
        left += report.left();
        left += u64::from(verdict.as_ref().is_some_and(Verdict::is_negative));
        let examined = !has_layout;
        let examined = Looked { store: &store.name, report, examined, schema, verdict };
        examined.tell(arguments.repair, output)?;
    }
    if left > 0 { Err(Failure::told(Exit::Differs)) } else { Ok(()) }
}

#[derive(Clone, Copy)]
struct Mode {
    schema: bool,
    repair: bool,
}

/// Looks through a store.
async fn examine(
    records: Records,
    mode: Mode,
    store: &str,
    data: &Data,
    target: &Target,
    output: &Output,
) -> Result<Report> {
    let rules = guard::rules_of(target, data, store)?;
    // What a database server finds is a finding of the doctor.
    if records.store().capabilities().sharing != Sharing::Network {
        records.store().verify(&KeyRange::all()).await?;
    }
    let entries = match records.store().counts_by_reading() {
        true => None,
        false => Some(records.store().stats().await?.entries),
    };
    let progress = Progress::counted("examining", "keys", entries, output);
    let doctor = keyward::doctor(records, rules).await?;
    let doctor = if mode.schema { doctor } else { doctor.without_schema() };
    let doctor = doctor.repair(mode.repair).pausing(Waiting);
    Ok(doctor.run(|so_far| progress.reach(so_far.keys)).await?)
}

/// What a database with another program's layout reports itself: conflicts of replication.
async fn conflicts(records: &Records, output: &Output) -> Result<Report> {
    let _looking = Progress::working("looking for conflicts", output);
    let mut report = Report::default();
    let store = records.store();
    if let Err(error) = store.verify(&KeyRange::all()).await {
        if error.kind() != ErrorKind::Corrupt {
            return Err(error.into());
        }
        let advice = error.advice().map(|advice| format!(". {advice}")).unwrap_or_default();
        let (code, key) = ("damaged", store.capabilities().engine.to_owned());
        let message = format!("{error}{advice}");
        report.counts.insert(code, 1);
        report.found.push(Found { code, key, message, repairable: false, repaired: false });
    }
    Ok(report)
}

/// What came of looking at one store.
struct Looked<'r> {
    store: &'r str,
    report: Report,
    /// Whether the whole store was looked through.
    examined: bool,
    schema: bool,
    verdict: Option<Verdict>,
}

impl Looked<'_> {
    fn tell(&self, repair: bool, output: &mut Output) -> Result {
        let Self { store, report, examined, schema, verdict } = self;
        if output.json() {
            let (left, examined, schema) = (report.left(), *examined, *schema);
            let verdict = verdict.as_ref();
            return output.write_json(&Examined { store, report, left, examined, schema, verdict });
        }
        tell_report(report, repair, output)?;
        if !examined {
            write!(output, "{store}: not looked through (layout=document)")?;
        } else {
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
        }
        match verdict {
            Some(verdict) => verdict.tell(output),
            None => writeln!(output),
        }
    }
}

/// Writes the findings.
fn tell_report(report: &Report, repair: bool, output: &mut Output) -> Result {
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
        (0, _) => Ok(()),
        (expired, 0) => {
            let expired = HumanCount(expired);
            writeln!(output, "{expired} expired entries still take space (--repair reclaims it)")
        }
        (expired, reclaimed) => {
            let (expired, reclaimed) = (HumanCount(expired), HumanCount(reclaimed));
            writeln!(output, "{reclaimed} of {expired} expired entries reclaimed")
        }
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
