//! Registries: documents that are kept in git.

use keyward::Code;
use keyward::registry::{Operation, Progress, SyncOptions};
use rmcp::model::Tool;
use tokio::sync::broadcast::error::RecvError;

use super::registry_schemas as schemas;
use super::{Call, Done, Effect, beginning, named_or_only, required, tool};
use crate::api::registries::policies::{self, Listing};
use crate::api::registries::{self, reach, runs};
use crate::app::App;
use crate::auth::{Identity, Need};
use crate::http::entries::page_limit;
use crate::http::registries::{begun_text, entries, plan_text, standing};
use crate::http::text::Object;
use crate::mcp::arguments::Arguments;
use crate::mcp::confirm::Ask;
use crate::problem::{Problem, Result};

/// How much of a policy's content is told.
const CONTENT_BYTES_MAX: usize = 256 * 1024;
/// How many steps and problems of a plan are told, if nothing else is asked for.
const STEPS_USUAL: usize = 100;

pub(super) fn tools(app: &App, who: &Identity) -> Vec<Tool> {
    let named = |need| registries::list(who, app, need).map(|kept| kept.registry.name());
    let (reads, writes): (Vec<_>, Vec<_>) =
        (named(Need::Read).collect(), named(Need::Write).collect());
    let mut tools = Vec::new();
    if !reads.is_empty() {
        tools.extend([
            tool(
                "registry_status",
                "Look at a registry",
                "Shows how a registry of documents stands: its last run, the commit it is at, what \
                 runs now, when a run is due, what waits for consumers."
                    .to_owned(),
                Effect::Reads,
                schemas::status(&reads),
            ),
            tool(
                "registry_list_policies",
                "List policies",
                "Lists the policies of a registry in the order of their names, a page at a time."
                    .to_owned(),
                Effect::Reads,
                schemas::list(&reads),
            ),
            tool(
                "registry_get_policy",
                "Read a policy",
                "Reads a policy by its name: its entry, and its content as it stands in git.".to_owned(),
                Effect::Reads,
                schemas::get(&reads),
            ),
            tool(
                "registry_search",
                "Search policies",
                "Lists the policies whose name or title has a text in it, whatever the case. A page may \
                 be short, even empty, and still have a next one."
                    .to_owned(),
                Effect::Reads,
                schemas::search(&reads),
            ),
        ]);
    }
    if !writes.is_empty() {
        tools.extend([
            tool(
                "registry_plan",
                "Plan a run",
                "Tells what a run of a registry would add, update and delete. The newest commit is \
                 fetched for it; nothing else is changed."
                    .to_owned(),
                Effect::Reads,
                schemas::plan(&writes),
            ),
            tool(
                "registry_run",
                "Run a registry",
                "Brings a registry to the newest commit of its repository. The run goes on in the \
                 background; with wait, the answer comes when it has ended, or after that time. One that \
                 would delete much is refused, unless allow_mass_delete is true, which needs admin and is \
                 confirmed with the number of what is deleted."
                    .to_owned(),
                Effect::Sets,
                schemas::run(&writes),
            ),
        ]);
    }
    tools
}

/// The registry that is meant: the one that is named, or the only one that the caller reaches.
fn named(call: &Call, arguments: &mut Arguments) -> Result<String> {
    let reached = registries::list(&call.who, &call.app, Need::Read);
    let names = reached.map(|kept| kept.registry.name());
    named_or_only(arguments, "registry", "registries", names)
}

pub(super) async fn status(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let name = named(call, &mut arguments)?;
    arguments.finish()?;
    let (kept, status) = registries::status(&call.who, &call.app, &name).await?;
    Ok(Done::Told(standing(kept, &status)?))
}

pub(super) async fn list(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let name = named(call, &mut arguments)?;
    listed(call, &name, arguments, None).await
}

pub(super) async fn search(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let name = named(call, &mut arguments)?;
    let text = required(arguments.take_text("text")?, "text")?;
    listed(call, &name, arguments, Some(text)).await
}

async fn listed(
    call: &Call,
    name: &str,
    mut arguments: Arguments,
    search: Option<String>,
) -> Result<Done> {
    let limit = page_limit(arguments.take("limit")?)?;
    let listing = Listing { after: arguments.take_text("after")?, limit, search };
    arguments.finish()?;
    let page = policies::list(&call.who, &call.app, name, &listing).await?;
    Ok(Done::Told(entries(&page)))
}

pub(super) async fn get(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let name = named(call, &mut arguments)?;
    let policy = required(arguments.take_text("policy")?, "policy")?;
    let with_content = arguments.take("content")?.unwrap_or(true);
    arguments.finish()?;
    if !with_content {
        let policy = policies::show(&call.who, &call.app, &name, &policy).await?;
        let text = Object::new().raw("entry", policy.entry.as_str());
        return Ok(Done::Told(text.finish()));
    }
    let found = policies::content(&call.who, &call.app, &name, &policy).await?;
    let whole = String::from_utf8_lossy(&found.bytes);
    let part = beginning(&whole, CONTENT_BYTES_MAX);
    let text = Object::new()
        .raw("entry", found.policy.entry.as_str())
        .text("content", part)
        .raw("truncated", &(part.len() < whole.len()).to_string());
    Ok(Done::Told(text.finish()))
}

pub(super) async fn plan(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let name = named(call, &mut arguments)?;
    let full = arguments.take("full")?.unwrap_or(false);
    let limit = page_limit(arguments.take("limit")?.or(Some(STEPS_USUAL)))?;
    arguments.finish()?;
    let options = SyncOptions { full, ..SyncOptions::default() };
    let plan = runs::plan(&call.who, &call.app, &name, &options).await?;
    Ok(Done::Told(plan_text(&plan, limit)?))
}

pub(super) async fn run(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let name = named(call, &mut arguments)?;
    let full = arguments.take("full")?.unwrap_or(false);
    let allow_mass_delete = arguments.take("allow_mass_delete")?.unwrap_or(false);
    let wait = call.app.waits().bounded(arguments.take("wait")?.unwrap_or(0.0))?;
    let said = arguments.take::<u64>("confirm")?;
    arguments.finish()?;
    let options = SyncOptions { full, allow_mass_delete };
    if allow_mass_delete
        // What the user has agreed to counts before what the model said.
        && let Some(ask) = unconfirmed(call, &name, &options, call.confirmed.or(said)).await?
    {
        return Ok(Done::Ask(ask));
    }
    let mut seen = reach(&call.who, &call.app, &name, Need::Write)?.progress();
    let running = runs::begin(&call.who, &call.app, &name, options, wait);
    tokio::pin!(running);
    // What is told must grow.
    let mut steps = 0;
    let begun = loop {
        tokio::select! {
            // What was told before the end is told before the answer.
            biased;
            progress = seen.recv() => match progress {
                Ok(progress) => {
                    steps += 1;
                    call.reach(steps, None, &in_words(progress)).await;
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break running.await?,
            },
            begun = &mut running => break begun?,
        }
    };
    Ok(Done::Told(begun_text(&begun)?))
}

/// What is to be confirmed before so much is deleted, unless it has been.
async fn unconfirmed(
    call: &Call,
    name: &str,
    options: &SyncOptions,
    confirm: Option<u64>,
) -> Result<Option<Ask>> {
    // Whoever may not delete them learns nothing of how many there are.
    reach(&call.who, &call.app, name, Need::Admin)?;
    let plan = runs::plan(&call.who, &call.app, name, options).await?;
    let count = plan.count(Operation::Delete);
    if count == 0 || confirm == Some(count) {
        return Ok(None);
    }
    let question = format!("Delete {count} of {} policies of {name}?", plan.entries);
    Ok(Some(Ask { count, question }))
}

fn in_words(progress: Progress) -> String {
    match progress {
        Progress::Fetching => "fetching".to_owned(),
        Progress::Comparing { compared } => format!("comparing: {compared}"),
        Progress::Reading { read, total } => format!("reading: {read} of {total}"),
        Progress::Applying { applied, total } => format!("applying: {applied} of {total}"),
    }
}

pub(super) fn next(problem: &Problem) -> Option<String> {
    Some(match problem.code() {
        Code::NotFound => "call registry_search or registry_list_policies to see what there is.",
        Code::Busy => "call registry_status to see what runs, and call it again when that has ended.",
        Code::MassDelete => {
            "call registry_plan to see what would be deleted, and ask the user whether that is meant."
        }
        Code::TimedOut => "call it again: what was fetched is at hand then.",
        _ => return None,
    }
    .to_owned())
}
