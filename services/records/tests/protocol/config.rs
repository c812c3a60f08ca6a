//! What is checked: the rules, who takes part, and what may go wrong.

use crate::model::State;
use crate::protocol::{Protocol, Schema};
use crate::script::Script;
use crate::store::{ENTRIES, RECORDS, Record, Set, Store, members};
use crate::sweeper::Task;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Writer(Script),
    Sweeper { sweeps: u8 },
    Reader { entry: u8 },
}

/// One situation.
#[derive(Clone, Debug)]
pub struct Config {
    pub schema: Schema,
    pub protocol: Protocol,
    /// The values that the records have at first.
    pub records: [Option<u8>; RECORDS],
    /// Entries that are there at first without a record that holds them.
    pub orphans: &'static [(u8, u8)],
    /// Entries that are not there at first although a record holds them.
    pub damaged: &'static [(u8, u8)],
    /// Processes with equal roles stand next to each other: they are interchangeable.
    pub roles: Vec<Role>,
    /// Processes that may stop for ever, at any point.
    pub crashes: u8,
    /// Writes that may get no answer, and be applied now, later or never.
    pub losses: u8,
    /// Records that may end by themselves.
    pub expiries: u8,
    /// Whether sweeps, and the scrub at the end, also take up records with a marker or an intent.
    pub clears_records: bool,
    /// Whether sweeps also look for entries that are not there; the scrub at the end does.
    pub restores: bool,
    /// Whether every writer is tried alone from every state.
    pub alone: bool,
    /// A state that must be reachable, so that the run shows something.
    pub goal: fn(&State) -> bool,
}

impl Config {
    fn uses(&self) -> Set {
        self.schema.values.iter().fold(0, |all, entries| all | entries)
    }

    /// Records that anybody writes or that are there at first.
    fn records(&self) -> impl Iterator<Item = u8> {
        (0..RECORDS as u8).filter(|record| {
            self.records[usize::from(*record)].is_some()
                || self.orphans.iter().any(|(owner, _)| owner == record)
                || self.roles.iter().any(|role| match role {
                    Role::Writer(script) => script.record == *record,
                    _ => false,
                })
        })
    }

    /// Everything that a sweep can take up.
    pub fn tasks(&self, restores: bool, mut each: impl FnMut(Task)) {
        for record in self.records() {
            for entry in members(self.uses()) {
                if !self.schema.is_unique(entry) {
                    each(Task::Entry(self.schema.slot(record, entry)));
                }
                if restores {
                    each(Task::Missing { record, entry });
                }
            }
            if self.clears_records {
                each(Task::Record(record));
            }
        }
        for entry in members(self.uses() & self.schema.unique) {
            each(Task::Entry(entry));
        }
    }

    /// What is there at first.
    pub fn store(&self) -> Store {
        let mut store = Store { records: [None; RECORDS], entries: [0; RECORDS * ENTRIES] };
        let slot = |record, entry| usize::from(self.schema.slot(record, entry));
        for record in 0..RECORDS as u8 {
            if let Some(value) = self.records[usize::from(record)] {
                let idx = self.schema.values[usize::from(value)];
                let whole = Record { value: Some(value), idx, pending: 0 };
                store.records[usize::from(record)] = Some(whole);
                members(idx).for_each(|entry| store.entries[slot(record, entry)] = record + 1);
            }
        }
        for (record, entry) in self.orphans {
            store.entries[slot(*record, *entry)] = record + 1;
        }
        for (record, entry) in self.damaged {
            store.entries[slot(*record, *entry)] = 0;
        }
        store
    }
}
