//! A sweeper: each sweep takes up one key of its own choice, and mends it if it can.

use crate::config::Config;
use crate::protocol::Schema;
use crate::store::{Call, ENTRIES, Guard, Key, RECORDS, Record, Reply};

const SLOTS: u8 = (RECORDS * ENTRIES) as u8;

/// What a sweep is about.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// From the index to the record: is this entry still wanted?
    Entry(u8),
    /// The record alone: is it a marker, or an intent, that somebody left?
    Record(u8),
    /// From the record to the index: is this entry of this record there?
    Missing { record: u8, entry: u8 },
}

impl Task {
    pub fn from_choice(choice: u8) -> Self {
        match choice {
            0..SLOTS => Self::Entry(choice),
            16..32 => Self::Record(choice - 16),
            _ => Self::Missing {
                record: (choice - 32) / ENTRIES as u8,
                entry: (choice - 32) % ENTRIES as u8,
            },
        }
    }

    pub fn choice(self) -> u8 {
        match self {
            Self::Entry(slot) => slot,
            Self::Record(record) => 16 + record,
            Self::Missing { record, entry } => 32 + record * ENTRIES as u8 + entry,
        }
    }
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Choose,
    /// The entry was read: does its record hold it?
    Owner {
        slot: u8,
        owner: u8,
        entry: Guard,
    },
    /// The record was read before the entry.
    Entry {
        slot: u8,
        owner: u8,
        seen: Option<Record>,
        record: Guard,
    },
    Revoke {
        slot: u8,
        owner: u8,
        entry: Guard,
        seen: Record,
        record: Guard,
    },
    Delete {
        slot: u8,
        entry: Guard,
    },
    /// A marker is deleted, an intent is taken out.
    Settle {
        owner: u8,
        seen: Record,
        record: Guard,
    },
    /// The record holds an entry: is it there?
    Missing {
        owner: u8,
        entry: u8,
    },
    Restore {
        owner: u8,
        entry: u8,
    },
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sweeper {
    pub left: u8,
    pub step: Step,
}

impl Sweeper {
    pub fn new(sweeps: u8) -> Self {
        Self { left: sweeps, step: Step::Choose }
    }

    pub fn outdate(&mut self, key: Key) {
        match (&mut self.step, key) {
            (
                Step::Owner { slot, entry, .. }
                | Step::Revoke { slot, entry, .. }
                | Step::Delete { slot, entry },
                Key::Entry(written),
            ) if *slot == written => entry.outdate(),
            (
                Step::Entry { owner, record, .. }
                | Step::Revoke { owner, record, .. }
                | Step::Settle { owner, record, .. },
                Key::Record(written),
            ) if *owner == written => record.outdate(),
            _ => {}
        }
    }

    pub fn call(&self, config: &Config, choice: u8) -> Call {
        match self.step {
            Step::Choose => match Task::from_choice(choice) {
                Task::Entry(slot) if config.protocol.entry_first => Call::ReadEntry(slot),
                Task::Entry(slot) => Call::ReadRecord(slot / ENTRIES as u8),
                Task::Record(record) | Task::Missing { record, .. } => Call::ReadRecord(record),
            },
            Step::Owner { owner, .. } => Call::ReadRecord(owner),
            Step::Entry { slot, .. } => Call::ReadEntry(slot),
            Step::Revoke { owner, seen, record, .. } => settled(owner, seen, record),
            Step::Delete { slot, entry } => Call::DeleteEntry {
                slot,
                guard: if config.protocol.guarded { entry } else { Guard::Any },
            },
            Step::Settle { owner, seen, record } if seen.value.is_some() => {
                settled(owner, seen, record)
            }
            Step::Settle { owner, record, .. } => {
                Call::DeleteRecord { record: owner, guard: record }
            }
            Step::Missing { owner, entry } => Call::ReadEntry(config.schema.slot(owner, entry)),
            Step::Restore { owner, entry } => Call::PutEntry {
                slot: config.schema.slot(owner, entry),
                guard: Guard::Absent,
                owner,
            },
        }
    }

    pub fn resume(&mut self, config: &Config, choice: u8, reply: Reply) {
        let next = match (self.step, reply) {
            (Step::Choose, _) => chosen(Task::from_choice(choice), reply),
            (Step::Owner { slot, owner, entry }, Reply::Record(seen)) => {
                after_both(config, slot, owner, entry, seen, Guard::Current)
            }
            (Step::Entry { slot, owner, seen, record }, Reply::Entry(Some(_))) => {
                after_both(config, slot, owner, Guard::Current, seen, record)
            }
            (Step::Revoke { slot, entry, .. }, Reply::Applied) => {
                Some(Step::Delete { slot, entry })
            }
            (Step::Missing { owner, entry }, Reply::Entry(None)) => {
                Some(Step::Restore { owner, entry })
            }
            // Done, or somebody was here: the next sweep will see.
            _ => None,
        };
        self.step = next.unwrap_or_else(|| {
            self.left -= 1;
            Step::Choose
        });
    }
}

fn chosen(task: Task, reply: Reply) -> Option<Step> {
    match (task, reply) {
        (Task::Entry(slot), Reply::Entry(Some(owner))) => {
            Some(Step::Owner { slot, owner, entry: Guard::Current })
        }
        (Task::Entry(slot), Reply::Record(seen)) => {
            let owner = slot / ENTRIES as u8;
            let record = if seen.is_some() { Guard::Current } else { Guard::Absent };
            let held = seen.is_some_and(|seen| seen.holds(Schema::entry(slot)));
            (!held).then_some(Step::Entry { slot, owner, seen, record })
        }
        (Task::Record(owner), Reply::Record(Some(seen))) => {
            let unsettled = seen.value.is_none() || seen.pending != 0;
            let record = Guard::Current;
            unsettled.then_some(Step::Settle { owner, seen, record })
        }
        (Task::Missing { record, entry }, Reply::Record(Some(seen))) => {
            seen.holds(entry).then_some(Step::Missing { owner: record, entry })
        }
        _ => None,
    }
}

/// The same record without an intent: its version moves, and nothing else.
fn settled(record: u8, seen: Record, guard: Guard) -> Call {
    Call::PutRecord { record, guard, to: Record { pending: 0, ..seen }, renames: false }
}

fn after_both(
    config: &Config,
    slot: u8,
    owner: u8,
    entry: Guard,
    seen: Option<Record>,
    record: Guard,
) -> Option<Step> {
    let number = Schema::entry(slot);
    match seen {
        Some(seen) if seen.holds(number) => None,
        Some(seen) if config.protocol.sweeper_revokes.applies(seen, number) => {
            Some(Step::Revoke { slot, owner, entry, seen, record })
        }
        _ => Some(Step::Delete { slot, entry }),
    }
}
