use clap::Args;

use super::address::Address;
use super::reach::Reach;
use super::shown;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::line::Fields;
use crate::output::Output;
use crate::pretty::pretty;

/// Print a record
///
/// Prints the JSON exactly as it is stored. If the record is not there, prints nothing and exits
/// with 1.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward record get notes note=n1 --as ada
  keyward record get notes user=ada note=n1 --meta | jq -r .version
  keyward record get templates template=letter --pretty"#)]
pub struct Arguments {
    #[command(flatten)]
    address: Address,
    /// Print key, value, version, metadata and expiry, as a JSON object (--json does the same)
    #[arg(long)]
    meta: bool,
    /// Lay the JSON out on several lines
    #[arg(long)]
    pretty: bool,
}

pub async fn run(arguments: Arguments, reach: &Reach, output: &mut Output) -> Result {
    let values = arguments.address.bindings(reach)?;
    let space = reach.existing(&arguments.address.space).await?;
    let key = space.key(values)?;
    let Some(record) = space.get(&key).await? else {
        let message = format!("{key} is not there");
        return Err(Failure::new(Exit::Absent, "not-found", message));
    };
    let json = if arguments.meta || output.json() {
        shown::json(record, Fields::All).into()
    } else {
        record.value.to_bytes()
    };
    if arguments.pretty {
        output.write_all(&pretty(&json))?;
    } else {
        output.write_all(&json)?;
    }
    writeln!(output)
}
