//! A store in a custom entity: one entity for each key, whose attribute `version` is what transactions compare.
//!
//! Only what is documented is relied on: a condition on an attribute is met by an entity that has it, and a key is
//! created once by the policy `FAIL_IF_EXISTS`.

use std::collections::HashMap;

use futures_util::future::try_join_all;
use jiff::Timestamp;
use keyward_engine::{
    Commit, Entry, Error, ErrorKind, Expect, Json, Outcome, Put, Result, Version, Write,
};
use keyward_key::Key;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::client::{Sent, unclear};
use crate::engine::{lifetime, unwritable};
use crate::error::refused;
use crate::value::Room;
use crate::wire::{
    Condition, Conditions, Delete, OPERATIONS_MAX, Row, Set, SetOptions, Transaction, Ttl,
};
use crate::{ForgeKvs, name, value};

/// The end of an entity that has none. Every moment is before it, and JavaScript holds it.
const NEVER: i64 = 9_000_000_000_000_000;
const CREATE: &str = "FAIL_IF_EXISTS";
/// How many entities are read at once.
const READS_AT_ONCE: usize = 25;

/// The attributes of an entity.
#[derive(Debug, Serialize, Deserialize)]
struct Attributes {
    version: String,
    /// In milliseconds, or [`NEVER`]: a condition compares it with the time of a commit.
    expires: i64,
    value: Box<RawValue>,
    /// As a text: it comes back byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<String>,
}

/// Which entity a swap replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// One that must not have expired when Forge gets the request.
    Alive,
    /// One that has expired, and that Forge has not deleted yet.
    Expired,
}

/// What is to become of an entity.
struct Change {
    attributes: Option<Box<RawValue>>,
    version: Option<Version>,
    ttl: Option<Ttl>,
}

impl ForgeKvs {
    /// Entities of some keys as they are now: each by a request of its own, since Forge promises that only of reads of
    /// one entity. Those that have expired are among them.
    pub(crate) async fn read_entities<'k>(
        &self,
        entity: &str,
        keys: Vec<&'k Key>,
    ) -> Result<HashMap<&'k Key, Entry>> {
        let mut entries = HashMap::with_capacity(keys.len());
        for some in keys.chunks(READS_AT_ONCE) {
            let names: Vec<String> = some.iter().map(|key| name::name(key)).collect();
            let reads = names.iter().map(|name| self.latest(entity, name));
            let found = some.iter().copied().zip(try_join_all(reads).await?);
            entries.extend(found.filter_map(|(key, entry)| Some((key, entry?))));
        }
        Ok(entries)
    }

    /// Entities of keys that were listed, in batches. Batches may be as late as the listing was.
    pub(crate) async fn read_listed_entities<'k>(
        &self,
        entity: &str,
        keys: Vec<&'k Key>,
    ) -> Result<HashMap<&'k Key, Entry>> {
        let batches = keys.chunks(OPERATIONS_MAX).map(|some| async move {
            let names: Vec<String> = some.iter().map(|key| name::name(key)).collect();
            let asked: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut rows = self.client.rows(&asked, Some(entity)).await?;
            let found = some.iter().zip(&names).filter_map(|(key, name)| {
                let row = rows.remove(name)?;
                Some(read(name, &row).map(|entry| (*key, entry)))
            });
            found.collect::<Result<Vec<_>>>()
        });
        Ok(try_join_all(batches).await?.into_iter().flatten().collect())
    }

    /// A commit of one key.
    pub(crate) async fn write_entity(
        &self,
        entity: &str,
        commit: Commit,
        unique: String,
        now: Timestamp,
    ) -> Result<Outcome> {
        let expect = commit.checks.first().map(|check| &check.expect);
        let Some(write) = commit.writes.first() else {
            let Some(check) = commit.checks.first() else { return Ok(applied(Vec::new())) };
            let current = self.current(entity, &check.key).await?;
            return Ok(if is_met(&check.expect, &current) {
                applied(Vec::new())
            } else {
                conflicted()
            });
        };
        let key = write.key();
        let change = change(write, unique, now)?;
        let wanted = vec![change.version.clone()];
        match expect {
            None => {
                self.overwrite(entity, key, &change).await?;
                Ok(applied(wanted))
            }
            Some(Expect::Version(version)) => {
                self.swap(entity, key, &version.to_string(), Standing::Alive, &change).await
            }
            Some(Expect::Absent) if change.attributes.is_none() => {
                // Nothing is to be there, and nothing is.
                let is_absent = self.current(entity, key).await?.is_none();
                Ok(if is_absent { applied(wanted) } else { conflicted() })
            }
            Some(Expect::Absent) => self.create(entity, key, &change).await,
        }
    }

    /// The entry of a name as it is now, also if it has expired.
    async fn latest(&self, entity: &str, name: &str) -> Result<Option<Entry>> {
        let row = self.client.entity(name, entity).await?;
        row.map(|row| read(name, &row)).transpose()
    }

    /// The entry of a key as it is now.
    async fn current(&self, entity: &str, key: &Key) -> Result<Option<Entry>> {
        let entry = self.latest(entity, &name::name(key)).await?;
        Ok(entry.filter(|entry| !entry.is_expired(self.clock.now())))
    }

    async fn overwrite(&self, entity: &str, key: &Key, change: &Change) -> Result<()> {
        let name = name::name(key);
        let mut transaction = Transaction::default();
        match &change.attributes {
            Some(_) => transaction.set.push(set(entity, &name, change, None)),
            None => transaction.delete.push(delete(entity, &name, None)),
        }
        self.client.transact(&transaction).await
    }

    /// Writes an entity that is not there.
    async fn create(&self, entity: &str, key: &Key, change: &Change) -> Result<Outcome> {
        let name = name::name(key);
        let mut request = set(entity, &name, change, None);
        request.options.key_policy = Some(CREATE);
        let mut pauses = self.client.pauses();
        let mut resent = false;
        loop {
            let sent = self.client.write("entity/set", &request).await;
            let sent = sent.map_err(|error| if resent { unclear(error) } else { error })?;
            resent |= sent.resent;
            let Some((status, refusal)) = sent.refusal else {
                return Ok(applied(vec![change.version.clone()]));
            };
            if refusal.code != "KEY_CONFLICT" {
                if refusal.is_temporary() && pauses.pause().await {
                    continue;
                }
                let error = refused(status, &refusal);
                return Err(if resent { unclear(error) } else { error });
            }
            let there = self.latest(entity, &name).await;
            let there = there.map_err(|error| if resent { unclear(error) } else { error })?;
            let Some(there) = there else {
                // It was deleted meanwhile.
                if pauses.pause().await {
                    continue;
                }
                let message = format!("{key} came and went again and again");
                let error = Error::new(ErrorKind::Unavailable, message);
                return Err(if resent { unclear(error) } else { error });
            };
            if Some(&there.version) == change.version.as_ref() {
                return Ok(applied(vec![change.version.clone()]));
            }
            if resent {
                // An attempt may have been carried out, and overwritten since.
                return Err(unknown(key));
            }
            if !there.is_expired(self.clock.now()) {
                return Ok(conflicted());
            }
            // Forge has not deleted it yet.
            let version = there.version.to_string();
            return self.swap(entity, key, &version, Standing::Expired, change).await;
        }
    }

    /// Writes or deletes an entity that has this version.
    ///
    /// Each attempt is judged by the time at which it is sent: the entity may expire while Forge throttles, or while
    /// an answer is awaited.
    async fn swap(
        &self,
        entity: &str,
        key: &Key,
        version: &str,
        standing: Standing,
        change: &Change,
    ) -> Result<Outcome> {
        let name = name::name(key);
        let mut pauses = self.client.pauses();
        // Whether an attempt may have been carried out whose answer was lost.
        let mut resent = false;
        loop {
            let mut and = vec![condition("version", "EQUAL_TO", version.into())];
            if standing == Standing::Alive {
                let now = self.clock.now().as_millisecond();
                and.push(condition("expires", "GREATER_THAN", now.into()));
            }
            let conditions = Some(Conditions { and });
            let mut transaction = Transaction::default();
            match &change.attributes {
                Some(_) => transaction.set.push(set(entity, &name, change, conditions)),
                None => transaction.delete.push(delete(entity, &name, conditions)),
            }
            let (status, refusal) = match self.client.write_once("transaction", &transaction).await
            {
                Ok(Sent { refusal: Some(refusal), resent: again }) => {
                    resent |= again;
                    refusal
                }
                Ok(Sent { refusal: None, .. }) => {
                    return Ok(applied(vec![change.version.clone()]));
                }
                Err(error) => {
                    resent |= error.kind() == ErrorKind::OutcomeUnknown;
                    let is_passing =
                        matches!(error.kind(), ErrorKind::OutcomeUnknown | ErrorKind::Unavailable);
                    if is_passing && pauses.pause().await {
                        continue;
                    }
                    return Err(if resent { unclear(error) } else { error });
                }
            };
            if refusal.code == "CONDITIONAL_CHECK_FAILED" {
                let there = self.latest(entity, &name).await;
                let there = there.map_err(|error| if resent { unclear(error) } else { error })?;
                let is_ours = change.version.is_some()
                    && there.as_ref().map(|entry| &entry.version) == change.version.as_ref();
                if is_ours {
                    return Ok(applied(vec![change.version.clone()]));
                }
                let now = self.clock.now();
                let is_met = there.is_some_and(|entry| {
                    entry.version.to_string() == version
                        && (standing == Standing::Expired || !entry.is_expired(now))
                });
                if !is_met {
                    // An attempt may have been carried out, and overwritten since.
                    return if resent { Err(unknown(key)) } else { Ok(conflicted()) };
                }
                // It met another transaction that was not carried out.
            }
            if !refusal.is_temporary() || !pauses.pause().await {
                let error = refused(status, &refusal);
                return Err(if resent { unclear(error) } else { error });
            }
        }
    }
}

fn read(name: &str, row: &Row) -> Result<Entry> {
    let corrupt = |what: &str| {
        let message = format!("the entity {name} is not one that Keyward writes: {what}");
        Error::new(ErrorKind::Corrupt, message)
    };
    let attributes: Attributes = serde_json::from_str(row.value.get())
        .map_err(|error| corrupt("its attributes are others").caused_by(error))?;
    let expires = match attributes.expires {
        NEVER => None,
        late if late >= Timestamp::MAX.as_millisecond() => Some(Timestamp::MAX),
        end => Some(Timestamp::from_millisecond(end).map_err(|_| corrupt("its end is no time"))?),
    };
    Ok(Entry {
        value: value::read(attributes.value.get()),
        metadata: attributes.metadata.map(Json::from_stored),
        version: Version::parse(&attributes.version),
        expires,
    })
}

fn change(write: &Write, unique: String, now: Timestamp) -> Result<Change> {
    let put: &Put = match write {
        Write::Put(_, put) => put,
        Write::Delete(_) => return Ok(Change { attributes: None, version: None, ttl: None }),
        Write::Add(key, _) => {
            let message = format!("the forge-kvs engine cannot add to the number of {key}");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    };
    let version = Some(Version::parse(&unique));
    let expires = put.expiry.map(|expiry| expiry.moment(now));
    if expires.is_some_and(|end| end <= now) {
        return Ok(Change { attributes: None, version, ttl: None });
    }
    let stored = value::stored(&put.value, Room::ATTRIBUTE)?;
    let attributes = Attributes {
        version: unique,
        expires: expires.map_or(NEVER, Timestamp::as_millisecond),
        value: RawValue::from_string(stored).map_err(unwritable)?,
        metadata: put.metadata.as_ref().map(ToString::to_string),
    };
    let attributes = Some(to_raw_value(&attributes).map_err(unwritable)?);
    Ok(Change { attributes, version, ttl: expires.and_then(|end| lifetime(end, now)) })
}

fn set<'a>(
    entity: &'a str,
    key: &'a str,
    change: &Change,
    conditions: Option<Conditions>,
) -> Set<'a> {
    let value = change.attributes.clone().unwrap_or_else(|| RawValue::NULL.to_owned());
    let options = SetOptions { ttl: change.ttl, key_policy: None };
    Set { key, entity_name: Some(entity), value, conditions, options }
}

fn delete<'a>(entity: &'a str, key: &'a str, conditions: Option<Conditions>) -> Delete<'a> {
    Delete { key, entity_name: Some(entity), conditions }
}

fn condition(
    property: &'static str,
    condition: &'static str,
    value: serde_json::Value,
) -> Condition {
    Condition { property, condition, values: [value] }
}

fn is_met(expect: &Expect, current: &Option<Entry>) -> bool {
    match expect {
        Expect::Absent => current.is_none(),
        Expect::Version(version) => current.as_ref().is_some_and(|entry| entry.version == *version),
    }
}

fn applied(versions: Vec<Option<Version>>) -> Outcome {
    Outcome::Applied { revision: None, versions }
}

fn conflicted() -> Outcome {
    Outcome::Conflicted { failed: vec![0] }
}

fn unknown(key: &Key) -> Error {
    let message = format!("an answer of Forge was lost, and {key} was written again since");
    Error::new(ErrorKind::OutcomeUnknown, message)
}
