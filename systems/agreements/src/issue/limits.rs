//! How much an issue holds, so that it always fits an entry and a page of them fits memory.

use crate::{Error, Result};

/// Issues of one page.
pub(super) const ISSUES_MAX: usize = 10_000;
/// How many more may be there because several were made at the same moment.
pub(super) const ISSUES_SLACK: usize = 1_000;
/// Issues written by one commit.
pub(super) const BATCH_MAX: usize = 50;
/// Characters of a title.
pub(super) const TITLE_CHARS_MAX: usize = 300;
/// Parts of a description.
pub(super) const PARTS_MAX: usize = 200;
/// Bytes of a description, excerpts included.
pub(super) const DESCRIPTION_BYTES_MAX: usize = 128 << 10;
/// Bytes of the annotations.
pub(super) const ANNOTATIONS_BYTES_MAX: usize = 128 << 10;
/// Characters of an excerpt.
pub(super) const EXCERPT_CHARS_MAX: usize = 2_000;
/// Characters of somebody's name.
pub(super) const WHO_CHARS_MAX: usize = 200;
/// Characters of a reason.
pub(super) const WHY_CHARS_MAX: usize = 2_000;
/// Events that are kept.
pub(super) const EVENTS_MAX: usize = 500;
/// Bytes of all reasons that are kept.
pub(super) const EVENT_BYTES_MAX: usize = 512 << 10;

/// Refuses a text of too many characters.
pub(super) fn check_chars(what: &str, text: &str, chars_max: usize) -> Result<()> {
    match text.chars().nth(chars_max) {
        None => Ok(()),
        Some(_) => Err(Error::Invalid(format!("{what} has at most {chars_max} characters"))),
    }
}

/// Refuses a text of too many bytes.
pub(super) fn check_bytes(what: &str, bytes: usize, bytes_max: usize) -> Result<()> {
    match bytes > bytes_max {
        false => Ok(()),
        true => {
            Err(Error::Invalid(format!("{what} has at most {bytes_max} bytes, and not {bytes}")))
        }
    }
}

/// A text on one line, with single spaces.
pub(super) fn one_line(text: &str) -> String {
    let is_gap = |c: char| c.is_whitespace() || c.is_control();
    text.split(is_gap).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The beginning of a text that has too many characters.
pub(super) fn clipped(text: String, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text,
        Some(_) => text.chars().take(chars_max - 1).chain(['…']).collect(),
    }
}
