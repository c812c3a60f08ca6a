use std::fmt;

/// A text that is not a key, prefix or pattern, with the place where it stops being one.
///
/// `Display` is one line; [`ParseError::pointing`] draws the text with a caret under the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    text: String,
    /// Byte offset into `text`, always on a character boundary.
    offset: usize,
    message: String,
}

impl ParseError {
    pub(crate) fn new(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        Self { text: text.to_owned(), offset, message: message.into() }
    }

    /// The byte offset at which the text is wrong.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The position as a person counts it: characters, from one.
    pub fn position(&self) -> usize {
        self.text[..self.offset].chars().count() + 1
    }

    /// What is wrong, without the text.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The text with a caret under the offending place, for a terminal.
    ///
    /// ```
    /// let error = keyward_key::Key::parse("user:50%").unwrap_err();
    /// assert!(error.pointing().starts_with("  user:50%\n         ^ "));
    /// ```
    pub fn pointing(&self) -> String {
        let shown: String =
            self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("  {shown}\n  {:>width$} {}", '^', self.message, width = self.position())
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, character {}: {}", self.text, self.position(), self.message)
    }
}

/// Segments that cannot be a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There are no segments, or only one and it is empty.
    #[error("a key needs at least one segment that is not empty")]
    Empty,
    /// The bytes were not made by the tuple encoding.
    #[error("the stored key bytes are not a valid key encoding (byte {offset})")]
    Encoding {
        /// Where the encoding breaks.
        offset: usize,
    },
}

/// Values that a pattern cannot make a key of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A variable of the pattern has no value.
    #[error("pattern {pattern} needs a value for {{{variable}}}")]
    Missing {
        /// The pattern's text.
        pattern: String,
        /// The variable without a value.
        variable: String,
    },
    /// A value was given for a variable the pattern does not have, or that cannot be used because
    /// one before it is missing.
    #[error("pattern {pattern} cannot use a value for {{{variable}}}: {reason}")]
    Unused {
        /// The pattern's text.
        pattern: String,
        /// The variable that was given.
        variable: String,
        /// Why it cannot be used.
        reason: &'static str,
    },
    /// The value does not fit the variable.
    #[error("pattern {pattern}: {{{variable}}} {reason}")]
    Value {
        /// The pattern's text.
        pattern: String,
        /// The variable whose value does not fit.
        variable: String,
        /// Why it does not fit.
        reason: String,
    },
}
