use clap::Args;
use keyward::agreements::PageId;
use keyward::moment_text;

use super::page_id;
use crate::agreements::Desk;
use crate::failure::Result;
use crate::output::{Output, size};
use crate::table::Table;

/// Show a page, and what is attached to it
///
/// With --body only its text, as it was written. As JSON when a program reads it, or with --json.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward page show supply-2026
  keyward page show supply-2026 --body > supply.md"#)]
pub struct Arguments {
    /// The page
    #[arg(value_parser = page_id)]
    page: PageId,
    /// Only its text
    #[arg(long)]
    body: bool,
}

pub async fn run(arguments: Arguments, desk: &Desk, output: &mut Output) -> Result {
    let page = desk.page(&arguments.page).await?;
    if arguments.body && !output.json() {
        return output.write_all(page.body.as_bytes());
    }
    if output.json_lines() {
        return output.write_json(&page);
    }
    let mut table = Table::default();
    table.row(["page", page.id.as_str()]);
    table.row(["title", &page.title]);
    table.row(["updated", &moment_text(page.updated)]);
    table.row(["text", &format!("{} characters", page.body.chars().count())]);
    table.write("", output)?;
    let mut table = Table::default();
    for attached in &page.attachments {
        let bytes = attached.bytes.map(size).unwrap_or_default();
        let kind = attached.media_type.as_deref().unwrap_or("-");
        table.row([attached.source.as_str(), kind, &bytes, &moment_text(attached.created)]);
    }
    if !page.attachments.is_empty() {
        writeln!(output)?;
    }
    table.write("", output)
}
