//! A workspace in a store that this process opens.

use std::time::Duration;

use futures_util::StreamExt;
use keyward::agreements::source::Uploads;
use keyward::agreements::{
    Analysis, BodyFormat, By, Catalog, Document, Issue, IssueId, NewIssue, Page, PageId,
    PageSummary, SourceId, Task, Versioned, Workspace, export_csv, export_markdown,
};
use keyward::extract::Language;
use keyward::queue::{Report, Status, WorkerOptions};
use keyward::{Code, Version};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::task::Shown;
use super::{Attached, Change, Export, Listed, Numbered, Question, Terms, failed};
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::output::{Output, note};
use crate::queues::person;

/// How long a command waits for what it does for others before it gives that back.
const GRACE: Duration = Duration::from_secs(600);
/// How long what was cancelled may take to notice.
const CANCELLED_GRACE: Duration = Duration::from_secs(2);
/// After how long a command says that it still works for others.
const UNSAID: Duration = Duration::from_millis(300);
/// How often a policy is asked for that changes all the while.
const TRIES: usize = 3;

/// A workspace in a store that this process opens.
pub struct Here {
    name: String,
    workspace: Workspace,
    concurrency: usize,
    working: Option<Working>,
}

/// A worker in this process, as long as the command has tasks.
struct Working {
    stop: oneshot::Sender<()>,
    worker: JoinHandle<keyward::agreements::Result<Report>>,
    interrupt: Interrupt,
}

impl Here {
    pub fn new(name: String, workspace: Workspace, concurrency: usize) -> Self {
        Self { name, workspace, concurrency, working: None }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many tasks it works on at the same time.
    pub fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// The workspace itself.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub async fn pages(&self, after: Option<&str>, limit: usize) -> Result<Listed<PageSummary>> {
        let mut items = self.workspace.source().list().await?;
        items.retain(|page| after.is_none_or(|after| page.id.as_str() > after));
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(|last| last.id.to_string());
        Ok(Listed { items, next })
    }

    pub async fn page(&self, page: &PageId) -> Result<Page> {
        let found = self.workspace.source().page(page).await?;
        found.ok_or_else(|| {
            keyward::agreements::Error::UnknownPage { page: page.to_string() }.into()
        })
    }

    /// Where people put pages, if that is where the pages come from.
    fn uploads(&self) -> Result<&Uploads> {
        self.workspace.uploads().ok_or_else(|| {
            let message = format!("pages of {} are kept elsewhere, and only read here", self.name);
            Failure::new(Code::ReadOnly, message)
                .hint("A workspace with pages = { uploads = true } takes pages and files.")
        })
    }

    pub async fn put_page(
        &self,
        page: &PageId,
        title: &str,
        body: &str,
        html: bool,
    ) -> Result<Page> {
        let format = if html { BodyFormat::Html } else { BodyFormat::Markdown };
        let uploads = self.uploads()?;
        // Before the first page: whoever looks at the store knows then whose keys these are.
        self.workspace.occupy().await?;
        Ok(uploads.put_page(page, title, body, format).await?)
    }

    pub async fn delete_page(&self, page: &PageId) -> Result {
        self.uploads()?.delete_page(page).await?;
        Ok(())
    }

    pub async fn attach(&self, page: &PageId, attached: Attached) -> Result {
        let Attached { source, name, media_type, bytes } = attached;
        self.uploads()?.attach(page, &source, &name, media_type.as_deref(), &bytes).await?;
        Ok(())
    }

    pub async fn detach(&self, page: &PageId, source: &SourceId) -> Result {
        self.uploads()?.detach(page, source).await?;
        Ok(())
    }

    pub async fn policies(&mut self, page: &PageId, output: &Output) -> Result<Catalog> {
        let found = self.task(Task::Policies { page: page.clone() }, output).await?;
        super::task::read(found)
    }

    pub async fn policy(
        &mut self,
        page: &PageId,
        source: &SourceId,
        language: Option<Language>,
        output: &Output,
    ) -> Result<Document> {
        for _ in 0..TRIES {
            if let Some(made) = self.workspace.cached_policy(page, source, language).await? {
                return Ok(made);
            }
            let (page, source) = (page.clone(), source.clone());
            self.task(Task::Policy { page, source, language, redo: false }, output).await?;
        }
        let made = self.workspace.cached_policy(page, source, language).await?;
        made.ok_or_else(|| {
            let message = format!("{source} changes faster than it can be read");
            Failure::new(Code::Unavailable, message).hint("Try again later.")
        })
    }

    pub async fn redo_policy(
        &mut self,
        page: &PageId,
        source: &SourceId,
        language: Option<Language>,
        output: &Output,
    ) -> Result<Document> {
        let (of_page, of_source) = (page.clone(), source.clone());
        let task = Task::Policy { page: of_page, source: of_source, language, redo: true };
        self.task(task, output).await?;
        self.policy(page, source, language, output).await
    }

    pub async fn last_analysis(&self, page: &PageId) -> Result<Option<Analysis>> {
        Ok(self.workspace.last_analysis(page).await?)
    }

    /// Submits a task, and works in this process until it has ended, here or wherever it was taken.
    pub async fn task(&mut self, task: Task, output: &Output) -> Result<Value> {
        let submitted = self.workspace.submit(task, &person(), None).await?;
        let id = submitted.id().to_owned();
        let (jobs, name) = (self.workspace.jobs().clone(), self.name.clone());
        let working = self.working().await;
        let mut statuses = jobs.watch(&id);
        let mut shown = Shown::new(output);
        loop {
            let status = tokio::select! {
                status = statuses.next() => status.transpose()?,
                ended = &mut working.worker => {
                    // There is nobody left to stop.
                    self.working = None;
                    return Err(stopped(ended));
                }
                () = working.interrupt.wait() => {
                    jobs.cancel(&id, &person()).await?;
                    return Err(Failure::interrupted("interrupted; the task was cancelled"));
                }
            };
            match status {
                Some(Status::Activity(activity)) => shown.see(&activity),
                Some(Status::Result(result)) => {
                    return serde_json::from_str(result.as_str()).map_err(|error| {
                        Failure::invalid(format!("the task's result cannot be read: {error}"))
                    });
                }
                Some(Status::Trace(trace)) => return Err(failed::of_trace(&trace, &name)),
                None => {
                    let message = format!("the job {id} is gone");
                    return Err(Failure::new(Code::NotFound, message));
                }
            }
        }
    }

    async fn working(&mut self) -> &mut Working {
        if self.working.is_none() {
            let (stop, stopped) = oneshot::channel::<()>();
            let options = WorkerOptions {
                concurrency: self.concurrency,
                grace: GRACE,
                ..WorkerOptions::default()
            };
            let workspace = self.workspace.clone();
            let work = async move {
                // A sender that is dropped means the same.
                workspace.work(options, async { drop(stopped.await) }).await
            };
            let worker = tokio::spawn(work);
            self.working = Some(Working { stop, worker, interrupt: Interrupt::listen().await });
        }
        match &mut self.working {
            Some(working) => working,
            None => unreachable!("it was made just now"),
        }
    }

    /// Stops the worker. What it has in hand for others is done first, unless Ctrl-C is pressed: then
    /// their jobs are taken over when the leases on them end.
    pub async fn leave(self, output: &Output) -> Result {
        let Some(Working { stop, mut worker, mut interrupt }) = self.working else { return Ok(()) };
        let _ = stop.send(());
        let first = if interrupt.pressed() { CANCELLED_GRACE } else { UNSAID };
        if tokio::time::timeout(first, &mut worker).await.is_ok() || interrupt.pressed() {
            return Ok(());
        }
        if !output.json() {
            note("finishing what others asked for (Ctrl-C leaves it to them)");
        }
        tokio::select! {
            _ = &mut worker => {}
            () = interrupt.wait() => {}
        }
        Ok(())
    }

    pub async fn issues(
        &self,
        page: &PageId,
        question: &Question,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Listed<Numbered>> {
        let issues = self.workspace.issues().of(page)?;
        let found = issues.list(&question.filter, question.order.sort(), after, limit).await?;
        let brief = |found| numbered(found, false);
        let items = found.items.into_iter().map(brief).collect::<Result<_>>()?;
        Ok(Listed { items, next: found.next })
    }

    pub async fn issue(&self, page: &PageId, issue: IssueId) -> Result<Numbered> {
        numbered(self.workspace.issues().of(page)?.get(issue).await?, true)
    }

    pub async fn create(&self, page: &PageId, new: NewIssue) -> Result<Numbered> {
        // An issue of a page that is not there would be found by nobody.
        self.page(page).await?;
        let made = self.workspace.issues().of(page)?.create(new, &By::new(person())).await?;
        numbered(made, true)
    }

    pub async fn export(&self, page: &PageId, form: Export) -> Result<String> {
        let all = self.workspace.issues().of(page)?.all().await?;
        Ok(match form {
            Export::Csv => export_csv(&all)?,
            Export::Markdown => export_markdown(&all),
        })
    }

    pub async fn change(
        &self,
        page: &PageId,
        issue: IssueId,
        change: Change,
        terms: Terms,
    ) -> Result<Numbered> {
        let issues = self.workspace.issues().of(page)?;
        let expected = terms.version.as_deref().map(Version::parse);
        let by = By { why: terms.why, expected, ..By::new(person()) };
        let changed = match change {
            Change::Severity(severity) => issues.classify(issue, severity, &by).await,
            Change::Annotate(annotation) => issues.annotate(issue, annotation, &by).await,
            Change::State(state) => issues.transition(issue, state, &by).await,
            Change::Archived(archived) => issues.archive(issue, archived, &by).await,
        };
        numbered(changed?, true)
    }
}

/// An issue as JSON has it.
fn numbered(found: Versioned, whole: bool) -> Result<Numbered> {
    #[derive(Serialize)]
    struct Full {
        version: String,
        #[serde(flatten)]
        issue: Issue,
    }
    let full = Full { version: found.version.to_string(), issue: found.issue };
    let mut value =
        serde_json::to_value(full).map_err(|error| Failure::invalid(error.to_string()))?;
    if let (false, Some(issue)) = (whole, value.as_object_mut()) {
        issue.remove("history");
        issue.remove("historyDropped");
    }
    Ok(Numbered(value))
}

/// Why a worker stopped that was not told to.
fn stopped(ended: Result<keyward::agreements::Result<Report>, tokio::task::JoinError>) -> Failure {
    match ended {
        Ok(Err(error)) => error.into(),
        Ok(Ok(_)) => Failure::new(Code::Internal, "the worker stopped by itself"),
        Err(error) => Failure::new(Code::Internal, format!("the worker broke: {error}")),
    }
}
