//! A workspace that a server keeps.

use std::time::Duration;

use bytes::Bytes;
use keyward::Code;
use keyward::agreements::{
    Analysis, Annotation, Archived, Catalog, Document, IssueId, NewIssue, Page, PageId,
    PageSummary, SourceId, Task,
};
use keyward::extract::Language;
use keyward::queue::{Activity, Trace};
use keyward::remote::{Connection, Reply, Sent};
use serde::Deserialize;
use serde_json::{Value, json};

use super::path::{Path, Query};
use super::task::Shown;
use super::{Attached, Change, Export, Listed, Numbered, Question, Terms, failed};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::served::{Served, read};

/// The pauses between looks at a job.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How often something is asked for that changes all the while.
const TRIES: usize = 3;
/// What a file is whose kind nobody said: the server looks at what is in it.
const UNSAID: &str = "application/octet-stream";

/// A workspace that a server keeps.
pub struct There {
    name: String,
    server: String,
    connection: Connection,
}

/// What a server answers, once it is well.
enum Answered {
    Done(Bytes),
    /// A job does it.
    Accepted(Job),
}

#[derive(Deserialize)]
struct Job {
    id: String,
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Activity(Activity),
    Result(Value),
    Trace(Trace),
}

#[derive(Deserialize)]
struct Items<T> {
    items: Vec<T>,
    #[serde(default)]
    next: Option<String>,
}

#[derive(Deserialize)]
struct WorkspaceName {
    name: String,
}

#[derive(Deserialize)]
struct Policies {
    policies: Catalog,
}

impl There {
    /// The workspace that is named, else the only one that the server shows.
    pub async fn open(server: &Served, named: Option<&str>) -> Result<Self> {
        let (connection, server) = (server.connection()?, server.name().to_owned());
        if let Some(name) = named {
            return Ok(Self { name: name.to_owned(), server, connection });
        }
        let found: Items<WorkspaceName> = read(&connection.get("/v1/agreements").await?)?;
        let names: Vec<&str> = found.items.iter().map(|found| found.name.as_str()).collect();
        match names.as_slice() {
            [only] => Ok(Self { name: (*only).to_owned(), server, connection }),
            [] => {
                let message = format!("{server} keeps no workspace, or none that this key reaches");
                Err(Failure::new(Code::UnknownWorkspace, message))
            }
            names => {
                let message = format!("it is not said which workspace: {}", names.join(", "));
                Err(Failure::new(Code::UnknownWorkspace, message)
                    .exit(Exit::Invalid)
                    .hint("Give --workspace NAME."))
            }
        }
    }

    /// The server.
    pub fn server(&self) -> &str {
        &self.server
    }

    fn path(&self) -> Path {
        Path::new("/v1/agreements").of(&self.name)
    }

    fn of_page(&self, page: &PageId) -> Path {
        self.path().of("pages").of(page.as_str())
    }

    async fn send(&self, sent: Sent) -> Result<Answered> {
        match self.connection.send(sent).await? {
            Reply::Good { status: 202, body } => Ok(Answered::Accepted(read(&body)?)),
            Reply::Good { body, .. } => Ok(Answered::Done(body)),
            Reply::Refused(refused) => Err(refused.into()),
        }
    }

    /// What must be answered at once.
    async fn ask(&self, sent: Sent) -> Result<Bytes> {
        match self.send(sent).await? {
            Answered::Done(body) => Ok(body),
            Answered::Accepted(job) => {
                let message = format!("the server does it later, as the job {}", job.id);
                Err(Failure::new(Code::Unavailable, message))
            }
        }
    }

    /// What may have to be made: it is asked for again once the job that makes it has ended.
    async fn made(&self, sent: Sent, output: &Output) -> Result<Bytes> {
        for _ in 0..TRIES {
            match self.send(sent.clone()).await? {
                Answered::Done(body) => return Ok(body),
                // Others wait for the same job: it is not ours to cancel.
                Answered::Accepted(job) => drop(self.watch(job, false, output).await?),
            }
        }
        let message = "what is asked for changes faster than it can be made";
        Err(Failure::new(Code::Unavailable, message).hint("Try again later."))
    }

    /// Waits for a job. Ctrl-C cancels it, if it is this command's own.
    async fn watch(&self, mut job: Job, own: bool, output: &Output) -> Result<Value> {
        let mut interrupt = Interrupt::listen().await;
        let mut shown = Shown::new(output);
        let path = self.path().of("jobs").of(&job.id);
        let mut pause = PAUSE_MIN;
        loop {
            match job.status {
                Status::Activity(activity) => shown.see(&activity),
                Status::Result(result) => return Ok(result),
                Status::Trace(trace) => return Err(failed::of_trace(&trace, &self.name)),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = interrupt.wait() => {
                    if !own {
                        return Err(Failure::interrupted("interrupted; the server goes on with it"));
                    }
                    self.ask(Sent::delete(path.as_str())).await?;
                    return Err(Failure::interrupted("interrupted; the task was cancelled"));
                }
            }
            pause = (2 * pause).min(PAUSE_MAX);
            job = read(&self.ask(Sent::get(path.as_str())).await?)?;
        }
    }

    pub async fn pages(&self, after: Option<&str>, limit: usize) -> Result<Listed<PageSummary>> {
        let query = Query::default().add("after", after).add("limit", Some(limit));
        let path = self.path().of("pages").asking(&query);
        let Items { items, next } = read(&self.ask(Sent::get(path.as_str())).await?)?;
        Ok(Listed { items, next })
    }

    pub async fn page(&self, page: &PageId) -> Result<Page> {
        read(&self.ask(Sent::get(self.of_page(page).as_str())).await?)
    }

    pub async fn put_page(
        &self,
        page: &PageId,
        title: &str,
        body: &str,
        html: bool,
    ) -> Result<Page> {
        let format = if html { "html" } else { "markdown" };
        let body = json!({ "title": title, "body": body, "bodyFormat": format }).to_string();
        let sent = Sent::put(self.of_page(page).as_str(), "application/json", body);
        read(&self.ask(sent).await?)
    }

    pub async fn delete_page(&self, page: &PageId) -> Result {
        self.ask(Sent::delete(self.of_page(page).as_str())).await.map(drop)
    }

    pub async fn attach(&self, page: &PageId, attached: Attached) -> Result {
        let Attached { source, name, media_type, bytes } = attached;
        let path = self.of_page(page).of("attachments").of(source.as_str());
        let path = path.asking(&Query::default().add("name", Some(name)));
        let media_type = media_type.as_deref().unwrap_or(UNSAID);
        self.ask(Sent::put(path.as_str(), media_type, bytes)).await.map(drop)
    }

    pub async fn detach(&self, page: &PageId, source: &SourceId) -> Result {
        let path = self.of_page(page).of("attachments").of(source.as_str());
        self.ask(Sent::delete(path.as_str())).await.map(drop)
    }

    pub async fn policies(&self, page: &PageId, _output: &Output) -> Result<Catalog> {
        let path = self.of_page(page).of("policies");
        let found: Policies = read(&self.ask(Sent::get(path.as_str())).await?)?;
        Ok(found.policies)
    }

    /// A policy. Reading it needs only `read`; what is not there yet is made, which needs `write`.
    pub async fn policy(
        &self,
        page: &PageId,
        source: &SourceId,
        language: Option<Language>,
        output: &Output,
    ) -> Result<Document> {
        let path = self.of_page(page).of("policies").of(source.as_str());
        let query = Query::default().add("language", language.map(Language::as_str));
        let there = Sent::get(path.clone().asking(&query).as_str()).accept("application/json");
        match self.ask(there).await {
            Ok(body) => return read(&body),
            Err(failure) if failure.is(Code::NotMade) => {}
            Err(failure) => return Err(failure),
        }
        // Not waited for: what is done meanwhile can then be shown.
        let path = path.asking(&query.add("wait_ms", Some(0)));
        let sent = Sent::post(path.as_str(), "").accept("application/json");
        read(&self.made(sent, output).await?)
    }

    /// The same, made again also if it is there, which needs `write`.
    pub async fn redo_policy(
        &self,
        page: &PageId,
        source: &SourceId,
        language: Option<Language>,
        output: &Output,
    ) -> Result<Document> {
        let path = self.of_page(page).of("policies").of(source.as_str());
        let query = Query::default()
            .add("language", language.map(Language::as_str))
            .add("redo", Some(true))
            .add("wait_ms", Some(0));
        let sent = Sent::post(path.asking(&query).as_str(), "").accept("application/json");
        match self.send(sent).await? {
            Answered::Done(body) => read(&body),
            Answered::Accepted(job) => {
                // Asked for once: the same request again would have it made once more. Others may wait
                // for the same job, so it is not ours to cancel.
                self.watch(job, false, output).await?;
                self.policy(page, source, language, output).await
            }
        }
    }

    pub async fn last_analysis(&self, page: &PageId) -> Result<Option<Analysis>> {
        let path = self.of_page(page).of("analysis");
        match self.ask(Sent::get(path.as_str())).await {
            Ok(body) => read(&body).map(Some),
            Err(failure) if failure.is(Code::NotFound) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Submits a task, and waits for its end.
    pub async fn task(&self, task: Task, output: &Output) -> Result<Value> {
        let body = serde_json::to_string(&task).map_err(|error| {
            Failure::new(Code::Internal, format!("the task cannot be sent: {error}"))
        })?;
        match self.send(Sent::post(self.path().of("tasks").as_str(), body)).await? {
            Answered::Accepted(job) => self.watch(job, true, output).await,
            Answered::Done(body) => read(&body),
        }
    }

    fn of_issue(&self, page: &PageId, issue: IssueId) -> Path {
        self.of_page(page).of("issues").of(&issue.to_string())
    }

    pub async fn issues(
        &self,
        page: &PageId,
        question: &Question,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Listed<Numbered>> {
        let Question { filter, order } = question;
        let words = |words: Vec<String>| Some(words.join(",")).filter(|words| !words.is_empty());
        let states = filter.states.iter().map(ToString::to_string).collect();
        let weights = filter.severities.iter().map(|it| u8::from(*it).to_string()).collect();
        let archived = match filter.archived {
            Archived::Hidden => "hidden",
            Archived::Included => "included",
            Archived::Only => "only",
        };
        let query = Query::default()
            .add("state", words(states))
            .add("severity", words(weights))
            .add("text", filter.text.as_deref())
            .add("source", filter.source.as_ref())
            .add("archived", Some(archived))
            .add("stale", filter.stale)
            .add("sort", Some(order.word()))
            .add("after", after)
            .add("limit", Some(limit));
        let path = self.of_page(page).of("issues").asking(&query);
        let Items { items, next } = read(&self.ask(Sent::get(path.as_str())).await?)?;
        Ok(Listed { items, next })
    }

    pub async fn issue(&self, page: &PageId, issue: IssueId) -> Result<Numbered> {
        read(&self.ask(Sent::get(self.of_issue(page, issue).as_str())).await?)
    }

    pub async fn create(&self, page: &PageId, new: NewIssue) -> Result<Numbered> {
        let body =
            serde_json::to_string(&new).map_err(|error| Failure::invalid(error.to_string()))?;
        read(&self.ask(Sent::post(self.of_page(page).of("issues").as_str(), body)).await?)
    }

    pub async fn change(
        &self,
        page: &PageId,
        issue: IssueId,
        change: Change,
        terms: Terms,
    ) -> Result<Numbered> {
        let mut body = match change {
            Change::Severity(severity) => json!({ "severity": severity }),
            Change::Annotate(Annotation::Append(note)) => json!({ "note": note }),
            Change::Annotate(Annotation::Replace(text)) => json!({ "annotations": text }),
            Change::State(state) => json!({ "state": state }),
            Change::Archived(archived) => json!({ "archived": archived }),
        };
        if let Some(why) = terms.why {
            body["why"] = why.into();
        }
        let sent = Sent::patch(self.of_issue(page, issue).as_str(), body.to_string());
        let sent = match &terms.version {
            Some(version) => sent.if_match(version),
            None => sent,
        };
        read(&self.ask(sent).await?)
    }

    pub async fn export(&self, page: &PageId, form: Export) -> Result<String> {
        let query = Query::default().add("format", Some(form.word()));
        let path = self.of_page(page).of("issues").of("export").asking(&query);
        let text = self.ask(Sent::get(path.as_str()).accept("*/*")).await?;
        String::from_utf8(text.into())
            .map_err(|_| Failure::invalid("the server's answer is not UTF-8"))
    }
}
