use clap::Args;
use keyward::cache::{Cached, Origin, Source};
use keyward::{Code, Key, moment_text};
use serde::Serialize;
use serde_json::value::RawValue;

use super::source::SourceArguments;
use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Print what is cached, and never compute
///
/// If nothing is cached, or what is cached is stale for the source that was named, prints nothing and
/// exits with 1. --json also tells what the value was made of, and when.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward cache get page7:text
  keyward cache get page7:text --source-version sha-1 --json"#)]
pub struct Arguments {
    /// The key, for example page7:text
    key: String,
    #[command(flatten)]
    source: SourceArguments,
}

/// A cached value, as others script against it.
#[derive(Serialize)]
struct Shown<'c> {
    key: String,
    value: &'c RawValue,
    created: String,
    source: &'c Source,
    expires: Option<String>,
    origin: &'static str,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let key = crate::command::key(&arguments.key)?;
    let cache = super::cache(target.open_existing().await?)?;
    let Some(cached) = cache.get(&key, &arguments.source.source()).await? else {
        let message = match cache.show(&key).await? {
            Some(_) => format!("what is cached at {key} is stale"),
            None => format!("nothing is cached at {key}"),
        };
        return Err(Failure::new(Code::NotFound, message));
    };
    if output.json() { print(&key, &cached, output) } else { writeln!(output, "{}", cached.value) }
}

pub fn print(key: &Key, cached: &Cached, output: &mut Output) -> Result {
    let value: &RawValue = serde_json::from_slice(cached.value.as_bytes())
        .map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
    output.write_json(&Shown {
        key: key.to_string(),
        value,
        created: moment_text(cached.created),
        source: &cached.source,
        expires: cached.expires.map(moment_text),
        origin: match cached.origin {
            Origin::Stored => "stored",
            Origin::Computed => "computed",
            Origin::Shared => "shared",
            Origin::Stale => "stale",
        },
    })
}
