//! What agents keep for users.

use keyward::Code;
use keyward::agents::{AgentEntry, Life, PastEntry, Patch, SPACE, Search, Set};
use keyward::moment_text;
use keyward::records::Filter;
use rmcp::model::Tool;

use super::records::{precondition, version_condition};
use super::{Call, Done, agent_schemas as described};
use crate::api::agents::entries::{self, Part};
use crate::api::agents::namespaces;
use crate::api::agents::{self, Behalf, Reached, Terms, reach, reach_user};
use crate::api::clearing::Confirmation;
use crate::api::records::Changed;
use crate::app::App;
use crate::auth::{Identity, Need, Target};
use crate::http::agents::life::{self, LifeText};
use crate::http::entries::{page_limit, stored};
use crate::http::text::{Object, quoted};
use crate::mcp::arguments::Arguments;
use crate::mcp::confirm::Ask;
use crate::problem::{Problem, Result};

/// The namespace that is meant when none is named.
const NAMESPACE: &str = "default";

pub(super) fn tools(app: &App, who: &Identity) -> Vec<Tool> {
    let Ok((store, _)) = app.agents() else { return Vec::new() };
    let able = |need| {
        who.scopes().allow(need, &Target::Space { space: SPACE, store })
            || who.scopes().name_namespaces(need)
    };
    if !able(Need::Read) || is_nobody(who) {
        return Vec::new();
    }
    let chooses = chooses(app, who);
    let mut tools = vec![described::get(chooses)];
    if able(Need::Write) {
        tools.extend([
            described::set(chooses),
            described::patch(chooses),
            described::delete(chooses),
        ]);
    }
    tools.extend([
        described::keys(chooses),
        described::namespaces(chooses),
        described::search(chooses),
        described::history(chooses),
    ]);
    if able(Need::Write) {
        tools.push(described::restore(chooses));
    }
    tools
}

/// Whether no user's entries are within reach.
pub(super) fn is_nobody(who: &Identity) -> bool {
    who.caller().user_id().is_none() && !who.caller().is_operator()
}

/// Whether a caller says whose entries are meant: one that is bound to no user, unless there is only one.
pub(super) fn chooses(app: &App, who: &Identity) -> bool {
    who.caller().user_id().is_none() && !app.auth().is_local()
}

/// For whom it is asked: as the credential says, or a user that somebody who is nobody in particular
/// names. For all others there is no such argument.
pub(super) fn behalf(call: &Call, arguments: &mut Arguments) -> Result<Behalf> {
    let user = match chooses(&call.app, &call.who) {
        true => arguments.take_text("user")?,
        false => None,
    };
    // Which agent it is, the caller says already.
    Ok(Behalf { user, agent: None, run: call.run.clone() })
}

fn namespace<'c>(call: &'c Call, arguments: &mut Arguments) -> Result<Reached<'c>> {
    let behalf = behalf(call, arguments)?;
    let name = arguments.take_text("namespace")?;
    reach(&call.who, &call.app, &behalf, name.as_deref().unwrap_or(NAMESPACE))
}

fn key(arguments: &mut Arguments) -> Result<String> {
    arguments.take_text("key")?.ok_or_else(|| {
        Problem::invalid("the argument key is missing").hint("agent_keys shows the keys there are.")
    })
}

fn part(arguments: &mut Arguments) -> Result<Part> {
    Ok(Part {
        prefix: arguments.take_text("prefix")?.unwrap_or_default(),
        cursor: arguments.take_text("cursor")?,
        limit: page_limit(arguments.take("limit")?)?,
    })
}

/// An entry, as the document that it is, with its version as `_rev`.
fn document(entry: &AgentEntry) -> String {
    entry.to_document_with_rev().as_str().to_owned()
}

pub(super) async fn get(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let reached = namespace(call, &mut arguments)?;
    let key = key(&mut arguments)?;
    arguments.finish()?;
    let text = match entries::get(&call.who, &reached, &key).await? {
        Some(entry) => Object::new().raw("found", "true").raw("entry", &document(&entry)),
        None => Object::new().raw("found", "false"),
    };
    Ok(Done::Told(text.finish()))
}

/// How long an entry lives, if that is said.
fn life(arguments: &mut Arguments) -> Result<Option<Life>> {
    let sliding = arguments.take::<bool>("sliding")?.unwrap_or(false);
    let ttl = arguments.take::<LifeText>("ttl_seconds")?;
    life::life(ttl, sliding).map_err(|problem| {
        problem.hint("Give the number of seconds as ttl_seconds, or leave out sliding.")
    })
}

pub(super) async fn set(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let reached = namespace(call, &mut arguments)?;
    let key = key(&mut arguments)?;
    let terms = Terms { expected: precondition(&mut arguments)?, mark: None };
    let (life, metadata) = (life(&mut arguments)?, arguments.take_raw("metadata"));
    let value = arguments.take_json("value");
    let value = value.ok_or_else(|| Problem::invalid("the argument value is missing"))?;
    arguments.finish()?;
    let mut set = Set::new(stored(&value)?);
    set.metadata = metadata.as_deref().map(stored).transpose()?;
    set.life = life;
    let done = entries::set(&call.who, &reached, &key, &set, &terms).await?;
    Ok(Done::Told(changed(&reached, &key, done)))
}

fn changed(reached: &Reached<'_>, key: &str, done: Changed) -> String {
    let version = done.version.map(|version| version.to_string()).unwrap_or_default();
    Object::new()
        .text("namespace", reached.name())
        .text("key", key)
        .text("version", &version)
        .raw("created", &done.created.to_string())
        .finish()
}

pub(super) async fn patch(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let reached = namespace(call, &mut arguments)?;
    let key = key(&mut arguments)?;
    let terms = Terms { expected: version_condition(&mut arguments)?, mark: None };
    let (value, metadata) = (arguments.take_raw("value"), arguments.take_raw("metadata"));
    arguments.finish()?;
    let mut patch = Patch::new();
    patch.value = value.as_deref().map(stored).transpose()?;
    patch.metadata = metadata.as_deref().map(stored).transpose()?;
    let done = entries::patch(&call.who, &reached, &key, &patch, &terms).await?;
    Ok(Done::Told(changed(&reached, &key, done)))
}

pub(super) async fn delete(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let reached = namespace(call, &mut arguments)?;
    let below = arguments.take_text("prefix")?;
    let said = arguments.take::<u64>("confirm")?;
    let confirm = call.agreed(said);
    let Some(prefix) = below else {
        let key = key(&mut arguments)?;
        let terms = Terms { expected: version_condition(&mut arguments)?, mark: None };
        arguments.finish()?;
        let done = entries::delete(&call.who, &reached, &key, &terms).await?;
        let deleted = u8::from(done.deleted).to_string();
        return Ok(Done::Told(Object::new().raw("deleted", &deleted).finish()));
    };
    arguments.finish()?;
    let clear = |confirmation| namespaces::clear(&call.who, &reached, &prefix, confirmation);
    let count = clear(Confirmation::DryRun).await?.count;
    if count > 0 && confirm != u64::try_from(count).ok() {
        let question = format!(
            "Delete {count} entries of the namespace {:?}? Their history stays for a while.",
            reached.name()
        );
        return Ok(Done::Ask(Ask { count: count as u64, question }));
    }
    let removed = clear(Confirmation::Count(count)).await?.removed;
    Ok(Done::Told(Object::new().raw("deleted", &removed.to_string()).finish()))
}

pub(super) async fn keys(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let reached = namespace(call, &mut arguments)?;
    let part = part(&mut arguments)?;
    arguments.finish()?;
    let page = entries::keys(&call.who, &reached, part).await?;
    let keys = page.keys.iter().map(|key| quoted(key));
    let text = Object::new().list("keys", keys).optional("next", page.next.as_deref());
    Ok(Done::Told(text.finish()))
}

pub(super) async fn namespaces(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let behalf = behalf(call, &mut arguments)?;
    let cursor = arguments.take_text("cursor")?;
    let limit = page_limit(arguments.take("limit")?)?;
    arguments.finish()?;
    let page = namespaces::list(&call.who, &call.app, &behalf, cursor, limit).await?;
    let names = page.namespaces.iter().map(|name| quoted(name));
    let text = Object::new().list("namespaces", names).optional("next", page.next.as_deref());
    Ok(Done::Told(text.finish()))
}

pub(super) async fn search(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let behalf = behalf(call, &mut arguments)?;
    let name = arguments.take_text("namespace")?;
    let Part { prefix, cursor, limit } = part(&mut arguments)?;
    let filter = arguments.take_raw("filter").map(|filter| Filter::parse(filter.get()));
    arguments.finish()?;
    let search = Search::new()
        .starting(prefix)
        .filter(filter.transpose()?.unwrap_or_default())
        .limit(limit)
        .after(cursor);
    let found = match name {
        Some(name) => {
            let reached = reach(&call.who, &call.app, &behalf, &name)?;
            agents::search::search(&call.who, &reached, &search).await?
        }
        None => {
            let reached = reach_user(&call.who, &call.app, &behalf)?;
            agents::search::search_everywhere(&call.who, &reached, &search).await?
        }
    };
    let text = Object::new()
        .list("entries", found.entries.iter().map(document))
        .optional("next", found.next.as_deref());
    Ok(Done::Told(text.finish()))
}

pub(super) async fn history(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let reached = namespace(call, &mut arguments)?;
    let key = key(&mut arguments)?;
    let before = arguments.take::<u64>("before")?;
    let limit = page_limit(arguments.take("limit")?)?;
    arguments.finish()?;
    let page = agents::history::history(&call.who, &reached, &key, before, limit).await?;
    let next = page.next.map_or_else(|| "null".to_owned(), |next| next.to_string());
    let text = Object::new().list("items", page.versions.iter().map(past_entry)).raw("next", &next);
    Ok(Done::Told(text.finish()))
}

fn past_entry(past: &PastEntry) -> String {
    Object::new()
        .raw("number", &past.seq.to_string())
        .text("act", past.act.as_str())
        .text("at", &moment_text(past.at))
        .optional("agent", past.agent.as_deref())
        .optional("run", past.run.as_deref())
        .json("value", past.value.as_ref())
        .json("metadata", past.metadata.as_ref())
        .raw("redacted", &past.redacted.is_some().to_string())
        .finish()
}

pub(super) async fn restore(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let reached = namespace(call, &mut arguments)?;
    let key = key(&mut arguments)?;
    let terms = Terms { expected: version_condition(&mut arguments)?, mark: None };
    let number = arguments.take::<u64>("to")?.ok_or_else(|| {
        Problem::invalid("the argument to is missing").hint("agent_history shows the numbers.")
    })?;
    arguments.finish()?;
    let done = agents::history::restore(&call.who, &reached, &key, number, &terms).await?;
    Ok(Done::Told(changed(&reached, &key, done)))
}

pub(super) fn next(problem: &Problem) -> Option<String> {
    Some(
        match problem.code() {
            Code::NotFound => {
                "call agent_keys to see which entries there are, or agent_set to make one."
            }
            Code::PreconditionFailed => {
                "call agent_get for the entry as it is now; its _rev is what if_version takes."
            }
            Code::BadCursor => "call it again without cursor.",
            Code::BadChange => "call agent_set with the whole value.",
            _ => return None,
        }
        .to_owned(),
    )
}
