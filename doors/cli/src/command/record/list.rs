use std::num::NonZeroUsize;

use clap::Args;
use keyward::records::{ListedItem, Listing};
use serde::Serialize;

use super::address::{Address, bindings};
use super::paging::{Paging, tell_next};
use super::reach::Reach;
use crate::failure::Result;
use crate::output::Output;
use crate::pages::order;

/// List the keys of a space
///
/// One key a line, in key order. The values of the key's first variables narrow it down. With
/// --depth only so many levels are shown: what lies deeper shows as the prefix it shares.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward record list notes --as ada
  keyward record list notes user=ada --limit 20
  keyward record list notes --depth 1
  keyward record list policies page=p1 --all --json"#)]
pub struct Arguments {
    #[command(flatten)]
    address: Address,
    /// Show so many levels below the values
    #[arg(long, value_name = "N")]
    depth: Option<NonZeroUsize>,
    /// From the last key to the first
    #[arg(long)]
    desc: bool,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Key(String),
    Prefix(String),
}

pub async fn run(arguments: Arguments, reach: &Reach, output: &mut Output) -> Result {
    let Arguments { address, depth, desc, paging } = arguments;
    let values = bindings(reach.declaration(&address.space)?, &address.values)?;
    let space = reach.to_read(&address.space, output).await?;
    let mut listing = Listing {
        depth: depth.map(NonZeroUsize::get),
        order: order(desc),
        cursor: paging.cursor.clone(),
        ..Listing::new(values).limit(paging.page_limit())
    };
    loop {
        let page = space.list(&listing).await?;
        for item in page.items {
            let line = match item {
                ListedItem::Key(key) => Line::Key(key.to_string()),
                ListedItem::Prefix(prefix) => Line::Prefix(prefix.to_string()),
            };
            match line {
                line if output.json() => output.write_json(&line)?,
                Line::Key(text) | Line::Prefix(text) => writeln!(output, "{text}")?,
            }
        }
        match page.next {
            None => return Ok(()),
            Some(next) if paging.all => listing.cursor = Some(next),
            Some(next) => return tell_next(&next, output),
        }
    }
}
