//! Which index answers a question.

use keyward_schema::{Index, IndexKind, Ownership, Part, Scope, Space, ValueKind};
use serde_json::Value;

use super::filter::{Comparison, Test};
use super::{Bound, By, Filter, Query, Span};
use crate::moment::moment;
use crate::ordered;

impl Query {
    /// A question to the index that answers a filter, if the space declares one: one that has an entry
    /// for every record of which the filter holds, and whose entries of these stand together. Of
    /// several, the one that leads to fewest: with most fields known.
    ///
    /// Each of its fields must be tested by the filter, since a record that lacks one has no entry. The
    /// filter stays part of the question, so nothing that an index tells only roughly (letters of
    /// another case, digits that a double drops) comes by mistake.
    pub fn for_filter(space: &Space, filter: &Filter) -> Option<Self> {
        let found = space.indexes.iter().filter(|index| is_open(space, index));
        let found = found.filter_map(|index| by(index, filter));
        let best = found.max_by_key(|by| match by {
            By::Index { equal, .. } => equal.len(),
            By::Key(_) | By::Nowhere(_) => 0,
        })?;
        Some(Self::new(best).filter(filter.clone()))
    }
}

/// Whether the index can be asked for more than whole values by those who own records.
fn is_open(space: &Space, index: &Index) -> bool {
    let users_only = matches!(space.ownership, Ownership::User { .. });
    !(users_only && index.scope == Scope::Shared)
}

fn by(index: &Index, filter: &Filter) -> Option<By> {
    let IndexKind::Values { parts, .. } = &index.kind else { return None };
    if parts.iter().any(|part| part.multi) {
        return None;
    }
    let (last, leading) = parts.split_last()?;
    let mut equal = Vec::with_capacity(parts.len());
    for part in leading {
        equal.push(known(part, filter)?);
    }
    let name = index.name.clone();
    if let Some(value) = known(last, filter) {
        equal.push(value);
        return Some(By::Index { name, equal, span: None });
    }
    let span = span(last, filter)?;
    Some(By::Index { name, equal, span: Some(span) })
}

/// The value that a field must have.
fn known(part: &Part, filter: &Filter) -> Option<Value> {
    filter.tests(&part.field).find_map(|test| match test {
        Test::Equal(value) if fits(part, value) => Some(value.clone()),
        _ => None,
    })
}

/// Between which values a field must lie. Both ends belong to it: the filter looks again.
fn span(part: &Part, filter: &Filter) -> Option<Span> {
    use ValueKind::{Integer, Number, Text, Time};
    if !matches!(part.kind, Text | Integer | Number | Time) {
        return None;
    }
    let (mut from, mut to) = (None, None);
    for test in filter.tests(&part.field) {
        match test {
            Test::Prefix(text) if part.kind == ValueKind::Text => {
                return Some(Span::Prefix(text.clone()));
            }
            Test::Compared(comparison, value) if fits(part, value) => {
                let bound = Some(Bound { value: value.clone(), inclusive: true });
                match comparison {
                    Comparison::Less | Comparison::AtMost => to = bound,
                    Comparison::More | Comparison::AtLeast => from = bound,
                }
            }
            _ => {}
        }
    }
    (from.is_some() || to.is_some()).then_some(Span::Between { from, to })
}

/// Whether an index of such values has entries for this one, in the order in which a filter compares them.
fn fits(part: &Part, value: &Value) -> bool {
    // A filter compares times as moments, and an index of texts has them in another order.
    let is_time = value.as_str().and_then(moment).is_some();
    if is_time && matches!(part.kind, ValueKind::Text | ValueKind::Folded) {
        return false;
    }
    let text = value.to_string();
    matches!(ordered::segment(part.kind, text.as_bytes()), Ok(Some(_)))
}

#[cfg(test)]
mod tests {
    use keyward_schema::Schema;

    use super::*;

    const SCHEMA: &str = r#"
[stores.app]
[spaces.tasks]
key = "user:{user}:tasks:{task}"
ownership = "user"
indexes.by_state = { field = "value.state", type = "text" }
indexes.by_state_and_due = { fields = ["value.state", "due"], types = { "value.state" = "text", due = "integer" } }
indexes.by_name = { field = "name", type = "folded" }
indexes.by_time = { kind = "time", field = "at" }
"#;

    fn chosen(filter: &str) -> Option<(String, usize, Option<Span>)> {
        let schema = Schema::parse(SCHEMA, "schema.toml").unwrap_or_else(|p| panic!("{p}"));
        let filter = Filter::parse(filter).unwrap();
        match Query::for_filter(&schema.spaces[0], &filter)?.by {
            By::Index { name, equal, span } => Some((name, equal.len(), span)),
            by => panic!("{by:?}"),
        }
    }

    #[test]
    fn an_index_is_chosen_only_where_it_has_every_record_that_matches() {
        let name = |filter: &str| chosen(filter).map(|(name, ..)| name);
        // A task without a due time is in only one of the two.
        assert_eq!(name(r#"{"value.state":"open"}"#).as_deref(), Some("by_state"));
        let both = chosen(r#"{"value.state":"open","due":7}"#).unwrap();
        assert_eq!((both.0.as_str(), both.1), ("by_state_and_due", 2));
        let Some((_, 1, Some(Span::Between { from: Some(from), to: None }))) =
            chosen(r#"{"value.state":"open","due":{"gt":7}}"#)
                .filter(|(name, ..)| name == "by_state_and_due")
        else {
            panic!("the span is not used");
        };
        assert!(from.inclusive);
        assert_eq!(name(r#"{"name":"Ada"}"#).as_deref(), Some("by_name"));
        let since = r#"{"at":{"gte":"2026-01-05T09:00:00+01:00"}}"#;
        assert_eq!(name(since).as_deref(), Some("by_time"));
        assert_eq!(name(r#"{"at":{"gte":"2026-01-05"}}"#).as_deref(), Some("by_time"));
        for none in [
            r#"{}"#,
            r#"{"due":7}"#,
            r#"{"value.state":{"ne":"open"}}"#,
            r#"{"value.state":null}"#,
            r#"{"value.state":7}"#,
            r#"{"name":{"gt":"a"}}"#,
            // An index of texts has times in another order than the filter.
            r#"{"value.state":{"gte":"2026-01-05T09:00:00Z"}}"#,
            r#"{"name":"2026-01-05T09:00:00Z"}"#,
            r#"{"value.state":{"lt":"2026-01-05"}}"#,
            r#"{"name":"2026-01-05T09:00"}"#,
        ] {
            assert_eq!(name(none), None, "{none}");
        }
    }
}
