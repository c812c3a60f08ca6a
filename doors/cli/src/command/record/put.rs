use std::time::Duration;

use clap::Args;
use keyward::records::{Draft, Precondition, Space, Ttl};

use super::address::AddressAndValue;
use super::reach::Reach;
use super::written::{accepted, if_match, tell};
use crate::failure::Result;
use crate::input;
use crate::output::Output;
use crate::ttl;

/// Set a record
///
/// Replaces the value and the metadata; the record lives as long as the space says. The value must
/// be what the schema says, and its index entries change with it. Prints the record's new version.
#[derive(Debug, Args)]
#[command(
    override_usage = "keyward record put [OPTIONS] <SPACE> [VAR=VALUE]... <JSON>",
    after_help = r#"Examples:
  keyward record put notes note=n1 '{"title":"Keys","text":"They turn locks."}' --as ada
  keyward record put notes note=n1 @note.json --as ada --if-match 17
  generate | keyward record put templates template=letter - --metadata '{"from":"generate"}'"#
)]
pub struct Arguments {
    #[command(flatten)]
    target: AddressAndValue,
    #[command(flatten)]
    terms: Terms,
    /// Only if the record is at this version
    #[arg(long, value_name = "VERSION")]
    if_match: Option<String>,
}

/// What to say about a value besides.
#[derive(Debug, Args)]
pub struct Terms {
    /// Let the record expire after this time: 90s, 15m, 2h, 7d, 1h30m
    #[arg(long, value_parser = ttl::parse)]
    ttl: Option<Duration>,
    /// Keep the record for ever, whatever the space says
    #[arg(long, conflicts_with = "ttl")]
    no_ttl: bool,
    /// What to say about the value, as a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
}

pub async fn run(arguments: Arguments, reach: &Reach, output: &mut Output) -> Result {
    let expect = if_match(arguments.if_match.as_deref());
    put(arguments.target, arguments.terms, expect, reach, output).await
}

/// Sets a record under a condition.
pub async fn put(
    target: AddressAndValue,
    terms: Terms,
    expect: Precondition,
    reach: &Reach,
    output: &mut Output,
) -> Result {
    let (address, input) = target.split()?;
    let values = address.bindings(reach)?;
    let metadata = terms.metadata.as_deref();
    let metadata = metadata.map(|text| input::json("metadata", text)).transpose()?;
    let draft = Draft {
        value: input.json(reach.value_bytes_max(&address.space).await?).await?,
        metadata,
        ttl: match terms.ttl {
            Some(ttl) => Ttl::After(ttl),
            None if terms.no_ttl => Ttl::Never,
            None => Ttl::Declared,
        },
        expect: expect.clone(),
    };
    let attempt = async |space: &Space| {
        let key = space.key(values.clone())?;
        let written = space.put(&key, draft.clone()).await?;
        accepted(&key, &expect, &written)
    };
    let space = reach.to_write(&address.space, attempt).await?;
    let key = space.key(values)?;
    let written = space.put(&key, draft).await?;
    tell(&key, &expect, written, output)
}
