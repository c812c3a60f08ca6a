use std::num::NonZeroUsize;

use clap::Args;
use keyward::rules::hidden_below;
use keyward::{List, Listed};
use serde::Serialize;

use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;
use crate::pages::{self, ROWS_MAX};

/// List keys
///
/// One key a line, in key order, all of them. With --depth only so many levels are shown: what lies
/// deeper shows as the prefix it shares, with a colon at its end. Keyward's own keys below system: and the
/// entries of indexes below index: are shown with --all, or if the prefix is one of theirs.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward ls
  keyward ls user:7
  keyward ls user --depth 1
  keyward ls log --reverse --limit 10 --json
  keyward ls system: --depth 1"#)]
pub struct Arguments {
    /// List what lies below this prefix, for example user:7
    prefix: Option<String>,
    /// Show so many levels below the prefix
    #[arg(long, value_name = "N")]
    depth: Option<NonZeroUsize>,
    /// Stop after so many lines
    #[arg(long, value_name = "N")]
    limit: Option<NonZeroUsize>,
    /// From the last key to the first
    #[arg(long)]
    reverse: bool,
    /// Show Keyward's own keys (system:) and the entries of indexes (index:), too
    #[arg(long)]
    all: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Key(String),
    Prefix(String),
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let prefix = super::prefix(arguments.prefix.as_deref())?;
    let store = target.open_to_read(output).await?;
    let without = if arguments.all { Vec::new() } else { hidden_below(&prefix) };
    let mut list = List {
        without,
        depth: arguments.depth.map(NonZeroUsize::get),
        ..List::new(prefix).order(pages::order(arguments.reverse))
    };
    let mut left = arguments.limit.map_or(usize::MAX, NonZeroUsize::get);
    while left > 0 {
        let listing = store.list(&list.clone().limit(left.min(ROWS_MAX))).await?;
        left -= listing.items.len();
        for item in listing.items {
            let line = match item {
                Listed::Key(key) => Line::Key(key.to_string()),
                Listed::Prefix(prefix) => Line::Prefix(prefix.to_string()),
            };
            match line {
                line if output.json() => output.write_json(&line)?,
                Line::Key(text) | Line::Prefix(text) => writeln!(output, "{text}")?,
            }
        }
        match listing.next {
            Some(next) => list.after = Some(next),
            None => break,
        }
    }
    Ok(())
}
