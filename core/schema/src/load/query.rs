//! The questions that a space's users ask.

use super::field::{self, Owned, Surroundings};
use super::index::SCOPES;
use super::report::Report;
use super::table::Table;
use crate::bounds::{FIELDS_MAX, QUERIES_MAX};
use crate::property::Lookup;
use crate::{DeclaredQuery, FieldPath, Scope};

pub(super) fn read_all(
    space: &str,
    table: &Table<'_, '_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report<'_>,
) -> Vec<DeclaredQuery> {
    let header = format!("spaces.{space}.queries");
    let tables = table.array_of_tables("queries", &header, "query", QUERIES_MAX, report);
    let mut queries: Vec<DeclaredQuery> = Vec::new();
    for table in tables {
        let Some(query) = read(&table, surroundings, report) else {
            continue;
        };
        if queries.iter().any(|known| known.name == query.name) {
            let at = table.item("name").map_or(table.at.clone(), |item| item.span());
            let message = format!("a query of this space is already called {:?}", query.name);
            report.error("query", at, message, "give it another name");
        }
        queries.push(query);
    }
    queries
}

fn read(
    table: &Table<'_, '_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report<'_>,
) -> Option<DeclaredQuery> {
    table.only(&["name", "by", "scope"], report);
    let name = table.text("name", "name = \"by title\"", report);
    match &name {
        Some(name) if name.text.trim().is_empty() => {
            let hint = "say what the query is called, as in \"by title\"";
            report.error("query", name.at.clone(), "a query needs a name", hint);
        }
        None if table.item("name").is_none() => {
            table.missing("name", "say what it is called, as in name = \"by title\"", report);
        }
        _ => {}
    }
    let by = by(table, surroundings, report);
    let scope = table.word("scope", &SCOPES, report);
    if scope == Some(Scope::Owner) && surroundings.owned == Some(Owned::ByNobody) {
        let at = table.item("scope").map_or(table.at.clone(), |item| item.span());
        let message = "a query of one owner's records, in a space without owners";
        report.error("scope", at, message, "leave scope out, or write scope = \"shared\"");
    }
    Some(DeclaredQuery {
        name: name?.text.to_owned(),
        by: by?,
        scope: scope.or(surroundings.owned.map(Owned::scope))?,
    })
}

fn by(
    table: &Table<'_, '_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report<'_>,
) -> Option<Vec<FieldPath>> {
    const HINT: &str = "name the fields or key variables it asks for, as in by = [\"title\"]";
    if table.item("by").is_none() {
        table.missing("by", HINT, report);
    }
    let texts = table.texts("by", FIELDS_MAX, "by = [\"title\"]", report)?;
    if texts.is_empty() {
        report.error("query", table.key_at("by"), "the query asks for nothing", HINT);
    }
    let mut by: Vec<FieldPath> = Vec::new();
    for text in &texts {
        let Some(path) = field::path(text, report) else {
            continue;
        };
        if by.contains(&path) {
            let message = format!("{path} stands here twice");
            report.error("field", text.at.clone(), message, "leave one of them out");
        }
        let absent = matches!(surroundings.look_up(&path), Lookup::Absent { .. });
        if absent && !surroundings.is_variable(&path) {
            surroundings.described(&path, text, report);
        }
        by.push(path);
    }
    Some(by)
}
