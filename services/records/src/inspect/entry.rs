//! Whether index entries have the records they name.

use keyward_engine::{Entry, Json, Row};
use keyward_key::Key;

use super::{Finding, Flaw, Inspector, LOOKS_MAX};
use crate::Result;
use crate::build::admitted;
use crate::catalog::IndexState;
use crate::change::Current;
use crate::index::Layout;

impl Inspector {
    /// The record that an entry leads to; else what is wrong with it.
    pub(super) fn led_to(&self, key: &Key, value: &Json) -> Result<Key, Option<Finding>> {
        let name = key.segments().nth(1).unwrap_or_default();
        if self.only.as_ref().is_some_and(|only| **only != *name) {
            return Err(None);
        }
        let listed = self.catalog.content.indexes.get(&*name);
        let Some(index) = listed.filter(|index| index.state != IndexState::Disabled) else {
            let message = match listed {
                Some(_) => format!("the index {name} is disabled"),
                None => format!("the store has no index {name}"),
            };
            return Err(Some(Finding::new(Flaw::UnknownIndex, key, None, message)));
        };
        let space = self.spaces.iter().find(|space| space.access.space.name == index.space);
        // What belongs to a space of another schema is for whoever has that schema to judge.
        let Some(space) = space.filter(|space| !self.is_foreign(space)) else { return Err(None) };
        let owned = space.access.is_owned();
        let primary = Layout::new(index.definition.clone()).primary(key, Some(value), owned);
        match primary.filter(|primary| self.space_of(primary).is_some()) {
            // The record itself is told of.
            Some(primary) if self.is_too_long(&primary) => Err(None),
            Some(primary) => Ok(primary),
            None => {
                let message = "it leads to nothing that could be a record".to_owned();
                Err(Some(Finding::new(Flaw::BrokenEntry, key, None, message)))
            }
        }
    }

    pub(super) async fn inspect_entries(
        &self,
        entries: Vec<(&Row, Key)>,
        findings: &mut Vec<Finding>,
    ) -> Result<()> {
        let keys: Vec<Key> = entries.iter().map(|(_, primary)| primary.clone()).collect();
        let records = self.shared.store.get_many(&keys).await?;
        for ((row, primary), record) in entries.into_iter().zip(records) {
            if !record.is_some_and(|record| self.holds(&primary, record, &row.key)) {
                findings.extend(self.look_at_entry(&row.key).await?);
            }
        }
        Ok(())
    }

    /// Whether a record has an entry by what its value is, or may have: that cannot be told of one
    /// whose value cannot be indexed.
    pub(super) fn holds(&self, primary: &Key, record: Entry, entry: &Key) -> bool {
        let Some(space) = self.space_of(primary) else { return false };
        let Ok(current) = Current::new(primary.clone(), record) else { return true };
        if current.kept.marker {
            return false;
        }
        let target = admitted(space, primary);
        let kept = self.catalog.kept(&space.access.space.name);
        let name = entry.segments().nth(1).unwrap_or_default();
        let kept = kept.iter().find(|kept| *kept.layout.index.name == *name);
        let Some(kept) = kept.map(std::slice::from_ref) else { return false };
        let value = &current.record.value;
        match space.entries(kept, &target, value) {
            Ok(entries) => entries.iter().any(|held| held.key == *entry),
            Err(_) => true,
        }
    }

    /// Whether an entry has no record, between two equal looks at it.
    pub(super) async fn look_at_entry(&self, key: &Key) -> Result<Option<Finding>> {
        let store = &self.shared.store;
        for _ in 0..LOOKS_MAX {
            let Some(entry) = store.get(key).await? else { return Ok(None) };
            let primary = match self.led_to(key, &entry.value) {
                Ok(primary) => primary,
                Err(finding) => return Ok(finding.map(|finding| finding.seen(&entry.version))),
            };
            let record = store.get(&primary).await?;
            let gone = record.is_none();
            if record.is_some_and(|record| self.holds(&primary, record, key)) {
                return Ok(None);
            }
            let again = store.get(key).await?;
            if again.is_none_or(|again| again.version != entry.version) {
                continue;
            }
            let (flaw, message) = match (gone, entry.expires) {
                (true, Some(_)) => (Flaw::ExpiredEntry, format!("the record {primary} has ended")),
                (true, None) => (Flaw::OrphanedEntry, format!("there is no record {primary}")),
                (false, _) => {
                    (Flaw::OrphanedEntry, format!("the record {primary} has another value"))
                }
            };
            let finding = Finding::new(flaw, key, Some(&primary), message);
            return Ok(Some(finding.seen(&entry.version)));
        }
        Ok(None)
    }
}
