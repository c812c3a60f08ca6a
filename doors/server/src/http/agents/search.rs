//! Entries that fulfil conditions: `/v1/agents/namespaces/{namespace}/search` and `/v1/agents/search`.

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use keyward::agents::{Found, Search};
use keyward::records::Filter;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::answer::json;
use super::super::entries::page_limit;
use super::super::request::{At, Content, Parameters};
use super::super::text::{self, Object};
use super::document::AgentDocument;
use super::{Acting, ActingHeaders, OfUser};
use crate::api::agents::{reach, reach_user, search as searching};
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::Result;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(search)).routes(routes!(search_everywhere))
}

/// Which entries to search for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AgentSearch<'b> {
    /// What keys start with. Only in one namespace.
    #[serde(default)]
    prefix: String,
    /// What must hold: an object of fields below `value` and `metadata`, or `createdByAgent`, `createdAt`
    /// and `updatedAt`, each with a value, or with comparisons: `eq`, `ne`, `lt`, `lte`, `gt`, `gte`,
    /// `in`, `exists`, `contains`, `prefix`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    filter: Option<&'b RawValue>,
    /// At most so many entries.
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where an earlier page of the same search ended.
    cursor: Option<String>,
    /// How many entries may be looked at for one page. A page that ends early for it has a cursor.
    #[schema(minimum = 1, maximum = 100000)]
    budget: Option<usize>,
}

impl AgentSearch<'_> {
    fn search(self) -> Result<Search> {
        let mut search = Search::new().starting(self.prefix).after(self.cursor);
        if let Some(filter) = self.filter {
            search.filter = Filter::parse(filter.get())?;
        }
        search.limit = page_limit(self.limit)?;
        search.budget = self.budget.unwrap_or(search.budget);
        Ok(search)
    }
}

/// A page of what a search found.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct AgentFound {
    /// In the order of the index, or of their keys where there is none.
    items: Vec<AgentDocument>,
    /// The cursor of the next page; null at the end. A page may be short, even empty, and still have one.
    next: Option<String>,
    /// The index that was asked; null, where the entries themselves were looked through.
    index: Option<String>,
    /// What answering cost.
    #[schema(value_type = serde_json::Map<String, serde_json::Value>)]
    read: String,
}

fn found(found: &Found) -> Response<Body> {
    let body = Object::new()
        .list("items", found.entries.iter().map(|entry| entry.to_document_with_rev().to_string()))
        .optional("next", found.next.as_deref())
        .optional("index", found.index.as_deref())
        .raw("read", &text::read(&found.read));
    json(StatusCode::OK, body.finish())
}

/// Searches the entries of a namespace, a page at a time: by an index that the schema declares for the
/// fields, or by looking through them. They do not count as accessed.
#[utoipa::path(
    post,
    path = "/v1/agents/namespaces/{namespace}/search",
    tag = "agents",
    params(
        ("namespace" = String, Path, description = "The namespace, percent-encoded as one segment"),
        OfUser,
        ActingHeaders,
    ),
    request_body = AgentSearch<'_>,
    responses((status = 200, description = "A page", body = AgentFound), ProblemAnswers),
)]
async fn search(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    At(namespace): At<String>,
    Parameters(asked): Parameters<OfUser>,
    content: Content,
) -> Answered {
    let reached = reach(&who, &app, &acting.for_user(asked.user), &namespace)?;
    let body: AgentSearch<'_> = content.read()?;
    Ok(found(&searching::search(&who, &reached, &body.search()?).await?))
}

/// Searches the entries of all namespaces, a page at a time. They do not count as accessed.
#[utoipa::path(
    post,
    path = "/v1/agents/search",
    tag = "agents",
    params(OfUser, ActingHeaders),
    request_body = AgentSearch<'_>,
    responses((status = 200, description = "A page", body = AgentFound), ProblemAnswers),
)]
async fn search_everywhere(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    acting: Acting,
    Parameters(asked): Parameters<OfUser>,
    content: Content,
) -> Answered {
    let reached = reach_user(&who, &app, &acting.for_user(asked.user))?;
    let body: AgentSearch<'_> = content.read()?;
    Ok(found(&searching::search_everywhere(&who, &reached, &body.search()?).await?))
}
