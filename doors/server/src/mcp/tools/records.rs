//! Records of the declared spaces.

use keyward::records::Merge;
use keyward::schema::{IndexKind, Ownership, Space as Declaration};
use keyward::{Bindings, Code, Key, Version};
use keyward_operations::context::Context;
use keyward_operations::operation::Operation;
use keyward_operations::records::{ListRecords, NearRecords, QueryRecords, draft};
use keyward_operations::values::{Values, leading};
use keyward_operations::vocabulary::Ttl;
use rmcp::model::Tool;
use serde_json::value::RawValue;

use super::{Call, Done, record_schemas as described};
use crate::api::entries::Precondition;
use crate::api::records::{self, Change, Changed};
use crate::api::spaces::{self, Reached, reach};
use crate::app::App;
use crate::auth::{Identity, Need};
use crate::http::entries::stored;
use crate::http::request::{key, prefix};
use crate::http::text::{self, Object, told};
use crate::mcp::arguments::Arguments;
use crate::mcp::confirm::Ask;
use crate::problem::{Problem, Result};
use crate::stores::Served;

/// The spaces that a caller reaches, by store and name.
pub(super) fn reached<'a>(app: &'a App, who: &'a Identity) -> Vec<(&'a Served, &'a Declaration)> {
    let spaces = spaces::list(who, app.stores());
    spaces.flat_map(|(served, spaces)| spaces.into_iter().map(move |it| (served, it))).collect()
}

pub(super) fn tools(app: &App, who: &Identity) -> Vec<Tool> {
    let all = reached(app, who);
    if all.is_empty() {
        return Vec::new();
    }
    let writable: Vec<_> = all
        .iter()
        .filter(|(served, space)| {
            let target = crate::auth::Target::Space { space: &space.name, store: &served.name };
            who.scopes().allow(Need::Write, &target)
        })
        .map(|(_, space)| *space)
        .collect();
    let all: Vec<_> = all.into_iter().map(|(_, space)| space).collect();
    let placed: Vec<_> = all.iter().copied().filter(|space| has_places(space)).collect();
    let mut tools = Vec::new();
    if !writable.is_empty() {
        tools.push(described::save(&writable));
    }
    tools.push(described::get(&all));
    tools.push(described::list(&all));
    tools.push(described::query(&all));
    if !placed.is_empty() {
        tools.push(described::near(&placed));
    }
    if !writable.is_empty() {
        tools.push(described::delete(&writable));
    }
    tools
}

fn has_places(space: &Declaration) -> bool {
    space.indexes.iter().any(|index| matches!(index.kind, IndexKind::Geohash { .. }))
}

/// The space that is meant.
fn space<'c>(call: &'c Call, arguments: &mut Arguments) -> Result<Reached<'c>> {
    let name = arguments.take_text("space")?;
    let name = name.ok_or_else(|| Problem::invalid("the argument space is missing"))?;
    reach(&call.who, call.app.stores(), &name)
}

/// The key that is meant: as a text, or by the values of its variables.
fn key_of(reached: &Reached<'_>, arguments: &mut Arguments) -> Result<Key> {
    let values = arguments.take::<Values>("values")?;
    match (arguments.take_text("key")?, values) {
        (Some(text), None) => key(&text),
        (None, Some(values)) => {
            Ok(reached.space.key(values.bindings(&reached.space.declaration().key)?)?)
        }
        (None, None) => {
            let pattern = &reached.space.declaration().key;
            Err(Problem::invalid("the argument key is missing")
                .hint(format!("The keys of this space are {pattern}.")))
        }
        (Some(_), Some(_)) => {
            Err(Problem::invalid("a record is named by its key or by values, not by both"))
        }
    }
}

/// What must be so for a change.
pub(super) fn precondition(arguments: &mut Arguments) -> Result<Precondition> {
    let version = arguments.take_text("if_version")?;
    match (version, arguments.take::<bool>("if_absent")?.unwrap_or(false)) {
        (None, false) => Ok(Precondition::None),
        (None, true) => Ok(Precondition::Absent),
        (Some(version), false) => Ok(Precondition::OneOf(vec![Version::parse(&version)])),
        (Some(_), true) => {
            Err(Problem::invalid("no record has a version and is absent: give one of the two"))
        }
    }
}

/// The version that must be there for a change, where it cannot be asked that nothing is.
pub(super) fn version_condition(arguments: &mut Arguments) -> Result<Precondition> {
    let version = arguments.take_text("if_version")?;
    Ok(version.map_or(Precondition::None, |it| Precondition::OneOf(vec![Version::parse(&it)])))
}

pub(super) async fn save(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let reached = space(call, &mut arguments)?;
    let key = key_of(&reached, &mut arguments)?;
    let expected = precondition(&mut arguments)?;
    let merges = arguments.take::<bool>("merge")?.unwrap_or(false);
    let ttl = arguments.take::<Ttl>("ttl")?;
    let metadata = arguments.take_raw("metadata");
    let value = arguments.take_raw("value").ok_or_else(|| {
        Problem::invalid("the argument value is missing")
            .hint("Give the whole value; with merge: true, the part that changes.")
    })?;
    arguments.finish()?;
    refuse_large(call, &value)?;
    let change = match merges {
        true if metadata.is_some() || ttl.is_some() => {
            return Err(Problem::invalid("with merge, metadata and end stay as they are")
                .hint("Leave out metadata and ttl, or merge."));
        }
        true => Change::Merge(Merge::new(stored(&value)?)),
        false => {
            let metadata = metadata.as_deref().map(stored).transpose()?;
            Change::Put(draft(stored(&value)?, metadata, ttl))
        }
    };
    let done = records::change(&call.who, &reached, &key, &change, &expected, None).await?;
    let Changed { version, created, .. } = done;
    let text = Object::new()
        .text("key", &key.to_string())
        .text("version", &version.map(|version| version.to_string()).unwrap_or_default())
        .raw("created", &created.to_string());
    Ok(Done::Told(text.finish()))
}

/// Refuses a value that would be too large over HTTP as well: a message has room for more.
fn refuse_large(call: &Call, value: &RawValue) -> Result<()> {
    let (bytes, bytes_max) = (value.get().len(), call.app.limits().body_bytes_max);
    if bytes <= bytes_max {
        return Ok(());
    }
    let detail = format!("the value has {bytes} bytes, and at most {bytes_max} are taken");
    Err(Problem::new(Code::ValueTooLarge, detail).hint("Make the value smaller; nothing was done."))
}

pub(super) async fn get(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let reached = space(call, &mut arguments)?;
    let key = key_of(&reached, &mut arguments)?;
    arguments.finish()?;
    let text = match reached.space.get(&key).await? {
        Some(record) => text::record(&record).raw("found", "true"),
        None => Object::new().text("key", &key.to_string()).raw("found", "false"),
    };
    Ok(Done::Told(text.finish()))
}

pub(super) async fn list(call: &Call) -> Result<Done> {
    run::<ListRecords>(call).await
}

/// Runs an operation whose fields the arguments are.
async fn run<O: Operation>(call: &Call) -> Result<Done> {
    let request: O = call.arguments.request()?;
    let cx = Context::new(call.who.clone(), call.app.services().clone());
    Ok(Done::Told(told(&cx.run(request).await?)?))
}

pub(super) async fn query(call: &Call) -> Result<Done> {
    run::<QueryRecords>(call).await
}

pub(super) async fn near(call: &Call) -> Result<Done> {
    run::<NearRecords>(call).await
}

pub(super) async fn delete(call: &Call) -> Result<Done> {
    let mut arguments = call.arguments.clone();
    let reached = space(call, &mut arguments)?;
    let below = arguments.take_text("prefix")?;
    let said = arguments.take::<u64>("confirm")?;
    let confirm = call.agreed(said);
    let deleted = match below {
        None => {
            let key = key_of(&reached, &mut arguments)?;
            let expected = version_condition(&mut arguments)?;
            arguments.finish()?;
            let change = Change::Delete;
            let done = records::change(&call.who, &reached, &key, &change, &expected, None).await?;
            usize::from(!done.was_absent)
        }
        Some(below) => {
            arguments.finish()?;
            // Whoever may not remove them learns nothing of how many there are.
            reached.require(&call.who, Need::Write)?;
            let values = leading(&reached.space.declaration().key, &prefix(&below)?)?;
            match remove_below(call, &reached, values, confirm).await? {
                Ok(deleted) => deleted,
                Err(ask) => return Ok(Done::Ask(ask)),
            }
        }
    };
    Ok(Done::Told(Object::new().raw("deleted", &deleted.to_string()).finish()))
}

/// Removes everything below a prefix, if their number was confirmed.
async fn remove_below(
    call: &Call,
    reached: &Reached<'_>,
    values: Bindings,
    confirm: Option<u64>,
) -> Result<Result<usize, Ask>> {
    let count = records::count(&call.who, &call.app, reached, &values).await?;
    if count == 0 {
        return Ok(Ok(0));
    }
    if confirm != Some(count) {
        let name = reached.name();
        let question =
            format!("Delete {count} records of {name}? This cannot be undone as a whole.");
        return Ok(Err(Ask { count, question }));
    }
    let confirmed = usize::try_from(count).unwrap_or(usize::MAX);
    Ok(Ok(records::remove_below(&call.who, reached, values, confirmed).await?))
}

pub(super) fn next(call: &Call, problem: &Problem) -> Option<String> {
    let names = || {
        let all = reached(&call.app, &call.who);
        let names: Vec<_> = all.iter().map(|(_, space)| space.name.as_str()).collect();
        names.join(", ")
    };
    Some(match problem.code() {
        Code::UnknownSpace => format!("call it with one of the spaces {}.", names()),
        Code::UnknownIndex | Code::BadQuery | Code::NeedsScan | Code::IndexNotReady => {
            "read the resource of the space (resources/read of keyward://STORE/spaces/SPACE) for its \
             indexes; then call record_query with one of them, or with allow_scan: true."
                .to_owned()
        }
        Code::TooExpensive => {
            "call record_near again with a smaller radius_m or a smaller limit.".to_owned()
        }
        Code::KeyMismatch => "call record_list to see what keys look like.".to_owned(),
        Code::PreconditionFailed => {
            "call record_get for the record as it is now, and decide anew.".to_owned()
        }
        Code::SchemaMismatch => "change the value as the mismatches say, and call it again.".to_owned(),
        Code::BadCursor => "call it again without cursor.".to_owned(),
        _ => return None,
    })
}

/// Whose records a space has, in words.
pub(super) fn ownership(space: &Declaration) -> &'static str {
    match space.ownership {
        Ownership::User { .. } => "each user's own",
        Ownership::Shared => "everybody's",
        Ownership::Hybrid { .. } => "each user's own, in part shown to all",
    }
}
