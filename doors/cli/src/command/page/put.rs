use std::path::PathBuf;

use clap::Args;
use keyward::agreements::PageId;

use super::page_id;
use crate::agreements::Desk;
use crate::failure::{Failure, Result};
use crate::input::whole_file;
use crate::output::Output;

/// Bytes of a text that are read; the workspace may take fewer.
const BODY_BYTES_MAX: u64 = 16 << 20;

/// Put a page, or replace its title and its text
///
/// In a workspace of uploads. What is attached to the page stays. The text is Markdown, or HTML if the file
/// is called so.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward page put supply-2026 --title 'Supply agreement' supply.md
  keyward page put supply-2026 --title 'Supply agreement' - < supply.md"#)]
pub struct Arguments {
    /// The page
    #[arg(value_parser = page_id)]
    page: PageId,
    /// What people call it
    #[arg(long)]
    title: String,
    /// The file with its text, or - for standard input; without one, it has none
    file: Option<PathBuf>,
}

/// Delete a page, and what is attached to it
///
/// In a workspace of uploads. What was made of it is removed by the next purge (keyward page purge).
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward page delete supply-2026"#)]
pub struct Delete {
    /// The page
    #[arg(value_parser = page_id)]
    page: PageId,
}

pub async fn run(arguments: Arguments, desk: &Desk, output: &mut Output) -> Result {
    let Arguments { page, title, file } = arguments;
    let (body, html) = match &file {
        None => (String::new(), false),
        Some(file) => {
            let body = String::from_utf8(whole_file(file, BODY_BYTES_MAX).await?)
                .map_err(|_| Failure::invalid(format!("{} is not UTF-8", file.display())))?;
            let html = file.extension().is_some_and(|end| end == "html" || end == "htm");
            (body, html)
        }
    };
    let put = desk.put_page(&page, &title, &body, html).await?;
    if output.json() {
        return output.write_json(&put);
    }
    writeln!(output, "put {}: {}", put.id, put.title)
}

pub async fn delete(arguments: Delete, desk: &Desk, output: &mut Output) -> Result {
    desk.delete_page(&arguments.page).await?;
    if output.json() {
        return output.write_json(&serde_json::json!({ "deleted": arguments.page }));
    }
    writeln!(output, "deleted {}", arguments.page)
}
