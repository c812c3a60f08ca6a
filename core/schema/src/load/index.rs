//! One index.

use super::field::{self, Owned, Surroundings};
use super::part;
use super::report::{Report, Span};
use super::table::{Table, as_integer, wrong_type};
use crate::bounds::INDEXES_MAX;
use crate::property::{JsonType, Property};
use crate::{FieldPath, Index, IndexKind, Scope};

pub(super) const SCOPES: [(&str, Scope); 2] = [("owner", Scope::Owner), ("shared", Scope::Shared)];

/// How many characters a geohash has if nothing is said: cells of about 150 metres.
const PRECISION_DEFAULT: u8 = 7;
const PRECISION_MAX: u8 = 12;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Values,
    Time,
    Geohash,
}

const KINDS: [(&str, Kind); 3] =
    [("values", Kind::Values), ("time", Kind::Time), ("geohash", Kind::Geohash)];

const KEYS: [&str; 11] = [
    "kind",
    "field",
    "fields",
    "type",
    "types",
    "multi",
    "unique",
    "scope",
    "lat",
    "lon",
    "precision",
];

/// Reads the indexes of a space; gives those that are right, and the names and places of all.
pub(super) fn read_all(
    space: &str,
    table: &Table<'_, '_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report<'_>,
) -> (Vec<Index>, Vec<(String, Span)>) {
    let header = format!("spaces.{space}.indexes");
    let mut indexes: Vec<Index> = Vec::new();
    let mut places = Vec::new();
    for (name, table) in table.tables("indexes", &header, "index", INDEXES_MAX, report) {
        if let Some(index) = read(name.text, &table, surroundings, report) {
            let twin = |other: &&Index| (&other.kind, other.scope) == (&index.kind, index.scope);
            if let Some(twin) = indexes.iter().find(twin) {
                let message = format!("this index holds the same as {}", twin.name);
                report.warning("redundant-index", name.at.clone(), message, "remove one of them");
            }
            indexes.push(index);
        }
        places.push((name.text.to_owned(), name.at));
    }
    (indexes, places)
}

fn read(
    name: &str,
    table: &Table<'_, '_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report<'_>,
) -> Option<Index> {
    table.only(&KEYS, report);
    let kind = match table.item("kind") {
        None => Kind::Values,
        Some(_) => table.word("kind", &KINDS, report)?,
    };
    let unique = table.flag("unique", report).unwrap_or(false);
    let scope = scope(table, unique, surroundings, report);
    let kind = match kind {
        Kind::Geohash => geohash(table, surroundings, report)?,
        Kind::Time => {
            let because = "an index of kind \"time\" is over one field that holds a time";
            let hint = "write field = \"createdAt\", or leave kind out";
            table.without(&["fields", "type", "types", "multi"], because, hint, report);
            not_geohash(table, report);
            let parts = vec![part::read_time(table, surroundings, report)?];
            IndexKind::Values { parts, unique }
        }
        Kind::Values => {
            not_geohash(table, report);
            IndexKind::Values { parts: part::read_all(table, surroundings, report)?, unique }
        }
    };
    Some(Index { name: name.to_owned(), scope: scope?, kind })
}

fn not_geohash(table: &Table<'_, '_>, report: &mut Report<'_>) {
    let because = "it belongs to an index of kind \"geohash\"";
    let hint = "write kind = \"geohash\", or leave it out";
    table.without(&["lat", "lon", "precision"], because, hint, report);
}

fn scope(
    table: &Table<'_, '_>,
    unique: bool,
    surroundings: &Surroundings<'_>,
    report: &mut Report<'_>,
) -> Option<Scope> {
    let named = match table.item("scope") {
        None => None,
        Some(item) => Some((table.word("scope", &SCOPES, report)?, item.span())),
    };
    match (named, surroundings.owned) {
        (Some((Scope::Owner, at)), Some(Owned::ByNobody)) => {
            let message = "entries cannot stand apart for each owner in a space without owners";
            report.error("scope", at, message, "leave scope out, or write scope = \"shared\"");
            None
        }
        (Some((Scope::Shared, at)), Some(Owned::ByUser)) if !unique => {
            let message = "a shared index of a user-owned space would list what belongs to others";
            let hint = "write ownership = \"hybrid\" if others may find these records, or unique = \
                        true if no two records in the store may have the same value (then nothing \
                        is listed), or leave scope out";
            report.error("scope", at, message, hint);
            None
        }
        (Some((scope, _)), _) => Some(scope),
        (None, owned) => owned.map(Owned::scope),
    }
}

fn geohash(
    table: &Table<'_, '_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report<'_>,
) -> Option<IndexKind> {
    let because = "an index of kind \"geohash\" is over lat and lon";
    let hint = "leave it out";
    table.without(&["field", "fields", "type", "types", "multi", "unique"], because, hint, report);
    let lat = degrees(table, "lat", surroundings, report);
    let lon = degrees(table, "lon", surroundings, report);
    let precision = precision(table, report);
    let (lat, lon, precision) = (lat?, lon?, precision?);
    if lat == lon {
        let at = table.item("lon").map_or(table.at.clone(), |item| item.span());
        report.error(
            "field",
            at,
            "lat and lon are the same field",
            "name the field of the longitude",
        );
        return None;
    }
    Some(IndexKind::Geohash { lat, lon, precision })
}

fn degrees(
    table: &Table<'_, '_>,
    key: &str,
    surroundings: &Surroundings<'_>,
    report: &mut Report<'_>,
) -> Option<FieldPath> {
    let example = format!("{key} = \"position.{key}\"");
    if table.item(key).is_none() {
        table.missing(key, &format!("name the field with the degrees, as in {example}"), report);
    }
    let text = table.text(key, &example, report)?;
    let path = field::path(&text, report)?;
    let types = surroundings.described(&path, &text, report).and_then(Property::types_but_null);
    let number = |kind: &JsonType| matches!(kind, JsonType::Integer | JsonType::Number);
    if let Some(types) = types.filter(|types| types.is_empty() || !types.iter().all(number)) {
        let message = format!("{path} holds {}, but degrees are numbers", part::spoken(&types));
        let hint = "name a field of type number, or change the value's schema";
        report.error("type-mismatch", text.at, message, hint);
    }
    Some(path)
}

fn precision(table: &Table<'_, '_>, report: &mut Report<'_>) -> Option<u8> {
    let Some(item) = table.item("precision") else {
        return Some(PRECISION_DEFAULT);
    };
    let Some(number) = as_integer(item.get_ref()) else {
        wrong_type("precision", item, "a whole number", "write precision = 7", report);
        return None;
    };
    let precision = u8::try_from(number).ok().filter(|p| (1..=PRECISION_MAX).contains(p));
    if precision.is_none() {
        let message = format!("a geohash has 1 to {PRECISION_MAX} characters, not {number}");
        let hint = "5 is a city (5 km), 7 a block (150 m), 9 a door (5 m)";
        report.error("precision", item.span(), message, hint);
    }
    precision
}
