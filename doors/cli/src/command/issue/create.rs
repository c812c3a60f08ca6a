use clap::Args;
use keyward::agreements::{NewIssue, PageId, Part, Severity};

use super::severity;
use super::shown::told;
use crate::agreements::Desk;
use crate::command::page::page_id;
use crate::failure::Result;
use crate::output::Output;

/// Make an issue, pending
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward issue create supply-2026 --title 'Liability is not limited' --severity high
  keyward issue create supply-2026 --title 'Which law?' --description 'Neither side names one.'"#)]
pub struct Arguments {
    /// The page
    #[arg(value_parser = page_id)]
    page: PageId,
    /// What it is about, on one line
    #[arg(long)]
    title: String,
    /// How much it weighs: low, medium or high
    #[arg(long, default_value = "medium", value_parser = severity)]
    severity: Severity,
    /// What it is
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Notes about it, in Markdown
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    annotations: String,
}

pub async fn run(arguments: Arguments, desk: &Desk, output: &mut Output) -> Result {
    let Arguments { page, title, severity, description, annotations } = arguments;
    let description = description.map(Part::Text).into_iter().collect();
    let new = NewIssue { title, severity, description, annotations };
    told("created", &desk.create(&page, new).await?, output)
}
