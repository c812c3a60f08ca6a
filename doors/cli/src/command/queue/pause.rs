use clap::Args;

use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;
use crate::queues;

/// Stop the workers of a queue from claiming more
///
/// From then on nothing is claimed, by any worker anywhere. What is being worked on goes on, and
/// messages can be pushed.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward queue pause mails
  keyward queue pause mails --reason 'the mail server is down'"#)]
pub struct Arguments {
    /// The queue
    queue: String,
    /// Why, for those who wonder
    #[arg(long)]
    reason: Option<String>,
}

/// Let the workers of a paused queue go on
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward queue resume mails"#)]
pub struct Resume {
    /// The queue
    queue: String,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let queue = queues::queue(target.open_existing().await?, &arguments.queue)?;
    let reason = arguments.reason.unwrap_or_else(|| format!("by {}", queues::person()));
    queue.pause(&reason).await?;
    tell(queue.name(), true, output)
}

pub async fn resume(arguments: Resume, target: &Target, output: &mut Output) -> Result {
    let queue = queues::queue(target.open_existing().await?, &arguments.queue)?;
    queue.resume().await?;
    tell(queue.name(), false, output)
}

fn tell(queue: &str, paused: bool, output: &mut Output) -> Result {
    if output.json() {
        return output.write_json(&serde_json::json!({ "queue": queue, "paused": paused }));
    }
    writeln!(output, "{} {queue}", if paused { "paused" } else { "resumed" })
}
