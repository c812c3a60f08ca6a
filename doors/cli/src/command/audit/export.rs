use clap::Args;
use jiff::Timestamp;
use keyward_server::AuditQuery;

use super::log::Log;
use crate::failure::Result;
use crate::output::Output;

/// Write the audit log as JSON lines, oldest first
///
/// Each line is one act: when, which request, which tenant and key, what it was asked to change, and
/// the status of the answer (null, if the request was given up).
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward audit export > audit.jsonl
  keyward audit export --since 2026-11-01T00:00:00Z | jq 'select(.act == "admin")'"#)]
pub struct Arguments {
    /// The first moment, as RFC 3339
    #[arg(long, value_name = "MOMENT")]
    since: Option<Timestamp>,
    /// The last moment, as RFC 3339
    #[arg(long, value_name = "MOMENT")]
    until: Option<Timestamp>,
}

const ACTS_PER_PAGE: usize = 1_000;

pub async fn run(arguments: Arguments, log: &Log, output: &mut Output) -> Result {
    let Arguments { since, until } = arguments;
    let mut query = AuditQuery { since, until, after: None, limit: ACTS_PER_PAGE };
    loop {
        let (acts, next) = log.read(&query).await?;
        for act in acts {
            writeln!(output, "{act}")?;
        }
        if next.is_none() {
            return output.flush();
        }
        query.after = next;
    }
}
