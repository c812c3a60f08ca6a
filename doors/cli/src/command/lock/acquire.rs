use std::time::Duration;

use clap::Args;
use keyward::Code;
use keyward::locks::{Guard, Loss};

use super::claim::{Claim, Shown};
use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::signals::Signals;
use crate::ttl;

/// Take a lock and hold it until Ctrl-C
///
/// Waits for others, in the order of arrival, then prints the lock's token and holds the lock: until
/// Ctrl-C or SIGTERM (which release it, and exit with 0), or as long as --for says. If the lock is
/// lost, because somebody broke it or the store was out of reach for too long, exits with 13.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward lock acquire page:7
  keyward lock acquire page:7 policies:123:fr issues --shared
  keyward lock acquire nightly --for 10m --no-wait --json"#)]
pub struct Arguments {
    #[command(flatten)]
    claim: Claim,
    /// Release the lock after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = ttl::parse)]
    hold: Option<Duration>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let mut signals = Signals::listen()?;
    let guard = arguments.claim.acquire(target, &mut signals, output).await?;
    let shown = Shown::of(&guard);
    if output.json_lines() {
        output.write_json(&shown)?;
    } else {
        writeln!(output, "holding {} (Ctrl-C releases)", described(&guard))?;
    }
    output.flush()?;
    let time = async {
        match arguments.hold {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        loss = guard.lost() => Err(lost(&guard, &loss)),
        _ = signals.next() => Ok(guard.release().await?),
        () = time => Ok(guard.release().await?),
    }
}

/// A lock in words.
pub fn described(guard: &Guard) -> String {
    let paths = super::claim::named(guard.root(), guard.paths()).join(" and ");
    let root = guard.root().key().to_string();
    let of = if paths == root { String::new() } else { format!(" of {root}") };
    format!("{paths}{of}, token {}", guard.token())
}

/// What to say of a lock that was lost.
pub fn lost(guard: &Guard, loss: &Loss) -> Failure {
    Failure::new(Code::LockLost, format!("lost {}: {loss}", described(guard)))
        .hint("Somebody else may hold it now: look at what was done before doing more.")
}
