use std::time::Duration;

use clap::Args;
use keyward::cache::{Purge, PurgeOptions};
use keyward::{Key, Prefix, SystemClock};
use serde::Serialize;

use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;
use crate::ttl;

/// Remove everything below a root, under its lock
///
/// Waits for those who hold locks below the root, and keeps others away meanwhile. The root's own
/// entry stays: it is where its locks are kept.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward cache clear page7
  keyward cache clear team:page7 --timeout 30s"#)]
pub struct Arguments {
    /// The root, for example page7
    root: String,
    /// How long to wait for those who work below it
    #[arg(long, value_name = "DURATION", value_parser = ttl::parse, default_value = "10s")]
    timeout: Duration,
}

#[derive(Serialize)]
struct Cleared {
    removed: u64,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let root = crate::command::key(&arguments.root)?;
    let cache = super::cache(target.open_existing().await?)?;
    let options = PurgeOptions {
        under: above(&root),
        wait_max: arguments.timeout,
        ..PurgeOptions::default()
    };
    let purge = Purge::new(cache.locks().clone(), SystemClock, options)?;
    let removed = purge.clear(&root).await?;
    if output.json() {
        return output.write_json(&Cleared { removed });
    }
    let entries = if removed == 1 { "entry" } else { "entries" };
    writeln!(output, "removed {removed} {entries} below {root}")
}

/// Everything beside a root.
fn above(root: &Key) -> Prefix {
    root.ancestor(root.depth() - 1).unwrap_or_else(Prefix::all)
}
