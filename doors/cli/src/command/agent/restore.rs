use clap::Args;
use keyward::agents::UserData;

use super::namespace::InNamespace;
use super::reach::Reach;
use super::written::{expected, tell};
use crate::failure::Result;
use crate::output::Output;

/// Give an entry the value and metadata of an earlier version
///
/// As a new version; history goes on. Who made the entry and when stays. The number is the one that
/// agent history shows. Also brings back an entry that was deleted.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent history plan
  keyward agent restore plan --to 3 --agent planner"#)]
pub struct Arguments {
    /// The key
    key: String,
    #[command(flatten)]
    place: InNamespace,
    /// The number of the version
    #[arg(long, value_name = "NUMBER")]
    to: u64,
    /// Only if the entry is at this version
    #[arg(long, value_name = "VERSION")]
    if_version: Option<String>,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let Arguments { key, place, to, if_version } = arguments;
    let expect = expected(if_version.as_deref(), false);
    let work = async |user: UserData, output: &mut Output| {
        let namespace = user.use_namespace(&place.namespace)?;
        let written = namespace.restore(&key, to, expect.clone()).await?;
        tell(namespace.name(), &key, &expect, written, output)
    };
    reach.existing(output, work).await
}
