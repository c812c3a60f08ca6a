use jiff::Timestamp;
use keyward::records::geo::{Circle, Point};
use keyward::records::{BUDGET_MAX, Near, Neighbour, Neighbours};
use keyward::schema::FieldPath;
use keyward::{Json, Key, Version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RecordView;
use super::query::{Cost, bounded, filter};
use super::within::{no_area, place_index};
use crate::api::queries;
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Effect, Facts, Tag};
use crate::identity::Need;
use crate::operation::{Operation, Reply};
use crate::problem::Result;
use crate::vocabulary::{Guarantee, PageLimit};

/// Finds the places in a circle, the nearest to its center first. The error is `too-expensive` if more entries
/// must be read for it than one request can read.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct NearRecords {
    /// The name of a space.
    pub space: String,
    /// The name of an index of places (default: the only one).
    pub index: Option<String>,
    /// Latitude of the center, in degrees north.
    pub lat: f64,
    /// Longitude of the center, in degrees east.
    pub lon: f64,
    /// Radius of the circle, in meters.
    pub radius_m: f64,
    /// The owner of the records, for callers who can choose (default: the caller).
    pub owner: Option<String>,
    /// Maximum number of records.
    #[serde(default)]
    pub limit: PageLimit,
    /// The `next` of the page before.
    pub cursor: Option<String>,
    /// The fields to return, such as `address.city` (default: the whole value).
    #[serde(default)]
    #[schemars(with = "Vec<String>", length(max = 256))]
    pub fields: Vec<FieldPath>,
    /// Further conditions, as in a query.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub filter: Option<Json>,
    /// Maximum number of entries to read; the server can allow fewer. A search that needs more is refused.
    #[schemars(range(min = 1, max = BUDGET_MAX))]
    pub budget: Option<usize>,
}

/// A page of the places in a circle.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NearPage {
    /// The records, the nearest first.
    pub records: Vec<NearRecord>,
    /// The cursor of the next page; null at the end.
    pub next: Option<String>,
    /// What the page is worth.
    pub guarantee: Guarantee,
    /// What the page cost.
    pub read: Cost,
}

impl From<Neighbours> for NearPage {
    fn from(neighbours: Neighbours) -> Self {
        let Neighbours { found, next, guarantee, read } = neighbours;
        let records = found.into_iter().map(NearRecord::from).collect();
        Self { records, next, guarantee: guarantee.into(), read: read.into() }
    }
}

impl Reply for NearPage {}

/// A record, and how far away its place is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NearRecord {
    /// The key.
    pub key: Key,
    /// The value, or the fields of it that the request names or that the caller may see.
    pub value: Json,
    /// Metadata of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub metadata: Option<Json>,
    /// The version: it changes with every write.
    pub version: Version,
    /// When the record expires (RFC 3339).
    #[serde(with = "keyward::moment::optional", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub expires: Option<Timestamp>,
    /// Distance from the center over the ground, in meters.
    pub distance_m: f64,
}

impl From<Neighbour> for NearRecord {
    fn from(Neighbour { record, distance_m }: Neighbour) -> Self {
        let RecordView { key, value, metadata, version, expires } = record.into();
        // What is finer than a millimeter is noise.
        let distance_m = (distance_m * 1_000.0).round() / 1_000.0;
        Self { key, value, metadata, version, expires, distance_m }
    }
}

impl Operation for NearRecords {
    type Response = NearPage;

    const FACTS: Facts = Facts::post("/v1/spaces/{space}/near", Tag::Records, "near_records")
        .effect(Effect::Reads)
        .paged();

    fn needs(&self) -> Needs<'_> {
        Needs::Space { space: &self.space, need: Need::Read }
    }

    async fn run(self, cx: &Context) -> Result<NearPage> {
        let reached = cx.space(&self.space)?;
        let center = Point::new(self.lat, self.lon).map_err(no_area)?;
        let circle = Circle::new(center, self.radius_m).map_err(no_area)?;
        let near = Near::new(place_index(reached.space.declaration(), self.index)?, circle);
        let near = Near {
            budget: self.budget.unwrap_or(near.budget),
            owner: self.owner,
            limit: self.limit.0,
            cursor: self.cursor,
            filter: filter(self.filter.as_ref())?,
            fields: bounded(self.fields)?,
            ..near
        };
        Ok(queries::near(cx.who(), cx.services(), &reached, near).await?.into())
    }
}
