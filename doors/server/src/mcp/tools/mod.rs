//! The tools: what they are called, what they take and give, and what does them.
//!
//! A caller is shown the tools that something can be done with, in an order that stays. What a tool
//! does is asked of `api`, which refuses what the caller may not do, shown or not.

mod agent_schemas;
mod agents;
mod jobs;
mod locks;
mod memory;
mod record_schemas;
mod records;
mod schema;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::Value;

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
    /// It takes away; called again with the same arguments, nothing more happens.
    Removes,
}

impl Effect {
    fn annotations(self, title: &str) -> ToolAnnotations {
        ToolAnnotations::with_title(title)
            .read_only(self == Self::Reads)
            .destructive(matches!(self, Self::Sets | Self::Removes))
            .idempotent(self != Self::Adds)
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
    tools
}

/// Whether there is a tool of this name.
pub(super) fn is_known(name: &str) -> bool {
    NAMES.contains(&name)
}

/// All tools.
const NAMES: [&str; 22] = [
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
];

/// Does what a tool does.
pub(super) async fn run(call: &Call) -> Result<Done> {
    match call.tool.as_str() {
        "agent_get" => agents::get(call).await,
        "agent_set" => agents::set(call).await,
        "agent_patch" => agents::patch(call).await,
        "agent_delete" => agents::delete(call).await,
        "agent_keys" => agents::keys(call).await,
        "agent_namespaces" => agents::namespaces(call).await,
        "agent_search" => agents::search(call).await,
        "agent_history" => agents::history(call).await,
        "agent_restore" => agents::restore(call).await,
        memory::NAME => memory::run(call).await,
        "record_save" => records::save(call).await,
        "record_get" => records::get(call).await,
        "record_list" => records::list(call).await,
        "record_query" => records::query(call).await,
        "record_near" => records::near(call).await,
        "record_delete" => records::delete(call).await,
        "lock_acquire" => locks::acquire(call).await,
        "lock_renew" => locks::renew(call).await,
        "lock_release" => locks::release(call).await,
        "job_get" => jobs::get(call).await,
        "job_list" => jobs::list(call).await,
        "job_cancel" => jobs::cancel(call).await,
        name => Err(Problem::not_found(format!("there is no tool called {name:?}"))),
    }
}

/// What to call after a problem.
pub(super) fn next(call: &Call, problem: &Problem) -> String {
    let next = match call.tool.split('_').next() {
        Some("agent") => agents::next(problem),
        Some("record") => records::next(call, problem),
        Some("lock") => locks::next(problem),
        Some("job") => jobs::next(problem),
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
            Problem::new("unknown-store", format!("there is no store called {named:?}"))
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
