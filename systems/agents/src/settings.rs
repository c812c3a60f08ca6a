//! What holds for a namespace.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Json, Put};
use keyward_key::Key;
use serde::{Deserialize, Serialize};

use crate::error::damaged;
use crate::namespace::Namespace;
use crate::{Error, Result, places};

/// How old what is remembered of settings may be.
const AGE_MAX: Duration = Duration::from_secs(5);
/// How many namespaces' settings are remembered.
const REMEMBERED_MAX: usize = 10_000;

/// The key of an entry, where it matters only that it is one of the namespace.
const ANY_KEY: &str = "k";

/// What holds for the entries of a namespace when a set says nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// How long entries live.
    #[serde(rename = "ttl_ms", with = "milliseconds", skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Duration>,
    /// Whether reading an entry past half of its life makes its life begin anew.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sliding: bool,
    /// Whether `ttl_seconds` in an entry's metadata says how long it lives.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub honour_ttl_seconds: bool,
}

mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[allow(clippy::ref_option, reason = "as serde calls it")]
    pub fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let time = time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        time.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(Duration::from_millis))
    }
}

/// What writers go by: the settings of a namespace, and whose layout its store has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rules {
    pub settings: Settings,
    /// Whether the store is a database in another program's layout. Then times are written in whole seconds where
    /// they can be, as that program writes them.
    pub in_place: bool,
}

impl Rules {
    fn read(json: &Json) -> Option<Self> {
        #[derive(Deserialize)]
        struct OfStore {
            #[serde(default)]
            in_place: bool,
        }
        let settings = serde_json::from_slice(json.as_bytes()).ok()?;
        let OfStore { in_place } = serde_json::from_slice(json.as_bytes()).ok()?;
        Some(Self { settings, in_place })
    }
}

/// Rules that were read lately.
#[derive(Debug, Default)]
pub(crate) struct SettingsCache {
    known: Mutex<HashMap<Key, (Rules, Timestamp)>>,
}

impl SettingsCache {
    fn get(&self, place: &Key, now: Timestamp) -> Option<Rules> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (rules, read) = known.get(place)?;
        let age = now.duration_since(*read);
        (!age.is_negative() && age.unsigned_abs() < AGE_MAX).then_some(*rules)
    }

    fn put(&self, place: Key, rules: Rules, now: Timestamp) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(place, (rules, now));
    }
}

impl Namespace {
    /// What holds for the namespace, read now. Who may not read its entries may not read this.
    pub async fn settings(&self) -> Result<Settings> {
        self.space.range(self.values())?;
        Ok(self.read_rules().await?.settings)
    }

    async fn read_rules(&self) -> Result<Rules> {
        let place = places::settings(&self.user, &self.namespace)?;
        let now = self.shared().clock.now();
        let rules = match self.shared().store().get(&place).await? {
            Some(entry) => Rules::read(&entry.value)
                .ok_or_else(|| damaged(format!("{place} holds no settings")))?,
            None => Rules::default(),
        };
        self.shared().settings.put(place, rules, now);
        Ok(rules)
    }

    /// Changes what holds for the namespace. Entries that are there keep their ends until they are set
    /// again; other processes go by it within five seconds. Who may not write its entries may not change
    /// this.
    pub async fn configure(&self, settings: Settings) -> Result<()> {
        self.space.admit_write(&self.place(ANY_KEY)?)?;
        if settings.ttl.is_some_and(|ttl| ttl.is_zero()) {
            let message = "a time to live of zero would never be seen; leave it out for none";
            return Err(Error::Invalid(message.to_owned()));
        }
        if settings.sliding && settings.ttl.is_none() && !settings.honour_ttl_seconds {
            let message = "only entries that end can live on by being read: give a ttl, or honour \
                           ttl_seconds";
            return Err(Error::Invalid(message.to_owned()));
        }
        let place = places::settings(&self.user, &self.namespace)?;
        let store = self.shared().store();
        if settings == Settings::default() {
            store.delete(place.clone()).await?;
        } else {
            let json = Json::from_value(&settings).map_err(|error| damaged(error.to_string()))?;
            store.put(place.clone(), Put::new(json)).await?;
        }
        let now = self.shared().clock.now();
        self.shared().settings.put(place, Rules { settings, ..Rules::default() }, now);
        Ok(())
    }

    /// What holds for the namespace, as it was at most five seconds ago.
    pub(crate) async fn known_rules(&self) -> Result<Rules> {
        let place = places::settings(&self.user, &self.namespace)?;
        match self.shared().settings.get(&place, self.shared().clock.now()) {
            Some(rules) => Ok(rules),
            None => self.read_rules().await,
        }
    }
}
