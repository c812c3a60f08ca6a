//! What is worked on: pages, and the policies attached to them.

use std::fmt;

use jiff::Timestamp;
use keyward_key::is_reserved;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use crate::{Error, Result};

/// The most bytes of an id, in UTF-8.
const BYTES_MAX: usize = 200;

/// The first segment of what people put here, which no page may take.
pub(crate) const UPLOADS: &str = "upload";

/// First segments below which keys are users' or everybody's: a page of such a name would be, too.
pub(crate) const OWNERS: [&str; 3] = ["user", "shared", "agents"];

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $refused:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// An id as it is written, brought to Unicode's form NFC.
            pub fn new(text: &str) -> Result<Self> {
                let text = checked($what, text)?;
                let refused: fn(&str) -> bool = $refused;
                if refused(&text) {
                    let what = $what;
                    return Err(Error::Invalid(format!("{text} is reserved, and no {what}'s id")));
                }
                Ok(Self(text))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;

            fn try_from(text: String) -> Result<Self> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// A page's id, the first segment of all its keys. Names that Keyward keeps for itself (`job`,
    /// `system`, …) are refused: a page called `job` would be purged with all jobs. So are those below
    /// which users find what is theirs (`user`, `shared`, `agents`).
    ///
    /// ```
    /// use keyward_agreements::PageId;
    ///
    /// assert!(PageId::new("abc123").is_ok());
    /// assert!(PageId::new("job").is_err());
    /// ```
    PageId,
    "page",
    |text| is_reserved(text) || text == UPLOADS || OWNERS.contains(&text)
);

id!(
    /// A policy's id within its page: that of the attachment it comes from.
    SourceId,
    "policy",
    |_| false
);

fn checked(what: &str, text: &str) -> Result<String> {
    // Normalising at most triples a text; what is far too long is not worth the work.
    if text.len() > 16 * BYTES_MAX {
        return Err(Error::Invalid(format!("a {what}'s id has at most {BYTES_MAX} bytes")));
    }
    let text: String = text.nfc().collect();
    if text.is_empty() || text.len() > BYTES_MAX {
        return Err(Error::Invalid(format!("a {what}'s id has 1 to {BYTES_MAX} bytes")));
    }
    if text.chars().any(char::is_control) {
        return Err(Error::Invalid(format!("a {what}'s id has no control characters")));
    }
    Ok(text)
}

/// An agreement under work: a text, and the policies that are attached to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    /// Its id.
    pub id: PageId,
    /// What people call it.
    pub title: String,
    /// Its text.
    pub body: String,
    /// What its text is written in.
    #[serde(default)]
    pub body_format: BodyFormat,
    /// When it was last changed.
    #[serde(serialize_with = "keyward_engine::moment::serialize")]
    pub updated: Timestamp,
    /// The policies.
    pub attachments: Vec<Attachment>,
}

/// What a page's text is written in, as its source gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BodyFormat {
    /// Markdown, or plain text.
    #[default]
    Markdown,
    /// HTML, or the XHTML that wikis store.
    Html,
}

/// A page in a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageSummary {
    /// Its id.
    pub id: PageId,
    /// What people call it.
    pub title: String,
}

/// A policy as it is attached to a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// Its id.
    pub source: SourceId,
    /// The name of its file.
    pub name: String,
    /// What it is said to be, such as `application/pdf`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// When this state of it came to be: documents that were made of an older one are stale.
    #[serde(serialize_with = "keyward_engine::moment::serialize")]
    pub created: Timestamp,
    /// How large it is, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}
