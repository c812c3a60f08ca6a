use clap::Args;
use keyward::Code;

use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::line::{self, Fields};
use crate::output::Output;
use crate::pretty::pretty;

/// Print what a key holds
///
/// Prints the JSON exactly as it is stored. If the key is not there, prints nothing and exits with 1.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward get user:7:name
  keyward get user:7:name --meta | jq -r .version
  keyward get user:7 --pretty"#)]
pub struct Arguments {
    /// The key, for example user:7:name
    key: String,
    /// Print key, value, version, metadata and expiry, as a JSON object (--json does the same)
    #[arg(long)]
    meta: bool,
    /// Lay the JSON out on several lines
    #[arg(long)]
    pretty: bool,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let key = super::key(&arguments.key)?;
    let store = target.open_existing().await?;
    let Some(entry) = store.get(&key).await? else {
        let message = format!("{key} is not there");
        return Err(Failure::new(Code::NotFound, message));
    };
    let json = if arguments.meta || output.json() {
        let mut line = Vec::new();
        line::write(&mut line, &key, &entry, Fields::All);
        line.into()
    } else {
        entry.value.to_bytes()
    };
    if arguments.pretty {
        output.write_all(&pretty(&json))?;
    } else {
        output.write_all(&json)?;
    }
    writeln!(output)
}
