//! Putting dead letters back, and dropping them: some by id, or all of a kind.

use clap::Args;
use indicatif::HumanCount;
use keyward::Code;
use keyward::queue::{DeadLetter, Queue, Requeued};

use super::show::absent;
use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::queues;

/// Put dead letters back in line
///
/// Their attempts are counted anew; what happened before stays in their history.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward dead-letter requeue mails welcome-ada
  keyward dead-letter requeue mails --error timeout
  keyward dead-letter requeue mails --all"#)]
pub struct Requeue {
    #[command(flatten)]
    chosen: Chosen,
}

/// Remove dead letters for good
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward dead-letter drop mails welcome-ada
  keyward dead-letter drop mails --error 'no such user' --yes"#)]
pub struct Drop {
    #[command(flatten)]
    chosen: Chosen,
    /// Needed with --all and --error: what is dropped is gone
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct Chosen {
    /// The queue
    queue: String,
    /// The ids of the messages
    #[arg(value_name = "ID", required_unless_present_any = ["all", "error"])]
    ids: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with_all = ["ids", "error"])]
    all: bool,
    /// Those whose reason has this text in it
    #[arg(long, value_name = "TEXT", conflicts_with = "ids")]
    error: Option<String>,
}

impl Chosen {
    async fn queue(&self, target: &Target) -> Result<Queue> {
        queues::queue(target.open_existing().await?, &self.queue)
    }

    fn wants(&self, dead: &DeadLetter) -> bool {
        self.error.as_ref().is_none_or(|text| dead.reason.contains(text))
    }
}

pub async fn requeue(arguments: Requeue, target: &Target, output: &mut Output) -> Result {
    let Requeue { chosen } = arguments;
    let queue = chosen.queue(target).await?;
    if chosen.ids.is_empty() {
        let count = queue.requeue_where(|dead| chosen.wants(dead)).await?;
        return tell("requeued", count, output);
    }
    let mut count = 0;
    for id in &chosen.ids {
        match queue.requeue(id).await? {
            Requeued::Done => count += 1,
            Requeued::Unknown => return Err(absent(id, queue.name())),
            Requeued::Occupied => {
                let message =
                    format!("{id} is in the queue {} again, or another job's", queue.name());
                return Err(Failure::new(Code::IdTaken, message)
                    .hint("Wait until it is done, or drop one of them."));
            }
        }
    }
    tell("requeued", count, output)
}

pub async fn drop(arguments: Drop, target: &Target, output: &mut Output) -> Result {
    let Drop { chosen, yes } = arguments;
    let queue = chosen.queue(target).await?;
    if chosen.ids.is_empty() {
        if !yes {
            let message = "this would drop dead letters for good";
            return Err(Failure::new(Code::Unconfirmed, message)
                .hint("Repeat the command with --yes to drop them; nothing was dropped."));
        }
        let count = queue.drop_dead_letters_where(|dead| chosen.wants(dead)).await?;
        return tell("dropped", count, output);
    }
    for id in &chosen.ids {
        if !queue.drop_dead_letter(id).await? {
            return Err(absent(id, queue.name()));
        }
    }
    tell("dropped", chosen.ids.len() as u64, output)
}

fn tell(what: &str, count: u64, output: &mut Output) -> Result {
    if output.json() {
        return output.write_json(&serde_json::json!({ what: count }));
    }
    let messages = if count == 1 { "message" } else { "messages" };
    writeln!(output, "{what} {} {messages}", HumanCount(count))
}
