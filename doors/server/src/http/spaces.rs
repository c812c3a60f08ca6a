//! What is declared: `/v1/spaces`.

use axum::extract::State;
use keyward::SegmentType;
use keyward::records::{CatalogContent, IndexState};
use keyward::schema::{Index, IndexKind, Ownership, Scope, Share, Space as Declaration, ValueKind};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::request::At;
use super::stores::{answer, tier};
use crate::api::spaces::{self, reach};
use crate::app::App;
use crate::auth::Identity;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::Result;
use crate::stores::Served;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show))
}

/// A declared space.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SpaceBody {
    name: String,
    /// The store it lives in.
    store: String,
    description: Option<String>,
    /// The shape of its keys.
    #[schema(example = "user:{user}:notes:{note}")]
    key: String,
    /// The variables of its keys, in order.
    variables: Vec<VariableBody>,
    /// `user`: nobody but the owner sees or changes a record. `shared`: records have no owners.
    /// `hybrid`: the owner changes them, others find them.
    ownership: &'static str,
    /// The variable that holds the owner.
    owner: Option<String>,
    /// In a hybrid space, the fields that others see; null, if these are all.
    share: Option<Vec<String>>,
    /// The JSON Schema that values satisfy.
    value: Option<Value>,
    /// The largest value, in bytes.
    value_bytes_max: Option<usize>,
    /// How many seconds records live when nothing else is said.
    ttl: Option<f64>,
    /// Whether reading a record prolongs its life.
    sliding: bool,
    /// How many versions of a record are kept.
    history: Option<usize>,
    /// Who may read, besides the owner rule; everybody, if empty.
    read_roles: Vec<String>,
    /// Who may write, besides the owner rule; everybody, if empty.
    write_roles: Vec<String>,
    indexes: Vec<IndexBody>,
    /// `atomic` and `recoverable`: answers from indexes are exact. `advisory`: best effort.
    guarantee: &'static str,
}

/// A variable of a key.
#[derive(Debug, Serialize, ToSchema)]
struct VariableBody {
    name: String,
    /// `text`, `u64` or `time`.
    r#type: &'static str,
}

/// An index of a space.
#[derive(Debug, Serialize, ToSchema)]
struct IndexBody {
    name: String,
    /// `values` or `geohash`.
    kind: &'static str,
    /// What it is over, in order; latitude and longitude, for places.
    fields: Vec<IndexedField>,
    /// Whether no two records may have the same values.
    unique: bool,
    /// `owner`, if each owner's entries stand apart, else `shared`.
    scope: &'static str,
    /// For places, how many characters of geohash entries have.
    #[serde(skip_serializing_if = "Option::is_none")]
    precision: Option<u8>,
    /// `readable`: it can be asked. `absent`: the store does not have it yet; the first record of the
    /// space, or a migration, makes it. `building`, `disabled`. `changed`: the store has it as it was
    /// declared earlier.
    state: &'static str,
}

/// A field of an index.
#[derive(Debug, Serialize, ToSchema)]
struct IndexedField {
    field: String,
    /// `text`, `folded`, `integer`, `number`, `time` or `bool`.
    r#type: &'static str,
    /// Whether it holds an array, each element of which is indexed.
    multi: bool,
}

/// Declared spaces.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SpacesBody {
    items: Vec<SpaceBody>,
}

fn body(served: &Served, space: &Declaration, catalog: &CatalogContent) -> SpaceBody {
    let (ownership, share) = match &space.ownership {
        Ownership::User { .. } => ("user", None),
        Ownership::Shared => ("shared", None),
        Ownership::Hybrid { share: Share::Everything, .. } => ("hybrid", None),
        Ownership::Hybrid { share: Share::Fields(fields), .. } => {
            ("hybrid", Some(fields.iter().map(ToString::to_string).collect()))
        }
    };
    let variables = space.key.variables().map(|variable| VariableBody {
        name: variable.name.clone(),
        r#type: match variable.kind {
            SegmentType::Text => "text",
            SegmentType::U64 => "u64",
            SegmentType::Time => "time",
        },
    });
    SpaceBody {
        name: space.name.clone(),
        store: served.name.clone(),
        description: space.description.clone(),
        key: space.key.to_string(),
        variables: variables.collect(),
        ownership,
        owner: space.ownership.owner().map(str::to_owned),
        share,
        value: space.value.as_ref().map(|schema| schema.definition().clone()),
        value_bytes_max: space.value_bytes_max,
        ttl: space.lifetime.map(|lifetime| lifetime.ttl.as_secs_f64()),
        sliding: space.lifetime.is_some_and(|lifetime| lifetime.sliding),
        history: space.history.map(usize::from),
        read_roles: space.read_roles.clone(),
        write_roles: space.write_roles.clone(),
        indexes: space.indexes.iter().map(|index| index_body(index, catalog)).collect(),
        guarantee: tier(served.store().capabilities().tier()),
    }
}

fn index_body(index: &Index, catalog: &CatalogContent) -> IndexBody {
    let (kind, fields, precision) = match &index.kind {
        IndexKind::Values { parts, .. } => {
            let fields = parts.iter().map(|part| IndexedField {
                field: part.field.to_string(),
                r#type: match part.kind {
                    ValueKind::Text => "text",
                    ValueKind::Folded => "folded",
                    ValueKind::Integer => "integer",
                    ValueKind::Number => "number",
                    ValueKind::Time => "time",
                    ValueKind::Bool => "bool",
                },
                multi: part.multi,
            });
            ("values", fields.collect(), None)
        }
        IndexKind::Geohash { lat, lon, precision } => {
            let field = |path: &keyward::schema::FieldPath| IndexedField {
                field: path.to_string(),
                r#type: "number",
                multi: false,
            };
            ("geohash", vec![field(lat), field(lon)], Some(*precision))
        }
    };
    let state = match catalog.indexes.get(&index.name) {
        None => "absent",
        Some(stored) if stored.definition != *index => "changed",
        Some(stored) => match stored.state {
            IndexState::Building => "building",
            IndexState::Readable => "readable",
            IndexState::Disabled => "disabled",
        },
    };
    let scope = match index.scope {
        Scope::Owner => "owner",
        Scope::Shared => "shared",
    };
    IndexBody {
        name: index.name.clone(),
        kind,
        fields,
        unique: index.is_unique(),
        scope,
        precision,
        state,
    }
}

/// Lists the declared spaces that the caller reaches.
#[utoipa::path(
    get,
    path = "/v1/spaces",
    tag = "spaces",
    responses((status = 200, description = "Spaces, by store and name", body = SpacesBody), ProblemAnswers),
)]
async fn list(State(app): State<App>, Authenticated(who): Authenticated) -> Answered {
    answer(&reached(&app, &who).await?)
}

/// The spaces that a caller reaches.
pub(crate) async fn reached(app: &App, who: &Identity) -> Result<SpacesBody> {
    let mut items = Vec::new();
    for (served, spaces) in spaces::list(who, app.stores()) {
        if spaces.is_empty() {
            continue;
        }
        let catalog = served.records.catalog().await?;
        items.extend(spaces.iter().map(|space| body(served, space, &catalog)));
    }
    Ok(SpacesBody { items })
}

/// Shows what is declared about a space.
#[utoipa::path(
    get,
    path = "/v1/spaces/{space}",
    tag = "spaces",
    params(("space" = String, Path, description = "The name of a space")),
    responses((status = 200, description = "The space", body = SpaceBody), ProblemAnswers),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(space): At<String>,
) -> Answered {
    answer(&one(&app, &who, &space).await?)
}

/// A space that a caller reaches.
pub(crate) async fn one(app: &App, who: &Identity, space: &str) -> Result<SpaceBody> {
    let reached = reach(who, app.stores(), space)?;
    let catalog = reached.served.records.catalog().await?;
    Ok(body(reached.served, reached.space.declaration(), &catalog))
}
