//! What can be done, each as a job that is watched and can be cancelled.

use keyward_cache::Purged;
use keyward_engine::{Coded, Json};
use keyward_extract::Language;
use keyward_locks::Mode;
use keyward_queue::{Delivery, Failure, JobOptions, Report, Submitted, Worker, WorkerOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::issue::{Annotation, By, Filter, IssueId, PageIssues, Severity, Sort, State};
use crate::{Activity, Course, Document, Error, PageId, Result, SourceId, Workspace};

/// The queue of all tasks.
pub const QUEUE: &str = "agreements";
/// How many issues a job tells of.
const LISTED_MAX: usize = 200;

/// Something to be done. Each takes the lock of its level:
///
/// | task | lock |
/// |---|---|
/// | `policies` | `policies` |
/// | `policy` | `policy:{source}`, then `policy:{source}:{language}` |
/// | `analyze` | `issues` |
/// | `issues` | `issues`, shared |
/// | `classify`, `annotate`, `transition`, `archive` | `issue:{id}` |
/// | `clear`, `purge` | the page |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "camelCase", deny_unknown_fields)]
pub enum Task {
    /// The policies of a page.
    Policies {
        /// The page.
        page: PageId,
    },
    /// One policy, in a language if one is named.
    Policy {
        /// The page.
        page: PageId,
        /// The policy.
        source: SourceId,
        /// The language; else the one it was written in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        language: Option<Language>,
        /// Whether it is made again, also if it is there and up to date.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        redo: bool,
    },
    /// Has a model look for issues.
    Analyze {
        /// The page.
        page: PageId,
        /// Whether also if nothing has changed since the last time.
        #[serde(default)]
        again: bool,
    },
    /// The issues of a page.
    Issues {
        /// The page.
        page: PageId,
        /// Which of them.
        #[serde(default)]
        filter: Filter,
    },
    /// Says how severe an issue is.
    Classify {
        /// The page.
        page: PageId,
        /// The issue.
        issue: IssueId,
        /// How severe it is.
        severity: Severity,
    },
    /// Writes notes on an issue.
    Annotate {
        /// The page.
        page: PageId,
        /// The issue.
        issue: IssueId,
        /// The notes, in Markdown, in the place of those that are there.
        annotations: String,
    },
    /// Moves an issue to another state.
    Transition {
        /// The page.
        page: PageId,
        /// The issue.
        issue: IssueId,
        /// The state.
        to: State,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// Puts an issue away, or takes it back.
    Archive {
        /// The page.
        page: PageId,
        /// The issue.
        issue: IssueId,
        /// Whether it is put away.
        archived: bool,
    },
    /// Removes everything that was made of a page.
    Clear {
        /// The page.
        page: PageId,
    },
    /// Removes what was made of pages that are gone.
    Purge {
        /// Of this page only; else of all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        page: Option<PageId>,
        /// Also if it was done a short while ago.
        #[serde(default)]
        now: bool,
    },
}

impl Task {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Policies { .. } => "policies",
            Self::Policy { .. } => "policy",
            Self::Analyze { .. } => "analyze",
            Self::Issues { .. } => "issues",
            Self::Classify { .. } => "classify",
            Self::Annotate { .. } => "annotate",
            Self::Transition { .. } => "transition",
            Self::Archive { .. } => "archive",
            Self::Clear { .. } => "clear",
            Self::Purge { .. } => "purge",
        }
    }

    /// The page that it is about, if it is one.
    pub fn page(&self) -> Option<&PageId> {
        match self {
            Self::Policies { page }
            | Self::Policy { page, .. }
            | Self::Analyze { page, .. }
            | Self::Issues { page, .. }
            | Self::Classify { page, .. }
            | Self::Annotate { page, .. }
            | Self::Transition { page, .. }
            | Self::Archive { page, .. }
            | Self::Clear { page } => Some(page),
            Self::Purge { page, .. } => page.as_ref(),
        }
    }
}

/// A task with who wants it, as it stands in the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Order {
    by: String,
    #[serde(flatten)]
    task: Task,
}

impl Workspace {
    /// Submits a task as a job; with an id, the same job submitted again is told as a duplicate.
    pub async fn submit(&self, task: Task, by: &str, id: Option<String>) -> Result<Submitted> {
        self.occupy().await?;
        let order = Order { by: by.to_owned(), task };
        let payload =
            Json::from_value(&order).map_err(|error| Error::Invalid(error.to_string()))?;
        let options =
            JobOptions { id, retention: self.options().retention, ..JobOptions::default() };
        Ok(self.jobs().submit(QUEUE, payload, options).await?)
    }

    /// Does a task at once, and tells those who watch.
    pub async fn perform(&self, task: &Task, by: &str, course: &Course) -> Result<Value> {
        match task {
            Task::Policies { page } => told(&self.policies(page, course).await?),
            Task::Policy { page, source, language, redo: false } => {
                told(&Told::of(&self.policy(page, source, *language, course).await?))
            }
            Task::Policy { page, source, language, redo: true } => {
                told(&Told::of(&self.redo_policy(page, source, *language, course).await?))
            }
            Task::Analyze { page, again } => told(&self.analyze(page, *again, by, course).await?),
            Task::Issues { page, filter } => self.list_issues(page, filter, course).await,
            Task::Classify { page, issue, severity } => {
                let issues = self.locking(page, *issue, course).await?;
                told(&issues.classify(*issue, *severity, &course.by(by)).await?.issue)
            }
            Task::Annotate { page, issue, annotations } => {
                let issues = self.locking(page, *issue, course).await?;
                let notes = Annotation::Replace(annotations.clone());
                told(&issues.annotate(*issue, notes, &course.by(by)).await?.issue)
            }
            Task::Transition { page, issue, to, why } => {
                let issues = self.locking(page, *issue, course).await?;
                let by = By { why: why.clone(), ..course.by(by) };
                told(&issues.transition(*issue, *to, &by).await?.issue)
            }
            Task::Archive { page, issue, archived } => {
                let issues = self.locking(page, *issue, course).await?;
                told(&issues.archive(*issue, *archived, &course.by(by)).await?.issue)
            }
            Task::Clear { page } => {
                Ok(json!({ "page": page, "removed": self.clear(page, course).await? }))
            }
            Task::Purge { page: Some(page), .. } => {
                let (outcome, removed, reason) = match self.purge_page(page, course).await? {
                    Purged::Removed { entries } => ("removed", entries, None),
                    Purged::Kept => ("kept", 0, None),
                    Purged::Unknown(reason) => ("unknown", 0, Some(reason)),
                    Purged::Locked(reason) => ("locked", 0, Some(reason)),
                    Purged::Failed(reason) => ("failed", 0, Some(reason)),
                };
                Ok(json!({
                    "page": page,
                    "outcome": outcome,
                    "removed": removed,
                    "reason": reason,
                }))
            }
            Task::Purge { page: None, now } => Ok(match self.purge(*now, course).await? {
                Some(swept) => json!({ "pages": swept.roots, "removed": swept.entries }),
                None => json!({ "skipped": "a purge was begun a short while ago" }),
            }),
        }
    }

    async fn locking(&self, page: &PageId, issue: IssueId, course: &Course) -> Result<PageIssues> {
        course.enter(Activity::Locking, &issue.to_string()).await?;
        self.issues().of(page)
    }

    /// The issues of a page at one moment: nobody changes any while they are read.
    async fn list_issues(&self, page: &PageId, filter: &Filter, course: &Course) -> Result<Value> {
        self.found(page).await?;
        course.enter(Activity::Locking, "issues").await?;
        let guard = self.hold(page, &["issues"], Mode::Shared, "issues").await?;
        course.enter(Activity::Scanning, page.as_str()).await?;
        let listed =
            self.issues().of(page)?.list(filter, Sort::default(), None, LISTED_MAX).await?;
        guard.release().await?;
        let (total, items) = (listed.total, listed.items);
        let items: Vec<_> = items.into_iter().map(|versioned| versioned.issue).collect();
        Ok(json!({ "total": total, "items": items }))
    }

    /// Works off tasks until `shutdown`. Several processes may; a task whose worker died is taken over.
    pub async fn work(
        &self,
        options: WorkerOptions,
        shutdown: impl Future<Output = ()>,
    ) -> Result<Report> {
        self.occupy().await?;
        let workspace = self.clone();
        let worker = Worker::new(self.jobs().queue(QUEUE)?, options);
        let handler = move |delivery| {
            let workspace = workspace.clone();
            async move { workspace.handle(delivery).await }
        };
        let report = worker.run(handler, shutdown).await;
        // Locks that were dropped are given back beside what is done: nobody shall wait for their leases
        // once this process has ended.
        self.locks().settled().await;
        Ok(report?)
    }

    async fn handle(&self, delivery: Delivery) -> Result<Option<Json>, Failure> {
        let order: Order = serde_json::from_str(delivery.payload().as_str())
            .map_err(|error| Failure::permanent(format!("this is no task: {error}")))?;
        let course = Course::of(delivery.clone());
        let done = tokio::select! {
            done = self.perform(&order.task, &order.by, &course) => done,
            // What was begun is dropped with its locks: somebody else goes on, or nobody shall.
            () = delivery.lost() => return Err(Failure::new("the job is no longer in hand")),
        };
        match done {
            Ok(result) => Ok(Some(Json::from_value(&result)?)),
            Err(error) => {
                let said = format!("{}: {error}", error.code());
                Err(if error.retryable() { Failure::new(said) } else { Failure::permanent(said) })
            }
        }
    }
}

/// What a job tells of a document: where it is, not what it says, which may be long.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'d> {
    source: &'d SourceId,
    title: &'d str,
    original: bool,
    language: Option<Language>,
    #[serde(serialize_with = "keyward_engine::moment::serialize")]
    created: jiff::Timestamp,
    chars: usize,
}

impl<'d> Told<'d> {
    fn of(document: &'d Document) -> Self {
        Self {
            source: &document.source,
            title: &document.title,
            original: document.original,
            language: document.language,
            created: document.created,
            chars: document.content.chars().count(),
        }
    }
}

fn told(result: &impl Serialize) -> Result<Value> {
    serde_json::to_value(result).map_err(|error| Error::Invalid(error.to_string()))
}
