use clap::{Args, ValueEnum};
use keyward::records::{Arrays, Merge, Space};
use keyward::schema::FieldPath;

use super::address::AddressAndValue;
use super::reach::Reach;
use super::written::{accepted, if_match, tell};
use crate::failure::Result;
use crate::output::Output;

/// Merge a part into a record
///
/// Objects are merged, null removes a field, everything else replaces what was there (JSON Merge
/// Patch, RFC 7396). The record's metadata and expiry stay. A record that is not there is made.
#[derive(Debug, Args)]
#[command(
    override_usage = "keyward record merge [OPTIONS] <SPACE> [VAR=VALUE]... <JSON>",
    after_help = r#"Examples:
  keyward record merge notes note=n1 '{"status":"done"}' --as ada
  keyward record merge posts post=p1 '{"tags":["rust"]}' --arrays union --as ada
  keyward record merge users user=ada '{"name":"Ada L.","email":"x"}' --preserve email"#
)]
pub struct Arguments {
    #[command(flatten)]
    target: AddressAndValue,
    /// What becomes of an array that meets an array
    #[arg(long, value_enum, value_name = "RULE", default_value = "replace")]
    arrays: ArrayRule,
    /// Leave this field as it is if it is there; may be repeated
    #[arg(long, value_name = "FIELD")]
    preserve: Vec<FieldPath>,
    /// Only if the record is at this version
    #[arg(long, value_name = "VERSION")]
    if_match: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ArrayRule {
    /// The new one takes the place of the old one
    Replace,
    /// The new elements follow the old ones
    Append,
    /// The new elements that are not there yet follow the old ones
    Union,
}

pub async fn run(arguments: Arguments, reach: &Reach, output: &mut Output) -> Result {
    let (address, input) = arguments.target.split()?;
    let values = address.bindings(reach)?;
    let merge = Merge {
        patch: input.json(reach.value_bytes_max(&address.space).await?).await?,
        arrays: match arguments.arrays {
            ArrayRule::Replace => Arrays::Replace,
            ArrayRule::Append => Arrays::Append,
            ArrayRule::Union => Arrays::Union,
        },
        preserve: arguments.preserve,
    };
    let expect = if_match(arguments.if_match.as_deref());
    let attempt = async |space: &Space| {
        let key = space.key(values.clone())?;
        let written = space.merge(&key, merge.clone(), expect.clone()).await?;
        accepted(&key, &expect, &written)
    };
    let space = reach.to_write(&address.space, attempt).await?;
    let key = space.key(values)?;
    let written = space.merge(&key, merge, expect.clone()).await?;
    tell(&key, &expect, written, output)
}
