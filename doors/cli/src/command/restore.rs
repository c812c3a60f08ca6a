use std::path::PathBuf;

use clap::Args;
use indicatif::HumanCount;
use serde::Serialize;

use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;
use crate::progress::Progress;

/// Make a new store of a backup
///
/// Nothing may stand yet where the store shall be: a store is never overwritten.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward -s embedded:./copy restore monday.keyward"#)]
pub struct Arguments {
    /// The file that backup wrote
    file: PathBuf,
}

#[derive(Serialize)]
struct Done {
    file: String,
    entries: u64,
    revision: Option<u64>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    target.refuse_server(
        "restoring a backup",
        "Run keyward restore where the store shall be, without --server and KEYWARD_SERVER; or use \
         keyward import, which works through a server.",
    )?;
    let progress = Progress::working("restoring", output);
    keyward::restore(&target.url()?, &arguments.file).await?;
    // Opening it proves that it can be opened.
    let stats = target.open().await?.stats().await?;
    drop(progress);
    let done = Done {
        file: arguments.file.display().to_string(),
        entries: stats.entries,
        revision: stats.revision.map(|revision| revision.0),
    };
    if output.json() {
        return output.write_json(&done);
    }
    let entries = HumanCount(done.entries);
    match done.revision {
        Some(revision) => writeln!(
            output,
            "restored {entries} entries from {}, at revision {revision}",
            done.file
        ),
        None => writeln!(output, "restored {entries} entries from {}", done.file),
    }
}
