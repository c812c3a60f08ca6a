use std::num::NonZeroUsize;

use clap::Args;
use keyward::Code;
use keyward::queue::{Report, WorkerOptions};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::agreements::Desk;
use crate::failure::{Failure, Result};
use crate::output::{Output, note};
use crate::signals::Signals;

/// Work off the tasks of a workspace, until stopped
///
/// Commands work off their own tasks, and a server those of its workspaces; this helps them. Any number of
/// processes may do it at once, and a task whose worker died is taken over. The first Ctrl-C (or SIGTERM)
/// stops it once what is under way is done; a second one ends it at once.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward page work
  keyward page work --workspace supply --concurrency 8"#)]
pub struct Arguments {
    /// So many tasks at the same time [default: what the workspace's settings say]
    #[arg(long, value_name = "N")]
    concurrency: Option<NonZeroUsize>,
}

#[derive(Serialize)]
struct End {
    completed: u64,
    failed: u64,
    given_back: u64,
}

pub async fn run(arguments: Arguments, desk: &Desk, output: &mut Output) -> Result {
    let here = match desk {
        Desk::Here(here) => here,
        Desk::There(there) => {
            let message = format!("{} works off its tasks itself", there.server());
            return Err(Failure::new(Code::Unsupported, message)
                .hint("Leave out --server to work where the store is."));
        }
    };
    let concurrency = arguments.concurrency.map_or(here.concurrency(), NonZeroUsize::get);
    let options = WorkerOptions { concurrency, ..WorkerOptions::default() };
    let mut signals = Signals::listen()?;
    if !output.json() {
        note(format_args!("working on tasks of {} (Ctrl-C stops)", here.name()));
    }
    let (stop, stopped) = oneshot::channel::<()>();
    let work = here.workspace().work(options, async { drop(stopped.await) });
    let mut work = std::pin::pin!(work);
    let mut stop = Some(stop);
    let report = loop {
        tokio::select! {
            report = &mut work => break report?,
            _ = signals.next() => match stop.take() {
                Some(stop) => {
                    if !output.json() {
                        note("stopping: waiting for what is under way (Ctrl-C ends it at once)");
                    }
                    let _ = stop.send(());
                }
                None => return Err(Failure::interrupted("interrupted")
                    .hint("What was under way is taken over when its lease ends.")),
            },
        }
    };
    let Report { completed, failed, given_back, .. } = report;
    if output.json() {
        return output.write_json(&End { completed, failed, given_back });
    }
    writeln!(output, "stopped: {completed} done, {failed} failed, {given_back} given back")
}
