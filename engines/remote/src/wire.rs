//! The contract as JSON. Values and metadata are JSON already, and are passed on as they are.

use std::borrow::Cow;
use std::fmt::Write as _;

use bytes::Bytes;
use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use keyward_engine::{
    Commit, Cursor, Entry, Expect, Expiry, Json, Order, Outcome, Page, Put, Result, Revision, Row,
    Scan, Stats, Version, Want, Write,
};
use keyward_key::{Key, KeyRange};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{Problem, senseless};

/// A text as JSON has it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn listed(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

pub(crate) fn keys(keys: &[Key]) -> String {
    format!(r#"{{"keys":{}}}"#, listed(keys.iter().map(|key| quoted(&key.to_string()))))
}

pub(crate) fn scan(scan: &Scan) -> String {
    let mut text = format!(r#"{{"start":"{}""#, BASE64URL_NOPAD.encode(scan.range.start()));
    let bounds = [("end", scan.range.end()), ("after", scan.after.as_ref().map(Cursor::as_bytes))];
    for (name, bytes) in bounds {
        if let Some(bytes) = bytes {
            text.push_str(&format!(r#","{name}":"{}""#, BASE64URL_NOPAD.encode(bytes)));
        }
    }
    let order = match scan.order {
        Order::Ascending => "ascending",
        Order::Descending => "descending",
    };
    let want = match scan.want {
        Want::Entries => "entries",
        Want::Keys => "keys",
    };
    text.push_str(&format!(r#","limit":{},"order":"{order}","want":"{want}"}}"#, scan.limit));
    text
}

/// A range and a point in history, as parameters.
pub(crate) fn watch(range: &KeyRange, since: Option<Revision>) -> String {
    let mut text = format!("?start={}", BASE64URL_NOPAD.encode(range.start()));
    if let Some(end) = range.end() {
        text.push_str(&format!("&end={}", BASE64URL_NOPAD.encode(end)));
    }
    if let Some(since) = since {
        text.push_str(&format!("&since={since}"));
    }
    text
}

pub(crate) fn commit(commit: &Commit) -> String {
    let checks = commit.checks.iter().map(|check| {
        let version = match &check.expect {
            Expect::Absent => "null".to_owned(),
            Expect::Version(version) => quoted(&version.to_string()),
        };
        format!(r#"{{"key":{},"version":{version}}}"#, quoted(&check.key.to_string()))
    });
    let checks = listed(checks);
    let mut text = String::with_capacity(commit.size() + 128 * commit.writes.len() + checks.len());
    text.push_str(&format!(r#"{{"checks":{checks},"writes":["#));
    for (at, write) in commit.writes.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        let key = quoted(&write.key().to_string());
        match write {
            Write::Put(_, put) => push_put(&mut text, &key, put),
            Write::Delete(_) => text.push_str(&format!(r#"{{"delete":{{"key":{key}}}}}"#)),
            Write::Add(_, amount) => {
                text.push_str(&format!(r#"{{"add":{{"key":{key},"amount":{amount}}}}}"#));
            }
        }
    }
    text.push_str("]}");
    text
}

fn push_put(text: &mut String, key: &str, put: &Put) {
    // Writing to a text cannot fail.
    let _ = write!(text, r#"{{"put":{{"key":{key},"value":"#);
    text.push_str(put.value.as_str());
    if let Some(metadata) = &put.metadata {
        text.push_str(r#","metadata":"#);
        text.push_str(metadata.as_str());
    }
    let _ = match put.expiry {
        None => Ok(()),
        Some(Expiry::At(at)) => write!(text, r#","expiry":{{"at":"{at}"}}"#),
        Some(Expiry::After(ttl)) => write!(
            text,
            r#","expiry":{{"after":{{"seconds":{},"nanoseconds":{}}}}}"#,
            ttl.as_secs(),
            ttl.subsec_nanos()
        ),
    };
    text.push_str("}}");
}

#[derive(Deserialize)]
struct Entries<'b> {
    #[serde(borrow)]
    entries: Vec<Option<Held<'b>>>,
}

#[derive(Deserialize)]
struct Rows<'b> {
    #[serde(borrow)]
    rows: Vec<Held<'b>>,
    next: Option<String>,
}

/// An entry with its key; only its key, if only keys were asked for.
#[derive(Deserialize)]
struct Held<'b> {
    #[serde(borrow)]
    key: Cow<'b, str>,
    #[serde(borrow, default)]
    value: Option<&'b RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'b RawValue>,
    #[serde(borrow, default)]
    version: Option<Cow<'b, str>>,
    #[serde(default)]
    expires: Option<Timestamp>,
}

impl Held<'_> {
    fn key(&self) -> Result<Key> {
        Key::parse(&self.key).map_err(|error| senseless(error.message()))
    }

    fn entry(&self, body: &Bytes) -> Option<Entry> {
        let json = |raw: &RawValue| Json::from_stored(body.slice_ref(raw.get().as_bytes()));
        Some(Entry {
            // A value that is null is one all the same.
            value: self.value.map_or_else(|| Json::from_stored("null"), json),
            metadata: self.metadata.map(json),
            version: Version::parse(self.version.as_deref()?),
            expires: self.expires,
        })
    }
}

/// What so many keys hold.
pub(crate) fn entries(body: &Bytes, count: usize) -> Result<Vec<Option<Entry>>> {
    let Entries { entries } = serde_json::from_slice(body).map_err(senseless)?;
    if entries.len() != count {
        return Err(senseless(format!("{} entries for {count} keys", entries.len())));
    }
    let entry = |held: &Held<'_>| held.entry(body).ok_or_else(|| senseless("no version"));
    entries.iter().map(|held| held.as_ref().map(entry).transpose()).collect()
}

pub(crate) fn page(body: &Bytes, want: Want) -> Result<Page> {
    let Rows { rows, next } = serde_json::from_slice(body).map_err(senseless)?;
    let row = |held: &Held<'_>| {
        let entry = match want {
            Want::Keys => None,
            Want::Entries => Some(held.entry(body).ok_or_else(|| senseless("no version"))?),
        };
        Ok(Row { key: held.key()?, entry })
    };
    let next = next.map(|text| BASE64URL_NOPAD.decode(text.as_bytes()).map_err(senseless));
    Ok(Page {
        rows: rows.iter().map(row).collect::<Result<_>>()?,
        next: next.transpose()?.map(Cursor::new),
    })
}

#[derive(Deserialize)]
struct Applied {
    revision: Option<u64>,
    versions: Vec<Option<String>>,
}

pub(crate) fn applied(body: &Bytes) -> Result<Outcome> {
    let Applied { revision, versions } = serde_json::from_slice(body).map_err(senseless)?;
    let versions = versions.iter().map(|it| it.as_deref().map(Version::parse));
    Ok(Outcome::Applied { revision: revision.map(Revision), versions: versions.collect() })
}

pub(crate) fn conflicted(problem: &Problem) -> Outcome {
    Outcome::Conflicted { failed: problem.failed.iter().map(|failed| failed.check).collect() }
}

#[derive(Deserialize)]
struct Size {
    entries: u64,
    bytes: Option<u64>,
    revision: Option<u64>,
    earliest_revision: Option<u64>,
}

pub(crate) fn stats(body: &Bytes) -> Result<Stats> {
    let size: Size = serde_json::from_slice(body).map_err(senseless)?;
    Ok(Stats {
        entries: size.entries,
        bytes: size.bytes,
        revision: size.revision.map(Revision),
        earliest_revision: size.earliest_revision.map(Revision),
    })
}
