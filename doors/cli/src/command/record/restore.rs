use clap::Args;

use super::address::Address;
use super::reach::Reach;
use super::written::{if_match, tell};
use crate::failure::Result;
use crate::output::Output;

/// Give a record the value of an earlier version
///
/// As a new version; history goes on. The number is the one that record history shows.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward record history notes note=n1 --as ada
  keyward record restore notes note=n1 --to 3 --as ada"#)]
pub struct Arguments {
    #[command(flatten)]
    address: Address,
    /// The number of the version
    #[arg(long, value_name = "NUMBER")]
    to: u64,
    /// Only if the record is at this version
    #[arg(long, value_name = "VERSION")]
    if_match: Option<String>,
}

pub async fn run(arguments: Arguments, reach: &Reach, output: &mut Output) -> Result {
    let values = arguments.address.bindings(reach)?;
    reach.admit_write(&arguments.address.space)?;
    let space = reach.existing(&arguments.address.space).await?;
    let key = space.key(values)?;
    let expect = if_match(arguments.if_match.as_deref());
    let written = space.restore(&key, arguments.to, expect.clone()).await?;
    tell(&key, &expect, written, output)
}
