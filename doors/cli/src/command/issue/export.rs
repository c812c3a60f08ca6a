use clap::Args;
use keyward::agreements::PageId;

use crate::agreements::{Desk, Export};
use crate::command::page::page_id;
use crate::failure::Result;
use crate::output::Output;

/// Print all issues of a page, for spreadsheets or for people
///
/// Archived ones too. In CSV, a cell that a spreadsheet would take for a formula gets an apostrophe before it.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward issue export supply-2026 --format csv > issues.csv
  keyward issue export supply-2026 --format markdown > issues.md"#)]
pub struct Arguments {
    /// The page
    #[arg(value_parser = page_id)]
    page: PageId,
    /// The form
    #[arg(long, value_enum)]
    format: Export,
}

pub async fn run(arguments: Arguments, desk: &Desk, output: &mut Output) -> Result {
    let text = desk.export(&arguments.page, arguments.format).await?;
    output.write_all(text.as_bytes())
}
