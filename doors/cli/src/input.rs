//! JSON that a command is given: as an argument, in a file, or on standard input.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use keyward::{Code, Json, JsonError};

use crate::failure::{Failure, Result};
use crate::output::note;

/// Where a value is to come from.
#[derive(Debug)]
pub enum Input {
    /// From the command line.
    Given(Json),
    /// From standard input (`-`).
    Stdin,
    /// From a file (`@FILE`).
    File(PathBuf),
}

impl Input {
    /// Reads an argument. A value that stands there is checked; nothing else is touched.
    pub fn new(argument: &str) -> Result<Self> {
        match argument.strip_prefix('@') {
            Some(path) => Ok(Self::File(path.into())),
            None if argument == "-" => Ok(Self::Stdin),
            None => json("value", argument).map(Self::Given),
        }
    }

    /// The value, which has at most `bytes_max` bytes.
    pub async fn json(self, bytes_max: usize) -> Result<Json> {
        let (what, path) = match self {
            Self::Given(value) => return Ok(value),
            Self::Stdin => ("standard input".to_owned(), None),
            Self::File(path) => (path.display().to_string(), Some(path)),
        };
        if path.is_none() && io::stdin().is_terminal() {
            note("reading JSON from this terminal (Ctrl-D ends)");
        }
        // White space between tokens is not stored, so the text may be larger than the value.
        let text_max = bytes_max.saturating_mul(4) as u64;
        let read = tokio::task::spawn_blocking(move || {
            let mut text = Vec::new();
            match path {
                None => io::stdin().lock().take(text_max + 1).read_to_end(&mut text)?,
                Some(path) => File::open(path)?.take(text_max + 1).read_to_end(&mut text)?,
            };
            Ok(text)
        });
        let text = match read.await.map_err(io::Error::from).flatten() {
            Ok(text) => text,
            Err(error) => return Err(Failure::file(format_args!("cannot read {what}"), &error)),
        };
        if text.len() as u64 > text_max {
            let message =
                format!("{what} has more than {text_max} bytes; a value has at most {bytes_max}");
            return Err(Failure::new(Code::LimitExceeded, message));
        }
        Json::parse(text).map_err(|JsonError { message, offset }| {
            Failure::invalid(format!("{what} is not JSON: {message} at byte {offset}"))
        })
    }
}

/// A file of lines, or standard input for `-`; and its length if that is known.
pub fn open_lines(file: &Path) -> Result<(Box<dyn Read + Send>, Option<u64>)> {
    if file == Path::new("-") {
        if io::stdin().is_terminal() {
            note("reading lines from this terminal (Ctrl-D ends)");
        }
        return Ok((Box::new(io::stdin()), None));
    }
    let failed = |error| Failure::file(format_args!("cannot read {}", file.display()), &error);
    let opened = File::open(file).map_err(failed)?;
    let found = opened.metadata().map_err(failed)?;
    let length = found.is_file().then_some(found.len());
    Ok((Box::new(opened), length))
}

/// A whole file, or standard input for `-`, of at most so many bytes.
pub async fn whole_file(file: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let is_stdin = file == Path::new("-");
    if is_stdin && io::stdin().is_terminal() {
        note("reading from this terminal (Ctrl-D ends)");
    }
    let what = if is_stdin { "standard input".to_owned() } else { file.display().to_string() };
    let path = file.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        match is_stdin {
            true => io::stdin().lock().take(bytes_max + 1).read_to_end(&mut bytes)?,
            false => File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?,
        };
        Ok(bytes)
    });
    match read.await.map_err(io::Error::from).flatten() {
        Ok(bytes) if bytes.len() as u64 > bytes_max => {
            let message = format!("{what} has more than {bytes_max} bytes");
            Err(Failure::new(Code::LimitExceeded, message))
        }
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(Failure::file(format_args!("cannot read {what}"), &error)),
    }
}

/// JSON as an argument.
pub fn json(what: &str, text: &str) -> Result<Json> {
    /// What still fits a line.
    const SHOWN: usize = 60;
    let JsonError { message, offset } = match Json::parse(text.to_owned()) {
        Ok(json) => return Ok(json),
        Err(error) => error,
    };
    let short = text.chars().count() <= SHOWN && !text.contains(char::is_control);
    let shown = if short { text } else { "given" };
    let failure =
        Failure::invalid(format!("the {what} {shown} is not JSON: {message} at byte {offset}"));
    Err(if text.trim().is_empty() {
        failure.hint("Write null for a value that says nothing, '\"\"' for an empty text.")
    } else if short && !text.starts_with(['{', '[', '"']) && what == "value" {
        let quoted = serde_json::to_string(text).unwrap_or_default();
        failure.hint(format!("A text needs quotes of its own: '{quoted}'"))
    } else {
        failure.hint(
            "Put single quotes around JSON, or the shell takes its double quotes away: \
             '{\"name\":\"Ada\"}'",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(what: &str, text: &str) -> String {
        let mut told = Vec::new();
        let failure = json(what, text).unwrap_err();
        failure.tell(&mut told, false).unwrap();
        String::from_utf8(told).unwrap()
    }

    #[test]
    fn a_bare_text_is_told_how_to_quote_itself() {
        let told = told("value", "hello you");
        assert!(told.starts_with("error: the value hello you is not JSON: "), "{told}");
        assert!(
            told.ends_with("hint: A text needs quotes of its own: '\"hello you\"'\n"),
            "{told}"
        );
    }

    #[test]
    fn json_that_lost_its_quotes_is_told_why() {
        for text in ["{name:Ada}", "[a]", "\"open"] {
            assert!(told("value", text).contains("single quotes around JSON"), "{text}");
        }
    }

    #[test]
    fn a_long_text_is_not_repeated() {
        let told = told("value", &"x".repeat(10_000));
        assert!(told.len() < 200, "{told}");
    }
}
