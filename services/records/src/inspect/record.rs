//! Whether records are as they should be, and have their entries.

use keyward_engine::{Entry, Row};
use keyward_key::Key;

use super::{Finding, Flaw, Inspector, LOOKS_MAX};
use crate::Result;
use crate::build::admitted;
use crate::catalog::{IndexState, Kept};
use crate::change::{Current, check_value};
use crate::index::IndexEntry;
use crate::space::Space;
use crate::write::holder;

impl Inspector {
    pub(super) fn measure(&self, row: &Row, entry: &Entry, findings: &mut Vec<Finding>) {
        let limits = self.shared.store.limits();
        let sizes = [
            (Flaw::LongKey, "key", row.key.as_bytes().len(), limits.key_bytes_max),
            (Flaw::LargeValue, "value", entry.value.len(), limits.value_bytes_max),
        ];
        for (flaw, what, bytes, bytes_max) in sizes {
            if bytes > bytes_max {
                let message = format!("the {what} has {bytes} bytes; the store takes {bytes_max}");
                findings.push(Finding::new(flaw, &row.key, None, message));
            }
        }
    }

    /// Whether the store would refuse to look at a key again.
    pub(super) fn is_too_long(&self, key: &Key) -> bool {
        key.as_bytes().len() > self.shared.store.limits().key_bytes_max
    }

    pub(super) fn is_inspected(&self, kept: &Kept) -> bool {
        match &self.only {
            Some(only) => *kept.layout.index.name == **only,
            // What is being built lacks entries by its nature.
            None => kept.state == IndexState::Readable,
        }
    }

    /// What can be said of a record by itself, and the entries it should have.
    pub(super) fn seen(
        &self,
        space: &Space,
        key: &Key,
        entry: &Entry,
    ) -> (Vec<Finding>, Vec<IndexEntry>) {
        let mut findings = Vec::new();
        let current = match Current::new(key.clone(), entry.clone()) {
            Ok(current) => current,
            Err(error) => {
                findings.push(Finding::new(Flaw::BadMetadata, key, Some(key), error.to_string()));
                return (findings, Vec::new());
            }
        };
        if current.kept.marker {
            let message = "a writer began here and did not come back".to_owned();
            let left = Finding::new(Flaw::LeftMarker, key, None, message);
            findings.push(left.seen(&entry.version));
            return (findings, Vec::new());
        }
        if let Err(error) = check_value(&space.access.space, &entry.value) {
            findings.push(Finding::new(Flaw::BadValue, key, Some(key), error.to_string()));
        }
        let mut expected = Vec::new();
        if self.is_foreign(space) {
            return (findings, expected);
        }
        let target = admitted(space, key);
        for kept in self.catalog.kept(&space.access.space.name).iter() {
            if !self.is_inspected(kept) {
                continue;
            }
            match space.entries(std::slice::from_ref(kept), &target, &entry.value) {
                Ok(entries) => expected.extend(entries),
                Err(error) => {
                    findings.push(Finding::new(
                        Flaw::Unindexable,
                        key,
                        Some(key),
                        error.to_string(),
                    ));
                }
            }
        }
        (findings, expected)
    }

    pub(super) async fn inspect_records(
        &self,
        records: Vec<(&Space, &Row, Vec<IndexEntry>)>,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let keys: Vec<Key> =
            records.iter().flat_map(|(_, _, entries)| entries).map(|e| e.key.clone()).collect();
        let mut held = self.shared.store.get_many(&keys).await?.into_iter();
        for (space, row, entries) in &records {
            let mut well = true;
            for entry in entries {
                let held = held.next().flatten();
                well &= held.is_some_and(|held| held.value == entry.value);
            }
            if !well {
                findings.extend(self.look_at_record(space, &row.key).await?);
            }
        }
        Ok(())
    }

    /// What entries a record lacks, between two equal looks at it.
    pub(super) async fn look_at_record(&self, space: &Space, key: &Key) -> Result<Vec<Finding>> {
        let store = &self.shared.store;
        for _ in 0..LOOKS_MAX {
            let Some(entry) = store.get(key).await? else { return Ok(Vec::new()) };
            let (_, entries) = self.seen(space, key, &entry);
            let keys: Vec<Key> = entries.iter().map(|entry| entry.key.clone()).collect();
            let held = store.get_many(&keys).await?;
            let again = store.get(key).await?;
            if again.is_none_or(|again| again.version != entry.version) {
                continue;
            }
            let mut findings = Vec::new();
            for (entry, held) in entries.iter().zip(held) {
                let (flaw, message) = match held {
                    None => (Flaw::MissingEntry, format!("the record {key} has no such entry")),
                    Some(held) if held.value == entry.value => continue,
                    Some(held) if entry.unique => match self.rival(&held, &entry.key).await? {
                        Some(other) => (Flaw::DuplicateValue, duplicate(key, &other)),
                        None => {
                            let other = held.value;
                            let message = format!("the record {key} has the value, not {other}");
                            (Flaw::TakenEntry, message)
                        }
                    },
                    Some(_) => (Flaw::WrongEntry, format!("the record {key} says something else")),
                };
                let mut finding = Finding::new(flaw, &entry.key, Some(key), message);
                finding.unique = entry.unique;
                findings.push(finding);
            }
            return Ok(findings);
        }
        Ok(Vec::new())
    }

    /// The record that a unique entry names, if that has the value too.
    async fn rival(&self, held: &Entry, entry: &Key) -> Result<Option<Key>> {
        let Some(other) = holder(held).filter(|other| !self.is_too_long(other)) else {
            return Ok(None);
        };
        let record = self.shared.store.get(&other).await?;
        Ok(record.is_some_and(|record| self.holds(&other, record, entry)).then_some(other))
    }
}

/// What is said of two records that have one unique value.
pub(super) fn duplicate(one: &Key, other: &Key) -> String {
    format!(
        "the records {one} and {other} both have this unique value: change or delete one of them, \
         then run doctor again"
    )
}
