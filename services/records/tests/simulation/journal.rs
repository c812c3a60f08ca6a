//! What was asked, what was answered, and whether what is left agrees with it.

use std::collections::BTreeMap;

use crate::truth::Truth;

/// What the caller was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Not answered yet.
    Open,
    /// It is done.
    Done,
    /// It is certainly not done.
    NotDone,
    /// It may be either.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Operation {
    /// Written into the value, so that a value tells where it comes from.
    pub id: String,
    pub record: usize,
    pub deletes: bool,
    begun: usize,
    ended: usize,
    pub fate: Fate,
}

/// Everything that happened, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Journal {
    operations: Vec<Operation>,
    moments: usize,
    crashes: usize,
}

impl Journal {
    pub fn begin(&mut self, id: String, record: usize, deletes: bool) -> usize {
        let begun = self.moment();
        let fate = Fate::Open;
        self.operations.push(Operation { id, record, deletes, begun, ended: usize::MAX, fate });
        self.operations.len() - 1
    }

    pub fn end(&mut self, operation: usize, fate: Fate) {
        let ended = self.moment();
        let operation = &mut self.operations[operation];
        operation.ended = ended;
        operation.fate = fate;
    }

    pub fn crashed(&mut self) {
        self.crashes += 1;
    }

    pub fn crashes(&self) -> usize {
        self.crashes
    }

    pub fn moment(&mut self) -> usize {
        self.moments += 1;
        self.moments
    }

    /// Whether nothing was done to a record from one moment until now.
    pub fn was_left_alone(&self, record: usize, since: usize) -> bool {
        self.operations
            .iter()
            .filter(|operation| operation.record == record)
            .all(|operation| operation.ended < since)
    }

    /// Whether nobody was deleting a record from one moment until now.
    pub fn was_kept(&self, record: usize, since: usize) -> bool {
        self.operations
            .iter()
            .filter(|operation| operation.record == record && operation.deletes)
            .all(|operation| operation.ended < since)
    }

    /// Whether the records are what the answers allow.
    pub fn check(&self, truth: &Truth) {
        let values = truth.values();
        for operation in &self.operations {
            assert_ne!(operation.fate, Fate::Open, "{operation:?} was never answered");
        }
        let by_id: BTreeMap<&str, &Operation> =
            self.operations.iter().map(|operation| (operation.id.as_str(), operation)).collect();
        for (record, value) in values.iter().enumerate() {
            let mine = || self.operations.iter().filter(move |op| op.record == record);
            let possible: Vec<&Operation> = match value {
                Some(value) => vec![by_id[value.id.as_str()]],
                // Deleted, or never made.
                None => mine().filter(|op| op.deletes && op.fate != Fate::NotDone).collect(),
            };
            for last in &possible {
                assert_ne!(last.fate, Fate::NotDone, "{last:?} was told not to be done: {self:#?}");
                assert_eq!(last.record, record);
            }
            // Something acknowledged must not have vanished: what is there came after it, or at the
            // same time.
            for done in mine().filter(|op| op.fate == Fate::Done) {
                let explained = possible.iter().any(|last| last.ended > done.begun);
                assert!(explained, "{done:?} was lost; there is {value:?}: {self:#?}");
            }
        }
    }
}
