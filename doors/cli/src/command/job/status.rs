use clap::Args;

use super::shown;
use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;
use crate::queues;

/// Show what a job is doing, or how it ended
///
/// With --json the status has a tag: {"activity":…}, {"result":…} or {"trace":…}. Exits with 1 if
/// there is no such job.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward job status report-2026-01
  keyward job status report-2026-01 --json | jq .status.result"#)]
pub struct Arguments {
    /// The job's id
    id: String,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let jobs = queues::jobs(target.open_existing().await?)?;
    match jobs.get(&arguments.id).await? {
        Some(job) if output.json() => shown::write(&job, output, true),
        Some(job) => writeln!(output, "{}", shown::text(&job.status)),
        None => Err(shown::absent(&arguments.id)),
    }
}
