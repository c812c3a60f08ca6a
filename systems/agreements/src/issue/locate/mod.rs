//! Where a document says what is quoted from it.

mod approximate;
mod normal;

use serde::{Deserialize, Serialize};

use approximate::Pattern;
use normal::Normal;

/// Characters of a document in which something similar is looked for.
const DOCUMENT_CHARS_MAX: usize = 1 << 20;
/// Characters of an excerpt that something similar is looked for to.
const EXCERPT_CHARS_MAX: usize = 2_000;
/// In less than this, one character more or less makes another text of it.
const EXCERPT_CHARS_MIN: usize = 10;
/// One in so many characters may differ: similar is what is the same by four fifths.
const DIFFERENT_ONE_IN: usize = 5;

/// Where an excerpt is in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Located {
    /// Where it begins, in characters (Unicode scalar values) from the beginning of the document.
    pub offset: usize,
    /// How long it is there, in the same characters.
    pub length: usize,
    /// How well it was found.
    pub how: Precision,
}

/// How well an excerpt was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// The document has it, but perhaps for white space, and for how quotes and dashes are set.
    Exact,
    /// The document has something similar: at least four in five characters are the same.
    Fuzzy,
    /// The document does not have it.
    None,
}

impl Precision {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Fuzzy => "fuzzy",
            Self::None => "none",
        }
    }
}

impl Located {
    const NOWHERE: Self = Self { offset: 0, length: 0, how: Precision::None };
}

/// Looks for an excerpt in the Markdown of a document: as it is; with white space, quotes and dashes
/// made alike; and then the first of the places that are most similar, if they are similar enough,
/// whatever the case. Offsets are always those of the document as it is given, in characters.
///
/// What is similar is looked for to excerpts of 10 to 2,000 characters, in documents of up to a
/// million characters (2²⁰). That takes at most some tenths of a second of computing, so it should
/// not be done where others wait for the thread.
///
/// ```
/// use keyward_agreements::{Precision, locate};
///
/// let document = "§ 7 Notice.\nThe notice  period is “three months” – at least.";
/// let found = locate(document, "period is \"three months\" - at least");
/// assert_eq!((found.offset, found.length, found.how), (24, 35, Precision::Exact));
/// let found = locate(document, "The notise period was three months");
/// assert_eq!((found.offset, found.how), (12, Precision::Fuzzy));
/// assert_eq!(locate(document, "governed by the laws of").how, Precision::None);
/// ```
pub fn locate(document: &str, excerpt: &str) -> Located {
    if excerpt.is_empty() {
        return Located::NOWHERE;
    }
    if let Some(at) = document.find(excerpt) {
        let offset = document[..at].chars().count();
        return Located { offset, length: excerpt.chars().count(), how: Precision::Exact };
    }
    let (document, excerpt) = (Normal::of(document), Normal::of(excerpt));
    if excerpt.chars.is_empty() {
        return Located::NOWHERE;
    }
    let found = exact(&document, &excerpt).map(|place| (place, Precision::Exact));
    let found = found.or_else(|| Some((similar(&document, &excerpt)?, Precision::Fuzzy)));
    let Some(((start, end), how)) = found else { return Located::NOWHERE };
    let (offset, length) = document.origin(start, end);
    Located { offset, length, how }
}

fn exact(document: &Normal, excerpt: &Normal) -> Option<(usize, usize)> {
    let (text, wanted) = (document.text(), excerpt.text());
    let start = text[..text.find(&wanted)?].chars().count();
    Some((start, start + excerpt.chars.len()))
}

fn similar(document: &Normal, excerpt: &Normal) -> Option<(usize, usize)> {
    let wanted: Vec<char> = excerpt.chars.iter().copied().map(small).collect();
    if !(EXCERPT_CHARS_MIN..=EXCERPT_CHARS_MAX).contains(&wanted.len())
        || document.chars.len() > DOCUMENT_CHARS_MAX
    {
        return None;
    }
    let distance_max = wanted.len() / DIFFERENT_ONE_IN;
    let text = document.chars.iter().copied().map(small);
    let found = Pattern::new(wanted.iter().copied()).ends_anywhere(text, distance_max)?;
    // Where it begins is where it ends when both are read backwards.
    let backwards = document.chars[..found.end].iter().rev().copied().map(small);
    let backwards = backwards.take(wanted.len() + found.distance);
    let pattern = Pattern::new(wanted.iter().rev().copied());
    let begins = pattern.begins_at_once(backwards, found.distance)?;
    let (mut start, mut end) = (found.end - begins.end, found.end);
    while start < end && document.chars[start] == ' ' {
        start += 1;
    }
    while start < end && document.chars[end - 1] == ' ' {
        end -= 1;
    }
    (start < end).then_some((start, end))
}

/// A character in lower case, if that is one character too.
fn small(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_quotes_and_dashes_are_made_alike() {
        let document = "a — “b”\u{a0}\n c\u{ad}d … ‘e’";
        for excerpt in ["- \"b\" cd", "— »b« cd", "“b”   cd ... 'e'"] {
            let found = locate(document, excerpt);
            assert_eq!(found.how, Precision::Exact, "{excerpt}");
            assert!(found.offset == 2 || found.offset == 4, "{excerpt}");
        }
        let found = locate(document, "cd ...");
        let (offset, length) = (found.offset, found.length);
        let text: String = document.chars().skip(offset).take(length).collect();
        assert_eq!(text, "c\u{ad}d …");
    }

    #[test]
    fn nothing_is_nowhere() {
        for excerpt in ["", " \n", "\u{ad}", "short", "something else altogether"] {
            assert_eq!(locate("a document about notices", excerpt), Located::NOWHERE, "{excerpt}");
        }
        assert_eq!(locate("", "an excerpt of nothing"), Located::NOWHERE);
    }

    #[test]
    fn the_best_place_is_found_whatever_the_case() {
        let document = "The tenant pays rend monthly. THE TENANT PAYS RENT MONTHLY.";
        let found = locate(document, "the tenant pays rent monthly");
        assert_eq!((found.offset, found.length, found.how), (30, 28, Precision::Fuzzy));
    }
}
