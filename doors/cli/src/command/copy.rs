use std::cell::RefCell;

use clap::Args;
use indicatif::HumanCount;
use keyward::migrate::{Copied, Copy, Difference, Verified, verify};
use keyward::{Code, KeyRange, Store};
use serde::Serialize;

use crate::args::{self, Target};
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;

/// Copy a store into another, from any engine to any other
///
/// Every entry with its value, metadata and expiry; versions and history are each store's own. The
/// target is made if there is none. What it holds already is compared and written only where it
/// differs: a copy that was interrupted or killed goes on when it is run again, and a later one
/// brings what has changed since. Keys that only the target holds stay there unless --prune is
/// given. -s and KEYWARD_STORE are not looked at; with --server, a name without a colon is one of its
/// stores.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward copy embedded:./data embedded:./copy
  keyward copy embedded:./data postgres://keyward@localhost/keyward --verify
  keyward copy embedded:./data embedded:./mirror --prune
  keyward --server https://keyward.example:7480 copy main embedded:./copy"#)]
pub struct Arguments {
    /// The store to read, for example embedded:./data
    source: String,
    /// The store to write
    target: String,
    /// Compare every entry of both stores at the end; exits with 10 if they are not equal
    #[arg(long)]
    verify: bool,
    /// Remove keys that only the target holds
    #[arg(long)]
    prune: bool,
}

#[derive(Serialize)]
struct Done {
    added: u64,
    replaced: u64,
    /// Entries that were there already.
    equal: u64,
    /// Keys that only the target holds.
    extra: u64,
    pruned: u64,
    /// Entries found equal at the end; left out if nobody asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<u64>,
}

pub async fn run(arguments: Arguments, on: &Target, output: &mut Output) -> Result {
    let Arguments { source, target, verify, prune } = arguments;
    let (source, target) = (on.named(source)?, on.named(target)?);
    if source == target {
        return Err(Failure::invalid("the source and the target are the same store"));
    }
    let source = args::open_existing(&source).await.map_err(|failure| failure.at("the source"))?;
    let target = keyward::open(&target).await;
    let target = target.map_err(|error| Failure::from(error).at("the target"))?;
    let mut interrupt = Interrupt::listen().await;
    let whole = source.verify(&KeyRange::all()).await;
    whole.map_err(|error| Failure::from(error).at("the source"))?;
    let total = match source.counts_by_reading() {
        true => None,
        false => Some(source.stats().await?.entries),
    };

    let progress = Progress::counted("copying", "entries", total, output);
    let so_far = RefCell::new(Copied::default());
    let copy = Copy::new(source.clone(), target.clone()).prune(prune);
    let copying = copy.run(|copied| {
        progress.reach(copied.entries());
        so_far.replace(copied.clone());
    });
    let copied = tokio::select! {
        copied = copying => copied.map_err(Failure::from),
        () = interrupt.wait() => Err(Failure::interrupted("interrupted")),
    };
    drop(progress);
    let copied = copied.map_err(|failure| {
        let so_far = entries(so_far.borrow().entries());
        failure.also(&format!("Copied before that: {so_far}. Running it again goes on from there."))
    })?;

    let verified = if verify {
        let progress = Progress::counted("verifying", "entries", Some(copied.entries()), output);
        let verified = tokio::select! {
            verified = compare(&source, &target, &progress) => verified?,
            () = interrupt.wait() => {
                return Err(Failure::interrupted("interrupted").hint("The copy itself was done."));
            }
        };
        drop(progress);
        if !verified.is_equal() {
            return Err(unequal(&verified));
        }
        Some(verified.equal)
    } else {
        None
    };
    tell(&copied, verified, output)
}

async fn compare(source: &Store, target: &Store, progress: &Progress) -> Result<Verified> {
    // A target that shows writes late would seem to lack what was just copied.
    tokio::time::sleep(target.capabilities().consistency.lag()).await;
    Ok(verify(source, target, |verified| progress.reach(verified.keys())).await?)
}

fn tell(copied: &Copied, verified: Option<u64>, output: &mut Output) -> Result {
    let &Copied { added, replaced, equal, extra, pruned } = copied;
    if output.json() {
        return output.write_json(&Done { added, replaced, equal, extra, pruned, verified });
    }
    write!(output, "copied {}", entries(copied.written()))?;
    for (count, what) in [
        (equal, "equal already"),
        (pruned, "removed from the target"),
        (extra, "only in the target"),
    ] {
        if count > 0 {
            write!(output, ", {} {what}", HumanCount(count))?;
        }
    }
    writeln!(output)?;
    match verified {
        Some(equal) => writeln!(output, "verified: {} equal", entries(equal)),
        None => Ok(()),
    }
}

/// Says how the stores differ, and names the first keys.
fn unequal(verified: &Verified) -> Failure {
    let mut message = format!("the stores are not equal: {} equal", entries(verified.equal));
    for (count, what) in [
        (verified.missing, "missing in the target"),
        (verified.different, "different"),
        (verified.extra, "only in the target"),
    ] {
        if count > 0 {
            message.push_str(&format!(", {} {what}", HumanCount(count)));
        }
    }
    let first = verified.first.iter().map(|(key, difference)| {
        let how = match difference {
            Difference::Missing => "missing",
            Difference::Different => "different",
            Difference::Extra => "only in the target",
        };
        format!("{key} ({how})")
    });
    let first: Vec<String> = first.collect();
    let mut advice = format!("The first of them: {}.", first.join(", "));
    if verified.missing + verified.different > 0 {
        advice.push_str(" If a store changed meanwhile, run it again.");
    }
    if verified.extra > 0 {
        advice.push_str(" --prune removes what only the target holds.");
    }
    Failure::new(Code::Differs, message).hint(advice)
}

fn entries(count: u64) -> String {
    match count {
        1 => "1 entry".to_owned(),
        count => format!("{} entries", HumanCount(count)),
    }
}
