//! What happened, and what must be true of it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use keyward_engine::{Clock, Json};
use keyward_key::Key;
use keyward_testkit::VirtualClock;
use serde_json::Value;

use crate::recorder::Fate;

/// How often a source changes, in seconds.
const PERIOD_S: i64 = 20;

/// What became of requests, over a run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub asked: u64,
    pub answered: u64,
    pub failed: u64,
    pub given_up: u64,
    pub crashes: u64,
    pub pauses: u64,
    pub lost: u64,
    pub computed: u64,
    pub published: u64,
}

impl Counts {
    pub fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.answered += other.answered;
        self.failed += other.failed;
        self.given_up += other.given_up;
        self.crashes += other.crashes;
        self.pauses += other.pauses;
        self.lost += other.lost;
        self.computed += other.computed;
        self.published += other.published;
    }
}

/// The second at which the source was last modified, at a moment of its own clock.
fn modified_at(now: Timestamp) -> i64 {
    let second = now.as_second();
    second - second.rem_euclid(PERIOD_S)
}

/// Which computation made a value.
pub fn run(value: &Json) -> u64 {
    let value: Value = serde_json::from_slice(value.as_bytes()).unwrap();
    value["run"].as_u64().unwrap()
}

pub struct Journal {
    clock: VirtualClock,
    pub counts: Counts,
    /// Who computes what.
    runs: u64,
}

impl Journal {
    pub fn new(clock: VirtualClock) -> Self {
        Self { clock, counts: Counts::default(), runs: 0 }
    }

    /// When the source of everything was last modified, by its own clock.
    pub fn modified(&self) -> Timestamp {
        Timestamp::new(modified_at(self.clock.now()), 0).unwrap()
    }

    /// The value that a new computation gives.
    pub fn value(&mut self, key: &Key, modified: Timestamp, of: Option<u64>) -> Json {
        self.runs += 1;
        self.counts.computed += 1;
        let value = serde_json::json!({
            "key": key.to_string(),
            "modified": modified.as_second(),
            "run": self.runs,
            "of": of,
        });
        Json::from_value(&value).unwrap()
    }

    /// Whether an answer is of the right key, and not older than what was asked for.
    pub fn answered(&mut self, key: &Key, modified: Timestamp, value: &Json) {
        let value: Value = serde_json::from_slice(value.as_bytes()).unwrap();
        assert_eq!(value["key"], key.to_string());
        assert!(value["modified"].as_i64().unwrap() >= modified.as_second(), "{value} is stale");
        self.counts.answered += 1;
    }

    /// Checks what was published: one result for each key and state of its source, the states in
    /// order; only what was dropped for a newer state may be computed again, for who asked before.
    pub fn check(&self, fates: &[Fate]) -> Counts {
        let mut latest: BTreeMap<&Key, i64> = BTreeMap::new();
        let (mut runs, mut made) = (BTreeSet::new(), BTreeSet::<(&Key, i64, u64)>::new());
        for fate in fates {
            let (key, value) = match fate {
                Fate::Published(key, value) => (key, value),
                Fate::Dropped(key, at) => {
                    if let Some(modified) = latest.remove(key) {
                        assert!(
                            modified < modified_at(*at),
                            "{key} was dropped while it was fresh"
                        );
                    }
                    made.retain(|(other, ..)| *other != key);
                    continue;
                }
            };
            let value: Value = serde_json::from_slice(value.as_bytes()).unwrap();
            assert_eq!(value["key"], key.to_string());
            // With commits of single keys, a value is put again to raise its fence.
            if !runs.insert(value["run"].as_u64().unwrap()) {
                continue;
            }
            let modified = value["modified"].as_i64().unwrap();
            // What it is made from may have changed, and then it is made again.
            if let Some(of) = value["of"].as_u64() {
                assert!(made.insert((key, modified, of)), "{key}: {value} was published twice");
                continue;
            }
            if let Some(before) = latest.insert(key, modified) {
                assert!(before < modified, "{key}: {modified} was published after {before}");
            }
        }
        let counts = self.counts;
        assert_eq!(
            counts.asked,
            counts.answered + counts.failed + counts.given_up,
            "somebody was told nothing"
        );
        Counts { published: runs.len() as u64, ..counts }
    }
}
