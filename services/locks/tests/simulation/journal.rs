//! What was done under locks, what was answered, and whether what is left agrees with it.

use std::collections::{BTreeMap, BTreeSet};

use keyward_engine::{Entry, Json, Tier};
use keyward_key::Key;

use crate::engine::Checked;

/// What the caller was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Not answered yet.
    Open,
    Done,
    NotDone,
    Unknown,
}

/// One write to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub key: Key,
    pub token: u64,
    pub fate: Fate,
}

/// Everything that happened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Journal {
    writes: Vec<Write>,
    counts: BTreeMap<&'static str, u64>,
}

/// A key's value: the writes it has seen, each with its token and its number in the journal.
pub fn history(entry: Option<&Entry>) -> Vec<(u64, usize)> {
    entry.map_or(Vec::new(), |entry| serde_json::from_slice(entry.value.as_bytes()).unwrap())
}

pub fn appended(entry: Option<&Entry>, token: u64, write: usize) -> Json {
    let mut history = history(entry);
    history.push((token, write));
    Json::from_value(&history).unwrap()
}

impl Journal {
    pub fn begin(&mut self, key: Key, token: u64) -> usize {
        self.writes.push(Write { key, token, fate: Fate::Open });
        self.writes.len() - 1
    }

    pub fn end(&mut self, write: usize, fate: Fate) {
        self.writes[write].fate = fate;
        self.count(match fate {
            Fate::Open => "open",
            Fate::Done => "writes",
            Fate::NotDone => "writes refused",
            Fate::Unknown => "writes unknown",
        });
    }

    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub fn add(&mut self, other: &Self) {
        for (what, count) in &other.counts {
            *self.counts.entry(what).or_default() += count;
        }
    }

    pub fn summary(&self) -> String {
        let counts = self.counts.iter().map(|(what, count)| format!("{count} {what}"));
        counts.collect::<Vec<_>>().join(", ")
    }

    pub fn saw_everything(&self, tier: Tier) -> bool {
        let by_ticket: &[_] = match tier {
            Tier::Atomic => &["detached", "outran", "renewed by ticket"],
            Tier::Recoverable | Tier::Advisory => &[],
        };
        let needed = [
            "granted",
            "told to wait in vain",
            "gave up",
            "crashes",
            "pauses",
            "breaks",
            "lost",
            "writes",
            "writes refused",
            "writes unknown",
            "takeovers",
            "descended",
        ];
        needed
            .iter()
            .chain(by_ticket)
            .all(|what| self.counts.get(what).is_some_and(|count| *count > 0))
    }

    /// What was acknowledged is there, what was refused is not, and later locks wrote later.
    pub fn check(&self, engine: &Checked) {
        let keys: BTreeSet<&Key> = self.writes.iter().map(|write| &write.key).collect();
        for key in keys {
            let entry = engine.peek(key).filter(|entry| entry.value.as_str() != "null");
            let history = history(entry.as_ref());
            let order: Vec<u64> = history.iter().map(|(token, _)| *token).collect();
            assert!(order.is_sorted(), "{key}: a late write landed: {history:?}");
            for (number, write) in self.writes.iter().enumerate() {
                if write.key != *key {
                    continue;
                }
                let times = history.iter().filter(|(_, seen)| *seen == number).count();
                let right = match write.fate {
                    Fate::Open => false,
                    Fate::Done => times == 1,
                    Fate::NotDone => times == 0,
                    Fate::Unknown => times <= 1,
                };
                assert!(
                    right,
                    "{key}: write {number} {write:?} is there {times} times: {history:?}"
                );
            }
        }
    }
}
