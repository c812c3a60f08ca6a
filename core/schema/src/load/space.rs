//! One space.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;

use keyward_key::{Pattern, is_reserved};
use toml::de::DeValue;

use super::field::{Described, Owned, Surroundings};
use super::report::{Report, Span};
use super::store::Stores;
use super::table::{Table, Text, as_integer, wrong_type};
use super::{definition, field, index, quantity, query};
use crate::bounds::{HISTORY_MAX, ROLES_MAX, SHARED_FIELDS_MAX};
use crate::nearest::nearest;
use crate::shape::Shape;
use crate::{FieldPath, Index, Lifetime, Ownership, Scope, Share, Space};

/// A space as far as it could be read: what is missing has been told.
pub(super) struct Draft<'d> {
    pub name: &'d str,
    pub store: Option<String>,
    pub key: Option<(Pattern, Text<'d>)>,
    /// The names of the indexes, with their places.
    pub indexes: Vec<(String, Span)>,
    /// The whole, unless an error stands in the way.
    pub space: Option<Space>,
}

const KEYS: [&str; 15] = [
    "store",
    "key",
    "ownership",
    "owner",
    "share",
    "ttl",
    "sliding",
    "value",
    "value_bytes_max",
    "history",
    "read_roles",
    "write_roles",
    "description",
    "indexes",
    "queries",
];

pub(super) fn read<'d>(
    name: &Text<'d>,
    table: &Table<'d, '_>,
    stores: &Stores,
    folder: Option<&Path>,
    report: &mut Report<'_>,
) -> Draft<'d> {
    table.only(&KEYS, report);
    let store = stores.chosen(table, report);
    let key = key(table, report);
    let pattern = key.as_ref().map(|(pattern, _)| pattern);

    let value = table.item("value").map(|item| definition::read(item, folder, report));
    let described = match &value {
        None => Described::Not,
        Some(None) => Described::Wrongly,
        Some(Some(schema)) => Described::By(schema),
    };
    let owned = owned(table, report);
    let surroundings = Surroundings { key: pattern, value: described, owned };
    let share = share(table, &surroundings, report);
    let owner = match (owned, &key) {
        (Some(Owned::ByUser | Owned::Hybrid), Some((pattern, text))) => {
            owner(table, pattern, text, report)
        }
        _ => None,
    };
    let ownership = match (owned, owner, share) {
        (Some(Owned::ByNobody), _, _) => Some(Ownership::Shared),
        (Some(Owned::ByUser), Some(owner), _) => Some(Ownership::User { owner }),
        (Some(Owned::Hybrid), Some(owner), Some(share)) => Some(Ownership::Hybrid { owner, share }),
        _ => None,
    };

    let lifetime = lifetime(table, report);
    let value_bytes_max = value_bytes_max(table, report);
    let history = history(table, report);
    let read_roles = roles(table, "read_roles", report);
    let write_roles = roles(table, "write_roles", report);
    let description = table.text("description", "description = \"…\"", report);
    let (indexes, places) = index::read_all(name.text, table, &surroundings, report);
    if let Some(Ownership::Hybrid { share, .. }) = &ownership {
        indexed_is_shared(share, &indexes, &places, report);
    }
    let queries = query::read_all(name.text, table, &surroundings, report);

    let space = match (&store, &key, ownership) {
        (Some(store), Some((pattern, _)), Some(ownership)) => Some(Space {
            name: name.text.to_owned(),
            store: store.clone(),
            key: pattern.clone(),
            ownership,
            value: value.flatten(),
            lifetime,
            value_bytes_max,
            history,
            read_roles,
            write_roles,
            indexes,
            queries,
            description: description.map(|description| description.text.to_owned()),
        }),
        _ => None,
    };
    Draft { name: name.text, store, key, indexes: places, space }
}

/// A shared index tells everybody the values it holds: by what is found, and in which order.
fn indexed_is_shared(
    share: &Share,
    indexes: &[Index],
    places: &[(String, Range<usize>)],
    report: &mut Report<'_>,
) {
    for index in indexes.iter().filter(|index| index.scope == Scope::Shared) {
        let hidden = index.fields().into_iter().find(|field| !share.includes(field));
        let place = places.iter().find(|(name, _)| *name == index.name);
        if let (Some(field), Some((_, at))) = (hidden, place) {
            let message =
                format!("a shared index would tell others about {field}, which is not shared");
            let hint =
                format!("add {field:?} to share, or leave scope out", field = field.to_string());
            report.error("share", at.clone(), message, &hint);
        }
    }
}

fn key<'d>(table: &Table<'d, '_>, report: &mut Report<'_>) -> Option<(Pattern, Text<'d>)> {
    const EXAMPLE: &str = "key = \"user:{user}:notes:{note}\"";
    if table.item("key").is_none() {
        table.missing("key", &format!("say what its keys look like, as in {EXAMPLE}"), report);
    }
    let text = table.text("key", EXAMPLE, report)?;
    let pattern = pattern(&text, report)?;
    let shape = Shape::of(&pattern);
    if let Some(literal) = shape.first_literal().filter(|literal| is_reserved(literal)) {
        let at = text.part(0, literal.len(), report);
        let message = format!("keys that begin with {literal:?} belong to Keyward itself");
        report.error("reserved-segment", at, message, "begin with another word");
        return None;
    }
    Some((pattern, text))
}

/// Reads a pattern, pointing at the character where it stops being one.
pub(super) fn pattern(text: &Text<'_>, report: &mut Report<'_>) -> Option<Pattern> {
    match Pattern::parse(text.text) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let at = text.part(error.offset(), 1, report);
            let hint = "segments are separated by \":\"; each is a literal or one {variable}, typed \
                        as in {n:u64} or {at:time}; [:…] at the end is optional";
            report.error("key-pattern", at, error.message(), hint);
            None
        }
    }
}

fn owned(table: &Table<'_, '_>, report: &mut Report<'_>) -> Option<Owned> {
    const WORDS: [(&str, Owned); 3] =
        [("user", Owned::ByUser), ("shared", Owned::ByNobody), ("hybrid", Owned::Hybrid)];
    let owned = table.word("ownership", &WORDS, report);
    match owned {
        None if table.item("ownership").is_none() => {
            let hint = "write ownership = \"user\" if the user in the key alone sees and changes \
                        them, \"shared\" if they are everybody's, \"hybrid\" if one user's records \
                        are found by others";
            table.missing("ownership", hint, report);
        }
        Some(Owned::ByNobody) => {
            let because = "a shared space has no owner";
            let hint = "leave it out, or write ownership = \"user\" or \"hybrid\"";
            table.without(&["owner"], because, hint, report);
        }
        _ => {}
    }
    owned
}

fn owner(
    table: &Table<'_, '_>,
    pattern: &Pattern,
    key: &Text<'_>,
    report: &mut Report<'_>,
) -> Option<String> {
    let shape = Shape::of(pattern);
    let variables = || shape.segments.iter().filter_map(|segment| segment.variable());
    let Some(first) = shape.segments.iter().find(|segment| segment.variable().is_some()) else {
        let message = format!("{} is owned by users, but its key names no user", table.what);
        let hint = "put the user's id into the key, as in user:{user}:notes:{note}";
        report.error("owner", key.at.clone(), message, hint);
        return None;
    };
    let first_name = first.variable().map_or("", |variable| variable.name.as_str());
    if let Some(named) = table.text("owner", "owner = \"user\"", report)
        && named.text != first_name
    {
        let names = || variables().map(|variable| variable.name.as_str());
        if names().any(|name| name == named.text) {
            let message = format!(
                "the owner {{{}}} is not the first variable of the key, so what a user owns would \
                 not be one range of keys",
                named.text
            );
            let hint = format!("put {{{}}} before {{{first_name}}} in the key", named.text);
            report.error("owner", named.at, message, hint);
        } else {
            let hint = match nearest(named.text, names()) {
                Some(name) => format!("did you mean {name:?}?"),
                None => format!("the first variable is {first_name:?}"),
            };
            let message = format!("the key has no variable {:?}", named.text);
            report.error("owner", named.at, message, hint);
        }
        return None;
    }
    let at = key.part(first.offset, first.text.len(), report);
    if !shape.always().contains(first) {
        let message = format!(
            "the owner {{{first_name}}} stands in an optional part, so some keys would have no owner"
        );
        report.error("owner", at, message, "put it before the \"[\"");
        return None;
    }
    if first.variable().is_some_and(|v| v.kind != keyward_key::SegmentType::Text) {
        let message = format!("the owner {{{first_name}}} is typed, but a user's id is text");
        report.error("owner", at, message, format!("write {{{first_name}}}"));
        return None;
    }
    Some(first_name.to_owned())
}

fn share(
    table: &Table<'_, '_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report<'_>,
) -> Option<Share> {
    const HINT: &str =
        "write share = \"everything\", or the fields that others see: share = [\"title\"]";
    let item = match (surroundings.owned?, table.item("share")) {
        (Owned::Hybrid, Some(item)) => item,
        (Owned::Hybrid, None) => {
            table.missing("share", HINT, report);
            return None;
        }
        _ => {
            let because = "only hybrid spaces share a part of their records";
            table.without(
                &["share"],
                because,
                "write ownership = \"hybrid\", or leave it out",
                report,
            );
            return None;
        }
    };
    match item.get_ref() {
        DeValue::String(word) if word == "everything" => Some(Share::Everything),
        DeValue::Array(array) if !array.is_empty() => {
            let texts = table.texts("share", SHARED_FIELDS_MAX, "share = [\"title\"]", report)?;
            let fields: Vec<FieldPath> = texts
                .iter()
                .filter_map(|text| {
                    let path = field::path(text, report)?;
                    surroundings.described(&path, text, report);
                    Some(path)
                })
                .collect();
            Some(Share::Fields(fields))
        }
        _ => {
            let message = "share says nothing about what others see";
            report.error("share", item.span(), message, HINT);
            None
        }
    }
}

fn lifetime(table: &Table<'_, '_>, report: &mut Report<'_>) -> Option<Lifetime> {
    let sliding = table.flag("sliding", report).unwrap_or(false);
    if table.item("ttl").is_none() {
        if sliding {
            let message = "sliding begins a record's life anew, but without ttl it has no end";
            let hint = "add ttl = \"30d\", or leave sliding out";
            report.error("sliding", table.key_at("sliding"), message, hint);
        }
        return None;
    }
    let text = table.text("ttl", "ttl = \"30d\"", report)?;
    match quantity::ttl(text.text) {
        Ok(ttl) => Some(Lifetime { ttl, sliding }),
        Err(refused) => {
            report.error("ttl", text.at, refused.message, refused.hint);
            None
        }
    }
}

fn value_bytes_max(table: &Table<'_, '_>, report: &mut Report<'_>) -> Option<usize> {
    let item = table.item("value_bytes_max")?;
    let size = match (item.get_ref(), as_integer(item.get_ref())) {
        (_, Some(number)) => quantity::byte_count(number),
        (DeValue::String(text), _) => quantity::bytes(text),
        _ => {
            let hint = "write value_bytes_max = 65536 or \"64 KiB\"";
            wrong_type("value_bytes_max", item, "a size", hint, report);
            return None;
        }
    };
    match size {
        Ok(size) => Some(size),
        Err(refused) => {
            report.error("size", item.span(), refused.message, refused.hint);
            None
        }
    }
}

fn history(table: &Table<'_, '_>, report: &mut Report<'_>) -> Option<NonZeroUsize> {
    let item = table.item("history")?;
    let Some(number) = as_integer(item.get_ref()) else {
        wrong_type("history", item, "a whole number", "write history = 10", report);
        return None;
    };
    let kept = usize::try_from(number).ok().filter(|&kept| kept <= HISTORY_MAX);
    let kept = kept.and_then(NonZeroUsize::new);
    if kept.is_none() {
        let message = format!(
            "history is the number of versions kept, the current one included: 1 to {HISTORY_MAX}, \
             not {number}"
        );
        report.error(
            "history",
            item.span(),
            message,
            "leave history out to keep the current one only",
        );
    }
    kept
}

fn roles(table: &Table<'_, '_>, key: &str, report: &mut Report<'_>) -> Vec<String> {
    let texts = table.texts(key, ROLES_MAX, &format!("{key} = [\"editor\"]"), report);
    let mut roles: Vec<String> = Vec::new();
    for text in texts.unwrap_or_default() {
        let empty = text.text.trim().is_empty();
        if empty || text.text.chars().any(char::is_control) {
            let message = format!("{:?} cannot be a role", text.text);
            report.error("role", text.at, message, "a role is a word, such as \"editor\"");
        } else if roles.iter().any(|known| known == text.text) {
            let message = format!("the role {:?} stands here twice", text.text);
            report.error("role", text.at, message, "leave one of them out");
        } else {
            roles.push(text.text.to_owned());
        }
    }
    roles
}
