use std::time::Duration;

use clap::Args;
use keyward::{Code, Commit, Expect, Expiry, Key, Outcome, Put, Store, Version};
use serde::Serialize;

use super::condition;
use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::guard::Guard;
use crate::input::{self, Input};
use crate::output::Output;
use crate::ttl;

/// Set a key to a JSON value
///
/// Replaces the value, the metadata and the expiry. Prints the new version of the key. Records of a
/// schema, agents' entries and Keyward's own keys are refused: keyward record put and keyward agent set
/// write those.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward put user:7:name '"Ada"'
  keyward put user:7:session '{"token":"x1"}' --ttl 15m
  keyward put user:7:name '"Grace"' --if-version 17
  curl -s https://example.org/rates | keyward put rates - --metadata '{"from":"example.org"}'"#)]
pub struct Arguments {
    /// The key, for example user:7:name
    key: String,
    /// The value, or @FILE to read it from a file, or - from standard input; a text needs quotes of
    /// its own: '"Ada"'
    #[arg(value_name = "JSON", allow_negative_numbers = true)]
    value: String,
    /// Let the entry expire after this time: 90s, 15m, 2h, 7d, 1h30m
    #[arg(long, value_parser = ttl::parse)]
    ttl: Option<Duration>,
    /// What to say about the value, as a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Only if the key is at this version
    #[arg(long, value_name = "VERSION", conflicts_with = "if_absent")]
    if_version: Option<String>,
    /// Only if the key is not there
    #[arg(long)]
    if_absent: bool,
    /// For repair: write any key, past schemas, indexes, locks and Keyward's own keys
    #[arg(long)]
    raw: bool,
}

#[derive(Serialize)]
struct Done {
    key: String,
    version: Option<String>,
    revision: Option<u64>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let key = super::key(&arguments.key)?;
    let metadata = arguments.metadata.as_deref();
    let metadata = metadata.map(|text| input::json("metadata", text)).transpose()?;
    // A value that is no JSON is told before a store is opened, and perhaps created, for it.
    let input = Input::new(&arguments.value)?;
    let mut guard = Guard::new(target, arguments.raw).await?;
    guard.admit(&key)?;
    let store = guard.over(target.open().await?).await?;
    let value = input.json(store.limits().value_bytes_max).await?;
    let put = Put { value, metadata, expiry: arguments.ttl.map(Expiry::After) };
    let expected = match (arguments.if_version, arguments.if_absent) {
        (Some(version), _) => Some(Expect::Version(Version::parse(&version))),
        (None, true) => Some(Expect::Absent),
        (None, false) => None,
    };
    let done = commit(&store, key, put, expected).await?;
    match &done.version {
        _ if output.json() => output.write_json(&done),
        Some(version) => writeln!(output, "{}  version {version}", done.key),
        None => writeln!(output, "{}", done.key),
    }
}

async fn commit(store: &Store, key: Key, put: Put, expected: Option<Expect>) -> Result<Done> {
    let mut commit = Commit::new().put(key.clone(), put);
    if let Some(expected) = &expected {
        commit = commit.check(key.clone(), expected.clone());
    }
    match (store.commit(commit).await?, expected) {
        (Outcome::Applied { revision, versions }, _) => Ok(Done {
            key: key.to_string(),
            version: versions.into_iter().flatten().next().map(|v| v.to_string()),
            revision: revision.map(|revision| revision.0),
        }),
        (Outcome::Conflicted { .. }, Some(expected)) => {
            Err(condition::refusal(store, &key, &expected).await?)
        }
        (Outcome::Conflicted { .. }, None) => {
            Err(Failure::new(Code::Internal, "the store refused a condition that was not made"))
        }
    }
}
