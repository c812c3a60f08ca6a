//! Keys that are built in several ways.

use super::word::{folded, is_index_word, singular};
use super::{Finding, Weight};
use crate::shape::Shape;
use crate::{Schema, Space};

pub(super) fn look(schema: &Schema, space: &Space, findings: &mut Vec<Finding>) {
    let shape = Shape::of(&space.key);
    findings.extend(separators(space, &shape));
    findings.extend(first_words(schema, space, &shape));
    findings.extend(owner_names(schema, space));
}

fn finding(space: &Space, message: String, why: &str, fix: String) -> Finding {
    Finding {
        code: "inconsistent-keys",
        weight: Weight::Mistake,
        space: space.name.clone(),
        message,
        why: why.to_owned(),
        fix,
    }
}

/// `user_notes:{note}` and `docs/notes:{note}`: segments hidden inside a segment.
fn separators(space: &Space, shape: &Shape) -> Option<Finding> {
    let literal = shape
        .literals()
        .find(|literal| literal.contains(['_', '/', '|', '#']) && !is_index_word(literal))?;
    let parts: Vec<&str> = literal.split(['_', '/', '|', '#']).filter(|p| !p.is_empty()).collect();
    Some(finding(
        space,
        format!("the segment {literal:?} is put together without \":\""),
        "only \":\" separates segments: nothing can be listed by a part of one, and the next key is \
         built in yet another way",
        format!("write {:?}, or one word with \"-\" in it", parts.join(":")),
    ))
}

/// `user:…` here and `users:…` there.
fn first_words(schema: &Schema, space: &Space, shape: &Shape) -> Option<Finding> {
    let word = shape.first_literal()?;
    let (other, other_word) = earlier(schema, space).find_map(|other| {
        let other_word = Shape::of(&other.key).first_literal()?.to_owned();
        let alike = other_word != word && singular(&folded(&other_word)) == singular(&folded(word));
        alike.then_some((other, other_word))
    })?;
    Some(finding(
        space,
        format!(
            "keys begin with {word:?}, where those of {} begin with {other_word:?}",
            other.name
        ),
        "nobody can guess which of the two a record is below, and a listing of one misses the other",
        format!("begin both with {other_word:?}"),
    ))
}

/// `{user}` here and `{userId}` there.
fn owner_names(schema: &Schema, space: &Space) -> Option<Finding> {
    let owner = space.ownership.owner()?;
    let (other, other_owner) = earlier(schema, space).find_map(|other| {
        let other_owner = other.ownership.owner().filter(|other_owner| *other_owner != owner)?;
        Some((other, other_owner))
    })?;
    Some(finding(
        space,
        format!("the owner is called {{{owner}}}, and in {} {{{other_owner}}}", other.name),
        "the same thing has two names, so that every caller must know which space takes which",
        format!("call it {{{other_owner}}} here too; keys do not change with it"),
    ))
}

/// The spaces of the same store that stand before this one.
fn earlier<'s>(schema: &'s Schema, space: &'s Space) -> impl Iterator<Item = &'s Space> {
    schema.spaces_of(&space.store).take_while(|other| other.name != space.name)
}
