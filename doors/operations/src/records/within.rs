use std::fmt::Display;

use keyward::records::geo::BoundingBox;
use keyward::records::{BUDGET_MAX, Within};
use keyward::schema::{FieldPath, Index, IndexKind, Space as Declaration};
use keyward::{Code, Json};
use schemars::JsonSchema;
use serde::Deserialize;

use super::query::{QueryPage, bounded, filter};
use crate::api::queries;
use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::{Effect, Facts, Tag};
use crate::identity::Need;
use crate::operation::Operation;
use crate::problem::{Problem, Result};
use crate::vocabulary::PageLimit;

/// Finds the places in a box. A box whose west is greater than its east crosses the 180th meridian.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct WithinRecords {
    /// The name of a space.
    pub space: String,
    /// The name of an index of places (default: the only one).
    pub index: Option<String>,
    /// The southern edge, in degrees north.
    pub south: f64,
    /// The western edge, in degrees east.
    pub west: f64,
    /// The northern edge, in degrees north.
    pub north: f64,
    /// The eastern edge, in degrees east.
    pub east: f64,
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
    /// Maximum number of entries to read for one page; the server can allow fewer. A page that ends early for
    /// it has a cursor.
    #[schemars(range(min = 1, max = BUDGET_MAX))]
    pub budget: Option<usize>,
}

/// The index with this name, or the only one of places.
pub(super) fn place_index(declaration: &Declaration, name: Option<String>) -> Result<String> {
    if let Some(name) = name {
        return Ok(name);
    }
    let of_places = |index: &&Index| matches!(index.kind, IndexKind::Geohash { .. });
    let mut indexes = declaration.indexes.iter().filter(of_places);
    let space = &declaration.name;
    match (indexes.next(), indexes.next()) {
        (Some(only), None) => Ok(only.name.clone()),
        (None, _) => {
            let detail = format!("the space {space} has no index of places");
            Err(Problem::new(Code::UnknownIndex, detail).hint("Choose a space that has one."))
        }
        (Some(_), Some(_)) => {
            let detail = format!("the space {space} has several indexes of places: name one");
            Err(Problem::invalid(detail))
        }
    }
}

pub(super) fn no_area(error: impl Display) -> Problem {
    Problem::new(Code::BadQuery, error.to_string()).hint("Change the request; nothing was done.")
}

impl Operation for WithinRecords {
    type Response = QueryPage;

    const FACTS: Facts = Facts::post("/v1/spaces/{space}/within", Tag::Records, "within_records")
        .effect(Effect::Reads)
        .paged();

    fn needs(&self) -> Needs<'_> {
        Needs::Space { space: &self.space, need: Need::Read }
    }

    async fn run(self, cx: &Context) -> Result<QueryPage> {
        let reached = cx.space(&self.space)?;
        let area = BoundingBox::new(self.south, self.west, self.north, self.east);
        let index = place_index(reached.space.declaration(), self.index)?;
        let within = Within::new(index, area.map_err(no_area)?);
        let within = Within {
            budget: self.budget.unwrap_or(within.budget),
            owner: self.owner,
            limit: self.limit.0,
            cursor: self.cursor,
            filter: filter(self.filter.as_ref())?,
            fields: bounded(self.fields)?,
            ..within
        };
        Ok(queries::within(cx.who(), cx.services(), &reached, within).await?.into())
    }
}
