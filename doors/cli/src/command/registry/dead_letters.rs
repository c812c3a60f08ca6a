//! Changes that consumers could not be told of: looking at them, putting them back, dropping them.

use clap::Args;
use keyward::Code;
use keyward::queue::Requeued;

use crate::command::dead_letter::line;
use crate::command::sync::counted;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::queues::{Paging, one_line};
use crate::registries::Reach;

/// List the changes that consumers failed at too often, by policy
///
/// On a terminal one line each: policy, attempts, and the reason. When a program reads it, or with --json,
/// JSON lines with everything.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward registry dead-letters policies
  keyward registry dead-letters policies --json | jq -r .reason"#)]
pub struct Arguments {
    /// The registry
    name: String,
    #[command(flatten)]
    paging: Paging,
}

/// Put changes that became dead letters back in line
///
/// Their attempts are counted anew.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward registry requeue policies leave-of-absence
  keyward registry requeue policies --all"#)]
pub struct Requeue {
    /// The registry
    name: String,
    /// The policies
    #[arg(value_name = "POLICY", required_unless_present = "all")]
    policies: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "policies")]
    all: bool,
}

/// Remove dead letters for good
///
/// Consumers are not told of these changes. keyward registry repair puts an export right all the same.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward registry drop policies leave-of-absence"#)]
pub struct Drop {
    /// The registry
    name: String,
    /// The policies
    #[arg(value_name = "POLICY", required = true)]
    policies: Vec<String>,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { name, mut paging } = arguments;
    let registry = reach.to_read(&name, output).await?;
    loop {
        let page = registry.dead_letters(paging.after.as_deref(), paging.limit()).await?;
        for dead in &page.items {
            if output.json_lines() {
                output.write_json(&line(dead)?)?;
            } else {
                let (id, reason) = (one_line(&dead.id), one_line(&dead.reason));
                writeln!(output, "{id}  {}  {reason}", dead.retry_count)?;
            }
        }
        if !paging.go_on(page.next.as_deref(), output)? {
            return Ok(());
        }
    }
}

pub async fn requeue(arguments: Requeue, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Requeue { name, policies, all } = arguments;
    let registry = reach.existing(&name).await?;
    if all {
        return tell("requeued", registry.requeue_all().await?, output);
    }
    let mut count = 0;
    for policy in &policies {
        match registry.requeue(policy).await? {
            Requeued::Done => count += 1,
            Requeued::Unknown => return Err(absent(policy, &name)),
            Requeued::Occupied => {
                let message = format!("a newer change of {policy} is in the queue of {name}");
                return Err(Failure::new(Code::IdTaken, message)
                    .hint("Wait until consumers are told of that one, or drop the dead letter."));
            }
        }
    }
    tell("requeued", count, output)
}

pub async fn drop(arguments: Drop, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Drop { name, policies } = arguments;
    let registry = reach.existing(&name).await?;
    for policy in &policies {
        if !registry.drop_dead_letter(policy).await? {
            return Err(absent(policy, &name));
        }
    }
    tell("dropped", policies.len() as u64, output)
}

fn tell(what: &str, count: u64, output: &mut Output) -> Result {
    if output.json() {
        return output.write_json(&serde_json::json!({ what: count }));
    }
    writeln!(output, "{what} {}", counted(count, "change"))
}

fn absent(policy: &str, registry: &str) -> Failure {
    let message = format!("the registry {registry} has no dead letter of {policy}");
    Failure::new(Code::NotFound, message)
}
