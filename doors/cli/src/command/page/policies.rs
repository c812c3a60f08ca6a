use clap::Args;
use keyward::agreements::{Listed, PageId, SourceId};
use keyward::extract::Language;
use serde::Serialize;

use super::page_id;
use crate::agreements::Desk;
use crate::failure::Result;
use crate::output::Output;
use crate::table::Table;

/// List the policies of a page, and what was made of each
///
/// One line each: id, the language it was written in, the translations that are there, and its title. On a
/// local store, what was made of files that have changed or are gone is removed on the way, and issues that
/// refer to them are marked as stale; a server does that in the background. As JSON lines when a program reads
/// it, or with --json.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward page policies supply-2026
  keyward page policies supply-2026 --json | jq -r .source"#)]
pub struct Arguments {
    /// The page
    #[arg(value_parser = page_id)]
    page: PageId,
}

#[derive(Serialize)]
struct Line<'l> {
    source: &'l SourceId,
    #[serde(flatten)]
    listed: &'l Listed,
}

pub async fn run(arguments: Arguments, desk: &mut Desk, output: &mut Output) -> Result {
    let catalog = desk.policies(&arguments.page, output).await?;
    let mut table = Table::default();
    for (source, listed) in &catalog {
        if output.json_lines() {
            output.write_json(&Line { source, listed })?;
            continue;
        }
        let language = match (listed.extracted, listed.language) {
            (false, _) => "not read yet",
            (true, language) => language.map_or("unknown", Language::as_str),
        };
        let translations = match listed.translations.as_slice() {
            [] => "-".to_owned(),
            some => some.join(" "),
        };
        table.row([source.as_str(), language, &translations, &listed.title]);
    }
    table.write("", output)
}
