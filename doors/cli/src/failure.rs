//! What the user is told when something did not work.

use std::fmt;
use std::io::{self, Write};

use keyward::schema::Problems;
use keyward::{
    Coded, ErrorKind, ParseError, agents, agreements, cache, locks, migrate, queue, records,
    registry,
};
use serde::Serialize;

use crate::exit::Exit;

/// What a command comes to.
pub type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Why a command did not do what it was asked: what to say, and the code to exit with.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    /// The code that JSON shows.
    code: &'static str,
    message: String,
    hint: Option<Hint>,
    retryable: bool,
    /// The code of a command that was run, to exit with instead.
    passed: Option<u8>,
}

#[derive(Debug)]
enum Hint {
    /// What to do next.
    Advice(String),
    /// The text that is wrong, with a caret under the place.
    Drawing(String),
}

#[derive(Serialize)]
struct Report<'f> {
    error: Body<'f>,
}

#[derive(Serialize)]
struct Body<'f> {
    code: &'f str,
    message: &'f str,
    hint: Option<&'f str>,
    retryable: bool,
}

impl Failure {
    /// A failure with the code that JSON shows for it.
    pub fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self { exit, code, message: message.into(), hint: None, retryable: false, passed: None }
    }

    /// Input that makes no sense as it is.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Exit::Invalid, "invalid", message)
    }

    /// A file or stream that cannot be read or written; `what` begins the message.
    pub fn file(what: impl fmt::Display, error: &io::Error) -> Self {
        Self::new(Exit::Place, "file", format!("{what}: {error}"))
    }

    /// Nobody reads the output any more (`| head`): an end, and nothing to tell.
    pub fn closed() -> Self {
        Self::new(Exit::Done, "closed", "nobody reads the output")
    }

    /// An exit code for what the output has told already.
    pub fn told(exit: Exit) -> Self {
        Self::new(exit, "told", "")
    }

    /// The same, once it was told.
    #[must_use]
    pub fn into_told(self) -> Self {
        Self { message: String::new(), ..self }
    }

    /// Another program's exit code, or that of a signal.
    pub fn passed(code: u8, message: &str) -> Self {
        Self { passed: Some(code), ..Self::new(Exit::Interrupted, "interrupted", message) }
    }

    /// Ctrl-C in the middle of work.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Self::new(Exit::Interrupted, "interrupted", message)
    }

    /// A key or prefix (`what`) that cannot be read.
    pub fn unreadable(what: &str, error: &ParseError) -> Self {
        let message = format!(
            "the {what} is not valid at character {}: {}",
            error.position(),
            error.message()
        );
        let pointing = error.pointing();
        let drawing = pointing.strip_suffix(error.message()).unwrap_or(&pointing);
        Self::invalid(message).drawn(drawing.trim_end())
    }

    /// The same with advice on what to do next.
    #[must_use]
    pub fn hint(mut self, advice: impl Into<String>) -> Self {
        self.hint = Some(Hint::Advice(advice.into()));
        self
    }

    /// The same, saying whether trying again may help.
    #[must_use]
    pub fn retryable(self, retryable: bool) -> Self {
        Self { retryable, ..self }
    }

    /// The same with one more piece of advice.
    #[must_use]
    pub fn also(self, advice: &str) -> Self {
        match &self.hint {
            Some(Hint::Advice(first)) => {
                let both = format!("{first} {advice}");
                self.hint(both)
            }
            _ => self.hint(advice),
        }
    }

    /// The same with a drawing of what is wrong.
    #[must_use]
    pub fn drawn(mut self, drawing: impl Into<String>) -> Self {
        self.hint = Some(Hint::Drawing(drawing.into()));
        self
    }

    /// The same, saying first where it happened.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        self.passed.unwrap_or(self.exit.code())
    }

    /// Whether this is the failure with a code that JSON shows.
    pub fn is(&self, code: &str) -> bool {
        self.code == code
    }

    /// Tells it, as text or as one JSON object.
    pub fn tell(&self, to: &mut impl Write, json: bool) -> io::Result<()> {
        if self.exit == Exit::Done || self.message.is_empty() {
            return Ok(());
        }
        if json {
            let report = Report {
                error: Body {
                    code: self.code,
                    message: &self.message,
                    hint: self.hint.as_ref().map(|hint| match hint {
                        Hint::Advice(text) | Hint::Drawing(text) => &**text,
                    }),
                    retryable: self.retryable,
                },
            };
            serde_json::to_writer(&mut *to, &report)?;
            return writeln!(to);
        }
        writeln!(to, "error: {}", self.message)?;
        match &self.hint {
            None => Ok(()),
            Some(Hint::Advice(advice)) => writeln!(to, "hint: {advice}"),
            Some(Hint::Drawing(drawing)) => writeln!(to, "{drawing}"),
        }
    }
}

/// What to do about a damaged store, with the commands that do it.
const DAMAGED: &str = "Stop using this store and keep a copy of it. Restore the latest backup into a new \
                       directory: keyward -s embedded:NEW restore FILE. Without a backup, keyward export \
                       --salvage > rest.jsonl saves what an embedded store still gives, and keyward -s \
                       embedded:NEW import rest.jsonl --raw reads it into a new one.";

/// What to do about a key that a plain write must leave alone.
const RESERVED: &str = "Nothing was done. Write records with keyward record, and agents' entries with keyward \
                        agent; other keys of Keyward change with what they belong to. To repair a store by \
                        hand, put, del and import take --raw.";

/// The hint of an error, in terms of commands.
fn advice(hint: &str) -> &str {
    match hint {
        hint if hint == ErrorKind::Corrupt.hint() => DAMAGED,
        hint if hint == ErrorKind::Reserved.hint() => RESERVED,
        hint => hint,
    }
}

impl From<keyward::Error> for Failure {
    fn from(error: keyward::Error) -> Self {
        let kind = error.kind();
        let failure = Self::new(kind.into(), kind.code().name(), error.to_string());
        let hint = error.advice().unwrap_or_else(|| advice(kind.hint()));
        // What has a hint of its own does not help by itself when tried again.
        let retryable = kind.retryable() && error.advice().is_none();
        Self { retryable, ..failure.hint(hint) }
    }
}

/// The errors of services say the same things of themselves.
macro_rules! from_errors_of {
    ($($service:ident),+) => {
        $(impl From<$service::Error> for Failure {
            fn from(error: $service::Error) -> Self {
                let (exit, code) = (Exit::from(&error), error.code().name());
                let hint = advice(error.hint());
                let failure = Self::new(exit, code, error.to_string()).hint(hint);
                Self { retryable: error.retryable(), ..failure }
            }
        })+
    };
}

from_errors_of!(agreements, cache, locks, queue);

impl From<agents::Error> for Failure {
    fn from(error: agents::Error) -> Self {
        let hint = advice_of(&error).unwrap_or_else(|| advice(error.hint()));
        let failure =
            Self::new(Exit::from(&error), error.code().name(), error.to_string()).hint(hint);
        Self { retryable: error.retryable(), ..failure }
    }
}

/// What the store itself advises in this very case.
fn advice_of(error: &agents::Error) -> Option<&str> {
    match error {
        agents::Error::Records(error) => advice_of_records(error),
        agents::Error::InDocument { source, .. }
        | agents::Error::InEntry { source, .. }
        | agents::Error::Partly { source, .. }
        | agents::Error::Unflushed { source, .. } => advice_of(source),
        _ => None,
    }
}

fn advice_of_records(error: &records::Error) -> Option<&str> {
    match error {
        records::Error::Store(error) => error.advice(),
        _ => None,
    }
}

impl From<registry::Error> for Failure {
    fn from(error: registry::Error) -> Self {
        let hint = match &error {
            registry::Error::MassDelete { .. } => {
                "Look at what would go (keyward sync NAME --plan); if it may, repeat the command with \
                 --allow-mass-delete."
            }
            error => advice(error.hint()),
        };
        let failure =
            Self::new(Exit::from(&error), error.code().name(), error.to_string()).hint(hint);
        Self { retryable: error.retryable(), ..failure }
    }
}

impl From<records::Error> for Failure {
    fn from(error: records::Error) -> Self {
        let hint = match &error {
            records::Error::NeedsScan { .. } => {
                "Name an index, or add --allow-scan to read it all."
            }
            error => advice_of_records(error).unwrap_or_else(|| advice(error.hint())),
        };
        let failure =
            Self::new(Exit::from(&error), error.code().name(), error.to_string()).hint(hint);
        Self { retryable: error.retryable(), ..failure }
    }
}

impl From<migrate::Error> for Failure {
    fn from(error: migrate::Error) -> Self {
        match error {
            migrate::Error::Records(error) => error.into(),
            migrate::Error::NoSource { ref variable, .. } => {
                let hint = format!(
                    "Nothing was done. Add --field {variable}=FIELD to take it from the value, or \
                     --variable {variable}=OLD from another variable of the old key."
                );
                Self::new(Exit::from(&error), error.code().name(), error.to_string()).hint(hint)
            }
            error => Self::new(Exit::from(&error), error.code().name(), error.to_string())
                .hint(error.hint()),
        }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::new(Exit::Invalid, "schema", "the schema cannot be used")
            .drawn(format!("\n{problems}"))
    }
}

#[cfg(test)]
mod tests {
    use keyward::{Error, Key};

    use super::*;

    fn told(failure: &Failure, json: bool) -> String {
        let mut text = Vec::new();
        failure.tell(&mut text, json).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn an_error_of_the_store_keeps_its_kind() {
        let failure = Failure::from(Error::new(ErrorKind::Unavailable, "the store is busy"));
        assert_eq!(failure.code(), Exit::Unavailable.code());
        assert_eq!(
            told(&failure, false),
            "error: the store is busy\nhint: Try again; nothing was done.\n"
        );
        assert_eq!(
            told(&failure, true),
            r#"{"error":{"code":"unavailable","message":"the store is busy","hint":"Try again; nothing was done.","retryable":true}}"#
                .to_owned()
                + "\n"
        );
    }

    #[test]
    fn a_damaged_store_says_how_to_restore_and_how_to_salvage() {
        let failure = Failure::from(Error::new(ErrorKind::Corrupt, "data.mdb is damaged"));
        assert_eq!(failure.code(), Exit::Corrupt.code());
        let text = told(&failure, false);
        for way in ["keyward -s embedded:NEW restore", "keyward export --salvage > rest.jsonl"] {
            assert!(text.contains(way), "{text}");
        }
        let records = records::Error::from(Error::new(ErrorKind::Corrupt, "data.mdb is damaged"));
        assert_eq!(told(&Failure::from(records), false), text);
    }

    #[test]
    fn a_key_that_cannot_be_read_is_drawn_with_a_caret() {
        let error = Key::parse("user:50%").unwrap_err();
        let text = told(&Failure::unreadable("key", &error), false);
        let mut lines = text.lines();
        let first = lines.next().unwrap();
        assert!(first.starts_with("error: the key is not valid at character 8: a % starts"));
        assert_eq!(lines.next(), Some("  user:50%"));
        assert_eq!(lines.next(), Some("         ^"));
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn a_closed_output_is_no_failure_to_speak_of() {
        assert_eq!(told(&Failure::closed(), false), "");
        assert_eq!(told(&Failure::closed(), true), "");
    }
}
