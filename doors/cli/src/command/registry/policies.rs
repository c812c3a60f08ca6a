//! Policies of a registry, all of them or those with a text in them.

use clap::Args;
use keyward::registry::{Page, Policy};

use crate::failure::Result;
use crate::output::Output;
use crate::queues::Paging;
use crate::registries::{Reach, short};
use crate::table::Table;

/// List the policies of a registry, by name
///
/// On a terminal one line each: name, title, path, and the id of the content in git. When a program reads
/// it, or with --json, JSON lines with entries as they are stored.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward registry policies policies
  keyward registry policies policies --all --json | jq -r .title"#)]
pub struct Arguments {
    /// The registry
    name: String,
    #[command(flatten)]
    paging: Paging,
}

/// Find policies by a part of their name or title
///
/// Whatever the case of its letters. The output is that of keyward registry policies.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward registry search policies leave
  keyward registry search policies 휴학 --json"#)]
pub struct Search {
    /// The registry
    name: String,
    /// The text
    #[arg(value_name = "TEXT")]
    part: String,
    #[command(flatten)]
    paging: Paging,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { name, mut paging } = arguments;
    let registry = reach.to_read(&name, output).await?;
    loop {
        let page = registry.policies(paging.after.as_deref(), paging.limit()).await?;
        if !written(&page, &mut paging, output)? {
            return Ok(());
        }
    }
}

pub async fn search(arguments: Search, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Search { name, part, mut paging } = arguments;
    let registry = reach.to_read(&name, output).await?;
    loop {
        let page = registry.search(&part, paging.after.as_deref(), paging.limit()).await?;
        // So much of the registry is looked at for each page, and nothing of it may fit.
        if page.items.is_empty() && page.next.is_some() {
            paging.after = page.next;
        } else if !written(&page, &mut paging, output)? {
            return Ok(());
        }
    }
}

/// Writes a page: whether there is another one to read.
fn written(page: &Page<Policy>, paging: &mut Paging, output: &mut Output) -> Result<bool> {
    let mut table = Table::default();
    for policy in &page.items {
        let Policy { policy_name, title, path, sha, entry, .. } = policy;
        if output.json_lines() {
            writeln!(output, "{entry}")?;
        } else {
            table.row([policy_name, title, path, short(sha)]);
        }
    }
    table.write("", output)?;
    paging.go_on(page.next.as_deref(), output)
}
