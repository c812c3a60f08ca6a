use clap::Args;
use keyward::registry::{Registry, ScheduleSetting, Settings, Status, SyncMetadata};
use keyward::{Code, moment_text};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::queues::{one_line, raw};
use crate::registries::{Reach, short};
use crate::table::Table;

/// Show a registry, or one of its policies
///
/// Without a policy: what the registry is, how its last run ended, and what waits for consumers. With one:
/// its entry as it is stored, or with --content the document itself, read from git.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward registry show policies
  keyward registry show policies leave-of-absence
  keyward registry show policies leave-of-absence --content > leave.md"#)]
pub struct Arguments {
    /// The registry
    name: String,
    /// The policy
    policy: Option<String>,
    /// The document itself, as it is in git
    #[arg(long, requires = "policy")]
    content: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'r> {
    name: &'r str,
    /// None of a registry that only its store knows.
    settings: Option<&'r Settings>,
    last_run: Option<&'r SyncMetadata>,
    commit: Option<&'r str>,
    policies: Option<u64>,
    running: Option<Running<'r>>,
    queue: Queue,
    next_run: Option<String>,
}

#[derive(Serialize)]
struct Running<'r> {
    holder: &'r str,
    since: &'r str,
}

#[derive(Serialize)]
struct Queue {
    ready: u64,
    delayed: u64,
    claimed: u64,
    dead: u64,
}

#[derive(Serialize)]
struct Document<'p> {
    policy: Box<RawValue>,
    content: &'p str,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { name, policy, content } = arguments;
    let Some(policy) = policy else {
        let registry = reach.to_read(&name, output).await?;
        let settings = reach.knows_repository(&name).then(|| registry.settings());
        return show(&registry, settings, &registry.status().await?, output);
    };
    if content {
        if !reach.knows_repository(&name) {
            return Err(Failure::invalid(format!(
                "nothing says where the repository of {name} is"
            ))
            .hint("Give --repository, or declare the registry in the config file."));
        }
        let registry = reach.existing(&name).await?;
        let found = registry.content(&policy).await?.ok_or_else(|| absent(&policy, &name))?;
        if output.json() {
            let content = std::str::from_utf8(&found.bytes)
                .map_err(|_| Failure::invalid("the document is not UTF-8"))?;
            return output.write_json(&Document { policy: raw(&found.policy.entry)?, content });
        }
        return output.write_all(&found.bytes);
    }
    let registry = reach.existing(&name).await?;
    let found = registry.policy(&policy).await?.ok_or_else(|| absent(&policy, &name))?;
    if output.json_lines() {
        return writeln!(output, "{}", found.entry);
    }
    let mut table = Table::default();
    table.row(["policy", &found.policy_name]);
    table.row(["title", &found.title]);
    table.row(["path", &found.path]);
    table.row(["content", &found.sha]);
    table.row(["updated", &found.last_updated]);
    if let Some(from) = &found.renamed_from {
        table.row(["renamed from", from]);
    }
    table.write("", output)
}

fn show(
    registry: &Registry,
    settings: Option<&Settings>,
    status: &Status,
    output: &mut Output,
) -> Result {
    let next_run = registry.next_run().map(moment_text);
    if output.json_lines() {
        let running = status.running.as_ref();
        let counts = &status.queue;
        return output.write_json(&Shown {
            name: registry.name(),
            settings,
            last_run: status.last_run.as_ref(),
            commit: status.last_commit.as_deref(),
            policies: status.entries,
            running: running.map(|it| Running { holder: &it.holder, since: &it.since }),
            queue: Queue {
                ready: counts.ready.count,
                delayed: counts.delayed.count,
                claimed: counts.claimed.count,
                dead: counts.dead.count,
            },
            next_run,
        });
    }
    let mut table = Table::default();
    if let Some(settings) = settings {
        of_files(settings, &mut table);
    }
    match &status.last_run {
        Some(last) => {
            let SyncMetadata { status, timestamp, added, updated, deleted, error_count, .. } = last;
            let changes = format!("{added} added, {updated} updated, {deleted} deleted");
            let left = match error_count {
                0 => String::new(),
                count => format!(", {count} left alone"),
            };
            table
                .row(["last run", &format!("{} at {timestamp}: {changes}{left}", status.as_str())]);
        }
        None => table.row(["last run", "none"]),
    }
    if let Some(commit) = &status.last_commit {
        let entries = status.entries.map(|entries| format!(", {entries} policies"));
        table.row(["commit", &format!("{}{}", short(commit), entries.unwrap_or_default())]);
    }
    if let Some(running) = &status.running {
        let (holder, since) = (one_line(&running.holder), &running.since);
        table.row(["running", &format!("since {since}, of {holder}")]);
    }
    let counts = &status.queue;
    let waiting = counts.ready.count + counts.delayed.count + counts.claimed.count;
    table.row(["queue", &format!("{waiting} waiting, {} dead", counts.dead.count)]);
    if let Some(settings) = settings {
        of_triggers(settings, next_run, &mut table);
    }
    table.write("", output)
}

/// Which files are policies.
fn of_files(settings: &Settings, table: &mut Table) {
    let of = settings.branch.as_ref().map(|branch| format!(" (branch {branch})"));
    table.row(["repository", &format!("{}{}", settings.repository, of.unwrap_or_default())]);
    let folder = settings.folder.trim_end_matches('/');
    let below = if folder.is_empty() { String::new() } else { format!(" below {folder}/") };
    let but = match settings.exclude.as_slice() {
        [] => String::new(),
        exclude => format!(" but {}", exclude.join(" ")),
    };
    table.row(["files", &format!("{}{below}{but}", settings.include.join(" "))]);
}

/// When it runs, and who is told of it.
fn of_triggers(settings: &Settings, next_run: Option<String>, table: &mut Table) {
    if let ScheduleSetting::Cron(cron) = &settings.schedule {
        let next = next_run.map(|next| format!(", next at {next}")).unwrap_or_default();
        table.row(["schedule", &format!("{} {}{next}", cron.cron, cron.time_zone)]);
    }
    if !settings.consumers.is_empty() {
        let names: Vec<&str> = settings.consumers.keys().map(String::as_str).collect();
        table.row(["consumers", &names.join(", ")]);
    }
}

fn absent(policy: &str, registry: &str) -> Failure {
    let message = format!("the registry {registry} has no policy {policy}");
    Failure::new(Code::NotFound, message)
        .hint(format!("keyward registry search {registry} TEXT finds policies by name and title."))
}
