//! How the command ends: one table of exit codes, shown by `--help` and the man page.

use keyward::{Code, Coded};

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

    /// How a command ends with an error that has this code.
    pub fn of(code: Code) -> Self {
        match code {
            Code::Invalid
            | Code::Usage
            | Code::KeyMismatch
            | Code::BadQuery
            | Code::BadCursor
            | Code::BadChange
            | Code::BadDocument
            | Code::BadMessage
            | Code::BadPath
            | Code::OutsideTree
            | Code::WouldDeadlock
            | Code::NeedsScan
            | Code::Unconfirmed
            | Code::UnknownSpace
            | Code::UnknownIndex
            | Code::UnknownRegistry
            | Code::UnknownConsumer
            | Code::NoSchema
            | Code::SchemaMismatch
            | Code::Unindexable
            | Code::UnsupportedMediaType
            | Code::IdempotencyReuse
            | Code::ModelUnset
            | Code::Refused
            | Code::BadSettings
            | Code::NoSecret => Self::Invalid,
            Code::NotFound
            | Code::UnknownWorkspace
            | Code::UnknownPage
            | Code::UnknownPolicy
            | Code::UnknownIssue
            | Code::NotMade
            | Code::NotHeld => Self::Absent,
            Code::PreconditionFailed
            | Code::Exists
            | Code::UniqueClash
            | Code::IdTaken
            | Code::RiderRefused
            | Code::ForeignValue
            | Code::ForeignFence
            | Code::OldTicket
            | Code::AttemptLost
            | Code::Finished
            | Code::MassDelete
            | Code::Occupied
            | Code::TransitionRefused
            | Code::IssueArchived
            | Code::IssueMoved
            | Code::ReadOnly
            | Code::Overtaken => Self::Conflict,
            Code::LimitExceeded
            | Code::ValueTooLarge
            | Code::HeadersTooLarge
            | Code::TooManyLocks
            | Code::TooExpensive
            | Code::IndexNotReady
            | Code::Unsupported => Self::Unable,
            Code::Unavailable
            | Code::Contended
            | Code::Timeout
            | Code::RateLimited
            | Code::OverQuota
            | Code::Overloaded
            | Code::Stopping
            | Code::SourceFailed
            | Code::ModelOverloaded
            | Code::ModelUnreachable
            | Code::ModelTimedOut => Self::Unavailable,
            Code::OutcomeUnknown => Self::OutcomeUnknown,
            Code::Misplaced
            | Code::Full
            | Code::File
            | Code::NotStarted
            | Code::UnknownStore
            | Code::MethodNotAllowed => Self::Place,
            Code::Corrupt => Self::Corrupt,
            Code::Gone => Self::TooOld,
            Code::Differs | Code::Cancelled => Self::Differs,
            Code::Forbidden | Code::Unauthenticated | Code::CrossOrigin | Code::Reserved => {
                Self::Forbidden
            }
            Code::Locked | Code::TimedOut | Code::Computing | Code::Busy => Self::Locked,
            Code::LockLost => Self::Lost,
            Code::ComputationFailed
            | Code::TaskFailed
            | Code::ConsumerFailed
            | Code::ContradictingType
            | Code::EmptyFile
            | Code::Encrypted
            | Code::NoText
            | Code::Broken
            | Code::TooLarge
            | Code::TooMuchMemory
            | Code::TookTooLong
            | Code::Sandbox
            | Code::ModelRefused
            | Code::ModelRequestInvalid
            | Code::ModelTruncated
            | Code::ModelMalformed
            | Code::ModelDeclined
            | Code::ModelTooLarge => Self::Failed,
            Code::Internal => Self::Internal,
            Code::Interrupted => Self::Interrupted,
        }
    }

    /// How a command ends with an error.
    pub fn of_error(error: &impl Coded) -> Self {
        match error.code() {
            // A source that another try cannot read is in the wrong place.
            Code::SourceFailed if !error.retryable() => Self::Place,
            code => Self::of(code),
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_ascends_so_no_code_stands_twice() {
        let codes = Exit::TABLE.map(|(exit, _)| exit.code());
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
    }

    #[test]
    fn every_error_code_ends_with_an_exit_code_of_the_table() {
        for &code in Code::ALL {
            let exit = Exit::of(code);
            assert_ne!(exit, Exit::Done, "{code}");
            assert!(Exit::TABLE.iter().any(|(listed, _)| *listed == exit), "{code}");
        }
    }

    #[test]
    fn the_help_and_the_manual_name_every_code() {
        for (exit, _) in Exit::TABLE {
            assert!(Exit::help().contains(&format!("{:>3}  ", exit.code())));
            assert!(Exit::manual().contains(&format!("\\fB{}\\fR", exit.code())));
        }
    }
}
