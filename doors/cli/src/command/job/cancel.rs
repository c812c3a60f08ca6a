use clap::Args;
use keyward::Code;
use keyward::queue::Cancelled;

use super::shown;
use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::queues;

/// Cancel a job
///
/// It leaves its queue. A worker that has it in hand is told, and its completion is refused. Exits
/// with 3 if the job has ended already.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward job cancel report-2026-01"#)]
pub struct Arguments {
    /// The job's id
    id: String,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let Arguments { id } = arguments;
    let jobs = queues::jobs(target.open_existing().await?)?;
    match jobs.cancel(&id, &queues::person()).await? {
        Cancelled::Done if output.json() => {
            output.write_json(&serde_json::json!({ "cancelled": id }))
        }
        Cancelled::Done => writeln!(output, "cancelled {id}"),
        Cancelled::Finished(status) => {
            let message = format!("the job {id} has ended: {}", shown::text(&status));
            Err(Failure::new(Code::Finished, message))
        }
        Cancelled::Unknown => Err(shown::absent(&id)),
    }
}
