use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use indicatif::HumanDuration;
use keyward::cache::{Presence, Purge, PurgeOptions, Purged};
use keyward::{Key, SystemClock};
use serde::Serialize;

use super::program;
use crate::args::Target;
use crate::failure::Result;
use crate::output::{Output, note};
use crate::ttl;

/// Remove everything of roots whose source says that they are gone
///
/// Runs the command of --check for every root that has entries, with the root in KEYWARD_ROOT. It exits with 0 if the root is there, and with 44 (--gone-code) if it is
/// certainly not; anything else, also that it cannot be run or takes too long, leaves the root as it
/// is. At most one purge in --interval is made, over all machines; --now makes one in any case.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward cache purge --check ./page-exists
  keyward cache purge --under pages: --check ./page-exists --now
  keyward cache purge --check 'sh' --check=-c --check 'test -e "pages/$KEYWARD_ROOT" || exit 44'"#)]
pub struct Arguments {
    /// The command that knows whether a root is there; give it several times for its arguments
    #[arg(long, required = true, value_name = "COMMAND", allow_hyphen_values = true)]
    check: Vec<OsString>,
    /// The exit code that says: certainly gone
    #[arg(long, value_name = "CODE", default_value_t = 44)]
    gone_code: i32,
    /// The roots are right below this prefix; without it, the first segments of all keys
    #[arg(long, value_name = "PREFIX")]
    under: Option<String>,
    /// The shortest time between two purges
    #[arg(long, value_name = "DURATION", value_parser = ttl::parse, default_value = "24h")]
    interval: Duration,
    /// How long one check may take
    #[arg(long, value_name = "DURATION", value_parser = ttl::parse, default_value = "30s")]
    timeout: Duration,
    /// Purge also if the last one is less than --interval ago
    #[arg(long)]
    now: bool,
}

#[derive(Serialize)]
struct Report {
    swept: bool,
    roots: u64,
    removed: u64,
    left: Vec<Left>,
}

/// A root that was not kept, or that nobody knows about.
#[derive(Serialize)]
struct Left {
    root: String,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<u64>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let under = crate::command::prefix(arguments.under.as_deref())?;
    let cache = super::cache(target.open_existing().await?)?;
    let options = PurgeOptions { under, interval: arguments.interval, ..PurgeOptions::default() };
    let purge = Purge::new(cache.locks().clone(), SystemClock, options)?;
    let look = |root: Key| look(&arguments, root);
    let swept = match arguments.now {
        true => Some(purge.sweep_now(look).await?),
        false => purge.sweep(look).await?,
    };
    let Some(swept) = swept else {
        if output.json() {
            let (roots, removed, left) = (0, 0, Vec::new());
            return output.write_json(&Report { swept: false, roots, removed, left });
        }
        let interval = HumanDuration(arguments.interval);
        return writeln!(output, "nothing to do: the last purge is less than {interval} ago");
    };
    let left: Vec<Left> = swept.told.into_iter().map(|(root, purged)| told(root, purged)).collect();
    if output.json() {
        let (roots, removed) = (swept.roots, swept.entries);
        return output.write_json(&Report { swept: true, roots, removed, left });
    }
    for root in &left {
        match (&root.reason, root.removed) {
            (_, Some(removed)) => {
                writeln!(output, "{}: gone, {removed} entries removed", root.root)?
            }
            (Some(reason), None) => note(format_args!("{}: left alone: {reason}", root.root)),
            (None, None) => {}
        }
    }
    writeln!(output, "looked at {} roots, removed {} entries", swept.roots, swept.entries)
}

async fn look(arguments: &Arguments, root: Key) -> Presence {
    let Some((program, rest)) = arguments.check.split_first() else {
        return Presence::Unknown("no command".into());
    };
    let root = root.to_string();
    let check = program::run(program, rest, ("KEYWARD_ROOT", &root));
    match tokio::time::timeout(arguments.timeout, check).await {
        Err(_) => Presence::Unknown("the check took too long".into()),
        Ok(Err(reason)) => Presence::Unknown(reason),
        Ok(Ok((status, _))) => match status.code() {
            Some(0) => Presence::Present,
            Some(code) if code == arguments.gone_code => Presence::Gone,
            _ => Presence::Unknown(format!("the check: {}", program::ending(status))),
        },
    }
}

fn told(root: Key, purged: Purged) -> Left {
    let root = root.to_string();
    let (outcome, reason, removed) = match purged {
        Purged::Removed { entries } => ("removed", None, Some(entries)),
        Purged::Kept => ("kept", None, None),
        Purged::Unknown(reason) => ("unknown", Some(reason), None),
        Purged::Locked(reason) => ("locked", Some(reason), None),
        Purged::Failed(reason) => ("failed", Some(reason), None),
    };
    Left { root, outcome, reason, removed }
}
