use serde::{Deserialize, Serialize};

use super::limits::{
    ANNOTATIONS_BYTES_MAX, TITLE_CHARS_MAX, check_bytes, check_chars, clipped, one_line,
};
use super::{Part, Severity, part};
use crate::{Error, Result};

/// An issue that is to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewIssue {
    /// What it is about, on one line: 1 to 300 characters.
    pub title: String,
    /// How much it weighs.
    pub severity: Severity,
    /// What it is, and where it shows: at most 200 parts and 128 KiB.
    #[serde(default)]
    pub description: Vec<Part>,
    /// What people note about it, in Markdown: at most 128 KiB.
    #[serde(default)]
    pub annotations: String,
}

impl NewIssue {
    /// An issue with nothing but a title.
    pub fn new(title: impl Into<String>, severity: Severity) -> Self {
        Self { title: title.into(), severity, description: Vec::new(), annotations: String::new() }
    }

    /// The same with a description.
    #[must_use]
    pub fn describe(mut self, description: Vec<Part>) -> Self {
        self.description = description;
        self
    }

    /// The same with its title on one line, if everything fits.
    pub(super) fn checked(mut self) -> Result<Self> {
        self.title = one_line(&self.title);
        if self.title.is_empty() {
            return Err(Error::Invalid("an issue has a title".to_owned()));
        }
        check_chars("a title", &self.title, TITLE_CHARS_MAX)?;
        part::check(&self.description)?;
        check_bytes("the annotations", self.annotations.len(), ANNOTATIONS_BYTES_MAX)?;
        Ok(self)
    }

    /// The same as far as it fits: nobody is there to be asked for a shorter one.
    pub(super) fn fitted(mut self) -> Self {
        self.title = clipped(one_line(&self.title), TITLE_CHARS_MAX);
        self.description = part::fitted(self.description);
        self
    }
}
