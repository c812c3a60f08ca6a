use clap::Args;
use keyward::agents::{Patch, UserData};
use keyward::records::Written;

use super::namespace::InNamespace;
use super::reach::Reach;
use super::written::{absent, expected, tell};
use crate::failure::Result;
use crate::input::{self, Input};
use crate::output::Output;

/// Merge a part into an entry
///
/// Objects are merged, null removes a member, everything else replaces what was there (JSON Merge Patch,
/// RFC 7396): in the value, and with --metadata in the metadata. When the entry ends stays. An entry that
/// is not there is not made: the command exits with 1.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent patch plan '{"step":4,"draft":null}' --agent planner
  keyward agent patch plan --metadata '{"reviewer":"bob","draft":null}'
  keyward agent patch plan @changes.json --if-version 17"#)]
pub struct Arguments {
    /// The key
    key: String,
    /// The part for the value, or @FILE to read it from a file, or - from standard input
    #[arg(
        value_name = "JSON",
        allow_negative_numbers = true,
        required_unless_present = "metadata"
    )]
    value: Option<String>,
    #[command(flatten)]
    place: InNamespace,
    /// The part for the metadata, as a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Only if the entry is at this version
    #[arg(long, value_name = "VERSION")]
    if_version: Option<String>,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let metadata = arguments.metadata.as_deref();
    let metadata = metadata.map(|text| input::json("metadata", text)).transpose()?;
    let value = match arguments.value.as_deref().map(Input::new).transpose()? {
        Some(input) => Some(input.json(reach.options()?.value_bytes_max).await?),
        None => None,
    };
    let expect = expected(arguments.if_version.as_deref(), false);
    let patch = Patch { value, metadata, expect: expect.clone() };
    let key = &arguments.key;
    let work = async |user: UserData, output: &mut Output| {
        let namespace = user.use_namespace(&arguments.place.namespace)?;
        match namespace.patch(key, patch).await? {
            Written::Unchanged { version: None } => {
                Err(absent(namespace.name(), key).hint("agent set makes it."))
            }
            written => tell(namespace.name(), key, &expect, written, output),
        }
    };
    reach.existing(output, work).await
}
