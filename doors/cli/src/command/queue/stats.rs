use clap::Args;
use keyward::queue::{Count, QueueStats, queue_names};
use serde::Serialize;

use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;
use crate::queues::{self, age, one_line};

/// Count what queues hold
///
/// One line for each queue, or for the one that is named: messages that are ready, delayed and
/// claimed, dead letters, how long the first in line has waited, and whether the queue is paused.
/// Rows are counted up to 100,000 of each kind.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward queue stats
  keyward queue stats mails --json | jq .ready"#)]
pub struct Arguments {
    /// The queue; all of them if left out
    queue: Option<String>,
}

/// How many queues are shown.
const QUEUES_MAX: usize = 10_000;

#[derive(Serialize)]
struct Line<'s> {
    queue: &'s str,
    ready: u64,
    delayed: u64,
    claimed: u64,
    dead: u64,
    /// Whether there is more of something than was counted.
    more: bool,
    oldest_ms: Option<i64>,
    paused: Option<&'s str>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let store = target.open_to_read(output).await?;
    let names = match arguments.queue {
        Some(name) => vec![name],
        None => queue_names(&store, QUEUES_MAX).await?,
    };
    for name in names {
        let stats = queues::queue(store.clone(), &name)?.stats().await?;
        write(&name, &stats, output)?;
    }
    Ok(())
}

fn write(name: &str, stats: &QueueStats, output: &mut Output) -> Result {
    let QueueStats { ready, delayed, claimed, dead, oldest, paused } = stats;
    if output.json_lines() {
        return output.write_json(&Line {
            queue: name,
            ready: ready.count,
            delayed: delayed.count,
            claimed: claimed.count,
            dead: dead.count,
            more: [ready, delayed, claimed, dead].iter().any(|count| count.more),
            oldest_ms: oldest.map(|age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX)),
            paused: paused.as_deref(),
        });
    }
    let shown = |count: &Count| {
        let more = if count.more { "+" } else { "" };
        format!("{}{more}", count.count)
    };
    write!(
        output,
        "{name}  ready {}  delayed {}  claimed {}  dead {}",
        shown(ready),
        shown(delayed),
        shown(claimed),
        shown(dead)
    )?;
    if let Some(oldest) = oldest {
        write!(output, "  oldest {}", age(*oldest))?;
    }
    if let Some(reason) = paused {
        write!(output, "  paused: {}", one_line(reason))?;
    }
    writeln!(output)
}
