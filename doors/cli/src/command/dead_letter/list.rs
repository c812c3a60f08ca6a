use clap::Args;
use keyward::queue::Listing;

use super::show::line;
use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;
use crate::queues::{self, Paging, one_line};

/// List the dead letters of a queue, by id
///
/// On a terminal one line each: id, attempts, and the reason. When a program reads it, or with
/// --json, JSON lines with everything.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward dead-letter list mails
  keyward dead-letter list mails --all --json | jq -r .reason | sort | uniq -c"#)]
pub struct Arguments {
    /// The queue
    queue: String,
    #[command(flatten)]
    paging: Paging,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let Arguments { queue, mut paging } = arguments;
    let queue = queues::queue(target.open_to_read(output).await?, &queue)?;
    loop {
        let listing =
            Listing { after: paging.after.clone(), limit: paging.limit(), ..Listing::default() };
        let page = queue.dead_letters(&listing).await?;
        for dead in &page {
            if output.json_lines() {
                output.write_json(&line(dead)?)?;
            } else {
                let reason = one_line(&dead.reason);
                writeln!(output, "{}  {}  {reason}", dead.id, dead.retry_count)?;
            }
        }
        let last = page.last().map(|dead| dead.id.as_str());
        if !paging.next(page.len(), last, output)? {
            return Ok(());
        }
    }
}
