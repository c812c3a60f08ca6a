//! Jobs and statuses as lines.

use keyward::queue::{Activity, Job, Progress, Status, Trace};
use keyward::{Code, moment_text};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::queues::{one_line, raw};

#[derive(Serialize)]
struct Line<'j> {
    id: &'j str,
    queue: &'j str,
    submitted: String,
    finished: Option<String>,
    status: Box<RawValue>,
}

/// Writes a job as one line.
pub fn write(job: &Job, output: &mut Output, json: bool) -> Result {
    if json {
        return output.write_json(&Line {
            id: &job.id,
            queue: &job.queue,
            submitted: moment_text(job.submitted),
            finished: job.finished.map(moment_text),
            status: raw(&job.status.to_json()?)?,
        });
    }
    writeln!(output, "{}  {}  {}", job.id, job.queue, text(&job.status))
}

/// A status for people.
pub fn text(status: &Status) -> String {
    match status {
        Status::Result(result) => format!("result {result}"),
        Status::Trace(Trace { kind, message, attempts }) => {
            format!("{kind} after {attempts} attempts: {}", one_line(message))
        }
        Status::Activity(Activity { name, detail, progress, attempt }) => {
            let mut text = one_line(name);
            if let Some(Progress { done, total }) = progress {
                match total {
                    Some(total) => text.push_str(&format!(" {done}/{total}")),
                    None => text.push_str(&format!(" {done}")),
                }
            }
            if *attempt > 1 {
                text.push_str(&format!(" (attempt {attempt})"));
            }
            if let Some(detail) = detail {
                text.push_str(&format!(": {}", one_line(detail)));
            }
            text
        }
    }
}

pub fn absent(id: &str) -> Failure {
    Failure::new(Code::NotFound, format!("there is no job {id}"))
        .hint("A finished job is kept for a time only (job submit --retention).")
}
