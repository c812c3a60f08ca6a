use clap::Args;

use super::address::Address;
use super::reach::Reach;
use super::written::{if_match, tell};
use crate::failure::Result;
use crate::output::Output;

/// Delete a record and its index entries
///
/// Says whether it was there; deleting what is not there is no error.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward record delete notes note=n1 --as ada
  keyward record delete notes user=ada note=n1 --if-match 17"#)]
pub struct Arguments {
    #[command(flatten)]
    address: Address,
    /// Only if the record is at this version
    #[arg(long, value_name = "VERSION")]
    if_match: Option<String>,
}

pub async fn run(arguments: Arguments, reach: &Reach, output: &mut Output) -> Result {
    let values = arguments.address.bindings(reach)?;
    let space = reach.to_read(&arguments.address.space, output).await?;
    let key = space.key(values)?;
    let expect = if_match(arguments.if_match.as_deref());
    let written = space.delete(&key, expect.clone()).await?;
    tell(&key, &expect, written, output)
}
