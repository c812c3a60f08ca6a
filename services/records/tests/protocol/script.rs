//! What writers have to do, and what their callers are told.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Put(u8),
    Delete,
}

/// What a writer of one record has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script {
    pub record: u8,
    pub ops: &'static [Op],
}

/// What the caller of an operation was told.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    Open,
    Done,
    /// The record is not there; whoever deleted it.
    Gone,
    /// Nothing was done: the value is taken, or there is nothing to delete.
    Refused,
    /// It may have been done.
    Unknown,
}

/// How the write id in the store relates to the write that is being tried.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Last {
    /// The one that was read when the operation began.
    Base,
    Mine,
    Other,
}

/// An answer that was not true.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Fault {
    DoneTwice,
    DoneButRefused,
    ToldDoneButWasNot,
    RefusedButFree,
    WrongRow,
    MissedRow,
}
