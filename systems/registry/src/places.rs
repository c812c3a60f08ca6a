//! Which key holds what.

use keyward_key::{Key, KeyRange, Prefix};
use keyward_queue::Places as QueuePlaces;

use crate::{Error, Result};

/// The keys of one registry. Those of the document stand below the registry's prefix, if it has one.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    policies: Key,
    pub last_run: Key,
    pub last_commit: Key,
    queue: Key,
    dead_letters: Key,
    control: Key,
    /// Which registry keeps its policies here.
    pub occupied: Key,
}

impl Places {
    pub fn new(registry: &str, prefix: Option<&str>) -> Result<Self> {
        let root = match prefix {
            Some(prefix) => Prefix::from_segments([prefix]),
            None => Prefix::all(),
        };
        let key = |segments: &[&str]| {
            Key::from_segments(segments)
                .map(|key| root.join(&key))
                .map_err(|error| Error::Invalid(error.to_string()))
        };
        let own = |segments: &[&str]| {
            Key::from_segments(segments).map_err(|error| Error::Invalid(error.to_string()))
        };
        Ok(Self {
            policies: key(&["policy"])?,
            last_run: key(&["metadata", "sync", "lastRun"])?,
            last_commit: key(&["metadata", "sync", "lastCommit"])?,
            queue: key(&["queue"])?,
            dead_letters: key(&["dead-letter"])?,
            control: own(&["system", "registry", registry])?,
            occupied: own(&["system", "registry-of", prefix.unwrap_or_default()])?,
        })
    }

    /// A policy's entry.
    pub fn policy(&self, name: &str) -> Key {
        self.policies.child(name)
    }

    /// All entries of policies.
    pub fn policies(&self) -> KeyRange {
        KeyRange::under(&Prefix::from(&self.policies))
    }

    /// The name in the key of an entry; `None` for what lies deeper.
    pub fn name_of(&self, key: &Key) -> Option<String> {
        let mut rest = key.segments().past(self.policies.depth());
        let name = rest.next()?.into_owned();
        rest.next().is_none().then_some(name)
    }

    /// What another program calls the policy of a key that lies deeper: the rest of it, with colons.
    pub fn foreign_name_of(&self, key: &Key) -> String {
        let rest: Vec<_> = key.segments().past(self.policies.depth()).collect();
        rest.join(":")
    }

    /// All messages by the names of their policies.
    pub fn messages(&self) -> KeyRange {
        KeyRange::under(&Prefix::from(&self.queue))
    }

    /// The name in the key of a message; `None` for what lies deeper.
    pub fn name_of_message(&self, key: &Key) -> Option<String> {
        let mut rest = key.segments().past(self.queue.depth());
        let name = rest.next()?.into_owned();
        rest.next().is_none().then_some(name)
    }

    pub fn queue(&self) -> QueuePlaces {
        let control = self.control.child("queue");
        QueuePlaces::new(self.queue.clone(), self.dead_letters.clone(), &control).spread()
    }

    /// The root of the lock that a run holds.
    pub fn lock(&self) -> Key {
        self.control.child("lock")
    }

    /// What the last sync left.
    pub fn state(&self) -> Key {
        self.control.child("state")
    }

    /// The last scheduled moment that was begun.
    pub fn schedule(&self) -> Key {
        self.control.child("schedule")
    }

    /// What a run did.
    pub fn run(&self, id: &str) -> Option<Key> {
        let (time, rest) = id.split_once('-')?;
        let is_time = time.len() == TIME_DIGITS && time.bytes().all(|byte| byte.is_ascii_digit());
        (is_time && !rest.is_empty()).then(|| self.control.child("run").child(time).child(rest))
    }

    /// What all runs did.
    pub fn runs(&self) -> KeyRange {
        KeyRange::under(&Prefix::from(&self.control.child("run")))
    }

    /// What a consumer has last accepted of a policy.
    pub fn done(&self, consumer: &str, policy: &str) -> Key {
        self.control.child("done").child(consumer).child(policy)
    }

    /// What a consumer has last accepted of all policies.
    pub fn done_by(&self, consumer: &str) -> KeyRange {
        KeyRange::under(&Prefix::from(&self.control.child("done").child(consumer)))
    }

    /// After which run an export was last put right.
    pub fn repaired(&self, consumer: &str) -> Key {
        self.control.child("repaired").child(consumer)
    }
}

const TIME_DIGITS: usize = 15;

/// The id of a run: its time, so that later ones are larger, and a number that nobody else chose.
pub(crate) fn run_id(millis: i64, number: u64) -> String {
    format!("{:015}-{number:016x}", millis.max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_document_below_a_prefix() {
        let places = Places::new("policies", None).unwrap();
        assert_eq!(places.policy("학칙").to_string(), "policy:학칙");
        assert_eq!(places.last_run.to_string(), "metadata:sync:lastRun");
        assert_eq!(places.state().to_string(), "system:registry:policies:state");
        let run = places.run("000001767225600-0f").unwrap();
        assert_eq!(run.to_string(), "system:registry:policies:run:000001767225600:0f");
        assert_eq!(places.run("x"), None);
        let other = Places::new("policies", Some("kr")).unwrap();
        assert_eq!(other.policy("a:b").to_string(), "kr:policy:a%3Ab");
        assert_eq!(other.name_of(&other.policy("a:b")).as_deref(), Some("a:b"));
        assert_eq!(other.name_of(&other.policy("a").child("b")), None);
        assert_eq!(other.foreign_name_of(&other.policy("a").child("b")), "a:b");
        assert!(!other.policies().contains(&places.policy("a")));
    }
}
