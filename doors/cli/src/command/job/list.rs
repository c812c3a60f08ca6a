use clap::Args;

use super::shown;
use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;
use crate::queues::{self, Paging};

/// List jobs, by id
///
/// On a terminal one line each: id, queue, and status. When a program reads it, or with --json, JSON
/// lines.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward job list
  keyward job list --queue reports --all --json | jq -r 'select(.status.trace).id'"#)]
pub struct Arguments {
    /// Only those of this queue
    #[arg(long)]
    queue: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let Arguments { queue, mut paging } = arguments;
    let jobs = queues::jobs(target.open_to_read(output).await?)?;
    loop {
        let page = jobs.list(paging.after.as_deref(), paging.limit()).await?;
        for job in &page {
            if queue.as_ref().is_none_or(|queue| job.queue == *queue) {
                let json = output.json_lines();
                shown::write(job, output, json)?;
            }
        }
        let last = page.last().map(|job| job.id.as_str());
        if !paging.next(page.len(), last, output)? {
            return Ok(());
        }
    }
}
