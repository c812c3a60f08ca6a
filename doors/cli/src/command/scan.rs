use std::num::NonZeroUsize;

use clap::Args;
use keyward::rules::hidden_below;
use keyward::{KeyRange, Want};

use crate::args::Target;
use crate::failure::Result;
use crate::line::{self, Fields};
use crate::output::Output;
use crate::pages::Pages;

/// Print keys with their values
///
/// On a terminal one line each, key and value, shortened to fit. When a program reads it, or with
/// --json, JSON lines with key, value, version, and metadata and expiry if there are any. Keyward's own keys
/// below system: and the entries of indexes below index: are shown with --all, or if the prefix is one of theirs.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward scan user:7
  keyward scan user --json | jq -r .key
  keyward scan log --reverse --limit 10"#)]
pub struct Arguments {
    /// Print what lies below this prefix, for example user:7
    prefix: Option<String>,
    /// Stop after so many entries
    #[arg(long, value_name = "N")]
    limit: Option<NonZeroUsize>,
    /// From the last key to the first
    #[arg(long)]
    reverse: bool,
    /// Show Keyward's own keys (system:) and the entries of indexes (index:), too
    #[arg(long)]
    all: bool,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let prefix = super::prefix(arguments.prefix.as_deref())?;
    let store = target.open_to_read(output).await?;
    let without = if arguments.all { Vec::new() } else { hidden_below(&prefix) };
    let mut pages = Pages::new(&store, KeyRange::under(&prefix), Want::Entries)
        .without(without)
        .limit(arguments.limit)
        .reverse(arguments.reverse);
    let mut line = Vec::new();
    while let Some(rows) = pages.next().await? {
        for row in rows {
            let Some(entry) = row.entry else { continue };
            if output.json_lines() {
                line.clear();
                line::write(&mut line, &row.key, &entry, Fields::Versioned);
                line.push(b'\n');
                output.write_all(&line)?;
            } else {
                output.write_columns(&row.key.to_string(), entry.value.as_str())?;
            }
        }
    }
    Ok(())
}
