//! What a page consists of, and where each part is.

use jiff::Timestamp;
use keyward_engine::{Entry, Json, Put, Version};
use keyward_key::Key;
use serde::{Deserialize, Serialize};

use crate::page::UPLOADS;
use crate::{Attachment, BodyFormat, Error, Page, PageId, PageSummary, Result, SourceId};

/// What `upload:{page}` holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    pub title: String,
    pub body: String,
    pub format: BodyFormat,
    /// When the page last changed. Every change has a later time than all before it.
    #[serde(serialize_with = "keyward_engine::moment::serialize")]
    pub updated: Timestamp,
    pub attachments: Vec<Attached>,
}

/// An attachment, and where its content is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attached {
    pub source: SourceId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    #[serde(serialize_with = "keyward_engine::moment::serialize")]
    pub created: Timestamp,
    pub bytes: u64,
    /// The SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    /// The content's id.
    pub content: String,
    /// In so many pieces.
    pub chunks: usize,
}

/// A manifest as the store keeps it.
pub(super) struct Kept {
    pub manifest: Manifest,
    pub version: Version,
}

/// `upload:{page}`.
pub(super) fn key(page: &PageId) -> Result<Key> {
    Key::from_segments([UPLOADS, page.as_str()]).map_err(|error| Error::Invalid(error.to_string()))
}

/// `upload:{page}:latest`.
pub(super) fn latest_key(page: &PageId) -> Result<Key> {
    Ok(key(page)?.child("latest"))
}

/// Reads what a key holds.
pub(super) fn kept(key: &Key, entry: &Entry) -> Result<Kept> {
    let manifest = serde_json::from_slice(entry.value.as_bytes());
    let manifest = manifest.map_err(|error| Error::damaged(key, error))?;
    Ok(Kept { manifest, version: entry.version.clone() })
}

impl Manifest {
    pub fn put(&self) -> Result<Put> {
        let json = Json::from_value(self).map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(Put::new(json))
    }

    pub fn find(&self, source: &SourceId) -> Option<&Attached> {
        self.attachments.iter().find(|attached| attached.source == *source)
    }

    /// Whether a content belongs to the page.
    pub fn has(&self, content: &str) -> bool {
        self.attachments.iter().any(|attached| attached.content == content)
    }

    /// Takes an attachment out.
    pub fn remove(&mut self, source: &SourceId) -> Option<Attached> {
        let at = self.attachments.iter().position(|attached| attached.source == *source)?;
        Some(self.attachments.remove(at))
    }

    /// Puts an attachment in its place; those of a page stand in the order of their ids.
    pub fn insert(&mut self, attached: Attached) {
        let at = self.attachments.partition_point(|other| other.source < attached.source);
        self.attachments.insert(at, attached);
    }

    pub fn summary(self, page: PageId) -> PageSummary {
        PageSummary { id: page, title: self.title }
    }

    pub fn page(self, page: &PageId) -> Page {
        let attachments = self.attachments.into_iter().map(|attached| attached.attachment());
        Page {
            id: page.clone(),
            title: self.title,
            body: self.body,
            body_format: self.format,
            updated: self.updated,
            attachments: attachments.collect(),
        }
    }
}

impl Attached {
    pub fn attachment(self) -> Attachment {
        Attachment {
            source: self.source,
            name: self.name,
            media_type: self.media_type,
            created: self.created,
            bytes: Some(self.bytes),
        }
    }
}
