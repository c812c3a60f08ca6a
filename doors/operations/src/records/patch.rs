use keyward::records::{Arrays, Merge};
use keyward::schema::FieldPath;
use keyward::{Json, Key};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stored;
use crate::api::records::{self, Change};
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Body, Facts, Tag};
use crate::identity::Need;
use crate::operation::Operation;
use crate::problem::Result;
use crate::stored::Stored;
use crate::vocabulary::{IfVersion, precondition};

/// Merges a part into a record (JSON Merge Patch, RFC 7396). A record that does not exist is set to the part.
/// Metadata and time to live stay.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct PatchRecord {
    /// The name of a space.
    pub space: String,
    /// The whole key: segments with colons between them.
    pub key: Key,
    /// The part to merge: objects are merged, null removes a member, anything else replaces.
    pub patch: Json,
    /// How an array is merged with an array.
    #[serde(default)]
    pub arrays: ArrayRule,
    /// Fields that stay as they are where the record has them, such as `address.city`.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub preserve: Vec<FieldPath>,
    /// Write only if the record has this version; * means any version.
    pub if_version: Option<IfVersion>,
    /// Write only if the record does not exist.
    #[serde(default)]
    pub if_absent: bool,
}

/// How an array is merged with an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ArrayRule {
    /// The new array replaces the old one.
    #[default]
    Replace,
    /// The new elements are appended to the old ones.
    Append,
    /// The new elements that the old array lacks are appended to it.
    Union,
}

impl From<ArrayRule> for Arrays {
    fn from(rule: ArrayRule) -> Self {
        match rule {
            ArrayRule::Replace => Self::Replace,
            ArrayRule::Append => Self::Append,
            ArrayRule::Union => Self::Union,
        }
    }
}

impl Operation for PatchRecord {
    type Response = Stored;

    const FACTS: Facts =
        Facts::patch("/v1/spaces/{space}/records/{key}", Tag::Records, "patch_record")
            .body(Body::MergePatch("patch"))
            .idempotent();

    fn needs(&self) -> Needs<'_> {
        Needs::Space { space: &self.space, need: Need::Write }
    }

    fn key(&self) -> Option<&Key> {
        Some(&self.key)
    }

    async fn run(self, cx: &Context) -> Result<Stored> {
        let Self { space, key, patch, arrays, preserve, if_version, if_absent } = self;
        let reached = cx.space(&space)?;
        let expected = precondition(if_version, if_absent)?;
        let change = Change::Merge(Merge { patch, arrays: arrays.into(), preserve });
        let done = records::change(cx.who(), &reached, &key, &change, &expected, cx.mark()).await?;
        Ok(stored(key, done))
    }
}
