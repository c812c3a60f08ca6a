//! Plans and runs for people.

use indicatif::HumanCount;
use keyward::registry::{Operation, Plan, Problem, Run, RunStatus, Step};

use crate::failure::Result;
use crate::output::Output;
use crate::queues::one_line;
use crate::registries::short;
use crate::table::Table;

/// Steps that are shown before somebody is asked.
const STEPS_BEFORE_ASKING: usize = 40;

/// Writes a plan: a line for each step and each problem, and what that comes to.
pub fn write_plan(plan: &Plan, all: bool, output: &mut Output) -> Result {
    let shown = if all { plan.steps.len() } else { STEPS_BEFORE_ASKING };
    let mut table = Table::default();
    for step in plan.steps.iter().take(shown) {
        let Step { operation, policy_name, title, path, .. } = step;
        table.row([operation.as_str(), policy_name, title, path, &ids(step), &note(step)]);
    }
    table.write("", output)?;
    if let Some(more) = plan.steps.len().checked_sub(shown).filter(|more| *more > 0) {
        writeln!(output, "… and {} more, which --plan shows", HumanCount(more as u64))?;
    }
    write_problems(&plan.problems, plan.problems.len() as u64, output)?;
    if !plan.steps.is_empty() || !plan.problems.is_empty() {
        writeln!(output)?;
    }
    let looked = match plan.whole {
        true => counted(plan.scanned, "file"),
        false => format!("{} that changed", counted(plan.scanned, "file")),
    };
    let at = match plan.previous_commit.as_deref() {
        Some(previous) if previous != plan.commit => {
            format!("from {} to {}", short(previous), short(&plan.commit))
        }
        _ => format!("at {}", short(&plan.commit)),
    };
    let count = |operation| HumanCount(plan.count(operation));
    let changes = match plan.steps.is_empty() {
        true => "nothing to do".to_owned(),
        false => format!(
            "{} to add, {} to update, {} to delete",
            count(Operation::Add),
            count(Operation::Update),
            count(Operation::Delete)
        ),
    };
    let left = left_alone(plan.problems.len() as u64);
    writeln!(output, "{} {at}, {looked}: {changes}{left}", plan.registry)
}

/// Writes how a run ended.
pub fn write_run(registry: &str, run: &Run, output: &mut Output) -> Result {
    write_problems(&run.errors, run.error_count, output)?;
    let commit = run.commit.as_deref().map_or("no commit", short);
    let verb = match run.status {
        RunStatus::Success | RunStatus::Partial => "is at",
        RunStatus::Running | RunStatus::Failed => "is not at",
    };
    writeln!(
        output,
        "{registry} {verb} {commit}: {} added, {} updated, {} deleted{} ({})",
        HumanCount(run.added),
        HumanCount(run.updated),
        HumanCount(run.deleted),
        left_alone(run.error_count),
        seconds(run.duration_ms)
    )
}

/// Writes what was left alone, and why; how many in all.
pub fn write_problems(problems: &[Problem], count: u64, output: &mut Output) -> Result {
    for Problem { path, reason } in problems {
        writeln!(output, "left alone  {}: {}", one_line(path), one_line(reason))?;
    }
    match count.saturating_sub(problems.len() as u64) {
        0 => Ok(()),
        more => writeln!(output, "… and {} more", HumanCount(more)),
    }
}

fn left_alone(count: u64) -> String {
    match count {
        0 => String::new(),
        count => format!(", {} left alone", HumanCount(count)),
    }
}

/// The id of a policy's content, and the one before.
fn ids(step: &Step) -> String {
    match step.old_sha.as_deref() {
        Some(old) if old != step.sha && !old.is_empty() => {
            format!("{} → {}", short(old), short(&step.sha))
        }
        _ => short(&step.sha).to_owned(),
    }
}

/// What else there is to say of a step.
fn note(step: &Step) -> String {
    if let Some(from) = &step.renamed_from {
        return format!("renamed from {from}");
    }
    if let Some(title) = &step.moved_from_title {
        return format!("was kept as {title}");
    }
    match step.old_path.as_deref() {
        Some(old) if old != step.path && !old.is_empty() => format!("was in {old}"),
        _ => String::new(),
    }
}

/// A number of things.
pub fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{} {what}s", HumanCount(count)),
    }
}

/// How long something took.
pub fn seconds(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..100_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} s", ms / 1_000),
    }
}
