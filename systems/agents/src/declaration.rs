//! The space that holds agents' entries.

use std::num::NonZeroUsize;

use keyward_engine::{Capabilities, Tier};
use keyward_key::{Bindings, Pattern, PatternSet, Prefix, SegmentType};
use keyward_schema::{Ownership, Space};

use crate::{Error, Result};

/// The space that holds agents' entries.
pub const SPACE: &str = "agent_data_store";
/// How its keys look where the schema does not say otherwise.
pub const PATTERN: &str = "agents:{user}:{namespace}:{key}";
/// How many versions of an entry are kept where the schema does not say otherwise.
const HISTORY: usize = 20;

/// The role that writing asks for in the built-in space. Nobody has it but the agent data store itself: a
/// record that something else wrote would be no entry.
pub(crate) const WRITER_ROLE: &str = "keyward:agents";

pub(crate) const USER: &str = "user";
pub(crate) const NAMESPACE: &str = "namespace";
pub(crate) const KEY: &str = "key";

/// Adds the space of agents' entries to those of a store, unless they have one of that name.
///
/// The built-in one keeps 20 versions of each entry, where the engine can, and is written through the agent
/// data store only; its owner reads it like any other. It is left out where a space
/// has keys of the same shape: [`Agents::open`](crate::Agents::open) then says so.
pub fn declare(spaces: &mut Vec<Space>, store: &str, capabilities: &Capabilities) {
    if spaces.iter().any(|space| space.name == SPACE) {
        return;
    }
    let Ok(key) = Pattern::parse(PATTERN) else { return };
    let patterns = spaces.iter().map(|space| space.key.clone()).chain([key.clone()]);
    if PatternSet::new(patterns).is_err() {
        return;
    }
    let history = NonZeroUsize::new(HISTORY).filter(|_| capabilities.tier() == Tier::Atomic);
    spaces.push(Space {
        name: SPACE.to_owned(),
        store: store.to_owned(),
        key,
        ownership: Ownership::User { owner: USER.to_owned() },
        value: None,
        lifetime: None,
        value_bytes_max: None,
        history,
        read_roles: Vec::new(),
        write_roles: vec![WRITER_ROLE.to_owned()],
        indexes: Vec::new(),
        queries: Vec::new(),
        description: Some("What agents keep for users.".to_owned()),
    });
}

/// Refuses a space that cannot hold agents' entries.
pub(crate) fn check(space: &Space) -> Result<()> {
    let variables = space.key.variables().map(|variable| (variable.name.as_str(), variable.kind));
    let text = SegmentType::Text;
    let right = variables.eq([(USER, text), (NAMESPACE, text), (KEY, text)]);
    let owned = matches!(&space.ownership, Ownership::User { owner } if owner == USER);
    let pattern = space.key.as_str();
    if !right || !pattern.ends_with("{key}") || pattern.contains('[') {
        return Err(Error::Unprepared(format!(
            "the space {SPACE} has the key {pattern}; its variables must be {{user}}, {{namespace}} \
             and {{key}}, in this order, and {{key}} stands last"
        )));
    }
    if !owned {
        let message = format!("the space {SPACE} must have the ownership \"user\"");
        return Err(Error::Unprepared(message));
    }
    Ok(())
}

/// Below what all entries of a user lie, or those of one namespace.
pub(crate) fn prefix(space: &Space, user: &str, namespace: Option<&str>) -> Result<Prefix> {
    let mut values = Bindings::new().with(USER, user);
    if let Some(namespace) = namespace {
        values = values.with(NAMESPACE, namespace);
    }
    Ok(space.key.prefix(&values).map_err(keyward_records::Error::from)?)
}

/// Below what the entries of all users lie.
pub(crate) fn all(space: &Space) -> Result<Prefix> {
    Ok(space.key.prefix(&Bindings::new()).map_err(keyward_records::Error::from)?)
}
