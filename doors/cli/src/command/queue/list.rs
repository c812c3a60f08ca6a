use keyward::moment_text;
use std::num::NonZeroU16;

use clap::{Args, ValueEnum};
use keyward::queue::{Listing, QueuedMessage, State};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;
use crate::queues::{self, Paging, one_line, raw};

/// List the messages of a queue, by id
///
/// On a terminal one line each: id, state, attempts that failed, and the message. When a program
/// reads it, or with --json, JSON lines.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward queue list mails
  keyward queue list mails --state delayed --all --json"#)]
pub struct Arguments {
    /// The queue
    queue: String,
    /// Only messages in this state
    #[arg(long)]
    state: Option<Wanted>,
    #[command(flatten)]
    paging: Paging,
}

/// The states of a message.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Wanted {
    Ready,
    Delayed,
    Claimed,
}

/// Show the messages that are next in line
///
/// Nothing is claimed by looking.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward queue peek mails
  keyward queue peek mails --limit 1 --json | jq .payload"#)]
pub struct Peek {
    /// The queue
    queue: String,
    /// At most so many
    #[arg(long, value_name = "N", default_value = "10")]
    limit: NonZeroU16,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'m> {
    id: &'m str,
    state: String,
    retry_count: u32,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'m str>,
    error_message: Option<&'m str>,
    payload: Box<RawValue>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let Arguments { queue, state, mut paging } = arguments;
    let queue = queues::queue(target.open_to_read(output).await?, &queue)?;
    let state = state.map(|state| match state {
        Wanted::Ready => State::Ready,
        Wanted::Delayed => State::Delayed,
        Wanted::Claimed => State::Claimed,
    });
    loop {
        let listing = Listing { after: paging.after.clone(), limit: paging.limit(), state };
        let page = queue.list(&listing).await?;
        for message in &page {
            write(message, output)?;
        }
        let last = page.last().map(|message| message.id.as_str());
        if !paging.next(page.len(), last, output)? {
            return Ok(());
        }
    }
}

pub async fn peek(arguments: Peek, target: &Target, output: &mut Output) -> Result {
    let queue = queues::queue(target.open_to_read(output).await?, &arguments.queue)?;
    for message in queue.peek(arguments.limit.get().into()).await? {
        write(&message, output)?;
    }
    Ok(())
}

/// Writes a message as one line.
pub fn write(message: &QueuedMessage, output: &mut Output) -> Result {
    if output.json_lines() {
        return output.write_json(&Line {
            id: &message.id,
            state: message.state.to_string(),
            retry_count: message.retry_count,
            created_at: moment_text(message.created),
            due_at: message.due.map(moment_text),
            holder: message.holder.as_deref(),
            version: message.version.as_deref(),
            error_message: message.error.as_deref(),
            payload: raw(&message.payload)?,
        });
    }
    let mut name = format!("{}  {:<7}  {}", message.id, message.state, message.retry_count);
    if let Some(holder) = &message.holder {
        name.push_str(&format!("  {}", one_line(holder)));
    }
    output.write_columns(&name, message.payload.as_str())
}
