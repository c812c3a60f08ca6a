//! Several changes in one commit: `/v1/stores/{store}/commit`.

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use keyward::{Code, Commit, Entry, Expect, Key, Version};
use serde::Deserialize;
use serde_json::json as value;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{json, mark_replayed};
use super::entries::{PAGE_MAX, drafted};
use super::messages::{EnqueuedMessage, MessageDraft, fate};
use super::request::{At, Content, key};
use super::text::{self, Object, quoted};
use super::ticket::lock;
use crate::api::commits::{self, Committed};
use crate::api::messages::Draft;
use crate::app::App;
use crate::http::problem::{Answered, ProblemAnswers};
use crate::http::request::Authenticated;
use crate::problem::{Problem, Result};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(commit))
}

/// Checks and writes that happen together or not at all.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CommitBody<'b> {
    /// What must hold.
    #[serde(default)]
    checks: Vec<CheckBody>,
    /// What to change; at most one write for each key.
    #[serde(default, borrow)]
    writes: Vec<WriteBody<'b>>,
    /// Messages that are enqueued with it, or not at all; up to 1000.
    #[serde(default, borrow)]
    #[schema(max_items = 1000)]
    enqueue: Vec<EnqueueDraft<'b>>,
}

/// A message to be enqueued with other changes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EnqueueDraft<'b> {
    /// The name of a queue of the same store.
    queue: String,
    /// Any JSON.
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    payload: &'b RawValue,
    /// An id of one's own, as where messages are enqueued by themselves.
    #[schema(max_length = 500)]
    id: Option<String>,
    /// The version of its content.
    version: Option<String>,
    /// Not to be claimed before this time has passed.
    delay_ms: Option<u64>,
    /// Whether it takes the place of a message with its id and other content.
    #[serde(default)]
    replace: bool,
}

impl<'b> EnqueueDraft<'b> {
    fn draft(self) -> Result<Draft> {
        let Self { queue, payload, id, version, delay_ms, replace } = self;
        MessageDraft { payload, id, version, delay_ms, replace }.draft(&queue)
    }
}

/// What a key must be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckBody {
    key: String,
    /// The version it must have; null, if it must not be there.
    #[serde(deserialize_with = "Option::deserialize")]
    version: Option<String>,
}

/// One change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum WriteBody<'b> {
    /// Set a key.
    #[serde(borrow)]
    Put(PutBody<'b>),
    /// Remove a key.
    Delete(KeyBody),
    /// Add to the whole number that a key holds.
    Add(AddBody),
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PutBody<'b> {
    key: String,
    /// Any JSON.
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    value: &'b RawValue,
    /// What to say about the value.
    #[serde(borrow, default)]
    #[schema(value_type = Option<serde_json::Map<String, serde_json::Value>>)]
    metadata: Option<&'b RawValue>,
    /// For how many seconds the entry shall live.
    #[schema(minimum = 1)]
    ttl: Option<u64>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyBody {
    pub key: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddBody {
    pub key: String,
    pub amount: i64,
}

/// A commit of checks, to which writes are added.
pub(super) fn checked(checks: &[CheckBody]) -> Result<Commit> {
    let mut commit = Commit::new();
    for check in checks {
        let expect = match &check.version {
            Some(version) => Expect::Version(Version::parse(version)),
            None => Expect::Absent,
        };
        commit = commit.check(key(&check.key)?, expect);
    }
    Ok(commit)
}

impl CommitBody<'_> {
    fn commit(&self) -> Result<Commit> {
        let mut commit = checked(&self.checks)?;
        for write in &self.writes {
            commit = match write {
                WriteBody::Put(put) => {
                    commit.put(key(&put.key)?, drafted(put.value, put.metadata, put.ttl)?)
                }
                WriteBody::Delete(delete) => commit.delete(key(&delete.key)?),
                WriteBody::Add(add) => commit.add(key(&add.key)?, add.amount),
            };
        }
        Ok(commit)
    }
}

/// A commit that was applied.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct AppliedBody {
    /// The commit's place in the store's history, on engines that keep one.
    revision: Option<u64>,
    /// The new version of each written key, in the order of the writes; null for deletes.
    versions: Vec<Option<String>>,
    /// What became of each message, in the order of the request.
    enqueued: Vec<EnqueuedMessage>,
}

/// Applies all writes and enqueues all messages if all checks hold, else none.
#[utoipa::path(
    post,
    path = "/v1/stores/{store}/commit",
    tag = "entries",
    params(
        ("store" = String, Path, description = "The name of a store"),
        ("Keyward-Lock" = Option<String>, Header, description = "Only if the lock of this ticket is held"),
        ("Idempotency-Key" = Option<String>, Header, description = "Sent again with the same key, the request is done once"),
    ),
    request_body = CommitBody<'_>,
    responses((status = 200, description = "All of it is done", body = AppliedBody), ProblemAnswers),
)]
async fn commit(
    State(app): State<App>,
    Authenticated(who): Authenticated,
    At(store): At<String>,
    content: Content,
) -> Answered {
    let asked: CommitBody<'_> = content.read()?;
    let commit = asked.commit()?;
    if asked.enqueue.len() > PAGE_MAX {
        let detail = format!("up to {PAGE_MAX} messages are enqueued at once");
        return Err(Problem::new(Code::LimitExceeded, detail)
            .hint("Enqueue some of them at a time.")
            .into());
    }
    let drafts = asked.enqueue.into_iter().map(EnqueueDraft::draft);
    let drafts = drafts.collect::<Result<Vec<_>>>()?;
    let (lock, mark) = (lock(content.headers())?, content.mark(&who)?);
    let keys: Vec<Key> = commit.checks.iter().map(|check| check.key.clone()).collect();
    let served = app.store(&store)?;
    let done = commits::commit(&who, served, commit, lock.as_ref(), drafts, mark.as_ref()).await?;
    answer(done, &keys)
}

/// What is said about a commit that checked these keys.
pub(super) fn answer(committed: Committed, keys: &[Key]) -> Answered {
    match committed {
        Committed::Applied { revision, versions, enqueued, replayed } => {
            let revision = revision.map_or("null".to_owned(), |revision| revision.to_string());
            let versions = versions.iter().map(|version| match version {
                Some(version) => quoted(&version.to_string()),
                None => "null".to_owned(),
            });
            let text = Object::new()
                .raw("revision", &revision)
                .list("versions", versions)
                .list("enqueued", enqueued.iter().map(fate));
            let mut response = json(StatusCode::OK, text.finish());
            mark_replayed(&mut response, replayed);
            Ok(response)
        }
        Committed::Conflicted(failed) => {
            let failed: Vec<_> = failed
                .iter()
                .map(|at| value!({ "check": at, "key": keys.get(*at).map(ToString::to_string) }))
                .collect();
            Err(Problem::new(Code::PreconditionFailed, "not every check holds")
                .hint("Read the keys again, and decide anew; nothing was done.")
                .with("failed", failed)
                .into())
        }
    }
}

/// Keys to read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KeysBody {
    /// Up to 1000.
    #[schema(max_items = 1000)]
    keys: Vec<String>,
}

impl KeysBody {
    pub fn read(&self) -> Result<Vec<Key>> {
        if self.keys.len() > PAGE_MAX {
            let detail = format!("up to {PAGE_MAX} keys are read at once, not {}", self.keys.len());
            return Err(
                Problem::new(Code::LimitExceeded, detail).hint("Ask for some of them at a time.")
            );
        }
        self.keys.iter().map(|text| key(text)).collect()
    }
}

/// What some keys hold.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes what is written as text")]
pub(super) struct EntriesBody {
    /// In the order of the keys; null, where there is nothing.
    entries: Vec<Option<serde_json::Value>>,
}

/// What some keys hold, in their order.
pub(super) fn held(keys: &[Key], entries: &[Option<Entry>]) -> Response<Body> {
    let entries = keys.iter().zip(entries).map(|(key, entry)| match entry {
        Some(entry) => text::entry(key, entry),
        None => "null".to_owned(),
    });
    json(StatusCode::OK, Object::new().list("entries", entries).finish())
}
