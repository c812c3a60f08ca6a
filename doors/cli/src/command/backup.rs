use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::{Output, size};
use crate::progress::Progress;

/// Copy a whole store into a file
///
/// The copy is consistent at one moment, also while others write. The file must not exist yet. For
/// engines that make no backups, and to move data between engines, there is export.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward backup monday.keyward
  keyward -s embedded:./copy restore monday.keyward"#)]
pub struct Arguments {
    /// The file to write
    file: PathBuf,
}

#[derive(Serialize)]
struct Done {
    file: String,
    bytes: u64,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let file = arguments.file;
    target.refuse_server(
        "a backup",
        "Run keyward backup where the store is, without --server and KEYWARD_SERVER; or use keyward \
         export, which works through a server.",
    )?;
    let store = target.open_existing().await?;
    let progress = Progress::working("backing up", output);
    store.backup(&file).await?;
    drop(progress);
    let written = fs::metadata(&file)
        .map_err(|error| Failure::file(format_args!("cannot see {}", file.display()), &error))?;
    let done = Done { file: file.display().to_string(), bytes: written.len() };
    if output.json() {
        return output.write_json(&done);
    }
    writeln!(output, "backed up to {}, {}", done.file, size(done.bytes))
}
