use clap::Args;
use keyward::agreements::{PageId, Task};

use super::page_id;
use crate::agreements::Desk;
use crate::failure::Result;
use crate::output::Output;

/// Remove everything that was made of a page, its issues included
///
/// Under the lock of the page, and nothing of another one. The page itself and its files stay.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward page clear supply-2026"#)]
pub struct Arguments {
    /// The page
    #[arg(value_parser = page_id)]
    page: PageId,
}

/// Remove what was made of pages that are gone
///
/// Only of those of which their source says for certain that they are gone. Without a page it looks at all
/// of them, at most once in a while over all processes, unless --now is given.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward page purge --now
  keyward page purge supply-2025"#)]
pub struct Purge {
    /// Only of this page
    #[arg(value_parser = page_id)]
    page: Option<PageId>,
    /// Also if it was done a short while ago
    #[arg(long)]
    now: bool,
}

pub async fn run(arguments: Arguments, desk: &mut Desk, output: &mut Output) -> Result {
    let Arguments { page } = arguments;
    let done = desk.task(Task::Clear { page: page.clone() }, output).await?;
    if output.json() {
        return output.write_json(&done);
    }
    writeln!(output, "removed {} entries of {page}", done["removed"])
}

pub async fn purge(arguments: Purge, desk: &mut Desk, output: &mut Output) -> Result {
    let Purge { page, now } = arguments;
    let done = desk.task(Task::Purge { page, now }, output).await?;
    if output.json() {
        return output.write_json(&done);
    }
    match (done["skipped"].as_str(), done["page"].as_str(), done["outcome"].as_str()) {
        (Some(why), ..) => writeln!(output, "nothing was done: {why} (--now does it all the same)"),
        (None, Some(page), Some("removed")) => {
            writeln!(output, "{page} is gone: removed {} entries", done["removed"])
        }
        (None, Some(page), Some("kept")) => {
            writeln!(output, "{page} is there; nothing was removed")
        }
        (None, Some(page), Some(_)) => {
            let reason = done["reason"].as_str().unwrap_or_default();
            writeln!(output, "{page}: nothing was removed: {reason}")
        }
        _ => writeln!(
            output,
            "looked at {} pages, removed {} entries",
            done["pages"], done["removed"]
        ),
    }
}
