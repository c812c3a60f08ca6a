use clap::Args;
use keyward::agreements::{IssueId, PageId};

use super::issue_id;
use super::shown::Shown;
use crate::agreements::Desk;
use crate::command::page::page_id;
use crate::failure::Result;
use crate::output::Output;

/// Show an issue, and what happened to it
///
/// As JSON when a program reads it, or with --json.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward issue show supply-2026 f47ac10b-58cc-4372-a567-0e02b2c3d479"#)]
pub struct Arguments {
    /// The page
    #[arg(value_parser = page_id)]
    page: PageId,
    /// The issue
    #[arg(value_parser = issue_id)]
    issue: IssueId,
}

pub async fn run(arguments: Arguments, desk: &Desk, output: &mut Output) -> Result {
    let found = desk.issue(&arguments.page, arguments.issue).await?;
    match output.json_lines() {
        true => output.write_json(&found),
        false => Shown::of(&found)?.write(output),
    }
}
