use jiff::Timestamp;
use keyward::{Entry, Json, Key, Order, Prefix, Row, Version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::entries::{self, Item, Listing};
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Facts, Tag};
use crate::identity::Need;
use crate::operation::{Operation, Reply};
use crate::problem::Result;
use crate::vocabulary::PageLimit;

/// Lists keys or entries in key order, a page at a time. A page can be short, even empty, and still have a
/// next one.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct ListEntries {
    /// The name of a store.
    pub store: String,
    /// List what lies below this prefix (default: everything).
    #[serde(default = "Prefix::all")]
    pub prefix: Prefix,
    /// Show so many levels; what lies deeper shows as the prefix it shares.
    #[schemars(range(min = 1))]
    pub depth: Option<usize>,
    /// Maximum number of items.
    #[serde(default)]
    pub limit: PageLimit,
    /// List from the last key to the first.
    #[serde(default)]
    pub descending: bool,
    /// Show values, metadata and versions, not only keys.
    #[serde(default)]
    pub values: bool,
    /// Also show index entries (below `index:`). They are always shown if the prefix is `index:` or lies
    /// below it. Keyward's own keys (below `system:`) are never listed.
    #[serde(default)]
    pub all: bool,
    /// The `next` of the page before.
    pub cursor: Option<String>,
}

/// A page of a listing.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EntryPage")]
pub struct ListedPage {
    /// The items, in order.
    pub items: Vec<Listed>,
    /// The cursor of the next page; null at the end.
    pub next: Option<String>,
}

impl Reply for ListedPage {}

/// A key, or a prefix with keys below it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ListedEntry")]
pub struct Listed {
    /// The key, if the item is a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// The prefix, if the item is a prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Prefix>,
    /// The value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Json>,
    /// Metadata of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub metadata: Option<Json>,
    /// The version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// When the entry expires (RFC 3339).
    #[serde(with = "keyward::moment::optional", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub expires: Option<Timestamp>,
}

impl From<Item> for Listed {
    fn from(item: Item) -> Self {
        match item {
            Item::Prefix(prefix) => Self { prefix: Some(prefix), ..Self::default() },
            Item::Row(Row { key, entry: None }) => Self { key: Some(key), ..Self::default() },
            Item::Row(Row { key, entry: Some(entry) }) => {
                let Entry { value, metadata, version, expires } = entry;
                let (key, value, version) = (Some(key), Some(value), Some(version));
                Self { key, prefix: None, value, metadata, version, expires }
            }
        }
    }
}

impl Operation for ListEntries {
    type Response = ListedPage;

    const FACTS: Facts =
        Facts::get("/v1/stores/{store}/entries", Tag::Entries, "list_entries").paged();

    fn needs(&self) -> Needs<'_> {
        Needs::Store { store: &self.store, need: Need::Read }
    }

    async fn run(self, cx: &Context) -> Result<ListedPage> {
        let listing = Listing {
            prefix: self.prefix,
            depth: self.depth,
            limit: self.limit.0,
            order: if self.descending { Order::Descending } else { Order::Ascending },
            entries: self.values,
            all: self.all,
            cursor: self.cursor,
        };
        let served = cx.services().store(&self.store)?;
        let (items, next) = entries::list(cx.who(), cx.services(), served, &listing).await?;
        Ok(ListedPage { items: items.into_iter().map(Listed::from).collect(), next })
    }
}
