//! `keyward worker`: works off a queue by running a command for each message.

mod child;
mod tail;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use keyward::SystemClock;
use keyward::queue::{Options, Queue, Report, Retry, Worker, WorkerOptions};
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use self::child::{Handler, Line};
use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::{Output, note};
use crate::queues::{self, one_line};
use crate::ttl;

/// Work off a queue: run a command for each message
///
/// The command is run by the shell. It gets the message on standard input, and KEYWARD_QUEUE,
/// KEYWARD_ID, KEYWARD_ATTEMPT (counted from 1) and KEYWARD_VERSION in its environment. When it exits
/// with 0 the message is done, and what it printed is the result of a job: JSON, or else a text.
/// Otherwise the attempt has failed, for the reason that the end of its standard error gives; it is
/// tried again later, and after the last attempt becomes a dead letter.
///
/// While the command runs, its lease is kept. If it cannot be, or the message is cancelled or
/// dropped, the command is ended (SIGTERM, and after five seconds SIGKILL). SIGTERM and Ctrl-C stop
/// the worker: nothing more is claimed, and what runs may end within --grace before it is ended and
/// given back; a second signal ends it at once. A worker that is killed leaves its commands running,
/// while others take over when the lease ends.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward worker --queue mails --exec ./send-mail
  keyward worker --queue reports --exec 'python3 report.py' --concurrency 4 --lease 2m"#)]
pub struct Arguments {
    /// The queue
    #[arg(long)]
    queue: String,
    /// The command, run by the shell
    #[arg(long, value_name = "COMMAND")]
    exec: String,
    /// So many messages at the same time
    #[arg(long, value_name = "N", default_value = "1")]
    concurrency: NonZeroU32,
    /// How long a message is left to a worker that gives no sign of life [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = ttl::parse)]
    lease: Option<Duration>,
    /// How often a message is tried before it is a dead letter
    #[arg(long, value_name = "N", default_value = "3")]
    attempts: NonZeroU32,
    /// The wait after the first failure, doubled with each further one [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = ttl::parse)]
    backoff: Option<Duration>,
    /// How long a worker that stops waits for what runs [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = ttl::parse)]
    grace: Option<Duration>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let Arguments { queue, exec, concurrency, lease, attempts, backoff, grace } = arguments;
    let store = target.open().await?;
    let result_bytes_max = store.limits().value_bytes_max;
    let usual = queues::options();
    let options = Options {
        lease: lease.unwrap_or(usual.lease),
        retry: Retry {
            attempts_max: attempts.get(),
            backoff_min: backoff.unwrap_or(usual.retry.backoff_min),
            ..usual.retry
        },
        ..usual
    };
    let usual = WorkerOptions::default();
    let worker = WorkerOptions {
        concurrency: usize::try_from(concurrency.get()).unwrap_or(usize::MAX),
        grace: grace.unwrap_or(usual.grace),
        ..usual
    };
    let queue = Queue::new(store, &queue, SystemClock, options)?;
    let mut stop = Stop::listen().map_err(|error| Failure::file("cannot hear signals", &error))?;
    if !output.json_lines() {
        note(format_args!("working on {} (Ctrl-C stops)", queue.name()));
    }
    // As many lines may wait as messages are worked on.
    let (lines, mut told) = mpsc::channel(worker.concurrency.clamp(1, 1_000));
    let name = queue.name().to_owned();
    let handler = Arc::new(Handler { exec, queue: name, result_bytes_max, lines });
    let (stopping, stopped) = tokio::sync::oneshot::channel::<()>();
    let run = Worker::new(queue, worker).run(
        move |delivery| {
            let handler = handler.clone();
            async move { handler.handle(delivery).await }
        },
        async { drop(stopped.await) },
    );
    let mut run = std::pin::pin!(run);
    let mut stopping = Some(stopping);
    let report = loop {
        tokio::select! {
            Some(line) = told.recv() => write(&line, output)?,
            report = &mut run => break report?,
            () = stop.signalled() => match stopping.take() {
                Some(stopping) => {
                    if !output.json_lines() {
                        note("stopping: waiting for what runs (Ctrl-C ends it at once)");
                    }
                    let _ = stopping.send(());
                }
                None => return Err(Failure::interrupted("interrupted")
                    .hint("What ran is taken over when its lease ends.")),
            },
        }
    };
    while let Ok(line) = told.try_recv() {
        write(&line, output)?;
    }
    tell(report, output)
}

/// SIGTERM and SIGINT, from the moment it is made.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn signalled(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn write(line: &Line, output: &mut Output) -> Result {
    if output.json_lines() {
        output.write_json(line)?;
    } else {
        let Line { id, attempt, error, ms } = line;
        match error {
            None => writeln!(output, "done    {id}  {ms} ms")?,
            Some(error) => {
                writeln!(output, "failed  {id}  attempt {attempt}: {}", one_line(error))?;
            }
        }
    }
    output.flush()
}

#[derive(Serialize)]
struct End {
    completed: u64,
    failed: u64,
    refused: u64,
    given_back: u64,
    unknown: u64,
}

fn tell(report: Report, output: &mut Output) -> Result {
    let Report { completed, failed, refused, given_back, unknown } = report;
    if output.json_lines() {
        return output.write_json(&End { completed, failed, refused, given_back, unknown });
    }
    writeln!(output, "stopped: {completed} done, {failed} failed, {given_back} given back")
}
