use std::path::PathBuf;

use clap::Args;
use keyward::schema::diff;

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Tell what changes from one schema to another
///
/// Each change with what it means for a store that has data: nothing, a migration, or that what is
/// stored does not fit. Exits with 10 if there is any change.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward schema diff released.toml keyward.schema.toml
  keyward schema diff old.toml new.toml --json | jq -r 'select(.verdict != "compatible").message'"#)]
pub struct Arguments {
    /// The schema file that stores have been written with
    old: PathBuf,
    /// The schema file that shall be used from now on
    new: PathBuf,
}

pub fn run(arguments: Arguments, output: &mut Output) -> Result {
    let diff = diff(&super::load(&arguments.old)?, &super::load(&arguments.new)?);
    if output.json() {
        for change in &diff.changes {
            output.write_json(change)?;
        }
    } else {
        writeln!(output, "{diff}")?;
    }
    if diff.changes.is_empty() { Ok(()) } else { Err(Failure::told(Exit::Differs)) }
}
