//! Queries that would read everything.

use super::word::{folded, is_id, is_index_by_hand, means_owner, stem};
use super::{Finding, Weight};
use crate::property::{JsonType, Property};
use crate::{IndexKind, Schema, Scope, Space};

pub(super) fn look(schema: &Schema, space: &Space, findings: &mut Vec<Finding>) {
    if is_index_by_hand(space) {
        return;
    }
    queries(space, findings);
    let asked: Vec<&str> = space
        .queries
        .iter()
        .flat_map(|q| &q.by)
        .filter_map(|p| Some(p.names().first()?.as_str()))
        .collect();
    for field in lookups(schema, space) {
        // A query that is not answered has been told already.
        if asked.contains(&field) {
            continue;
        }
        findings.push(Finding {
            code: "missing-index",
            weight: Weight::Hint,
            space: space.name.clone(),
            message: format!("{field} looks like something records are found by, and has no index"),
            why: format!(
                "to find the record with one {field}, all of {} would be read",
                space.name
            ),
            fix: format!(
                "add [spaces.{}.indexes.by_{}] field = {field:?}{}",
                space.name,
                folded(field),
                of_one(space, field)
            ),
        });
    }
}

/// How an index is declared whose values belong to one record each, such as addresses of people: nobody
/// else may have the same, and it is looked up without knowing whose it is.
fn of_one(space: &Space, field: &str) -> &'static str {
    let is_address = folded(field).contains("email");
    match (is_address, space.ownership.owner()) {
        (false, _) => "",
        (true, Some(_)) => ", type = \"folded\", unique = true, scope = \"shared\"",
        (true, None) => ", type = \"folded\", unique = true",
    }
}

fn queries(space: &Space, findings: &mut Vec<Finding>) {
    for query in space.queries.iter().filter(|query| space.answer(query).is_none()) {
        let by: Vec<String> =
            query.by.iter().map(|path| format!("{:?}", path.to_string())).collect();
        let whose = match query.scope {
            Scope::Owner => "one owner's records",
            Scope::Shared if space.ownership.owner().is_some() => "everybody's records",
            Scope::Shared => "records",
        };
        let scope = match query.scope {
            Scope::Owner => "owner",
            Scope::Shared => "shared",
        };
        findings.push(Finding {
            code: "missing-index",
            weight: Weight::Mistake,
            space: space.name.clone(),
            message: format!(
                "the query {:?} asks for {whose} by {}, which neither the key nor an index answers",
                query.name,
                by.join(", ")
            ),
            why: "without an index every record would be read for every question, or the question \
                  is refused"
                .to_owned(),
            fix: format!(
                "add an index of the space with fields = [{}] and scope = {scope:?}, in this order",
                by.join(", ")
            ),
        });
    }
}

/// The fields that look like something records are found by, and that no index holds.
fn lookups<'s>(schema: &Schema, space: &'s Space) -> Vec<&'s str> {
    let Some(value) = &space.value else {
        return Vec::new();
    };
    let in_key = |name: &str| space.key.variables().any(|v| stem(&v.name) == stem(name));
    let indexed = |name: &str| {
        space.indexes.iter().any(|index| match &index.kind {
            IndexKind::Values { parts, .. } => {
                parts.iter().any(|part| part.field.names().first().is_some_and(|n| n == name))
            }
            IndexKind::Geohash { .. } => false,
        })
    };
    let looks_like_one = |name: &str, property: Property<'_>| {
        let scalar = |kind: &JsonType| matches!(kind, JsonType::String | JsonType::Integer);
        let scalar = property.types_but_null().is_none_or(|types| types.iter().all(scalar));
        let named = is_id(name) || ["slug", "email"].contains(&folded(name).as_str());
        scalar && (named || property.text("format") == Some("email")) && name != "id"
    };
    let fields = Property::root(value.definition()).fields();
    fields
        .into_iter()
        .filter(|(name, property)| looks_like_one(name, *property))
        .map(|(name, _)| name)
        .filter(|name| !in_key(name) && !indexed(name) && !means_owner(schema, &space.store, name))
        .collect()
}
