//! How the command ends: one table of exit codes, shown by `--help` and the man page.

use keyward::{
    Coded, ErrorKind, agents, agreements, cache, locks, migrate, queue, records, registry,
};

use crate::agreements::failed;

/// An exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Absent = 1,
    Invalid = 2,
    Conflict = 3,
    Unable = 4,
    Unavailable = 5,
    OutcomeUnknown = 6,
    Place = 7,
    Corrupt = 8,
    TooOld = 9,
    Differs = 10,
    Forbidden = 11,
    Locked = 12,
    Lost = 13,
    Failed = 14,
    Internal = 70,
    Interrupted = 130,
}

impl Exit {
    /// Every code with what it means, in ascending order.
    pub const TABLE: [(Self, &'static str); 17] = [
        (Self::Done, "done"),
        (
            Self::Absent,
            "the key or record is not there (get), or the message, dead letter, job, page, policy or issue",
        ),
        (
            Self::Invalid,
            "wrong usage or input: an argument, a key, JSON, the configuration, the schema",
        ),
        (
            Self::Conflict,
            "a condition did not hold (--if-version, --if-absent, --if-match, a unique index, an id \
             that is taken), too much would be deleted (sync), or an issue cannot go there (issue move); \
             nothing was written",
        ),
        (Self::Unable, "the store cannot do this: over a limit, or not supported by its engine"),
        (
            Self::Unavailable,
            "the store is busy or out of reach, or the repository, what pages come from, or the model is; \
             nothing was done, try again",
        ),
        (Self::OutcomeUnknown, "it may or may not have been done; read before trying again"),
        (
            Self::Place,
            "a file, directory or repository: cannot be opened, read or written there, or no space is \
             left",
        ),
        (
            Self::Corrupt,
            "the stored data is damaged; restore a backup, or save the rest (export --salvage)",
        ),
        (Self::TooOld, "the history asked for is not kept (watch --since)"),
        (
            Self::Differs,
            "not equal: the stores after a copy (copy --verify), or two schemas (schema diff); \
             something is left (doctor, sync), or could not be done (migrate, job watch)",
        ),
        (
            Self::Forbidden,
            "the caller may not do this (record --as), or the API key may not (--server); the key is not \
             for plain writes (put, del, import)",
        ),
        (
            Self::Locked,
            "the lock is somebody else's: not waited for, or in vain (lock); another sync runs (sync)",
        ),
        (Self::Lost, "the lock was lost while it was held; a command under it was ended (lock)"),
        (
            Self::Failed,
            "the command that makes the value failed, now or just before (cache run), or a consumer did \
             (registry repair); a document cannot be read, or a model gives no answer that can be used \
             (policy get, issue analyze)",
        ),
        (Self::Internal, "a fault in keyward; please report it"),
        (Self::Interrupted, "interrupted (Ctrl-C)"),
    ];

    /// The number the shell sees.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The table as a section of the help text.
    pub fn help() -> String {
        let mut text = String::from("Exit codes:");
        for (exit, meaning) in Self::TABLE {
            text.push_str(&format!("\n  {:>3}  {meaning}", exit.code()));
        }
        text
    }

    /// The table as a section of the manual.
    pub fn manual() -> String {
        let mut text = String::from(".SH \"EXIT STATUS\"\n");
        for (exit, meaning) in Self::TABLE {
            let meaning = meaning.replace('-', "\\-");
            text.push_str(&format!(".TP\n\\fB{}\\fR\n{meaning}\n", exit.code()));
        }
        text
    }
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Invalid => Self::Invalid,
            ErrorKind::LimitExceeded | ErrorKind::Unsupported => Self::Unable,
            ErrorKind::Forbidden | ErrorKind::Reserved => Self::Forbidden,
            ErrorKind::Unavailable => Self::Unavailable,
            ErrorKind::OutcomeUnknown => Self::OutcomeUnknown,
            ErrorKind::Misplaced | ErrorKind::Full => Self::Place,
            ErrorKind::Corrupt => Self::Corrupt,
            // A kind this version does not know yet is not one the user can act on.
            _ => Self::Internal,
        }
    }
}

impl From<&agents::Error> for Exit {
    fn from(error: &agents::Error) -> Self {
        use agents::Error;
        match error {
            Error::Records(error) => error.into(),
            Error::Invalid(_)
            | Error::BadDocument { .. }
            | Error::OtherUser { .. }
            | Error::Unprepared(_) => Self::Invalid,
            Error::TooMany { .. } | Error::LongDocument { .. } => Self::Unable,
            Error::Differs { .. } => Self::Conflict,
            Error::InDocument { source, .. }
            | Error::InEntry { source, .. }
            | Error::Partly { source, .. }
            | Error::Unflushed { source, .. } => (&**source).into(),
            // One this version does not know yet is not one the user can act on.
            _ => Self::Internal,
        }
    }
}

impl From<&migrate::Error> for Exit {
    fn from(error: &migrate::Error) -> Self {
        match error {
            migrate::Error::Records(error) => error.into(),
            migrate::Error::Refused(_) | migrate::Error::NoSource { .. } => Self::Invalid,
            migrate::Error::Overtaken { .. } | migrate::Error::Running { .. } => Self::Conflict,
            migrate::Error::Damaged(_) => Self::Corrupt,
            _ => Self::Internal,
        }
    }
}

impl From<&cache::Error> for Exit {
    fn from(error: &cache::Error) -> Self {
        use cache::Error;
        match error {
            Error::Store(error) => error.kind().into(),
            Error::Lock(error) => error.into(),
            Error::Failed { .. } => Self::Failed,
            Error::Lost { .. } => Self::Lost,
            Error::TimedOut { .. } => Self::Locked,
            Error::ForeignValue { .. } => Self::Conflict,
            Error::BadRequest(_) => Self::Invalid,
            // One this version does not know yet is not one the user can act on.
            _ => Self::Internal,
        }
    }
}

impl From<&locks::Error> for Exit {
    fn from(error: &locks::Error) -> Self {
        use locks::Error;
        match error {
            Error::Store(error) => error.kind().into(),
            Error::BadPath { .. }
            | Error::BadRequest(_)
            | Error::OutsideTree(_)
            | Error::WouldDeadlock { .. } => Self::Invalid,
            Error::TimedOut { .. } => Self::Locked,
            Error::Lost { .. } => Self::Lost,
            Error::NotHeld { .. } => Self::Absent,
            Error::ForeignValue { .. } | Error::ForeignFence { .. } => Self::Conflict,
            Error::Unsupported(_) | Error::Full { .. } => Self::Unable,
            Error::Contended { .. } => Self::Unavailable,
            Error::Damaged { .. } => Self::Corrupt,
            // One this version does not know yet is not one the user can act on.
            _ => Self::Internal,
        }
    }
}

impl From<&queue::Error> for Exit {
    fn from(error: &queue::Error) -> Self {
        use queue::Error;
        match error {
            Error::Store(error) => error.kind().into(),
            Error::NeedsAtomic { .. } | Error::NeedsOrder { .. } | Error::NoLease { .. } => {
                Self::Unable
            }
            Error::BadMessage(_) => Self::Invalid,
            Error::IdTaken { .. } | Error::Lost { .. } => Self::Conflict,
            Error::Contended { .. } => Self::Unavailable,
            Error::Damaged { .. } => Self::Corrupt,
            // One this version does not know yet is not one the user can act on.
            _ => Self::Internal,
        }
    }
}

impl From<&agreements::Error> for Exit {
    fn from(error: &agreements::Error) -> Self {
        use agreements::Error;
        match error {
            Error::Store(error) => error.kind().into(),
            Error::Lock(error) => error.into(),
            Error::Cache(error) => error.into(),
            Error::Queue(error) => error.into(),
            Error::Source { retryable: false, .. } => Self::Place,
            error => failed::exit(error.code().name()),
        }
    }
}

impl From<&registry::Error> for Exit {
    fn from(error: &registry::Error) -> Self {
        use registry::Error;
        match error {
            Error::Store(error) => error.kind().into(),
            Error::Queue(error) => error.into(),
            Error::Lock(error) => error.into(),
            Error::NeedsAtomic { .. } => Self::Unable,
            Error::Source { retryable: true, .. } => Self::Unavailable,
            Error::Source { .. } => Self::Place,
            Error::MassDelete { .. } | Error::Occupied { .. } => Self::Conflict,
            Error::Settings { .. }
            | Error::Secret(_)
            | Error::Invalid(_)
            | Error::UnknownConsumer { .. } => Self::Invalid,
            Error::Consumer { .. } => Self::Failed,
            Error::Damaged { .. } => Self::Corrupt,
            // One this version does not know yet is not one the user can act on.
            _ => Self::Internal,
        }
    }
}

impl From<&records::Error> for Exit {
    fn from(error: &records::Error) -> Self {
        use records::Error;
        match error {
            Error::Store(error) => error.kind().into(),
            Error::UnknownSpace { .. }
            | Error::UnknownIndex { .. }
            | Error::ForeignKey { .. }
            | Error::Build(_)
            | Error::SchemaMismatch { .. }
            | Error::Unindexable { .. }
            | Error::BadQuery(_)
            | Error::NeedsScan { .. }
            | Error::BadCursor(_)
            | Error::BadChange(_) => Self::Invalid,
            Error::Forbidden { .. } => Self::Forbidden,
            Error::UniqueClash { .. } | Error::RiderRefused { .. } => Self::Conflict,
            Error::ValueTooLarge { .. }
            | Error::IndexNotReady { .. }
            | Error::TooExpensive { .. } => Self::Unable,
            Error::Contended { .. } => Self::Unavailable,
            Error::Damaged(_) => Self::Corrupt,
            // One this version does not know yet is not one the user can act on.
            _ => Self::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_ascends_so_no_code_stands_twice() {
        let codes = Exit::TABLE.map(|(exit, _)| exit.code());
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
    }

    #[test]
    fn the_help_and_the_manual_name_every_code() {
        for (exit, _) in Exit::TABLE {
            assert!(Exit::help().contains(&format!("{:>3}  ", exit.code())));
            assert!(Exit::manual().contains(&format!("\\fB{}\\fR", exit.code())));
        }
    }
}
