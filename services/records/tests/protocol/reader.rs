//! A reader: lists the entries of one value, fetches each record, and drops what does not match now.

use crate::config::Config;
use crate::script::Fault;
use crate::store::{Call, RECORDS, Reply, Store};

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    List,
    Fetch,
    Finished,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reader {
    pub step: Step,
    /// Records to fetch, a bit each.
    left: u8,
    answer: u8,
    /// The records that have matched all the time since the query began.
    owed: u8,
}

impl Reader {
    pub fn new() -> Self {
        Self { step: Step::List, left: 0, answer: 0, owed: 0 }
    }

    /// The records among which the next call can choose.
    pub fn choices(&self) -> u8 {
        match self.step {
            Step::List => 1,
            Step::Fetch => self.left,
            Step::Finished => 0,
        }
    }

    pub fn call(&self, config: &Config, entry: u8, choice: u8) -> Call {
        match self.step {
            Step::List if config.schema.is_unique(entry) => Call::ReadEntry(entry),
            Step::List => Call::List(entry),
            _ => Call::ReadRecord(choice),
        }
    }

    /// Follows what the store does while the query runs.
    pub fn watch(&mut self, entry: u8, store: &Store) {
        if self.step == Step::Fetch {
            self.owed &= matching(store, entry);
        }
    }

    pub fn resume(
        &mut self,
        config: &Config,
        entry: u8,
        choice: u8,
        reply: Reply,
        store: &Store,
    ) -> Option<Fault> {
        let mut fault = None;
        match reply {
            Reply::Listed(listed) => self.begin(entry, listed, store),
            Reply::Entry(owner) => self.begin(entry, owner.map_or(0, |owner| 1 << owner), store),
            Reply::Record(seen) => {
                let matches = seen.is_some_and(|seen| seen.holds(entry));
                self.left &= !(1 << choice);
                if matches || (!config.protocol.recheck && seen.is_some()) {
                    self.answer |= 1 << choice;
                    fault = (!matches).then_some(Fault::WrongRow);
                }
            }
            _ => unreachable!("a reader writes nothing"),
        }
        if self.left == 0 {
            let missed = self.owed & !self.answer != 0;
            *self = Self { step: Step::Finished, ..Self::new() };
            return fault.or(missed.then_some(Fault::MissedRow));
        }
        fault
    }

    fn begin(&mut self, entry: u8, listed: u8, store: &Store) {
        self.step = Step::Fetch;
        self.left = listed;
        self.owed = matching(store, entry);
    }
}

fn matching(store: &Store, entry: u8) -> u8 {
    (0..RECORDS as u8).filter(|record| store.holds(*record, entry)).map(|record| 1 << record).sum()
}
