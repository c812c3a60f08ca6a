use clap::Args;
use futures_util::StreamExt;
use keyward::queue::Status;

use super::shown;
use crate::args::Target;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::queues::{self, raw};

/// Print the statuses of a job until its end
///
/// One line for each change. Exits with 0 when there is a result, with 10 when the job failed or was
/// cancelled, and with 1 if there is no such job.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward job watch report-2026-01
  keyward job watch report-2026-01 --json | tail -1 | jq .result"#)]
pub struct Arguments {
    /// The job's id
    id: String,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let jobs = queues::jobs(target.open_existing().await?)?;
    let mut interrupt = Interrupt::listen().await;
    let mut statuses = jobs.watch(&arguments.id);
    let mut last = None;
    loop {
        let status = tokio::select! {
            status = statuses.next() => status.transpose()?,
            () = interrupt.wait() => return Ok(()),
        };
        let Some(status) = status else { break };
        if output.json_lines() {
            output.write_json(&raw(&status.to_json()?)?)?;
        } else {
            writeln!(output, "{}", shown::text(&status))?;
        }
        output.flush()?;
        last = Some(status);
    }
    match last {
        Some(Status::Result(_)) => Ok(()),
        Some(Status::Trace(_)) => Err(Failure::told(Exit::Differs)),
        Some(Status::Activity(_)) | None => Err(shown::absent(&arguments.id)),
    }
}
