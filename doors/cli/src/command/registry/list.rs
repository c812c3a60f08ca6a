use clap::Args;
use keyward::moment_text;
use keyward::registry::{Registry, Status};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::output::{Output, note};
use crate::registries::{Reach, short};
use crate::table::Table;

/// List the registries that the config file declares
///
/// One line each: name, how the last run ended, the commit, how many policies there are, what waits for
/// consumers, and the repository. As JSON lines when a program reads it, or with --json.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward registry list
  keyward registry list --json | jq -r .name"#)]
pub struct Arguments {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'r> {
    name: &'r str,
    repository: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'r str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    folder: &'r str,
    status: &'r str,
    last_run: Option<&'r str>,
    commit: Option<&'r str>,
    policies: Option<u64>,
    waiting: u64,
    dead: u64,
    next_run: Option<String>,
}

pub async fn run(_: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let names = reach.names();
    if names.is_empty() && !output.json() {
        note(format_args!(
            "no registries are declared; write into {}, for one that is called policies:\n  \
             [registries.policies]\n  repository = \"https://…\"",
            reach.file()
        ));
    }
    let mut table = Table::default();
    let mut failed = Ok(());
    for name in names {
        match look(&name, reach).await {
            Ok((registry, status)) => write(&registry, &status, &mut table, output)?,
            Err(failure) => {
                let failure = failure.at(&name);
                let _ = failure.tell(&mut std::io::stderr(), output.json());
                failed = failed.and(Err(failure.into_told()));
            }
        }
    }
    table.write("", output)?;
    failed
}

async fn look(name: &str, reach: &Reach<'_>) -> Result<(Registry, Status), Failure> {
    let registry = reach.to_plan(name).await?;
    let status = registry.status().await?;
    Ok((registry, status))
}

fn write(registry: &Registry, status: &Status, table: &mut Table, output: &mut Output) -> Result {
    let settings = registry.settings();
    let last = status.last_run.as_ref();
    let word = match (&status.running, last) {
        (Some(_), _) => "running",
        (None, Some(last)) => last.status.as_str(),
        (None, None) => "never synced",
    };
    let waiting =
        status.queue.ready.count + status.queue.delayed.count + status.queue.claimed.count;
    if output.json_lines() {
        return output.write_json(&Line {
            name: registry.name(),
            repository: settings.repository.as_str(),
            branch: settings.branch.as_deref(),
            folder: &settings.folder,
            status: word,
            last_run: last.map(|last| last.timestamp.as_str()),
            commit: status.last_commit.as_deref(),
            policies: status.entries,
            waiting,
            dead: status.queue.dead.count,
            next_run: registry.next_run().map(moment_text),
        });
    }
    let policies = status.entries.map(|entries| format!("{entries} policies")).unwrap_or_default();
    let queue = match (waiting, status.queue.dead.count) {
        (0, 0) => String::new(),
        (waiting, 0) => format!("{waiting} waiting"),
        (waiting, dead) => format!("{waiting} waiting, {dead} dead"),
    };
    table.row([
        registry.name(),
        word,
        status.last_commit.as_deref().map_or("-", short),
        &policies,
        &queue,
        settings.repository.as_str(),
    ]);
    Ok(())
}
