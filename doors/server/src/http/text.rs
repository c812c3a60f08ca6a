//! JSON made of parts that are JSON already, which are passed on as they are.

use keyward::records::field::push_quoted;
pub(crate) use keyward::records::field::quoted;
use keyward::records::{Read, Record};
use keyward::{Code, Entry, Json, Key, moment_text};
use serde::Serialize;

use crate::problem::{Problem, Result};

/// A JSON object in the making.
#[derive(Debug)]
pub(crate) struct Object(String);

impl Object {
    pub fn new() -> Self {
        Self("{".to_owned())
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        push_quoted(&mut self.0, name);
        self.0.push(':');
    }

    /// One more member, which is JSON.
    #[must_use]
    pub fn raw(mut self, name: &str, json: &str) -> Self {
        self.name(name);
        self.0.push_str(json);
        self
    }

    /// One more member, which is JSON, if it is there.
    #[must_use]
    pub fn json(self, name: &str, json: Option<&Json>) -> Self {
        match json {
            Some(json) => self.raw(name, json.as_str()),
            None => self,
        }
    }

    /// One more member, which is a text.
    #[must_use]
    pub fn text(mut self, name: &str, text: &str) -> Self {
        self.name(name);
        push_quoted(&mut self.0, text);
        self
    }

    /// One more member, which is a text, or null.
    #[must_use]
    pub fn optional(self, name: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(name, text),
            None => self.raw(name, "null"),
        }
    }

    /// One more member, which is a list of JSON.
    #[must_use]
    pub fn list(mut self, name: &str, items: impl IntoIterator<Item = String>) -> Self {
        self.name(name);
        self.0.push('[');
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self.0.push(',');
            }
            self.0.push_str(&item);
        }
        self.0.push(']');
        self
    }

    pub fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Something as JSON.
pub(crate) fn told(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Problem::new(Code::Internal, error.to_string()))
}

/// An entry with its key, as JSON.
pub(crate) fn entry(key: &Key, entry: &Entry) -> String {
    let object = Object::new()
        .text("key", &key.to_string())
        .raw("value", entry.value.as_str())
        .json("metadata", entry.metadata.as_ref())
        .text("version", &entry.version.to_string());
    match entry.expires {
        Some(expires) => object.text("expires", &moment_text(expires)),
        None => object,
    }
    .finish()
}

/// A record with its key, in the making.
pub(crate) fn record(record: &Record) -> Object {
    let object = Object::new()
        .text("key", &record.key.to_string())
        .raw("value", record.value.as_str())
        .json("metadata", record.metadata.as_ref())
        .text("version", &record.version.to_string());
    match record.expires {
        Some(expires) => object.text("expires", &moment_text(expires)),
        None => object,
    }
}

/// What answering cost.
pub(crate) fn read(read: &Read) -> String {
    let Read { entries, records, dropped } = read;
    format!(r#"{{"entries":{entries},"records":{records},"dropped":{dropped}}}"#)
}
