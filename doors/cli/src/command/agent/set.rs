use std::time::Duration;

use clap::Args;
use keyward::agents::{Life, Set, UserData};

use super::namespace::InNamespace;
use super::reach::Reach;
use super::written::{expected, tell};
use crate::failure::Result;
use crate::input::{self, Input};
use crate::output::Output;
use crate::ttl;

/// Set an entry
///
/// Makes it, or gives it a new value. Metadata is merged into what the entry has: members are added or
/// replaced, none is removed (agent patch does that), and of two that set the same entry at once neither
/// loses the other's. Who made the entry and when stays. Prints the entry's new version.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward agent set greeting '"hello"' --agent planner
  keyward agent set src/main.py @main.json -n files:apache/repo --metadata '{"sha":"ab12"}'
  keyward agent set session '{"step":3}' --ttl 15m --sliding
  keyward agent set plan '{"step":4}' --if-version 17
  curl -s https://example.org/rates | keyward agent set rates -"#)]
pub struct Arguments {
    /// The key: any text
    key: String,
    /// The value, or @FILE to read it from a file, or - from standard input; a text needs quotes of
    /// its own: '"hello"'
    #[arg(value_name = "JSON", allow_negative_numbers = true)]
    value: String,
    #[command(flatten)]
    place: InNamespace,
    /// What to say about the value, as a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Let the entry expire after this time: 90s, 15m, 2h, 7d, 1h30m
    #[arg(long, value_parser = ttl::parse)]
    ttl: Option<Duration>,
    /// Let its time begin anew when it is read past half of it
    #[arg(long, requires = "ttl")]
    sliding: bool,
    /// Keep the entry for ever, whatever the namespace says
    #[arg(long, conflicts_with = "ttl")]
    no_ttl: bool,
    /// Only if the entry is at this version
    #[arg(long, value_name = "VERSION", conflicts_with = "if_absent")]
    if_version: Option<String>,
    /// Only if the entry is not there
    #[arg(long)]
    if_absent: bool,
}

pub async fn run(arguments: Arguments, reach: &Reach<'_>, output: &mut Output) -> Result {
    let metadata = arguments.metadata.as_deref();
    let metadata = metadata.map(|text| input::json("metadata", text)).transpose()?;
    // What is no JSON is told before a store is opened, and perhaps made, for it.
    let input = Input::new(&arguments.value)?;
    let expect = expected(arguments.if_version.as_deref(), arguments.if_absent);
    let set = Set {
        value: input.json(reach.options()?.value_bytes_max).await?,
        metadata,
        life: match arguments.ttl {
            Some(ttl) if arguments.sliding => Some(Life::Sliding(ttl)),
            Some(ttl) => Some(Life::After(ttl)),
            None => arguments.no_ttl.then_some(Life::Never),
        },
        expect: expect.clone(),
    };
    let work = async |user: UserData, output: &mut Output| {
        let namespace = user.use_namespace(&arguments.place.namespace)?;
        let written = namespace.set(&arguments.key, set).await?;
        tell(namespace.name(), &arguments.key, &expect, written, output)
    };
    // A condition on a version cannot hold where there is no store, so none is made for it.
    match arguments.if_version {
        Some(_) => reach.to_read(output, work).await,
        None => reach.to_write(output, work).await,
    }
}
