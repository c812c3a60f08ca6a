use keyward::records::{BUDGET_MAX, Listed, ListedItem, Listing};
use keyward::{Key, Order, Prefix, Tier};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::queries;
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Facts, Tag};
use crate::identity::Need;
use crate::operation::{Operation, Reply};
use crate::problem::Result;
use crate::values::leading;
use crate::vocabulary::{Guarantee, PageLimit};

/// Lists the keys of a space in order, a page at a time. A page can be short, even empty, and still have a
/// next one.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct ListRecords {
    /// The name of a space.
    pub space: String,
    /// List what lies below this prefix of the space's keys (default: everything that the caller may list).
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
    /// The `next` of the page before.
    pub cursor: Option<String>,
    /// Maximum number of keys to read for one page; the server can allow fewer. A page that ends early for it
    /// has a cursor.
    #[schemars(range(min = 1, max = BUDGET_MAX))]
    pub budget: Option<usize>,
}

/// A page of a space's keys.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RecordPage {
    /// The items, in order.
    pub items: Vec<ListedRecord>,
    /// The cursor of the next page; null at the end.
    pub next: Option<String>,
    /// What the page is worth.
    pub guarantee: Guarantee,
}

impl RecordPage {
    /// A page of a listing.
    pub fn new(listed: Listed, guarantee: Tier) -> Self {
        let items = listed.items.into_iter().map(ListedRecord::from).collect();
        Self { items, next: listed.next, guarantee: guarantee.into() }
    }
}

impl Reply for RecordPage {}

/// The key of a record, or a prefix with records below it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListedRecord {
    /// The key, if the item is a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// The prefix, if the item is a prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Prefix>,
}

impl From<ListedItem> for ListedRecord {
    fn from(item: ListedItem) -> Self {
        match item {
            ListedItem::Key(key) => Self { key: Some(key), prefix: None },
            ListedItem::Prefix(prefix) => Self { key: None, prefix: Some(prefix) },
        }
    }
}

impl Operation for ListRecords {
    type Response = RecordPage;

    const FACTS: Facts =
        Facts::get("/v1/spaces/{space}/records", Tag::Records, "list_records").paged();

    fn needs(&self) -> Needs<'_> {
        Needs::Space { space: &self.space, need: Need::Read }
    }

    async fn run(self, cx: &Context) -> Result<RecordPage> {
        let reached = cx.space(&self.space)?;
        let values = leading(&reached.space.declaration().key, &self.prefix)?;
        let mut listing = Listing::new(values).limit(self.limit.0).after(self.cursor);
        listing.depth = self.depth;
        listing.order = if self.descending { Order::Descending } else { Order::Ascending };
        listing.budget = self.budget.unwrap_or(listing.budget);
        let listed = queries::list(cx.who(), cx.services(), &reached, listing).await?;
        Ok(RecordPage::new(listed, reached.space.guarantee()))
    }
}
