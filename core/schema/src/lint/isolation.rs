//! No namespace: records of different owners, or of different kinds, can meet in one key or one
//! listing.

use super::word::{is_index_by_hand, owner_variable, stem};
use super::{Finding, Weight, owner};
use crate::shape::Shape;
use crate::{Ownership, Schema, Space};

pub(super) fn look(schema: &Schema, space: &Space, findings: &mut Vec<Finding>) {
    let shape = Shape::of(&space.key);
    findings.extend(without_namespace(schema, space, &shape));
    findings.extend(variable_beside_others(schema, space, &shape));
}

/// `notes:{note}`: whoever chooses the same id writes the same record.
fn without_namespace(schema: &Schema, space: &Space, shape: &Shape) -> Option<Finding> {
    let [first, second, ..] = &shape.segments[..] else {
        return None;
    };
    let (resource, id) = (first.literal()?, second.variable()?);
    // These are told as what they are.
    let told_elsewhere = is_index_by_hand(space) || owner::in_value(schema, space).is_some();
    if space.ownership != Ownership::Shared || told_elsewhere {
        return None;
    }
    Some(Finding {
        code: "no-isolation",
        weight: Weight::Mistake,
        space: space.name.clone(),
        message: format!(
            "keys begin with {resource:?} and its id, with nothing before them that says whose they are"
        ),
        why: format!(
            "two users who choose the same {{{}}} write the same record, and no listing shows one \
             user's records alone",
            id.name
        ),
        fix: format!(
            "if each record belongs to a user, write key = \"user:{{{1}}}:{0}\" and ownership = \
             \"user\"; if it is everybody's, say so in the key: \"shared:{0}\"",
            space.key,
            owner_variable(schema, &space.store)
        ),
    })
}

/// `{user}:…` beside `templates:…`: the user called templates lists the templates.
fn variable_beside_others(schema: &Schema, space: &Space, shape: &Shape) -> Option<Finding> {
    let variable = shape.segments.first()?.variable()?;
    let (other, meets) = schema.spaces_of(&space.store).find_map(|other| {
        let first = Shape::of(&other.key).segments.into_iter().next()?;
        let meets = match (first.literal(), first.variable()) {
            (Some(literal), _) => format!("the word {literal:?}"),
            (_, Some(v)) if stem(&v.name) != stem(&variable.name) => format!("a {{{}}}", v.name),
            _ => return None,
        };
        Some((other, meets))
    })?;
    Some(Finding {
        code: "no-isolation",
        weight: Weight::Mistake,
        space: space.name.clone(),
        message: format!(
            "keys begin with {{{}}}, where those of {} begin with {meets}",
            variable.name, other.name
        ),
        why: format!(
            "a {{{}}} of the same name lands among the records of {}: listing one shows the other",
            variable.name, other.name
        ),
        fix: format!(
            "put a word of its own before the variable, as in \"{}:{}\", or use another store",
            variable.name.to_lowercase(),
            space.key
        ),
    })
}
