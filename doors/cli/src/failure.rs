//! What the user is told when something did not work.

use std::fmt;
use std::io::{self, Write};

use keyward::schema::Problems;
use keyward::{
    Code, Coded, ParseError, agents, agreements, cache, locks, migrate, queue, records, registry,
};
use serde::Serialize;

use crate::exit::Exit;

/// What a command comes to.
pub type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Why a command did not do what it was asked: what to say, and the code to exit with.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    /// The code that JSON shows. `None`, where there is nothing to tell.
    code: Option<Code>,
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
    code: Code,
    message: &'f str,
    hint: Option<&'f str>,
    retryable: bool,
}

impl Failure {
    /// A failure that ends the command as its code says.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code: Some(code), message: message.into(), ..Self::told(Exit::of(code)) }
    }

    /// The failure that an error of a store, a service or a system is.
    fn of(error: &impl Coded) -> Self {
        let failure = Self::new(error.code(), error.to_string());
        let hint = advice(error);
        Self { exit: Exit::of_error(error), retryable: error.retryable(), ..failure.hint(hint) }
    }

    /// Input that makes no sense as it is.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::Invalid, message)
    }

    /// A file or stream that cannot be read or written; `what` begins the message.
    pub fn file(what: impl fmt::Display, error: &io::Error) -> Self {
        Self::new(Code::File, format!("{what}: {error}"))
    }

    /// Nobody reads the output any more (`| head`): an end, and nothing to tell.
    pub fn closed() -> Self {
        Self::told(Exit::Done)
    }

    /// An exit code for what the output has told already.
    pub fn told(exit: Exit) -> Self {
        Self {
            exit,
            code: None,
            message: String::new(),
            hint: None,
            retryable: false,
            passed: None,
        }
    }

    /// The same, once it was told.
    #[must_use]
    pub fn into_told(self) -> Self {
        Self { message: String::new(), ..self }
    }

    /// Another program's exit code, or that of a signal.
    pub fn passed(code: u8, message: &str) -> Self {
        Self { passed: Some(code), ..Self::new(Code::Interrupted, message) }
    }

    /// Ctrl-C in the middle of work.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Self::new(Code::Interrupted, message)
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

    /// The same with another exit code than that of its code.
    #[must_use]
    pub fn exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    /// The same with another code.
    #[must_use]
    pub fn recoded(self, code: Code) -> Self {
        Self { exit: Exit::of(code), code: Some(code), ..self }
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

    /// Whether it has this code.
    pub fn is(&self, code: Code) -> bool {
        self.code == Some(code)
    }

    /// Whether it is [`Failure::closed`].
    pub fn is_closed(&self) -> bool {
        self.exit == Exit::Done
    }

    /// Tells it, as text or as one JSON object.
    pub fn tell(&self, to: &mut impl Write, json: bool) -> io::Result<()> {
        let Some(code) = self.code.filter(|_| !self.message.is_empty()) else { return Ok(()) };
        if json {
            let report = Report {
                error: Body {
                    code,
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

/// What to do about an error, in terms of commands where its own hint is only that of its code.
fn advice(error: &impl Coded) -> &str {
    let (code, hint) = (error.code(), error.hint());
    match code {
        _ if hint != code.hint() => hint,
        Code::Corrupt => DAMAGED,
        Code::Reserved => RESERVED,
        Code::NeedsScan => "Name an index, or add --allow-scan to read it all.",
        Code::MassDelete => {
            "Look at what would go (keyward sync NAME --plan); if it may, repeat the command with \
             --allow-mass-delete."
        }
        _ => hint,
    }
}

macro_rules! from_errors {
    ($($error:ty),+) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::of(&error)
            }
        })+
    };
}

from_errors!(
    keyward::Error,
    agents::Error,
    agreements::Error,
    cache::Error,
    locks::Error,
    queue::Error,
    records::Error,
    registry::Error
);

impl From<migrate::Error> for Failure {
    fn from(error: migrate::Error) -> Self {
        let failure = Self::of(&error);
        let migrate::Error::NoSource { variable, .. } = error else { return failure };
        failure.hint(format!(
            "Nothing was done. Add --field {variable}=FIELD to take it from the value, or \
             --variable {variable}=OLD from another variable of the old key."
        ))
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::invalid("the schema cannot be used").drawn(format!("\n{problems}"))
    }
}

#[cfg(test)]
mod tests {
    use keyward::{Error, ErrorKind, Key};

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
