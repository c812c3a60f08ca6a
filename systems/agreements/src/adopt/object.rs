use std::collections::BTreeMap;

use keyward_engine::Json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Where it is kept what a member said before it was converted.
const BEFORE: &str = "adopted";

/// The members of an object, each as it is written.
#[derive(Debug)]
pub(super) struct Object {
    members: BTreeMap<String, Box<RawValue>>,
    before: BTreeMap<String, Box<RawValue>>,
}

impl Object {
    /// `None` for what is no object.
    pub fn read(text: &str) -> Option<Self> {
        let members = serde_json::from_str(text).ok()?;
        Some(Self { members, before: BTreeMap::new() })
    }

    /// A member as it is written, unless it is missing or null.
    pub fn raw(&self, name: &str) -> Option<&RawValue> {
        self.members.get(name).map(|raw| &**raw).filter(|raw| raw.get() != "null")
    }

    /// A member, if it is there and such a value.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.raw(name).and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    /// Whether there is a member, also a null.
    pub fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// Sets a member. What it said before is kept, if it said something else.
    pub fn set(&mut self, name: &str, value: &impl Serialize) -> Result<(), String> {
        let new = raw(value)?;
        if let Some(old) = self.members.insert(name.to_owned(), new.clone())
            && old.get() != new.get()
        {
            self.before.entry(name.to_owned()).or_insert(old);
        }
        Ok(())
    }

    /// Takes a member away, and keeps what it said.
    pub fn retire(&mut self, name: &str) {
        if let Some(old) = self.members.remove(name) {
            self.before.entry(name.to_owned()).or_insert(old);
        }
    }

    /// The object, with what was converted beside it.
    pub fn write(mut self) -> Result<Json, String> {
        if !self.before.is_empty() {
            let before = raw(&self.before)?;
            self.members.insert(BEFORE.to_owned(), before);
        }
        Json::from_value(&self.members).map_err(|error| error.to_string())
    }
}

fn raw(value: &impl Serialize) -> Result<Box<RawValue>, String> {
    serde_json::value::to_raw_value(value).map_err(|error| error.to_string())
}
