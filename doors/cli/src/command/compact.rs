use clap::Args;
use serde::Serialize;

use crate::args::Target;
use crate::failure::Result;
use crate::output::{Output, size};
use crate::progress::Progress;

/// Give free space back to the disk
///
/// Rewrites an embedded store without its free pages and expired entries. Nobody else may have it
/// open meanwhile.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward compact
  keyward compact --json | jq .bytes_after"#)]
pub struct Arguments {}

#[derive(Serialize)]
struct Done {
    bytes_before: u64,
    bytes_after: u64,
}

pub async fn run(_: Arguments, target: &Target, output: &mut Output) -> Result {
    target.refuse_server(
        "compacting",
        "Stop the server, and run keyward compact where the store is, without --server and \
         KEYWARD_SERVER.",
    )?;
    let progress = Progress::working("compacting", output);
    let compacted = keyward::compact(&target.url()?).await?;
    drop(progress);
    let done = Done { bytes_before: compacted.bytes_before, bytes_after: compacted.bytes_after };
    if output.json() {
        return output.write_json(&done);
    }
    let (before, after) = (size(done.bytes_before), size(done.bytes_after));
    writeln!(output, "compacted from {before} to {after}")
}
