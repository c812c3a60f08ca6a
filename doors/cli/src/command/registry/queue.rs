use clap::Args;
use keyward::queue::{Listing, QueuedMessage};
use serde::Deserialize;

use crate::command::queue::write_message;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::queues::Paging;
use crate::registries::Reach;
use crate::table::Table;

/// List the changes that wait for consumers, by policy
///
/// On a terminal one line each: policy, what was done, state, attempts that failed, and why the last did. When a program reads
/// it, or with --json, JSON lines.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward registry queue policies
  keyward registry queue policies --all --json | jq -r .errorMessage"#)]
pub struct Arguments {
    /// The registry
    name: String,
    #[command(flatten)]
    paging: Paging,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { name, mut paging } = arguments;
    let registry = reach.to_read(&name, output).await?;
    loop {
        let listing =
            Listing { after: paging.after.clone(), limit: paging.limit(), ..Listing::default() };
        let page = registry.queue().list(&listing).await?;
        let mut table = Table::default();
        for message in &page {
            match output.json_lines() {
                true => write_message(message, output)?,
                false => add(message, &mut table)?,
            }
        }
        table.write("", output)?;
        let last = page.last().map(|message| message.id.as_str());
        if !paging.next(page.len(), last, output)? {
            return Ok(());
        }
    }
}

/// What a message says of a change.
#[derive(Deserialize)]
struct Change {
    operation: String,
}

fn add(message: &QueuedMessage, table: &mut Table) -> Result {
    let change: Change = serde_json::from_str(message.payload.as_str())
        .map_err(|error| Failure::invalid(format!("{} is no change: {error}", message.id)))?;
    let (state, attempts) = (message.state.to_string(), message.retry_count.to_string());
    let error = message.error.as_deref().unwrap_or_default();
    table.row([&message.id, &change.operation, &state, &attempts, error]);
    Ok(())
}
