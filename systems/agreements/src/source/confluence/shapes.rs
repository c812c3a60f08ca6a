//! What Confluence answers, as far as it matters here.

use jiff::Timestamp;
use serde::Deserialize;

use super::failed;
use crate::{Attachment, Result, SourceId};

/// One page of a list.
#[derive(Debug, Deserialize)]
pub(super) struct Listed<T> {
    pub results: Vec<T>,
    #[serde(default, rename = "_links")]
    pub links: Links,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Links {
    pub next: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SpaceShape {
    pub id: String,
    pub key: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageShape {
    pub id: String,
    pub status: String,
    pub title: String,
    pub space_id: Option<String>,
    pub version: VersionShape,
    pub body: Option<BodyShape>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VersionShape {
    pub number: u64,
    pub created_at: Timestamp,
}

#[derive(Debug, Deserialize)]
pub(super) struct BodyShape {
    pub storage: Option<StorageShape>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StorageShape {
    pub value: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct AncestorShape {
    pub id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct DescendantShape {
    pub id: String,
    #[serde(default)]
    pub status: Option<String>,
    #[serde(default)]
    pub title: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub depth: u32,
}

impl DescendantShape {
    pub fn is_current(&self) -> bool {
        self.status.as_deref().is_none_or(|status| status == "current")
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AttachmentShape {
    pub id: String,
    pub status: String,
    pub title: String,
    pub media_type: Option<String>,
    pub file_size: Option<u64>,
    pub version: VersionShape,
}

impl AttachmentShape {
    pub fn is_there(&self) -> bool {
        matches!(&*self.status, "current" | "archived")
    }

    pub fn attachment(self) -> Result<Attachment> {
        // It becomes part of an address.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !self.id.bytes().all(is_plain) {
            return Err(failed("Confluence gave an attachment an id that cannot be one"));
        }
        Ok(Attachment {
            source: SourceId::new(&self.id)?,
            name: self.title,
            media_type: self.media_type,
            created: self.version.created_at,
            bytes: self.file_size,
        })
    }
}
