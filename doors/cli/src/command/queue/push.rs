use std::time::Duration;

use clap::Args;
use keyward::queue::{Enqueued, Message};
use serde::Serialize;

use crate::args::Target;
use crate::failure::Result;
use crate::input::Input;
use crate::output::Output;
use crate::{queues, ttl};

/// Enqueue a message
///
/// Prints its id. With --id the same message again is a duplicate, of which nothing comes, also for
/// ten minutes after its completion; with other content it is refused, or takes the place of the
/// first with --replace.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward queue push mails '{"to":"ada"}'
  keyward queue push mails '{"to":"ada"}' --id welcome-ada
  keyward queue push mails @letter.json --delay 15m
  keyward queue push policies '{"name":"p"}' --id p --version 5d2f --replace"#)]
pub struct Arguments {
    /// The queue
    queue: String,
    /// What to enqueue, or @FILE to read it from a file, or - from standard input
    #[arg(value_name = "JSON", allow_negative_numbers = true)]
    payload: String,
    /// Its id, so that enqueuing it again changes nothing
    #[arg(long)]
    id: Option<String>,
    /// The version of its content, which is part of what makes two messages the same
    #[arg(long)]
    version: Option<String>,
    /// Take the place of a message with this id and other content
    #[arg(long, requires = "id")]
    replace: bool,
    /// Not to be claimed before: 90s, 15m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = ttl::parse)]
    delay: Option<Duration>,
}

#[derive(Serialize)]
struct Done<'e> {
    id: &'e str,
    outcome: &'static str,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let Arguments { queue, payload, id, version, replace, delay } = arguments;
    let input = Input::new(&payload)?;
    let store = target.open().await?;
    let payload = input.json(store.limits().value_bytes_max).await?;
    let queue = queues::queue(store, &queue)?;
    let mut message = Message::new(payload);
    if let Some(id) = id {
        message = message.id(id);
    }
    if let Some(version) = version {
        message = message.version(version);
    }
    if replace {
        message = message.replacing();
    }
    if let Some(delay) = delay {
        message = message.delay(delay);
    }
    let enqueued = queue.enqueue(message).await?;
    let outcome = match &enqueued {
        Enqueued::Added { .. } => "added",
        Enqueued::Duplicate { .. } => "duplicate",
        Enqueued::Replaced { .. } => "replaced",
    };
    let id = enqueued.id();
    if output.json() {
        return output.write_json(&Done { id, outcome });
    }
    writeln!(output, "{outcome} {id}")
}
