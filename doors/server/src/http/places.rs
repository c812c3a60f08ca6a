//! Places: `/v1/spaces/{space}/near` and `/v1/spaces/{space}/within`.

use axum::extract::State;
use axum::http::StatusCode;
use keyward::records::geo::{BoundingBox, Circle, Point};
use keyward::records::{Near, Neighbours, PlaceQuery};
use keyward::schema::{Index, IndexKind, Space as Declaration};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::json;
use super::entries::page_limit;
use super::questions::{AnswerBody, ReadBody, fields, filter, page};
use super::request::{At, Content};
use super::stores::tier;
use super::text::{self, Object};
use keyward::Code;

use crate::api::queries;
use crate::api::spaces::reach;
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::{Problem, Result};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(near)).routes(routes!(within))
}

/// A circle, and what must hold besides.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NearBody<'b> {
    /// The index of places; may be left out where there is one.
    index: Option<String>,
    /// Degrees north.
    lat: f64,
    /// Degrees east.
    lon: f64,
    /// How far away at most, in metres.
    radius_m: f64,
    /// Whose records, for those who may choose.
    owner: Option<String>,
    /// At most so many records.
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where an earlier page of the same question ended.
    cursor: Option<String>,
    /// The fields to give back; all of them, if none are named.
    #[serde(default)]
    fields: Vec<String>,
    /// What must hold besides, as in a query.
    #[serde(borrow, default)]
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    filter: Option<&'b RawValue>,
    /// How many entries may be read; the server may allow fewer. A search that needs more is refused.
    #[schema(minimum = 1, maximum = 100000)]
    budget: Option<usize>,
}

impl NearBody<'_> {
    /// The question that is meant, to a space.
    pub fn near(self, declaration: &Declaration) -> Result<Near> {
        let centre = Point::new(self.lat, self.lon).map_err(no_area)?;
        let circle = Circle::new(centre, self.radius_m).map_err(no_area)?;
        let index = place_index(declaration, self.index)?;
        let near = Near::new(index, circle);
        Ok(Near {
            budget: self.budget.unwrap_or(near.budget),
            owner: self.owner,
            limit: page_limit(self.limit)?,
            cursor: self.cursor,
            filter: filter(self.filter)?,
            fields: fields(&self.fields)?,
            ..near
        })
    }
}

/// A box, and what must hold besides. One whose west is greater than its east goes across the 180th
/// meridian.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WithinBody<'b> {
    /// The index of places; may be left out where there is one.
    index: Option<String>,
    south: f64,
    west: f64,
    north: f64,
    east: f64,
    /// Whose records, for those who may choose.
    owner: Option<String>,
    /// At most so many records.
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where an earlier page of the same question ended.
    cursor: Option<String>,
    /// The fields to give back; all of them, if none are named.
    #[serde(default)]
    fields: Vec<String>,
    /// What must hold besides, as in a query.
    #[serde(borrow, default)]
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    filter: Option<&'b RawValue>,
    /// How many entries may be read; the server may allow fewer. A page that ends early for it
    /// has a cursor.
    #[schema(minimum = 1, maximum = 100000)]
    budget: Option<usize>,
}

/// The index that is meant: the one that is named, or the only one of places.
fn place_index(declaration: &Declaration, named: Option<String>) -> Result<String> {
    if let Some(named) = named {
        return Ok(named);
    }
    let of_places = |index: &&Index| matches!(index.kind, IndexKind::Geohash { .. });
    let mut found = declaration.indexes.iter().filter(of_places);
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only.name.clone()),
        (None, _) => Err(Problem::new(
            Code::UnknownIndex,
            format!("the space {} has no index of places", declaration.name),
        )
        .hint("Ask a space that has one.")),
        (Some(_), Some(_)) => Err(Problem::invalid(format!(
            "the space {} has several indexes of places, and none is named",
            declaration.name
        ))),
    }
}

fn no_area(error: impl std::fmt::Display) -> Problem {
    Problem::new(Code::BadQuery, error.to_string()).hint("Change the request; nothing was done.")
}

/// What is near.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct NeighboursBody {
    /// The nearest first.
    records: Vec<Neighbour>,
    /// The cursor of the next page; null at the end.
    next: Option<String>,
    /// What the answer is worth.
    guarantee: String,
    /// What it cost.
    read: ReadBody,
}

/// A record, and how far away its place is.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct Neighbour {
    key: String,
    /// The value, or the fields of it that were asked for or that the caller sees.
    value: serde_json::Value,
    /// What is said about the value.
    metadata: Option<serde_json::Map<String, serde_json::Value>>,
    version: String,
    /// From when on it is absent.
    expires: Option<String>,
    /// The distance over the ground, in metres.
    distance_m: f64,
}

/// Finds the places in a circle, the nearest to its centre first. Refused (422 `too-expensive`) if more
/// entries have to be read for it than one query may read.
#[utoipa::path(
    post,
    path = "/v1/spaces/{space}/near",
    tag = "questions",
    params(("space" = String, Path, description = "The name of a space")),
    request_body = NearBody<'_>,
    responses((status = 200, description = "A page", body = NeighboursBody), ProblemAnswers),
)]
async fn near(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(space): At<String>,
    content: Content,
) -> Answered {
    let reached = reach(&who, app.stores(), &space)?;
    let asked: NearBody<'_> = content.read()?;
    let near = asked.near(reached.space.declaration())?;
    Ok(json(StatusCode::OK, queries::near(&who, &app, &reached, near, neighbours).await?))
}

/// What is near, as text.
pub(crate) fn neighbours(found: &Neighbours) -> String {
    let records = found.found.iter().map(|it| {
        let distance_m = format!("{:.3}", it.distance_m);
        text::record(&it.record).raw("distance_m", &distance_m).finish()
    });
    Object::new()
        .list("records", records)
        .optional("next", found.next.as_deref())
        .text("guarantee", tier(found.guarantee))
        .raw("read", &text::read(&found.read))
        .finish()
}

/// Finds the places in a box.
#[utoipa::path(
    post,
    path = "/v1/spaces/{space}/within",
    tag = "questions",
    params(("space" = String, Path, description = "The name of a space")),
    request_body = WithinBody<'_>,
    responses((status = 200, description = "A page", body = AnswerBody), ProblemAnswers),
)]
async fn within(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(space): At<String>,
    content: Content,
) -> Answered {
    let reached = reach(&who, app.stores(), &space)?;
    let asked: WithinBody<'_> = content.read()?;
    let area = BoundingBox::new(asked.south, asked.west, asked.north, asked.east);
    let index = place_index(reached.space.declaration(), asked.index)?;
    let within = PlaceQuery::new(index, area.map_err(no_area)?);
    let within = PlaceQuery {
        budget: asked.budget.unwrap_or(within.budget),
        owner: asked.owner,
        limit: page_limit(asked.limit)?,
        cursor: asked.cursor,
        filter: filter(asked.filter)?,
        fields: fields(&asked.fields)?,
        ..within
    };
    Ok(json(StatusCode::OK, queries::within(&who, &app, &reached, within, page).await?))
}
