use std::io::{self, IsTerminal, Read};
use std::time::Duration;

use clap::Args;
use keyward::{Commit, Expect, Expiry, Json, JsonError, Key, Outcome, Put, Store, Version};
use serde::Serialize;

use super::condition;
use crate::args::Target;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{Output, note};
use crate::ttl;

/// Set a key to a JSON value
///
/// Replaces the value, the metadata and the expiry. Prints the new version of the key.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward put user:7:name '"Ada"'
  keyward put user:7:session '{"token":"x1"}' --ttl 15m
  keyward put user:7:name '"Grace"' --if-version 17
  curl -s https://example.org/rates | keyward put rates - --metadata '{"from":"example.org"}'"#)]
pub struct Arguments {
    /// The key, for example user:7:name
    key: String,
    /// The value, or - to read it from standard input; a text needs quotes of its own: '"Ada"'
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
    let metadata = metadata.map(|text| json("metadata", text)).transpose()?;
    // A value that is no JSON is told before a store is opened, and perhaps created, for it.
    let given = match &*arguments.value {
        "-" => None,
        text => Some(json("value", text)?),
    };
    let store = target.open().await?;
    let value = match given {
        Some(value) => value,
        None => from_stdin(store.limits().value_bytes_max).await?,
    };
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
        (Outcome::Conflicted { .. }, None) => Err(Failure::new(
            Exit::Internal,
            "internal",
            "the store refused a condition that was not made",
        )),
    }
}

async fn from_stdin(bytes_max: usize) -> Result<Json> {
    // White space between tokens is not stored, so the text may be larger than the value.
    let text_max = bytes_max.saturating_mul(4) as u64;
    if io::stdin().is_terminal() {
        note("reading JSON from this terminal (Ctrl-D ends)");
    }
    let read = tokio::task::spawn_blocking(move || {
        let mut text = Vec::new();
        let mut input = io::stdin().lock().take(text_max + 1);
        input.read_to_end(&mut text).map(|_| text)
    });
    let text = match read.await.map_err(io::Error::from).flatten() {
        Ok(text) => text,
        Err(error) => return Err(Failure::file("cannot read standard input", &error)),
    };
    if text.len() as u64 > text_max {
        let message = format!(
            "standard input has more than {text_max} bytes; a value has at most {bytes_max}"
        );
        return Err(Failure::new(Exit::Unable, "limit-exceeded", message));
    }
    Json::parse(text).map_err(|JsonError { message, offset }| {
        Failure::invalid(format!("standard input is not JSON: {message} at byte {offset}"))
    })
}

/// JSON as an argument.
fn json(what: &str, text: &str) -> Result<Json> {
    /// What still fits a line.
    const SHOWN: usize = 60;
    let JsonError { message, offset } = match Json::parse(text.to_owned()) {
        Ok(json) => return Ok(json),
        Err(error) => error,
    };
    let short = text.chars().count() <= SHOWN && !text.contains(char::is_control);
    let shown = if short { text } else { "given" };
    let failure =
        Failure::invalid(format!("the {what} {shown} is not JSON: {message} at byte {offset}"));
    Err(if text.trim().is_empty() {
        failure.hint("Write null for a value that says nothing, '\"\"' for an empty text.")
    } else if short && !text.starts_with(['{', '[', '"']) && what == "value" {
        let quoted = serde_json::to_string(text).unwrap_or_default();
        failure.hint(format!("A text needs quotes of its own: '{quoted}'"))
    } else {
        failure.hint(
            "Put single quotes around JSON, or the shell takes its double quotes away: \
             '{\"name\":\"Ada\"}'",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(what: &str, text: &str) -> String {
        let mut told = Vec::new();
        let failure = json(what, text).unwrap_err();
        failure.tell(&mut told, false).unwrap();
        String::from_utf8(told).unwrap()
    }

    #[test]
    fn a_bare_text_is_told_how_to_quote_itself() {
        let told = told("value", "hello you");
        assert!(told.starts_with("error: the value hello you is not JSON: "), "{told}");
        assert!(
            told.ends_with("hint: A text needs quotes of its own: '\"hello you\"'\n"),
            "{told}"
        );
    }

    #[test]
    fn json_that_lost_its_quotes_is_told_why() {
        for text in ["{name:Ada}", "[a]", "\"open"] {
            assert!(told("value", text).contains("single quotes around JSON"), "{text}");
        }
    }

    #[test]
    fn a_long_text_is_not_repeated() {
        let told = told("value", &"x".repeat(10_000));
        assert!(told.len() < 200, "{told}");
    }
}
