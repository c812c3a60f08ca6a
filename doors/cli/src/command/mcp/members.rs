//! A JSON object whose members stay in their order, and as they were written.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The members of a JSON object.
#[derive(Debug, Default)]
pub struct Members(Vec<(String, String)>);

impl Members {
    /// Reads an object; nothing at all is an empty one.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => Ok(Self::default()),
            text => serde_json::from_str(text).map_err(|error| error.to_string()),
        }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, json)| json.as_str())
    }

    /// Sets a member, which is JSON: in its place, or at the end.
    pub fn set(&mut self, name: &str, json: String) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = json,
            None => self.0.push((name.to_owned(), json)),
        }
    }

    /// One member a line, indented.
    pub fn text(&self, indent: &str) -> String {
        let lines = self.0.iter().map(|(name, json)| {
            format!("{indent}  {}: {json}", serde_json::Value::from(name.as_str()))
        });
        format!("{{\n{}\n{indent}}}", lines.collect::<Vec<_>>().join(",\n"))
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Members, M::Error> {
        let mut members = Members::default();
        while let Some((name, json)) = map.next_entry::<String, Box<RawValue>>()? {
            members.set(&name, json.get().to_owned());
        }
        Ok(members)
    }
}
