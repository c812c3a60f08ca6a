use serde::{Deserialize, Serialize};

use crate::{Format, Language};

/// What was found in a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extracted {
    /// Its title: from its metadata if they are sensible, else its first heading, else its first
    /// line. Empty if there is none.
    pub title: String,
    /// The language it is written in, if that is clear.
    pub language: Option<Language>,
    /// Its text as Markdown: in Unicode's form NFC, lines ended by `\n`, without control characters,
    /// and with at most one blank line between blocks.
    pub markdown: String,
    /// What it was read as.
    pub format: Format,
    /// How many pages it has, where it has pages.
    pub pages: Option<u32>,
}
