use clap::Args;
use keyward::agents::UserData;

use super::namespace::InNamespace;
use super::reach::Reach;
use super::written::{expected, tell};
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Delete entries
///
/// Says of each whether it was there; deleting what is not there is no error. What is known about its
/// accesses goes with it; its history stays (agent history, agent restore). agent clear deletes many.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent delete greeting --agent planner
  keyward agent delete a b c -n scratch
  keyward agent delete plan --if-version 17"#)]
pub struct Arguments {
    /// The keys
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,
    #[command(flatten)]
    place: InNamespace,
    /// Only if the entry, which must be the only one, is at this version
    #[arg(long, value_name = "VERSION")]
    if_version: Option<String>,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    if arguments.if_version.is_some() && arguments.keys.len() > 1 {
        return Err(Failure::invalid("--if-version goes with one key only"));
    }
    let expect = expected(arguments.if_version.as_deref(), false);
    let work = async |user: UserData, output: &mut Output| {
        let namespace = user.use_namespace(&arguments.place.namespace)?;
        for key in &arguments.keys {
            let written = namespace.delete_expecting(key, expect.clone()).await?;
            tell(namespace.name(), key, &expect, written, output)?;
        }
        Ok(())
    };
    reach.to_read(output, work).await
}
