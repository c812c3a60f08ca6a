//! Registries that a server keeps: the server runs them.

use keyward::registry::{Operation, Plan, Problem, Run, RunStatus, Settings, Step};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Arguments;
use super::shown::{write_plan, write_run};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::progress::Progress as Bar;
use crate::registries::short;
use crate::served::{Served, read};

/// A plan, as a server tells it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Planned {
    registry: String,
    commit: String,
    previous_commit: Option<String>,
    steps: Vec<PlannedStep>,
    problems: Vec<Problem>,
    scanned: u64,
    entries: u64,
    whole: bool,
    blobs_read: u64,
    counts: Counts,
}

#[derive(Deserialize)]
struct Counts {
    add: u64,
    update: u64,
    delete: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlannedStep {
    operation: Operation,
    policy_name: String,
    title: String,
    sha: String,
    path: String,
    old_sha: Option<String>,
    old_path: Option<String>,
    renamed_from: Option<String>,
    moved_from_title: Option<String>,
}

/// What became of a request to run.
#[derive(Deserialize)]
struct Begun {
    outcome: String,
    commit: Option<String>,
    run: Option<Run>,
}

/// Whether a server keeps a registry of this name, as far as the key reaches.
pub async fn keeps(name: &str, server: &Served) -> Result<bool> {
    if Settings::check_name(name).is_err() {
        return Ok(false);
    }
    Ok(server.connection()?.get(&format!("/v1/registries/{name}")).await.is_ok())
}

/// Shows the plan of a registry that a server keeps, or has the server run it.
pub async fn run(
    name: &str,
    arguments: &Arguments,
    server: &Served,
    output: &mut Output,
) -> Result {
    if arguments.deliver {
        return Err(Failure::invalid("a server tells the consumers of its registries itself")
            .hint("Leave out --deliver."));
    }
    let connection = server.connection()?;
    // A name has no characters that a path would need escapes for.
    Settings::check_name(name)
        .map_err(|problem| Failure::invalid(format!("{name}: {}", problem.reason)))?;
    let path = |what: &str| format!("/v1/registries/{name}/{what}");
    if arguments.plan {
        let looking = Bar::working("looking at the repository", output);
        let body = json!({ "full": arguments.full }).to_string();
        let answer = connection.post(&path("plan"), body).await?;
        drop(looking);
        if output.json() {
            return output.write_json(&read::<Value>(&answer)?);
        }
        return shown(read(&answer)?, output);
    }
    let body = json!({ "full": arguments.full, "allow_mass_delete": arguments.allow_mass_delete });
    let running = Bar::working("the server runs it", output);
    let answer = connection.post(&path("runs?wait=true"), body.to_string()).await?;
    drop(running);
    let begun: Begun = read(&answer)?;
    if output.json() {
        output.write_json(&read::<Value>(&answer)?)?;
    } else {
        match (begun.outcome.as_str(), &begun.run, &begun.commit) {
            ("ended", Some(run), _) => write_run(name, run, output)?,
            ("unchanged", _, Some(commit)) => {
                writeln!(output, "{name} is at {} already: nothing to do", short(commit))?;
            }
            _ => writeln!(
                output,
                "{name}: the run goes on in the server (keyward registry runs {name})"
            )?,
        }
    }
    match begun.run {
        Some(run) if run.status != RunStatus::Success => Err(Failure::told(Exit::Differs)),
        _ => Ok(()),
    }
}

fn shown(planned: Planned, output: &mut Output) -> Result {
    let Counts { add, update, delete } = planned.counts;
    let left = (add + update + delete).saturating_sub(planned.steps.len() as u64);
    let plan = Plan {
        registry: planned.registry,
        commit: planned.commit,
        previous_commit: planned.previous_commit,
        steps: planned.steps.into_iter().map(Step::from).collect(),
        problems: planned.problems,
        scanned: planned.scanned,
        entries: planned.entries,
        whole: planned.whole,
        blobs_read: planned.blobs_read,
    };
    write_plan(&plan, true, output)?;
    match left {
        0 => Ok(()),
        _ => writeln!(output, "in all {add} to add, {update} to update, {delete} to delete"),
    }
}

impl From<PlannedStep> for Step {
    fn from(step: PlannedStep) -> Self {
        Self {
            operation: step.operation,
            policy_name: step.policy_name,
            title: step.title,
            sha: step.sha,
            path: step.path,
            old_sha: step.old_sha,
            old_path: step.old_path,
            renamed_from: step.renamed_from,
            moved_from_title: step.moved_from_title,
        }
    }
}
