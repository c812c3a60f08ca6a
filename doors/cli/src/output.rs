//! Standard output and what is said beside it.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Write};

use console::{Term, measure_text_width, truncate_str};
use indicatif::HumanBytes;
use serde::Serialize;

use crate::failure::{Failure, Result};

/// How results are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As the command and the place it writes to suggest.
    Fitting,
    /// For people (`--text`).
    Text,
    /// For programs (`--json`).
    Json,
}

/// Where a command writes its results. Buffered: nothing is sure to be out before [`flush`].
///
/// Closing the reading end (`| head`) is reported as [`Failure::closed`], which ends the command
/// without a word.
///
/// [`flush`]: Output::flush
pub struct Output {
    to: BufWriter<Box<dyn Write + Send + Sync>>,
    form: Form,
    terminal: bool,
}

impl Output {
    /// Standard output.
    pub fn stdout(form: Form) -> Self {
        let stdout = io::stdout();
        Self {
            terminal: stdout.is_terminal(),
            to: BufWriter::with_capacity(64 << 10, Box::new(stdout)),
            form,
        }
    }

    /// Whether JSON was asked for: what messages and errors go by.
    pub fn json(&self) -> bool {
        self.form == Form::Json
    }

    /// Whether records are shown as JSON lines: when asked for, and when a program reads them.
    pub fn json_lines(&self) -> bool {
        match self.form {
            Form::Fitting => !self.terminal,
            Form::Text => false,
            Form::Json => true,
        }
    }

    /// Whether a person reads this on a terminal.
    pub fn terminal(&self) -> bool {
        self.terminal
    }

    /// Writes text; this is what `write!` and `writeln!` call.
    pub fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result {
        self.to.write_fmt(text).map_err(|error| unwritten(&error))
    }

    /// Writes bytes.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result {
        self.to.write_all(bytes).map_err(|error| unwritten(&error))
    }

    /// Writes something and the JSON it belongs to on one line, with a tab between. On a terminal the
    /// JSON is shortened to what fits the line.
    pub fn write_columns(&mut self, name: &str, json: &str) -> Result {
        if self.terminal {
            let columns = usize::from(Term::stdout().size().1);
            writeln!(self, "{name}\t{}", fitted(name, json, columns))
        } else {
            writeln!(self, "{name}\t{json}")
        }
    }

    /// Writes a value as one line of JSON.
    pub fn write_json(&mut self, value: &impl Serialize) -> Result {
        serde_json::to_writer(&mut self.to, value)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(self.to))
            .map_err(|error| unwritten(&error))
    }

    /// Sends out what was written.
    pub fn flush(&mut self) -> Result {
        self.to.flush().map_err(|error| unwritten(&error))
    }
}

/// What of `json` fits a line of `columns` after `name` and a tab. Control characters, which a
/// terminal would obey, show as JSON escapes.
fn fitted(name: &str, json: &str, columns: usize) -> String {
    const TAB: usize = 8;
    /// Below this nothing can be recognised; better to break the line.
    const LEAST: usize = 24;
    let before = (measure_text_width(name) / TAB + 1) * TAB;
    let room = columns.saturating_sub(before).max(LEAST);
    let mut shown = String::new();
    // One character more than can fit, so that shortening shows.
    for c in json.chars().take(room + 1) {
        if c.is_control() {
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    truncate_str(&shown, room, "…").into_owned()
}

fn unwritten(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Failure::closed()
    } else {
        Failure::file("cannot write the output", error)
    }
}

/// A size for people.
pub fn size(bytes: u64) -> String {
    HumanBytes(bytes).to_string().replace(".00 ", " ")
}

/// Says something on standard error that is neither a result nor an error. That nobody hears it
/// stops nothing.
pub fn note(text: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_shortened_to_the_columns_that_are_left() {
        let json = format!("\"{}\"", "x".repeat(100));
        assert_eq!(fitted("user:7", &json, 40), format!("\"{}…", "x".repeat(30)));
        assert_eq!(measure_text_width(&fitted("a:name:of:17:chars", &json, 60)), 36);
        assert_eq!(fitted("user:7", "\"short\"", 40), "\"short\"");
        let wide = fitted("k", &"漢".repeat(50), 50);
        assert_eq!(wide, format!("{}…", "漢".repeat(20)));
    }

    #[test]
    fn sizes_are_no_longer_than_they_need_be() {
        let sizes = [0, 1_974, 16 << 20, 1_610_613].map(size);
        assert_eq!(sizes, ["0 B", "1.93 KiB", "16 MiB", "1.54 MiB"]);
    }

    #[test]
    fn a_terminal_is_never_told_what_to_do() {
        assert_eq!(fitted("k", "\"\u{9b}2J\"", 80), r#""\u009b2J""#);
    }
}
