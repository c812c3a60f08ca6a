use clap::Args;
use keyward::queue::{DeadLetter, PastAttempt};
use keyward::{Code, moment_text};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::queues::{self, past, raw};

/// Show one dead letter, with its reason and its attempts
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward dead-letter show mails welcome-ada
  keyward dead-letter show mails welcome-ada --json | jq .history"#)]
pub struct Arguments {
    /// The queue
    queue: String,
    /// The id of the message
    id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line<'d> {
    id: &'d str,
    reason: &'d str,
    retry_count: u32,
    created_at: String,
    dead_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'d str>,
    payload: Box<RawValue>,
    history: &'d [PastAttempt],
}

/// A dead letter as JSON shows it.
pub fn line(dead: &DeadLetter) -> Result<Line<'_>> {
    Ok(Line {
        id: &dead.id,
        reason: &dead.reason,
        retry_count: dead.retry_count,
        created_at: moment_text(dead.created),
        dead_at: moment_text(dead.died),
        version: dead.version.as_deref(),
        payload: raw(&dead.payload)?,
        history: &dead.history,
    })
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let queue = queues::queue(target.open_existing().await?, &arguments.queue)?;
    let Some(dead) = queue.dead_letter(&arguments.id).await? else {
        return Err(absent(&arguments.id, queue.name()));
    };
    if output.json() {
        return output.write_json(&line(&dead)?);
    }
    writeln!(output, "{}  died at {}: {}", dead.id, moment_text(dead.died), dead.reason)?;
    for attempt in &dead.history {
        writeln!(output, "  {}", past(attempt))?;
    }
    writeln!(output, "{}", dead.payload)
}

pub fn absent(id: &str, queue: &str) -> Failure {
    let message = format!("the queue {queue} has no dead letter {id}");
    Failure::new(Code::NotFound, message)
}
