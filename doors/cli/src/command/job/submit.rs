use std::time::Duration;

use clap::Args;
use keyward::queue::{JobOptions, Submitted};

use crate::args::Target;
use crate::failure::Result;
use crate::input::Input;
use crate::output::Output;
use crate::{queues, ttl};

/// Submit a job to a queue
///
/// Prints its id. With --id the same job again is a duplicate, of which nothing comes.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward job submit reports '{"month":"2026-01"}'
  keyward job submit reports @order.json --id report-2026-01 --retention 7d --timeout 10m"#)]
pub struct Arguments {
    /// The queue
    queue: String,
    /// What is to be worked on, or @FILE to read it from a file, or - from standard input
    #[arg(value_name = "JSON", allow_negative_numbers = true)]
    payload: String,
    /// Its id, so that submitting it again changes nothing
    #[arg(long)]
    id: Option<String>,
    /// How long it is kept after its end [default: 1d]
    #[arg(long, value_name = "TIME", value_parser = ttl::parse)]
    retention: Option<Duration>,
    /// How long one attempt may take; without, as long as it likes
    #[arg(long, value_name = "TIME", value_parser = ttl::parse)]
    timeout: Option<Duration>,
    /// Not to be begun before: 90s, 15m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = ttl::parse)]
    delay: Option<Duration>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let Arguments { queue, payload, id, retention, timeout, delay } = arguments;
    let input = Input::new(&payload)?;
    let store = target.open().await?;
    let payload = input.json(store.limits().value_bytes_max).await?;
    let usual = JobOptions::default();
    let retention = retention.unwrap_or(usual.retention);
    let options = JobOptions { id, retention, timeout, delay };
    let submitted = queues::jobs(store)?.submit(&queue, payload, options).await?;
    let outcome = match &submitted {
        Submitted::Added { .. } => "added",
        Submitted::Duplicate { .. } => "duplicate",
    };
    let id = submitted.id();
    if output.json() {
        return output.write_json(&serde_json::json!({ "id": id, "outcome": outcome }));
    }
    writeln!(output, "{outcome} {id}")
}
