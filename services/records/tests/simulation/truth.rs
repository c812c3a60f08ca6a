//! What the store really holds, read around everything that is tested, and what must be true of it.

use std::collections::BTreeMap;

use futures_util::FutureExt;
use keyward_engine::{Engine, Scan};
use keyward_key::{Key, KeyRange};
use keyward_memory::Memory;
use serde::Deserialize;

pub const RECORDS: usize = 3;

/// The value of a record.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Value {
    pub id: String,
    pub email: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub labels: Vec<String>,
}

#[derive(Clone)]
pub struct Truth {
    memory: Memory,
}

pub fn key(record: usize) -> Key {
    Key::from_segments(["user", &record.to_string()]).unwrap()
}

impl Truth {
    pub fn new(memory: Memory) -> Self {
        Self { memory }
    }

    fn rows(&self) -> BTreeMap<Key, (String, Option<String>)> {
        let scan = Scan::new(KeyRange::all()).limit(10_000);
        // The memory engine answers at once; a store might yield first.
        let page = self.memory.scan(&scan).now_or_never().unwrap().unwrap();
        let row = |row: keyward_engine::Row| {
            let entry = row.entry.unwrap();
            (row.key, (entry.value.to_string(), entry.metadata.map(|m| m.to_string())))
        };
        page.rows.into_iter().map(row).collect()
    }

    /// The records that are there; a mark of one to come is none.
    pub fn values(&self) -> [Option<Value>; RECORDS] {
        let rows = self.rows();
        std::array::from_fn(|record| {
            let (value, metadata) = rows.get(&key(record))?;
            let marked = metadata.as_ref().is_some_and(|metadata| metadata.contains("marker"));
            (!marked).then(|| serde_json::from_str(value).unwrap())
        })
    }

    /// No two records have one e-mail address.
    pub fn check_unique(&self) {
        let values = self.values();
        let mut taken: Vec<&String> =
            values.iter().flatten().filter_map(|v| v.email.as_ref()).collect();
        taken.sort();
        let count = taken.len();
        taken.dedup();
        assert_eq!(taken.len(), count, "one address, two records: {values:?}");
    }

    /// The entries there should be, by the values alone.
    fn expected(&self) -> BTreeMap<Key, String> {
        let mut expected = BTreeMap::new();
        for (record, value) in self.values().into_iter().enumerate() {
            let Some(value) = value else { continue };
            if let Some(email) = value.email {
                let entry = Key::from_segments(["index", "email", &email]).unwrap();
                expected.insert(entry, format!("\"{}\"", key(record)));
            }
            for tag in value.tags {
                let user = record.to_string();
                let entry = Key::from_segments(["index", "tag", &user, &tag, "user", &user]);
                expected.insert(entry.unwrap(), "null".to_owned());
            }
            for label in value.labels {
                let user = record.to_string();
                let entry = Key::from_segments(["index", "label", &label, "user", &user]);
                expected.insert(entry.unwrap(), "null".to_owned());
            }
        }
        expected
    }

    fn entries(&self) -> BTreeMap<Key, String> {
        let rows = self.rows().into_iter();
        rows.filter(|(key, _)| key.first() == "index")
            .map(|(key, (value, _))| (key, value))
            .collect()
    }

    /// Every record has its entries.
    pub fn check_nothing_missing(&self) {
        let entries = self.entries();
        for (key, value) in self.expected() {
            assert_eq!(entries.get(&key), Some(&value), "{key} is missing: {entries:?}");
        }
    }

    /// Every entry has its record.
    pub fn check_nothing_left_over(&self) {
        assert_eq!(self.entries(), self.expected());
    }

    /// No writer's mark is left.
    pub fn check_no_marker(&self) {
        let rows = self.rows();
        let marked = rows.iter().find(|(_, (_, metadata))| {
            metadata.as_ref().is_some_and(|metadata| metadata.contains("marker"))
        });
        assert_eq!(marked, None);
    }
}
