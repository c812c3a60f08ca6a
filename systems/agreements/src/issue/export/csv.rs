use csv::Writer;
use keyward_engine::moment_text;

use super::super::{Issue, Part};
use crate::{Error, Result};

const COLUMNS: [&str; 11] = [
    "id",
    "title",
    "state",
    "severity",
    "archived",
    "stale",
    "created",
    "updated",
    "resolvedAt",
    "description",
    "annotations",
];

/// Issues as CSV (RFC 4180, with a line of names), in the order that they are given.
///
/// A cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return gets an apostrophe before it:
/// spreadsheets would take it for a formula and run what somebody wrote into a title. Whoever reads the
/// file by a program takes that apostrophe off again.
pub fn export_csv(issues: &[Issue]) -> Result<String> {
    let failed = |error: String| Error::Invalid(format!("the issues cannot be exported: {error}"));
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS).map_err(|error| failed(error.to_string()))?;
    for issue in issues {
        let description: Vec<String> = issue.description.iter().map(text).collect();
        let cells = [
            issue.id.to_string(),
            issue.title.clone(),
            issue.state.to_string(),
            u8::from(issue.severity).to_string(),
            issue.archived.to_string(),
            issue.stale.to_string(),
            moment_text(issue.created),
            moment_text(issue.updated),
            issue.resolved_at.map(moment_text).unwrap_or_default(),
            description.join("\n"),
            issue.annotations.clone(),
        ];
        let cells = cells.map(inert);
        writer.write_record(&cells).map_err(|error| failed(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| failed(error.to_string()))
}

fn text(part: &Part) -> String {
    match part {
        Part::Text(text) => text.clone(),
        Part::Reference(reference) => {
            format!("{} ({}): {}", reference.title, reference.source, reference.excerpt)
        }
    }
}

/// A cell that no spreadsheet runs.
fn inert(cell: String) -> String {
    match cell.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{cell}"),
        false => cell,
    }
}
