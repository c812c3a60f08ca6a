use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Declares the codes: for each its variant, its name, its HTTP status, its meaning and its hint.
macro_rules! codes {
    ($($variant:ident $name:literal $status:literal $meaning:literal $hint:literal)+) => {
        /// What went wrong, as a stable code: the same from Rust, the command line, HTTP and MCP.
        ///
        /// Programs decide by the code. The message of an error says what happened in its very case.
        /// [`Code::ALL`] is the list of all codes. In JSON a code is its name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Code {
            $(
                #[doc = $meaning]
                #[serde(rename = $name)]
                $variant,
            )+
        }

        impl Code {
            /// Every code, in the order in which it is documented.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name that programs rely on, for example `precondition-failed`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The HTTP status of a response with this code.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }

            /// What the code means, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),+ }
            }

            /// What to do, as far as the code alone can say. It names nothing that only one door has.
            pub const fn hint(self) -> &'static str {
                match self { $(Self::$variant => $hint),+ }
            }

            /// The code with a name. `None` for a name that no code has.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

codes! {
    Invalid "invalid" 400
        "The request is malformed."
        "Change the request; nothing was done."
    KeyMismatch "key-mismatch" 400
        "The key does not match its space's key pattern."
        "Give every variable of the space's pattern a value."
    BadQuery "bad-query" 400
        "The query is invalid."
        "Change the request; nothing was done."
    BadCursor "bad-cursor" 400
        "The cursor has expired, or belongs to another query or caller."
        "Begin again with the first page."
    BadChange "bad-change" 400
        "The change does not apply to the stored value."
        "Change the request; nothing was done."
    BadDocument "bad-document" 400
        "A document is not a valid agent entry."
        "Correct or remove the document, then import everything again; that is safe."
    Unconfirmed "unconfirmed" 409
        "The operation needs confirmation."
        "Check what would be changed, then confirm it; nothing was done."
    BadMessage "bad-message" 400
        "The message cannot be enqueued."
        "Change the message; nothing was enqueued."
    BadPath "bad-path" 400
        "The lock path is malformed."
        "Separate segments by colons, or leave the path out to lock everything."
    OutsideTree "outside-tree" 400
        "The path is not in the lock tree of its root."
        "Ask for a path of the schema's lock tree, or declare this one."
    NeedsScan "needs-scan" 400
        "The query needs a full scan, which was not allowed."
        "Name an index, or allow the scan."
    TooExpensive "too-expensive" 422
        "The query used up its read budget before it finished."
        "Use a smaller radius or a smaller box, or ask for fewer records."
    Unauthenticated "unauthenticated" 401
        "The credential is missing or invalid."
        "Send a valid credential."
    Forbidden "forbidden" 403
        "The credential does not allow this operation."
        "Use a credential that may do this; nothing was done."
    CrossOrigin "cross-origin" 403
        "A browser sent the request from a page of another origin."
        "Send it from an allowed origin, or allow this one in the server's configuration."
    Reserved "reserved" 403
        "The key is reserved for Keyward."
        "Use another key, or write this one through what keeps it; nothing was done."
    NotFound "not-found" 404
        "It does not exist, or the caller may not see it."
        "Check the name, or list what exists."
    UnknownStore "unknown-store" 404
        "The server has no store of this name."
        "Name a store that the server has."
    UnknownSpace "unknown-space" 404
        "The schema declares no space of this name."
        "Name a space of the schema, or declare this one."
    UnknownRegistry "unknown-registry" 404
        "No registry of this name is configured."
        "Name a registry that is configured, or configure this one."
    UnknownConsumer "unknown-consumer" 404
        "The registry has no consumer of this name."
        "Name a consumer of the registry's settings."
    UnknownWorkspace "unknown-workspace" 404
        "No workspace of this name is configured."
        "Name a workspace that is configured, or configure this one."
    UnknownPage "unknown-page" 404
        "The workspace has no such page."
        "List the pages, and name one of them."
    UnknownPolicy "unknown-policy" 404
        "The page has no such policy."
        "List the policies of the page, and name one of them."
    NotMade "not-made" 404
        "The policy has not been extracted or translated yet."
        "Have the policy extracted or translated first."
    UnknownIssue "unknown-issue" 404
        "The page has no such issue."
        "List the issues of the page, and name one of them."
    UnknownIndex "unknown-index" 404
        "The space has no index of this name."
        "Name an index of the space, or declare this one."
    NoSchema "no-schema" 404
        "No schema was found."
        "Name a schema file, or create one."
    MethodNotAllowed "method-not-allowed" 405
        "The path does not support this method."
        "Use a method that the path supports."
    Timeout "timeout" 408
        "The request did not arrive in time."
        "Send the whole request faster; nothing was done."
    TimedOut "timed-out" 409
        "The wait timed out."
        "Try again, or wait longer."
    UniqueClash "unique-clash" 409
        "Another record has the same values in a unique index."
        "Choose other values, or change the other record first."
    Exists "exists" 409
        "It already exists."
        "Choose another name or key, or change the existing one."
    IdTaken "id-taken" 409
        "The id is already used for something else."
        "Choose another id."
    IndexNotReady "index-not-ready" 409
        "The index is disabled or still being built."
        "Build the index, or wait until it is built."
    Contended "contended" 409
        "Others kept changing the same entry."
        "Try again; nothing was done."
    Locked "locked" 409
        "Another holder has the lock."
        "Wait until the lock is released, then try again."
    WouldDeadlock "would-deadlock" 409
        "The caller already holds a lock below this one and would wait for itself."
        "Release what is held first, or ask for the coarser lock first."
    LockLost "lock-lost" 409
        "The caller no longer holds the lock."
        "Nothing was written: take the lock again, read again, and begin again."
    OldTicket "old-ticket" 409
        "A newer ticket has replaced this one."
        "Nothing was written: use the ticket that came last."
    Computing "computing" 409
        "Another caller is still computing the value."
        "Ask again, or wait longer."
    NotHeld "not-held" 409
        "Nobody holds the lock."
        "Name a path as it is held, or a token."
    AttemptLost "attempt-lost" 409
        "This attempt no longer holds the message."
        "Stop working on it; nothing was changed."
    RiderRefused "rider-refused" 409
        "A check of the rider failed."
        "Read again what the rider checks, and retry with a new rider; nothing was changed."
    Finished "finished" 409
        "The job has already finished."
        "Read its result."
    Cancelled "cancelled" 409
        "The task was cancelled."
        "Start it again if its result is still needed."
    Busy "busy" 409
        "Another run of the registry is in progress."
        "Wait for that run to end, then try again."
    MassDelete "mass-delete" 409
        "The run would delete more of the registry than its limit allows."
        "Look at the plan, and allow the mass delete if it is what you want."
    Occupied "occupied" 409
        "Another owner keeps its documents under the same keys."
        "Use another store or another prefix."
    TransitionRefused "transition-refused" 409
        "The issue cannot change from its state to that one."
        "Ask for one of the states it can become."
    IssueArchived "issue-archived" 409
        "The issue is archived and cannot be changed."
        "Bring the issue back first, then change it."
    IssueMoved "issue-moved" 409
        "Somebody else changed the issue in the meantime."
        "Look at the issue as it is now, and decide again."
    ReadOnly "read-only" 409
        "The pages are kept elsewhere and can only be read here."
        "Change the pages where they are kept."
    ModelUnset "model-unset" 409
        "No model is configured, or one of its settings is missing."
        "Write the setting, and start again."
    TaskFailed "task-failed" 409
        "The job failed."
        "Fix the cause, then start the job again."
    Overtaken "overtaken" 409
        "Another process is doing the same."
        "Leave it to the other process, or end that one first."
    Refused "refused" 409
        "The migration is not possible for this schema or store."
        "Change the migration or the schema; nothing was done."
    ForeignValue "foreign-value" 409
        "The key holds a value of another kind."
        "Choose another key."
    ForeignFence "foreign-fence" 409
        "The key was written under the locks of another root."
        "Write a key under the locks of one root only."
    ComputationFailed "computation-failed" 409
        "The computation of the value failed recently."
        "Fix what failed, then ask again after the pause."
    Differs "differs" 409
        "The two sides are not equal."
        "Find out which side is right, then copy again."
    Gone "gone" 410
        "The requested history is no longer kept."
        "Read the current state, and continue from there."
    PreconditionFailed "precondition-failed" 412
        "The stored version is not the one the request expects."
        "Read it again and retry with its new version; nothing was written."
    LimitExceeded "limit-exceeded" 413
        "The request exceeds a limit."
        "Make the request smaller, or split it; nothing was done."
    ValueTooLarge "value-too-large" 413
        "The value exceeds the size limit of its space."
        "Make the value smaller, or raise value_bytes_max."
    UnsupportedMediaType "unsupported-media-type" 415
        "The media type of the body is not supported."
        "Send a supported media type; nothing was done."
    SchemaMismatch "schema-mismatch" 422
        "The value does not match the schema of its space."
        "Change the value; nothing was written."
    ContradictingType "contradicting-type" 422
        "The content of the attachment does not match its declared type or name."
        "Correct the declared type, or send the right file."
    EmptyFile "empty-file" 422
        "The attachment is empty."
        "Send the file again; nothing of it arrived."
    Encrypted "encrypted" 422
        "The attachment is encrypted."
        "Remove the password and send the document again."
    NoText "no-text" 422
        "The attachment has no text; it may be a scan."
        "Run optical character recognition on it first."
    Broken "broken" 422
        "The attachment is not a valid file of its format."
        "Open it in the program that made it, and save it again."
    TooLarge "too-large" 422
        "The attachment exceeds an extraction limit."
        "Split the document, or raise the limit."
    TooMuchMemory "too-much-memory" 422
        "Text extraction from the attachment exceeded its memory limit."
        "Split or simplify the document, or raise the limit."
    TookTooLong "took-too-long" 422
        "Text extraction from the attachment exceeded its time limit."
        "Split or simplify the document, or raise the limit."
    ModelTruncated "model-truncated" 422
        "The model's answer was cut off at its token limit."
        "Raise output_tokens_max, or ask for less at once."
    ModelDeclined "model-declined" 422
        "The model declined to answer."
        "Change what is asked, or try another model."
    ModelTooLarge "model-too-large" 502
        "The model's answer exceeds the size limit."
        "Ask for less at once."
    ModelMalformed "model-malformed" 502
        "The model's answer does not have the requested form."
        "Change the prompt or the schema, or try another model."
    ModelRefused "model-refused" 502
        "The model's provider rejected the API key."
        "Check the key, and what the provider allows it to do."
    ModelRequestInvalid "model-request-invalid" 422
        "The model's provider rejected the request."
        "Change the request or the settings; asking again gives the same."
    Unindexable "unindexable" 422
        "A field has a value that its index cannot hold."
        "Change the field, or the type of the index."
    IdempotencyReuse "idempotency-reuse" 422
        "The idempotency key was already used for another request."
        "Use a new idempotency key for each request."
    HeadersTooLarge "headers-too-large" 431
        "The request headers exceed a limit."
        "Send fewer or shorter headers."
    TooManyLocks "too-many-locks" 429
        "The root has its maximum number of lock holders or waiters."
        "Wait until some are released, or lock something coarser."
    RateLimited "rate-limited" 429
        "The caller exceeded its request rate."
        "Wait before you try again; nothing was done."
    OverQuota "over-quota" 429
        "The caller used up its quota."
        "Wait until the quota is renewed; nothing was done."
    Unsupported "unsupported" 501
        "The store's engine does not support this operation, or the file format is not supported."
        "Use an engine that can do this; nothing was done."
    Unavailable "unavailable" 503
        "The store is unavailable; nothing was done."
        "Try again; nothing was done."
    ModelOverloaded "model-overloaded" 503
        "The model's provider is overloaded."
        "Ask again later, or lower concurrency_max."
    ModelUnreachable "model-unreachable" 503
        "The model's provider could not be reached."
        "Check base_url and the network, and ask again."
    Sandbox "sandbox" 500
        "The process that extracts text from attachments failed."
        "Try again; if it stays, look at the installation."
    Overloaded "overloaded" 503
        "The server is at capacity, or the caller uses its whole share of it."
        "Try again in a moment; nothing was done."
    Stopping "stopping" 503
        "The server is shutting down."
        "Try again in a moment, or ask another server."
    Interrupted "interrupted" 503
        "The operation was interrupted before it finished."
        "Run it again to finish it."
    SourceFailed "source-failed" 502
        "The repository or the source of the pages could not be read; nothing was changed."
        "Try again later; nothing was changed."
    ConsumerFailed "consumer-failed" 502
        "A consumer failed to take a change."
        "Look at what the consumer says, then try again."
    ModelTimedOut "model-timed-out" 504
        "The model did not answer in time."
        "Ask again, ask for less at once, or raise timeout."
    OutcomeUnknown "outcome-unknown" 504
        "The operation may or may not have been done."
        "It may or may not have been done: read the keys before trying again."
    Full "full" 507
        "The store has no space left."
        "Make room; nothing was written and nothing is lost."
    Corrupt "corrupt" 500
        "The stored data is damaged."
        "Stop using this store, keep a copy of it, and restore a backup."
    Misplaced "misplaced" 500
        "The store cannot be opened at its configured location."
        "Change the store's URL or the place it points to."
    BadSettings "bad-settings" 500
        "The settings of the registry are invalid."
        "Correct the settings."
    NoSecret "no-secret" 500
        "A secret that the settings name cannot be read."
        "Set the variable, or write the file, that the settings name."
    Usage "usage" 400
        "The command line is invalid."
        "Read the help of the command."
    File "file" 500
        "A file or stream cannot be read or written."
        "Check the path, its permissions and the free space."
    NotStarted "not-started" 500
        "The server or the command could not be started."
        "Fix the cause, then start it again."
    Internal "internal" 500
        "Keyward has a fault."
        "This is a fault in Keyward: please report it."
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No code has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown error code {0:?}")]
pub struct UnknownCode(pub String);

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(name: &str) -> Result<Self, UnknownCode> {
        Self::from_name(name).ok_or_else(|| UnknownCode(name.to_owned()))
    }
}

/// An error that has a code: the error of a store, of a service or of a system.
pub trait Coded: std::error::Error {
    /// The stable code.
    fn code(&self) -> Code;

    /// What to do next in this very case.
    fn hint(&self) -> &str {
        self.code().hint()
    }

    /// Whether the same request may succeed later, without a risk of doing it twice.
    fn retryable(&self) -> bool;
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn is_kebab_case(name: &str) -> bool {
        name.split('-')
            .all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase()))
    }

    #[test]
    fn names_are_unique_and_kebab_case() {
        let names: HashSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for name in names {
            assert!(is_kebab_case(name), "{name}");
        }
    }

    #[test]
    fn statuses_are_those_of_errors() {
        for code in Code::ALL {
            assert!((400..600).contains(&code.status()), "{code} {}", code.status());
        }
    }

    #[test]
    fn meanings_and_hints_are_sentences_that_suit_every_door() {
        for code in Code::ALL {
            for text in [code.meaning(), code.hint()] {
                assert!(text.starts_with(|c: char| c.is_ascii_uppercase()), "{code}: {text}");
                assert!(text.ends_with('.') && !text.ends_with(".."), "{code}: {text}");
                for door in ["GET ", "POST ", "PUT ", "DELETE ", "/v1/", "--", "Idempotency-Key"] {
                    assert!(!text.contains(door), "{code}: {text}");
                }
            }
        }
    }

    #[test]
    fn a_code_is_its_name_in_text_and_in_json() {
        for &code in Code::ALL {
            assert_eq!(code.to_string().parse(), Ok(code));
            let json = serde_json::to_value(code).unwrap();
            assert_eq!(json, code.name());
            assert_eq!(serde_json::from_value::<Code>(json).unwrap(), code);
        }
        assert_eq!("Invalid".parse::<Code>(), Err(UnknownCode("Invalid".to_owned())));
        assert_eq!(format!("{:>6}", Code::Full), "  full");
    }
}
