//! Issues for people.

use keyward::agreements::{Event, Part, Reference, Severity, State};
use keyward::moment_text;
use serde::Deserialize;

use crate::agreements::Numbered;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::queues::one_line;
use crate::table::Table;

/// What of an issue is shown.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    pub version: String,
    pub id: String,
    pub state: State,
    pub severity: Severity,
    pub title: String,
    created: String,
    updated: String,
    #[serde(default)]
    resolved_at: Option<String>,
    #[serde(default)]
    description: Vec<Part>,
    #[serde(default)]
    annotations: String,
    #[serde(default)]
    pub archived: bool,
    #[serde(default)]
    pub stale: bool,
    #[serde(default)]
    history: Vec<Event>,
}

impl Shown {
    pub fn of(issue: &Numbered) -> Result<Self> {
        Self::deserialize(&issue.0)
            .map_err(|error| Failure::invalid(format!("the issue cannot be read: {error}")))
    }

    /// What there is to add to its state.
    pub fn marks(&self) -> &'static str {
        match (self.stale, self.archived) {
            (false, false) => "",
            (true, false) => "stale",
            (false, true) => "archived",
            (true, true) => "stale, archived",
        }
    }

    /// The whole of it.
    pub fn write(&self, output: &mut Output) -> Result {
        let mut table = Table::default();
        table.row(["issue", &self.id]);
        table.row(["title", &self.title]);
        table.row(["state", &[self.state.as_str(), self.marks()].join(" ")]);
        table.row(["severity", self.severity.as_str()]);
        table.row(["created", &self.created]);
        table.row(["updated", &self.updated]);
        if let Some(resolved) = &self.resolved_at {
            table.row(["resolved", resolved]);
        }
        table.row(["version", &self.version]);
        table.write("", output)?;
        for part in &self.description {
            match part {
                Part::Text(text) => writeln!(output, "\n{}", clean(text))?,
                Part::Reference(reference) => quoted(reference, output)?,
            }
        }
        if !self.annotations.is_empty() {
            writeln!(output, "\nNotes:\n{}", clean(&self.annotations))?;
        }
        writeln!(output)?;
        let mut table = Table::default();
        for event in &self.history {
            let why = event.why.as_deref().unwrap_or_default();
            table.row([&moment_text(event.at), &event.who, &event.change.to_string(), why]);
        }
        table.write("", output)
    }
}

fn quoted(reference: &Reference, output: &mut Output) -> Result {
    let Reference { source, title, excerpt, offset, .. } = reference;
    writeln!(output, "\n{} ({source}, character {offset}):", one_line(title))?;
    for line in clean(excerpt).lines() {
        writeln!(output, "  > {line}")?;
    }
    Ok(())
}

/// A text of several lines, without what a terminal would obey.
fn clean(text: &str) -> String {
    text.trim_end().lines().map(one_line).collect::<Vec<_>>().join("\n")
}

/// Writes an issue that was made or changed: as JSON, or in a line.
pub fn told(what: &str, issue: &Numbered, output: &mut Output) -> Result {
    if output.json() {
        return output.write_json(issue);
    }
    let shown = Shown::of(issue)?;
    let (id, state, severity) = (&shown.id, shown.state, shown.severity);
    writeln!(output, "{what} {id}: {state}, {severity}: {}", one_line(&shown.title))
}
