//! Where the entries of an index stand.

use crate::{Index, IndexKind, Part, Scope, Space, ValueKind};

/// The shape of an index's entries: `index:email:{email}`.
pub(super) fn layout(space: &Space, index: &Index) -> String {
    let mut segments = vec!["index".to_owned(), index.name.clone()];
    if index.scope == Scope::Owner {
        segments.extend(space.ownership.owner().map(|owner| format!("{{{owner}}}")));
    }
    match &index.kind {
        IndexKind::Values { parts, .. } => {
            segments.extend(parts.iter().map(|part| format!("{{{}}}", part.field)));
        }
        IndexKind::Geohash { .. } => segments.push("{geohash}".to_owned()),
    }
    if !index.is_unique() {
        segments.push(space.key.as_str().to_owned());
    }
    segments.join(":")
}

/// What an index holds, in words.
pub(super) fn contents(index: &Index) -> String {
    match &index.kind {
        IndexKind::Values { parts, unique } => {
            let parts: Vec<String> = parts.iter().map(part).collect();
            let unique = match (unique, index.scope) {
                (false, _) => "",
                (true, Scope::Owner) => "; unique for each owner",
                (true, Scope::Shared) => "; unique in the store",
            };
            format!("{}{unique}", parts.join(", then "))
        }
        IndexKind::Geohash { lat, lon, precision } => {
            format!("the geohash of `{lat}` and `{lon}`, {precision} characters")
        }
    }
}

fn part(part: &Part) -> String {
    let kind = match part.kind {
        ValueKind::Text => "text",
        ValueKind::Folded => "text in any case",
        ValueKind::Integer => "whole number",
        ValueKind::Number => "number",
        ValueKind::Time => "time",
        ValueKind::Bool => "true or false",
    };
    if part.multi {
        format!("each element of `{}` ({kind})", part.field)
    } else {
        format!("`{}` ({kind})", part.field)
    }
}
