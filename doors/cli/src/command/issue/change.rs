//! Changing issues.

use clap::Args;
use keyward::agreements::{Annotation, IssueId, PageId, Severity, State};

use super::shown::told;
use super::{issue_id, severity, state};
use crate::agreements::{Change, Desk, Terms};
use crate::command::page::page_id;
use crate::failure::Result;
use crate::output::Output;

/// Which issue, and on which terms.
#[derive(Debug, Args)]
struct One {
    /// The page
    #[arg(value_parser = page_id)]
    page: PageId,
    /// The issue
    #[arg(value_parser = issue_id)]
    issue: IssueId,
}

/// Why, and from which version.
#[derive(Debug, Args)]
struct Given {
    /// Why, for those who read the history
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    /// Only if the issue is at this version (issue show)
    #[arg(long, value_name = "V")]
    if_version: Option<String>,
}

impl From<Given> for Terms {
    fn from(Given { why, if_version }: Given) -> Self {
        Self { why, version: if_version }
    }
}

/// Say how much an issue weighs
///
/// Exits with 3 if somebody else changed it meanwhile.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward issue classify supply-2026 f47ac10b-58cc-4372-a567-0e02b2c3d479 high"#)]
pub struct Classify {
    #[command(flatten)]
    one: One,
    /// low, medium or high
    #[arg(value_parser = severity)]
    severity: Severity,
    #[command(flatten)]
    given: Given,
}

/// Write notes on an issue
///
/// A paragraph is added to what is noted already, so that of several people who do so at once nobody's is
/// lost; --replace puts it in its place instead.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward issue annotate supply-2026 f47ac10b-58cc-4372-a567-0e02b2c3d479 'The supplier **agreed**.'
  keyward issue annotate supply-2026 f47ac10b-58cc-4372-a567-0e02b2c3d479 --replace ''"#)]
pub struct Annotate {
    #[command(flatten)]
    one: One,
    /// The notes, in Markdown
    notes: String,
    /// Put them in the place of what is noted
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    given: Given,
}

/// Move an issue to another state
///
/// From pending to active, blocked and resolved; from active to pending, blocked and resolved; from blocked to
/// active and resolved; from resolved to active, which reopens it. Anything else is refused (3), and so is what
/// somebody else moved meanwhile.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward issue move supply-2026 f47ac10b-58cc-4372-a567-0e02b2c3d479 resolved --why 'Clause 7 says so now'
  keyward issue move supply-2026 f47ac10b-58cc-4372-a567-0e02b2c3d479 active --if-version 42"#)]
pub struct Move {
    #[command(flatten)]
    one: One,
    /// pending, active, blocked or resolved
    #[arg(value_parser = state)]
    state: State,
    #[command(flatten)]
    given: Given,
}

/// Put an issue away, or bring it back
///
/// What is archived is not listed, and takes no other change.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward issue archive supply-2026 f47ac10b-58cc-4372-a567-0e02b2c3d479
  keyward issue archive supply-2026 f47ac10b-58cc-4372-a567-0e02b2c3d479 --undo"#)]
pub struct Archive {
    #[command(flatten)]
    one: One,
    /// Bring it back
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    given: Given,
}

pub async fn classify(arguments: Classify, desk: &Desk, output: &mut Output) -> Result {
    let Classify { one, severity, given } = arguments;
    changed("classified", one, Change::Severity(severity), given, desk, output).await
}

pub async fn annotate(arguments: Annotate, desk: &Desk, output: &mut Output) -> Result {
    let Annotate { one, notes, replace, given } = arguments;
    let annotation = if replace { Annotation::Replace(notes) } else { Annotation::Append(notes) };
    changed("annotated", one, Change::Annotate(annotation), given, desk, output).await
}

pub async fn transition(arguments: Move, desk: &Desk, output: &mut Output) -> Result {
    let Move { one, state, given } = arguments;
    changed("moved", one, Change::State(state), given, desk, output).await
}

pub async fn archive(arguments: Archive, desk: &Desk, output: &mut Output) -> Result {
    let Archive { one, undo, given } = arguments;
    let what = if undo { "brought back" } else { "archived" };
    changed(what, one, Change::Archived(!undo), given, desk, output).await
}

async fn changed(
    what: &str,
    one: One,
    change: Change,
    given: Given,
    desk: &Desk,
    output: &mut Output,
) -> Result {
    told(what, &desk.change(&one.page, one.issue, change, given.into()).await?, output)
}
