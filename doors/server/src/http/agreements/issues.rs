//! The issues of a page.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use keyward::agreements::{
    Annotation, Issue, IssueId, IssuePage, Members, NewIssue, Part, Severity, State as IssueState,
    Versioned,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::filter::FilterParameters;
use crate::api::agreements::issues::{self, Change};
use crate::api::agreements::reach;
use crate::app::App;
use crate::auth::Need;
use crate::http::answer::{json, located, tagged};
use crate::http::conditional::{etag, precondition};
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::http::request::{At, Content, Parameters};
use crate::http::text::{Object, told};
use crate::problem::{Problem, Result};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(show, change))
}

/// Something to be settled before an agreement is done.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
#[schema(rename_all = "camelCase")]
struct IssueBody {
    /// Its version: the same as the ETag of the issue.
    version: String,
    /// A UUID.
    id: String,
    created: String,
    updated: String,
    /// `pending`, `active`, `blocked` or `resolved`.
    state: String,
    /// 1 is low, 2 is medium, 3 is high.
    severity: u8,
    title: String,
    /// Texts, and references to policies: `source`, `title`, `excerpt`, `offset`, `length` and more.
    description: Vec<serde_json::Value>,
    /// What people note about it, in Markdown.
    annotations: String,
    /// Whether it was put away.
    archived: bool,
    /// Whether a policy that it refers to has changed since, or is gone.
    stale: bool,
    /// When it was settled; left out, if it is not.
    resolved_at: Option<String>,
    /// What happened to it, oldest first, each with `at`, `who`, `change` and perhaps `why`. Lists leave it
    /// out.
    history: Option<Vec<serde_json::Value>>,
}

/// An issue with its version.
#[derive(Serialize)]
struct Full<'i> {
    version: String,
    #[serde(flatten)]
    issue: &'i Issue,
}

/// An issue without what happened to it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Brief<'i> {
    version: String,
    id: IssueId,
    #[serde(serialize_with = "keyward::moment::serialize")]
    created: Timestamp,
    #[serde(serialize_with = "keyward::moment::serialize")]
    updated: Timestamp,
    state: IssueState,
    severity: Severity,
    title: &'i str,
    description: &'i [Part],
    annotations: &'i str,
    archived: bool,
    stale: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "keyward::moment::optional::serialize")]
    resolved_at: Option<Timestamp>,
    #[serde(flatten)]
    other: &'i Members,
}

impl<'i> Brief<'i> {
    fn of(found: &'i Versioned) -> Self {
        let issue = &found.issue;
        Self {
            version: found.version.to_string(),
            id: issue.id,
            created: issue.created,
            updated: issue.updated,
            state: issue.state,
            severity: issue.severity,
            title: &issue.title,
            description: &issue.description,
            annotations: &issue.annotations,
            archived: issue.archived,
            stale: issue.stale,
            resolved_at: issue.resolved_at,
            other: &issue.other,
        }
    }
}

/// An issue, as text.
pub(crate) fn issue_text(found: &Versioned) -> Result<String> {
    told(&Full { version: found.version.to_string(), issue: &found.issue })
}

/// A page of issues, as text.
pub(crate) fn listed(page: &IssuePage) -> Result<String> {
    let items = page.items.iter().map(|found| told(&Brief::of(found)));
    let text = Object::new()
        .list("items", items.collect::<Result<Vec<_>>>()?)
        .optional("next", page.next.as_deref())
        .raw("total", &page.total.to_string());
    Ok(text.finish())
}

/// Issues.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
struct IssuesBody {
    items: Vec<IssueBody>,
    /// What to give as `after` for the next ones; null at the end.
    next: Option<String>,
    /// How many there are in all that everything asked for is true of.
    total: u64,
}

/// Lists issues of a page, some at a time.
#[utoipa::path(
    get,
    path = "/v1/agreements/{workspace}/pages/{page}/issues",
    tag = "agreements",
    operation_id = "issues",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
        FilterParameters,
    ),
    responses((status = 200, description = "Some of them", body = IssuesBody), ProblemAnswers),
)]
async fn list(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page)): At<(String, String)>,
    Parameters(asked): Parameters<FilterParameters>,
) -> Answered {
    let found = issues::list(&who, &app, &name, &page, &asked.listing()?).await?;
    Ok(json(StatusCode::OK, listed(&found)?))
}

/// An issue that is to be made.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is read elsewhere")]
struct NewIssueBody {
    /// What it is about, on one line.
    #[schema(min_length = 1, max_length = 300)]
    title: String,
    /// 1 is low, 2 is medium, 3 is high.
    #[schema(minimum = 1, maximum = 3)]
    severity: u8,
    /// Texts, and references to policies.
    description: Option<Vec<serde_json::Value>>,
    /// In Markdown.
    annotations: Option<String>,
}

/// Makes an issue, pending.
#[utoipa::path(
    post,
    path = "/v1/agreements/{workspace}/pages/{page}/issues",
    tag = "agreements",
    operation_id = "create_issue",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
    ),
    request_body = NewIssueBody,
    responses(
        (status = 201, description = "The issue", body = IssueBody, headers(
            ("ETag" = String, description = "Its version"),
            ("Location" = String, description = "Where it is"),
        )),
        ProblemAnswers,
    ),
)]
async fn create(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page)): At<(String, String)>,
    content: Content,
) -> Answered {
    reach(&who, &app, &name, Need::Write)?;
    let new: NewIssue = content.read()?;
    content.without_mark(&who)?;
    let made = issues::create(&who, &app, &name, &page, new).await?;
    let mut response = changed(StatusCode::CREATED, &made)?;
    let id = made.issue.id.to_string();
    let (header, place) = located(&["v1", "agreements", &name, "pages", &page, "issues", &id])?;
    response.headers_mut().insert(header, place);
    Ok(response)
}

fn changed(status: StatusCode, found: &Versioned) -> Answered {
    let mut response = json(status, issue_text(found)?);
    let (header, tag) = etag(&found.version)?;
    response.headers_mut().insert(header, tag);
    Ok(response)
}

/// Shows an issue, with what happened to it.
#[utoipa::path(
    get,
    path = "/v1/agreements/{workspace}/pages/{page}/issues/{issue}",
    tag = "agreements",
    operation_id = "issue",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
        ("issue" = String, Path, description = "The id of an issue"),
        ("If-None-Match" = Option<String>, Header, description = "Answered only if the issue has another version"),
    ),
    responses(
        (status = 200, description = "The issue", body = IssueBody, headers(
            ("ETag" = String, description = "Its version"),
        )),
        (status = 304, description = "The client has this version"),
        ProblemAnswers,
    ),
)]
async fn show(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page, issue)): At<(String, String, String)>,
    headers: HeaderMap,
) -> Answered {
    let found = issues::show(&who, &app, &name, (&page, &issue)).await?;
    let text = issue_text(&found)?;
    tagged(&headers, &found.version, || json(StatusCode::OK, text))
}

/// One change of an issue.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeBody {
    /// How much it weighs.
    #[schema(value_type = Option<u8>, minimum = 1, maximum = 3)]
    severity: Option<Severity>,
    /// What people note about it, instead of what is noted: Markdown.
    annotations: Option<String>,
    /// A paragraph that is added to what people note about it: Markdown.
    note: Option<String>,
    /// Where it goes: `pending`, `active`, `blocked` or `resolved`.
    #[schema(value_type = Option<String>)]
    state: Option<IssueState>,
    /// Whether it is put away, or brought back.
    archived: Option<bool>,
    /// Why.
    #[schema(max_length = 2000)]
    why: Option<String>,
}

impl ChangeBody {
    /// The one change, and why it is made.
    pub fn change(self) -> Result<(Change, Option<String>)> {
        let Self { severity, annotations, note, state, archived, why } = self;
        let mut all = [
            severity.map(Change::Classify),
            annotations.map(|text| Change::Annotate(Annotation::Replace(text))),
            note.map(|text| Change::Annotate(Annotation::Append(text))),
            state.map(Change::Transition),
            archived.map(Change::Archive),
        ]
        .into_iter()
        .flatten();
        match (all.next(), all.next()) {
            (Some(only), None) => Ok((only, why)),
            _ => Err(Problem::invalid("an issue is changed in one way at a time").hint(
                "Give one of severity, annotations, note, state and archived; nothing was done.",
            )),
        }
    }
}

/// Changes an issue: its severity, its annotations, its state, or whether it is archived.
///
/// With `If-Match`, it is left alone if it has another version (412). Without, of two who move it at once one
/// is told what the other did (409 `issue-moved` or `transition-refused`).
#[utoipa::path(
    patch,
    path = "/v1/agreements/{workspace}/pages/{page}/issues/{issue}",
    tag = "agreements",
    operation_id = "change_issue",
    params(
        ("workspace" = String, Path, description = "The name of a workspace"),
        ("page" = String, Path, description = "The id of a page"),
        ("issue" = String, Path, description = "The id of an issue"),
        ("If-Match" = Option<String>, Header, description = "Change only this version"),
    ),
    request_body = ChangeBody,
    responses(
        (status = 200, description = "The issue as it is now", body = IssueBody, headers(
            ("ETag" = String, description = "Its version"),
        )),
        ProblemAnswers,
    ),
)]
async fn change(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At((name, page, issue)): At<(String, String, String)>,
    content: Content,
) -> Answered {
    reach(&who, &app, &name, Need::Write)?;
    let (change, why) = content.read_patch::<ChangeBody>()?.change()?;
    content.without_mark(&who)?;
    let condition = precondition(content.headers())?;
    let at = (page.as_str(), issue.as_str());
    let found = issues::change(&who, &app, &name, at, change, why, &condition).await?;
    changed(StatusCode::OK, &found)
}
