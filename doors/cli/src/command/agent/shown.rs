//! Entries and keys as lines.

use std::borrow::Cow;

use keyward::agents::AgentEntry;

use crate::failure::Result;
use crate::output::Output;

/// A key for people and for programs that read lines: as it is, or as JSON text if it has characters
/// that a terminal would obey or that would end the line.
pub fn key(key: &str) -> Cow<'_, str> {
    if key.contains(char::is_control) {
        Cow::Owned(serde_json::Value::from(key).to_string())
    } else {
        Cow::Borrowed(key)
    }
}

/// Writes an entry as one line: the whole document when a program reads it, else key and value.
pub fn write(entry: &AgentEntry, output: &mut Output) -> Result {
    if output.json_lines() {
        output.write_all(entry.to_document_with_rev().as_bytes())?;
        return writeln!(output);
    }
    output.write_columns(&key(&entry.key), entry.value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_that_would_break_a_line_are_quoted() {
        assert_eq!(key("src/main.py: \"a\""), "src/main.py: \"a\"");
        assert_eq!(key("a\nb"), r#""a\nb""#);
        assert_eq!(key("\u{1b}[2J"), r#""\u001b[2J""#);
    }
}
