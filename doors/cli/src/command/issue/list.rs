use clap::{Args, ValueEnum};
use keyward::agreements::{Archived, Filter, PageId, Severity, SourceId, State};

use super::shown::Shown;
use super::{severity, state};
use crate::agreements::{Desk, Order, Question};
use crate::command::page::{page_id, source_id};
use crate::failure::Result;
use crate::output::Output;
use crate::queues::Paging;
use crate::table::Table;

/// List issues of a page
///
/// One line each: id, severity, state, and title. As JSON lines when a program reads it, or with --json;
/// these have everything but the history.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward issue list supply-2026
  keyward issue list supply-2026 --state pending,active --severity high --sort updated
  keyward issue list supply-2026 --stale --json | jq -r .id"#)]
pub struct Arguments {
    /// The page
    #[arg(value_parser = page_id)]
    page: PageId,
    /// Only in these states, with commas between them: pending, active, blocked, resolved
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state)]
    state: Vec<State>,
    /// Only of these severities: low, medium, high
    #[arg(long, value_name = "SEVERITY", value_delimiter = ',', value_parser = severity)]
    severity: Vec<Severity>,
    /// Only with this text in them, whatever the case of its letters
    #[arg(long, value_name = "TEXT")]
    matching: Option<String>,
    /// Only those that refer to this policy
    #[arg(long, value_name = "ID", value_parser = source_id)]
    source: Option<SourceId>,
    /// Only those whose policy has changed since; --stale=false for the others
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    stale: Option<bool>,
    /// What is archived too, or nothing else
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "included")]
    archived: Option<Shelf>,
    /// In which order
    #[arg(long, value_enum, default_value_t)]
    sort: Order,
    #[command(flatten)]
    paging: Paging,
}

/// Whether to list what is archived.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shelf {
    /// What is archived too
    Included,
    /// Nothing else
    Only,
}

/// As many as a server gives at once.
const PAGE_MAX: usize = 200;

pub async fn run(arguments: Arguments, desk: &Desk, output: &mut Output) -> Result {
    let Arguments { page, state, severity, matching, source, stale, archived, sort, mut paging } =
        arguments;
    let archived = match archived {
        None => Archived::Hidden,
        Some(Shelf::Included) => Archived::Included,
        Some(Shelf::Only) => Archived::Only,
    };
    let filter =
        Filter { states: state, severities: severity, text: matching, source, archived, stale };
    let question = Question { filter, order: sort };
    let mut left = paging.limit();
    loop {
        let limit = left.min(PAGE_MAX);
        let found = desk.issues(&page, &question, paging.after.as_deref(), limit).await?;
        let mut table = Table::default();
        for issue in &found.items {
            if output.json_lines() {
                output.write_json(issue)?;
            } else {
                let shown = Shown::of(issue)?;
                let state = [shown.state.as_str(), shown.marks()].join(" ");
                table.row([&shown.id, shown.severity.as_str(), state.trim(), &shown.title]);
            }
        }
        table.write("", output)?;
        left -= found.items.len().min(left);
        if left > 0 && found.next.is_some() {
            paging.after = found.next;
            continue;
        }
        if !paging.go_on(found.next.as_deref(), output)? {
            return Ok(());
        }
        left = paging.limit();
    }
}
