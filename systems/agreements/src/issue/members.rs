use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// Members of an issue that are not known here, each as it is written, digit for digit. They survive
/// every change.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub struct Members(BTreeMap<String, Box<RawValue>>);

impl Members {
    /// A member as it is written.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|raw| raw.get())
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Takes out a member that must be there.
    pub(super) fn take<T: DeserializeOwned, E: Error>(
        &mut self,
        name: &'static str,
    ) -> Result<T, E> {
        self.take_if(name)?.ok_or_else(|| E::missing_field(name))
    }

    /// Takes out a member that need not be there.
    pub(super) fn take_if<T: DeserializeOwned, E: Error>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, E> {
        let Some(raw) = self.0.remove(name) else { return Ok(None) };
        let read = serde_json::from_str(raw.get());
        read.map(Some).map_err(|error| E::custom(format!("the member {name}: {error}")))
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self)
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        let pairs = |members: &Self| -> Vec<(String, String)> {
            members.0.iter().map(|(name, raw)| (name.clone(), raw.get().to_owned())).collect()
        };
        pairs(self) == pairs(other)
    }
}

impl Eq for Members {}
