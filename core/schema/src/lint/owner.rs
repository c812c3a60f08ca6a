//! The owner stands in the value only: what a user owns cannot be listed.

use super::word::{is_index_by_hand, means_owner, owner_variable, stem};
use super::{Finding, Weight};
use crate::property::Property;
use crate::{Ownership, Schema, Space};

pub(super) fn look(schema: &Schema, space: &Space, findings: &mut Vec<Finding>) {
    let Some(field) = in_value(schema, space) else {
        return;
    };
    // As other keys call it: another name would be the next finding.
    let variable = owner_variable(schema, &space.store);
    findings.push(Finding {
        code: "owner-in-value",
        weight: Weight::Mistake,
        space: space.name.clone(),
        message: format!("the value says whose the record is ({field}), and the key does not"),
        why: "one user's records can only be found by reading everybody's, and nothing keeps others \
              from reading and changing them"
            .to_owned(),
        fix: format!(
            "put the user into the key and declare it: key = \"user:{{{variable}}}:{}\", ownership = \
             \"user\"",
            space.key.as_str().strip_prefix("shared:").unwrap_or(space.key.as_str())
        ),
    });
}

/// The field that names the owner of a record whose key does not.
pub(super) fn in_value<'s>(schema: &Schema, space: &'s Space) -> Option<&'s str> {
    if space.ownership != Ownership::Shared || is_index_by_hand(space) {
        return None;
    }
    let fields = Property::root(space.value.as_ref()?.definition()).fields();
    let in_key = |name: &str| space.key.variables().any(|v| stem(&v.name) == stem(name));
    fields
        .into_iter()
        .map(|(name, _)| name)
        .find(|name| means_owner(schema, &space.store, name) && !in_key(name))
}
