//! The tools: what they are called, what they take and give, and what does them.
//!
//! A caller is shown the tools that something can be done with, in an order that stays. What a tool
//! does is asked of `api`, which refuses what the caller may not do, shown or not.

mod agent_schemas;
mod agents;
mod agreement_schemas;
mod agreements;
mod jobs;
mod locks;
mod memory;
mod record_schemas;
mod records;
mod registries;
mod registry_schemas;
mod schema;

use std::future::ready;

use futures_util::future::BoxFuture;
use keyward::Code;
use keyward::records::LIMIT_DEFAULT;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::Value;

use super::arguments::Arguments;
use super::call::Call;
use super::confirm::Ask;
use crate::app::App;
use crate::auth::{Identity, Need, Target};
use crate::problem::{Problem, Result};
use crate::stores::Served;

/// What came of a call.
#[derive(Debug)]
pub(super) enum Done {
    /// Its answer: a JSON object.
    Told(String),
    /// Its answer in words of its own, and whether it says that nothing was done.
    Said { text: String, failed: bool },
    /// It is not done before this is confirmed.
    Ask(Ask),
}

/// What a tool does to data, as far as a client wants to know before it calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// It only looks.
    Reads,
    /// It adds; called again, it adds again.
    Adds,
    /// It changes what is there; called again with the same arguments, nothing more happens.
    Sets,
    /// It changes what is there; called again with the same arguments, it may do so again.
    Changes,
    /// It takes away; called again with the same arguments, nothing more happens.
    Removes,
}

impl Effect {
    fn annotations(self, title: &str) -> ToolAnnotations {
        ToolAnnotations::with_title(title)
            .read_only(self == Self::Reads)
            .destructive(matches!(self, Self::Sets | Self::Changes | Self::Removes))
            .idempotent(!matches!(self, Self::Adds | Self::Changes))
            .open_world(false)
    }
}

/// A tool, as clients see it. Both schemas are those of objects.
fn tool(
    name: &'static str,
    title: &str,
    description: String,
    effect: Effect,
    (input, output): (Value, Value),
) -> Tool {
    Tool::new(name, description, schema::object_of(input))
        .with_title(title)
        .with_raw_output_schema(schema::object_of(output).into())
        .with_annotations(effect.annotations(title))
}

/// The tools that a caller can do something with, always in the same order.
pub(super) fn list(app: &App, who: &Identity) -> Vec<Tool> {
    let mut tools = agents::tools(app, who);
    tools.extend(memory::tools(app, who));
    tools.extend(records::tools(app, who));
    tools.extend(locks::tools(app, who));
    tools.extend(jobs::tools(app, who));
    tools.extend(registries::tools(app, who));
    tools.extend(agreements::tools(app, who));
    tools
}

/// Whether there is a tool of this name.
pub(super) fn is_known(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Whether a tool tells how far it is while it works ([`Call::reach`]).
pub(super) fn tells_progress(name: &str) -> bool {
    matches!(name, "job_get" | "registry_run" | "agreement_analyze")
}

/// The tools that give pages: they take a limit, and say where to go on.
const PAGED: [&str; 9] = [
    "agent_keys",
    "agent_namespaces",
    "agent_search",
    "agent_history",
    "record_list",
    "record_query",
    "record_near",
    "job_list",
    "agreement_list_issues",
];
/// How large the text of a page is at most, unless a single item is larger.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// All tools.
const NAMES: [&str; 33] = [
    "agent_get",
    "agent_set",
    "agent_patch",
    "agent_delete",
    "agent_keys",
    "agent_namespaces",
    "agent_search",
    "agent_history",
    "agent_restore",
    memory::NAME,
    "record_save",
    "record_get",
    "record_list",
    "record_query",
    "record_near",
    "record_delete",
    "lock_acquire",
    "lock_renew",
    "lock_release",
    "job_get",
    "job_list",
    "job_cancel",
    "registry_status",
    "registry_list_policies",
    "registry_get_policy",
    "registry_search",
    "registry_plan",
    "registry_run",
    "agreement_read_policy",
    "agreement_list_issues",
    "agreement_make_policy",
    "agreement_move_issue",
    "agreement_analyze",
];

/// Does what a tool does. A page that is larger than an answer may be is asked for again, shorter: its
/// cursor says where it ended.
pub(super) async fn run(call: &Call) -> Result<Done> {
    let done = once(call).await?;
    let bytes = match &done {
        Done::Told(text) => text.len(),
        _ => 0,
    };
    if bytes <= PAGE_BYTES_MAX || !PAGED.contains(&call.tool.as_str()) {
        return Ok(done);
    }
    let mut call = call.clone();
    let limit = call.arguments.take("limit")?.unwrap_or(LIMIT_DEFAULT);
    if limit <= 1 {
        return Ok(done);
    }
    drop(done);
    Box::pin(shorter(call, limit, bytes)).await
}

async fn shorter(mut call: Call, mut limit: usize, mut bytes: usize) -> Result<Done> {
    loop {
        limit = (limit * 3 / 4 * PAGE_BYTES_MAX / bytes).clamp(1, limit - 1);
        call.arguments.set_number("limit", limit);
        let done = once(&call).await?;
        match &done {
            Done::Told(text) if text.len() > PAGE_BYTES_MAX && limit > 1 => bytes = text.len(),
            _ => return Ok(done),
        }
    }
}

/// Does what a tool does, once.
///
/// Each has a future of its own on the heap: one for all of them would be as large as the largest, and be
/// moved about as a whole with every call.
fn once(call: &Call) -> BoxFuture<'_, Result<Done>> {
    match call.tool.as_str() {
        "agent_get" => Box::pin(agents::get(call)),
        "agent_set" => Box::pin(agents::set(call)),
        "agent_patch" => Box::pin(agents::patch(call)),
        "agent_delete" => Box::pin(agents::delete(call)),
        "agent_keys" => Box::pin(agents::keys(call)),
        "agent_namespaces" => Box::pin(agents::namespaces(call)),
        "agent_search" => Box::pin(agents::search(call)),
        "agent_history" => Box::pin(agents::history(call)),
        "agent_restore" => Box::pin(agents::restore(call)),
        memory::NAME => Box::pin(memory::run(call)),
        "record_save" => Box::pin(records::save(call)),
        "record_get" => Box::pin(records::get(call)),
        "record_list" => Box::pin(records::list(call)),
        "record_query" => Box::pin(records::query(call)),
        "record_near" => Box::pin(records::near(call)),
        "record_delete" => Box::pin(records::delete(call)),
        "lock_acquire" => Box::pin(locks::acquire(call)),
        "lock_renew" => Box::pin(locks::renew(call)),
        "lock_release" => Box::pin(locks::release(call)),
        "job_get" => Box::pin(jobs::get(call)),
        "job_list" => Box::pin(jobs::list(call)),
        "job_cancel" => Box::pin(jobs::cancel(call)),
        "registry_status" => Box::pin(registries::status(call)),
        "registry_list_policies" => Box::pin(registries::list(call)),
        "registry_get_policy" => Box::pin(registries::get(call)),
        "registry_search" => Box::pin(registries::search(call)),
        "registry_plan" => Box::pin(registries::plan(call)),
        "registry_run" => Box::pin(registries::run(call)),
        "agreement_read_policy" => Box::pin(agreements::read_policy(call)),
        "agreement_list_issues" => Box::pin(agreements::list_issues(call)),
        "agreement_make_policy" => Box::pin(agreements::make_policy(call)),
        "agreement_move_issue" => Box::pin(agreements::move_issue(call)),
        "agreement_analyze" => Box::pin(agreements::analyze(call)),
        name => {
            let unknown = Problem::not_found(format!("there is no tool called {name:?}"));
            Box::pin(ready(Err(unknown)))
        }
    }
}

/// What to call after a problem.
pub(super) fn next(call: &Call, problem: &Problem) -> String {
    let next = match call.tool.split('_').next() {
        Some("agent") => agents::next(problem),
        Some("record") => records::next(call, problem),
        Some("lock") => locks::next(problem),
        Some("job") => jobs::next(problem),
        Some("registry") => registries::next(problem),
        Some("agreement") => agreements::next(problem),
        _ => None,
    };
    next.unwrap_or_default()
}

/// The stores in which a caller may do something, by name.
fn stores<'a>(app: &'a App, who: &'a Identity, need: Need) -> impl Iterator<Item = &'a Served> {
    app.stores().iter().filter(move |served| who.scopes().allow(need, &Target::Store(&served.name)))
}

/// The store that is meant: the one that is named, or the only one that the caller reaches.
fn store<'c>(call: &'c Call, named: Option<&str>) -> Result<&'c Served> {
    if let Some(named) = named {
        let reached = stores(&call.app, &call.who, Need::Read).find(|served| served.name == named);
        return reached.ok_or_else(|| {
            let names: Vec<_> = stores(&call.app, &call.who, Need::Read)
                .map(|served| served.name.as_str())
                .collect();
            Problem::new(Code::UnknownStore, format!("there is no store called {named:?}"))
                .hint(format!("The stores are: {}.", names.join(", ")))
        });
    }
    let mut reached = stores(&call.app, &call.who, Need::Read);
    match (reached.next(), reached.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Problem::forbidden("this credential reaches no store")),
        (Some(first), Some(second)) => Err(Problem::invalid(format!(
            "there are several stores, and none is named; {:?} and {:?} are two of them",
            first.name, second.name
        ))
        .hint("Call again with the argument store.")),
    }
}

/// What is meant, of what the server keeps under a name: what an argument names, or the only one that the
/// caller reaches.
fn named_or_only<'n>(
    arguments: &mut Arguments,
    one: &str,
    all: &str,
    mut reached: impl Iterator<Item = &'n str>,
) -> Result<String> {
    if let Some(named) = arguments.take_text(one)? {
        return Ok(named);
    }
    match (reached.next(), reached.next()) {
        (Some(only), None) => Ok(only.to_owned()),
        (None, _) => Err(Problem::forbidden(format!("this credential reaches no {one}"))),
        (Some(first), Some(second)) => Err(Problem::invalid(format!(
            "there are several {all}, and none is named; {first:?} and {second:?} are two of them"
        ))
        .hint(format!("Call again with the argument {one}."))),
    }
}

/// An argument that must be there.
fn required(given: Option<String>, name: &str) -> Result<String> {
    given.ok_or_else(|| {
        Problem::invalid(format!("the argument {name} is missing"))
            .hint("Look at the tool's input schema, and call it again; nothing was done.")
    })
}

/// The beginning of a text, of at most so many bytes and of whole characters.
fn beginning(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
