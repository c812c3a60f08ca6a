use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::limits::{
    DESCRIPTION_BYTES_MAX, EXCERPT_CHARS_MAX, PARTS_MAX, TITLE_CHARS_MAX, check_bytes, check_chars,
    clipped, one_line,
};
use super::{Located, Precision, locate};
use crate::{Error, Result, SourceId};

/// A part of a description: some text, or where a policy says something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Part {
    /// Text.
    Text(String),
    /// A place in a policy.
    Reference(Reference),
}

impl Part {
    /// The reference, if it is one.
    pub fn reference(&self) -> Option<&Reference> {
        match self {
            Self::Text(_) => None,
            Self::Reference(reference) => Some(reference),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Reference(reference) => {
                let other = match reference.other.is_empty() {
                    true => 0,
                    false => Value::Object(reference.other.clone()).to_string().len(),
                };
                reference.title.len() + reference.excerpt.len() + other
            }
        }
    }
}

/// Where a policy says something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// The policy.
    pub source: SourceId,
    /// What the policy is called.
    pub title: String,
    /// What it says there, as it was quoted.
    pub excerpt: String,
    /// Where that is in the document's Markdown, in characters (Unicode scalar values, neither bytes
    /// nor UTF-16 units) from its beginning. Zero if it was not found.
    pub offset: usize,
    /// How long the passage is there, in the same characters. Zero if it was not found.
    pub length: usize,
    /// How well it was found.
    pub located: Precision,
    /// Which state of the attachment that was: when it came to be.
    pub modified: Timestamp,
    /// Members that are not known here.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Reference {
    /// A reference to an excerpt, [located](locate) in the Markdown of its document.
    pub fn new(
        source: SourceId,
        title: impl Into<String>,
        excerpt: impl Into<String>,
        modified: Timestamp,
        document: &str,
    ) -> Self {
        let excerpt = excerpt.into();
        let Located { offset, length, how } = locate(document, &excerpt);
        let (title, other) = (title.into(), Map::new());
        Self { source, title, excerpt, offset, length, located: how, modified, other }
    }
}

/// Refuses a description that is too long.
pub(super) fn check(description: &[Part]) -> Result<()> {
    if description.len() > PARTS_MAX {
        return Err(Error::Invalid(format!("a description has at most {PARTS_MAX} parts")));
    }
    for reference in description.iter().filter_map(Part::reference) {
        check_chars("the title of a reference", &reference.title, TITLE_CHARS_MAX)?;
        check_chars("an excerpt", &reference.excerpt, EXCERPT_CHARS_MAX)?;
    }
    let bytes = description.iter().map(Part::bytes).sum();
    check_bytes("a description", bytes, DESCRIPTION_BYTES_MAX)
}

/// A description as far as it fits: what is longer is cut, and what is too much is left out.
pub(super) fn fitted(description: Vec<Part>) -> Vec<Part> {
    let mut room = DESCRIPTION_BYTES_MAX;
    let fit = |mut part: Part| {
        match &mut part {
            Part::Text(text) => *text = clipped(std::mem::take(text), DESCRIPTION_BYTES_MAX / 8),
            Part::Reference(reference) => {
                reference.title = clipped(one_line(&reference.title), TITLE_CHARS_MAX);
                let excerpt = std::mem::take(&mut reference.excerpt);
                reference.excerpt = clipped(excerpt, EXCERPT_CHARS_MAX);
            }
        }
        part
    };
    let fits = |part: &Part| {
        let bytes = part.bytes();
        let fits = bytes <= room;
        room = room.saturating_sub(bytes);
        fits
    };
    description.into_iter().take(PARTS_MAX).map(fit).take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_a_text_or_an_object_and_keeps_what_is_not_known() {
        let json = r#"["see",{"source":"s","title":"T","excerpt":"e","offset":3,"length":1,"located":"exact","modified":"2026-01-01T00:00:00Z","page":7}]"#;
        let parts: Vec<Part> = serde_json::from_str(json).unwrap();
        assert_eq!(parts[0], Part::Text("see".to_owned()));
        let reference = parts[1].reference().unwrap();
        assert_eq!((reference.offset, reference.located), (3, Precision::Exact));
        assert_eq!(serde_json::to_string(&parts).unwrap(), json);
    }

    #[test]
    fn what_is_fitted_is_accepted() {
        let text = Part::Text("é".repeat(DESCRIPTION_BYTES_MAX));
        let source = SourceId::new("s").unwrap();
        let long = "x\n".repeat(3_000);
        let reference =
            Part::Reference(Reference::new(source, &long, &long, Timestamp::UNIX_EPOCH, ""));
        let mut parts = vec![reference; 2 * PARTS_MAX];
        parts.insert(0, text);
        assert!(check(&parts).is_err());
        let fitted = fitted(parts);
        assert!(fitted.len() > 2);
        check(&fitted).unwrap();
    }
}
