use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use clap::Args;
use keyward::Code;
use keyward::locks::Guard;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::acquire::lost;
use super::claim::{Claim, named};
use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::signals::{Came, Signals};
use crate::ttl;

/// Run a command while holding a lock
///
/// Waits for others, in the order of arrival, then runs the command and releases the lock when it
/// ends. Exits with the command's own code; 128 and the signal's number if a signal ended it.
/// Signals are passed on to the command. If the lock is lost meanwhile, because somebody broke it
/// or the store was out of reach for too long, the command gets SIGTERM, after --kill-after SIGKILL,
/// and this exits with 13. Exits with 12 if the lock is not to be had.
///
/// The command finds the lock's token in KEYWARD_LOCK_TOKEN, the root in KEYWARD_LOCK_ROOT, and the
/// paths in KEYWARD_LOCK_PATHS. What it does outside the store is not undone or refused when the
/// lock is lost: pass the token on to whatever can compare it.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward lock exec nightly -- ./backup.sh
  keyward lock exec page:7 policies:123 --timeout 30s -- ./translate 123 fr
  keyward lock exec deploy --no-wait -- sh -c 'echo token $KEYWARD_LOCK_TOKEN'"#)]
pub struct Arguments {
    #[command(flatten)]
    claim: Claim,
    /// When the lock is lost, kill the command if it does not end within this time
    #[arg(long, value_name = "DURATION", value_parser = ttl::parse, default_value = "10s")]
    kill_after: Duration,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let mut signals = Signals::listen()?;
    let guard = arguments.claim.acquire(target, &mut signals, output).await?;
    let mut child = match start(&arguments.command, &guard) {
        Ok(child) => child,
        Err(failure) => {
            guard.release().await?;
            return Err(failure);
        }
    };
    loop {
        tokio::select! {
            ended = child.wait() => {
                let code = ended.map(code).map_err(|error| Failure::file("cannot wait", &error));
                guard.release().await?;
                return passed(code?);
            }
            loss = guard.lost() => {
                let failure = lost(&guard, &loss);
                end(&mut child, arguments.kill_after).await;
                return Err(failure);
            }
            signal = signals.next() => pass_on(&child, signal),
        }
    }
}

fn start(command: &[OsString], guard: &Guard) -> Result<Child> {
    // clap has seen to it that there is one.
    let (program, rest) = command.split_first().ok_or_else(|| Failure::invalid("no command"))?;
    let started = Command::new(program)
        .args(rest)
        .env("KEYWARD_LOCK_TOKEN", guard.token().to_string())
        .env("KEYWARD_LOCK_ROOT", guard.root().key().to_string())
        .env("KEYWARD_LOCK_PATHS", named(guard.root(), guard.paths()).join(" "))
        .kill_on_drop(true)
        .spawn();
    started.map_err(|error| {
        let program = program.to_string_lossy();
        Failure::new(Code::NotStarted, format!("cannot run {program}: {error}"))
    })
}

/// Passes a signal on, unless the terminal has given it to the command already.
fn pass_on(child: &Child, came: Came) {
    if !(came.is_of_terminal() && io::stdin().is_terminal()) {
        send(child, came.0);
    }
}

/// Ends a command whose lock is lost.
async fn end(child: &mut Child, kill_after: Duration) {
    send(child, Signal::TERM);
    if tokio::time::timeout(kill_after, child.wait()).await.is_err() {
        // It may have ended just now, which is as good.
        let _ = child.kill().await;
    }
}

fn send(child: &Child, signal: Signal) {
    // A child that was waited for has no id any more, so no other process can be hit.
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(id) = id {
        let _ = kill_process(id, signal);
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

fn passed(code: u8) -> Result {
    if code == 0 { Ok(()) } else { Err(Failure::passed(code, "")) }
}
