//! A policy as text, in one language.

use jiff::Timestamp;
use keyward_engine::{Entry, Json};
use keyward_extract::Language;
use keyward_key::Key;
use keyward_models::Receipt;
use serde::{Deserialize, Serialize};

use crate::{Error, Result, SourceId};

/// A policy as Markdown: as it was attached, or translated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// Whether it is in the language that it was written in.
    pub original: bool,
    /// Its language, if it could be told.
    pub language: Option<Language>,
    /// The attachment that it comes from.
    pub source: SourceId,
    /// When it was made; never before the attachment that it was made of.
    #[serde(serialize_with = "keyward_engine::moment::serialize")]
    pub created: Timestamp,
    /// What it calls itself, else the name of its file.
    pub title: String,
    /// Its text, in Markdown.
    pub content: String,
    /// Which state of the attachment it was made of, as exact as its source tells it: the two are compared.
    pub modified: Timestamp,
    /// How a model made it; nothing, if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
}

/// How a model made something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Made {
    /// Which prompt it was asked with, and which version of it.
    pub prompt: String,
    /// Who answered, and what it cost.
    pub receipt: Receipt,
}

impl Document {
    pub(crate) fn to_json(&self) -> Result<Json> {
        Json::from_value(self).map_err(|error| Error::Invalid(error.to_string()))
    }

    pub(crate) fn from_json(key: &Key, value: &Json) -> Result<Self> {
        serde_json::from_str(value.as_str()).map_err(|error| Error::damaged(key, error))
    }

    pub(crate) fn from_entry(key: &Key, entry: &Entry) -> Result<Self> {
        Self::from_json(key, &entry.value)
    }
}
