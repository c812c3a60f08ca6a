//! From what is asked of an index to the range of its entries.

use keyward_key::{KeyRange, Prefix};
use keyward_schema::{IndexKind, Part, ValueKind};
use serde_json::Value;

use super::{Bound, Span};
use crate::index::Layout;
use crate::{Error, Result, ordered};

/// A range of entries, and how a person would write it.
pub(super) struct EntryRange {
    pub range: KeyRange,
    pub text: String,
    /// Whether it is the one entry of whole values in a unique index.
    pub exact: bool,
}

pub(super) fn of(
    layout: &Layout,
    owner: Option<&str>,
    equal: &[Value],
    span: Option<&Span>,
) -> Result<EntryRange> {
    let IndexKind::Values { parts, .. } = &layout.index.kind else {
        return bad(format!(
            "{} is an index of places: ask with near or within",
            layout.index.name
        ));
    };
    if equal.len() + usize::from(span.is_some()) > parts.len() {
        return bad(format!(
            "the index {} has {} fields, and {} were asked for",
            layout.index.name,
            parts.len(),
            equal.len() + usize::from(span.is_some())
        ));
    }
    let mut prefix = layout.prefix_of(owner);
    for (value, part) in equal.iter().zip(parts) {
        prefix = prefix.child(&segment(part, value)?);
    }
    let whole = equal.len() == parts.len();
    match (span, parts.get(equal.len())) {
        (Some(span), Some(part)) => spanned(&prefix, part, span),
        // A unique entry is its own end: there is no primary key below it.
        _ if whole && layout.is_unique() => {
            let key = prefix.to_key().ok_or_else(|| Error::BadQuery("nothing is asked".into()))?;
            let text = key.to_string();
            Ok(EntryRange { range: KeyRange::exactly(&key), text, exact: true })
        }
        _ => {
            let text = format!("{prefix}*");
            Ok(EntryRange { range: KeyRange::under(&prefix), text, exact: false })
        }
    }
}

fn spanned(prefix: &Prefix, part: &Part, span: &Span) -> Result<EntryRange> {
    let (from, to) = match span {
        Span::Prefix(text) => {
            let folded = match part.kind {
                ValueKind::Text => text.clone(),
                ValueKind::Folded => ordered::folded(text),
                _ => return bad(format!("{} is not text: it has no beginning", part.field)),
            };
            let range = KeyRange::segment_prefix(prefix, &folded);
            return Ok(EntryRange { range, text: format!("{prefix}{folded}*"), exact: false });
        }
        Span::Between { from, to } => (from, to),
    };
    let end = |bound: &Option<Bound>| -> Result<Option<(String, bool)>> {
        bound.as_ref().map(|b| Ok((segment(part, &b.value)?, b.inclusive))).transpose()
    };
    let (from, to) = (end(from)?, end(to)?);
    let text_of = |bound: &Option<(String, bool)>| {
        bound.as_ref().map(|(segment, _)| segment.clone()).unwrap_or_default()
    };
    let segment_of = |bound: &'_ Option<(String, bool)>| bound.as_ref().map(|(s, _)| s.clone());
    let mut range =
        KeyRange::between(prefix, segment_of(&from).as_deref(), segment_of(&to).as_deref());
    if let Some((segment, false)) = &from {
        range = range.after_prefix(&prefix.child(segment));
    }
    if let Some((segment, false)) = &to {
        let end = prefix.child(segment);
        range = match end.to_key() {
            Some(key) => range.before(&key),
            None => range,
        };
    }
    let text = format!("{prefix}{} … {}", text_of(&from), text_of(&to));
    Ok(EntryRange { range, text, exact: false })
}

fn segment(part: &Part, value: &Value) -> Result<String> {
    let text = value.to_string();
    match ordered::segment(part.kind, text.as_bytes()) {
        Ok(Some(segment)) => Ok(segment.into_owned()),
        Ok(None) => bad(format!("{}: null is in no index", part.field)),
        Err(reason) => bad(format!("the value asked for in {}: {reason}", part.field)),
    }
}

fn bad<T>(message: String) -> Result<T> {
    Err(Error::BadQuery(message))
}
