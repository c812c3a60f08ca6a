//! Where a page ended, as text that callers can hold but not change.
//!
//! It is no secret from whoever holds it: decoded, it shows the last entry's value and key, which the
//! caller has just been given. The text carries the last raw key, an end of validity, and a MAC over both, the caller and the
//! question. A cursor of another caller, another question or another store is refused.

use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;

use crate::{Caller, Error, Result};

/// How long a cursor can be used.
pub(crate) const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest text that is looked at.
const TEXT_BYTES_MAX: usize = 16 * 1024;
const FORMAT: u8 = 2;
const MAC_BYTES: usize = 16;
const ENDS_BYTES: usize = 8;

/// What cursors are made with.
pub(crate) type Secret = [u8; 32];

/// A question that can be asked in pages, and who asks it: what makes cursors, and takes them back.
/// For those who page through something else than records in the same way.
#[derive(Debug, Clone)]
pub struct Question {
    hasher: blake3::Hasher,
}

impl Question {
    pub(crate) fn new(secret: &Secret, caller: &Caller) -> Self {
        let mut question = Self { hasher: blake3::Hasher::new_keyed(secret) };
        question.optional(caller.user_id());
        question.part(&[u8::from(caller.is_operator())]);
        question
    }

    /// One more part of the question. Each part's length is hashed too, so that parts cannot be
    /// shifted against each other.
    pub fn part(&mut self, bytes: &[u8]) {
        self.hasher.update(&(bytes.len() as u64).to_be_bytes());
        self.hasher.update(bytes);
    }

    /// One more part of the question that may be missing.
    pub fn optional(&mut self, text: Option<&str>) {
        self.part(&[u8::from(text.is_some())]);
        self.part(text.unwrap_or_default().as_bytes());
    }

    fn mac(&self, content: &[u8]) -> [u8; MAC_BYTES] {
        let mut hasher = self.hasher.clone();
        hasher.update(&(content.len() as u64).to_be_bytes());
        hasher.update(content);
        let mut mac = [0; MAC_BYTES];
        hasher.finalize_xof().fill(&mut mac);
        mac
    }

    /// The cursor after `position`.
    pub fn cursor(&self, position: &[u8], now: Timestamp) -> String {
        let ends = now.as_second().saturating_add_unsigned(LIFETIME.as_secs());
        let mut content = Vec::with_capacity(1 + ENDS_BYTES + position.len() + MAC_BYTES);
        content.push(FORMAT);
        content.extend_from_slice(&ends.to_be_bytes());
        content.extend_from_slice(position);
        let mac = self.mac(&content);
        content.extend_from_slice(&mac);
        BASE64URL_NOPAD.encode(&content)
    }

    /// The position a cursor stands for. Refused if it is not one of this question.
    pub fn position(&self, cursor: &str, now: Timestamp) -> Result<Vec<u8>> {
        const NONE_OF_OURS: Error =
            Error::BadCursor("it was not given for this question to this caller, or was changed");
        if cursor.len() > TEXT_BYTES_MAX {
            return Err(NONE_OF_OURS);
        }
        let mut content = BASE64URL_NOPAD.decode(cursor.as_bytes()).map_err(|_| NONE_OF_OURS)?;
        let signed = content.len().checked_sub(MAC_BYTES).ok_or(NONE_OF_OURS)?;
        let mac = content.split_off(signed);
        // Compared as hashes are: in a time that tells nothing.
        let right = self.mac(&content);
        if !constant_time_equal(&right, &mac) {
            return Err(NONE_OF_OURS);
        }
        let [FORMAT, rest @ ..] = content.as_slice() else {
            return Err(NONE_OF_OURS);
        };
        let (ends, position) = rest.split_first_chunk::<ENDS_BYTES>().ok_or(NONE_OF_OURS)?;
        if now.as_second() > i64::from_be_bytes(*ends) {
            return Err(Error::BadCursor("it has expired"));
        }
        Ok(position.to_vec())
    }
}

fn constant_time_equal(one: &[u8; MAC_BYTES], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |seen, (a, b)| seen | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn question(secret: u8, user: &str, parts: &[&str]) -> Question {
        let mut question = Question::new(&[secret; 32], &Caller::user(user));
        parts.iter().for_each(|part| question.part(part.as_bytes()));
        question
    }

    #[test]
    fn a_cursor_is_good_for_its_own_question_only() {
        let cursor = question(1, "ada", &["notes", "by_title"]).cursor(b"position", NOW);
        let same = question(1, "ada", &["notes", "by_title"]).position(&cursor, NOW);
        assert_eq!(same.unwrap(), b"position");
        for other in [
            question(2, "ada", &["notes", "by_title"]),
            question(1, "bob", &["notes", "by_title"]),
            question(1, "ada", &["notes", "by_titl", "e"]),
            question(1, "ada", &["notesb", "y_title"]),
            question(1, "ada", &["notes"]),
        ] {
            assert!(matches!(other.position(&cursor, NOW), Err(Error::BadCursor(_))));
        }
    }

    #[test]
    fn a_changed_or_late_cursor_is_refused() {
        let question = question(1, "ada", &["q"]);
        let cursor = question.cursor(b"position", NOW);
        for at in 0..cursor.len() {
            let mut changed = cursor.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(question.position(&changed, NOW).is_err(), "{changed}");
        }
        for text in ["", "A", "!!!", &"A".repeat(100_000)] {
            assert!(question.position(text, NOW).is_err());
        }
        let late = NOW + LIFETIME + Duration::from_secs(1);
        assert!(question.position(&cursor, late).is_err());
    }
}
