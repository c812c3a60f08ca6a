//! Workspaces as commands reach them: one that the config file declares, a folder of pages, or one that a
//! server keeps. Commands do not see which it is.

pub mod failed;
mod here;
mod path;
mod reach;
mod sandbox;
mod task;
mod there;

use bytes::Bytes;
use keyward::agreements::{
    Analysis, Annotation, Catalog, Document, Filter, IssueId, NewIssue, Page, PageId, PageSummary,
    Severity, Sort, SourceId, State, Task,
};
use keyward::extract::Language;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::here::Here;
pub use self::reach::{Named, Use, kept, settings_of};
pub use self::sandbox::{sandbox, serve};
use self::there::There;
use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;

/// A workspace to work in.
pub enum Desk {
    /// In a store that this process opens.
    Here(Here),
    /// In a server.
    There(There),
}

/// A part of a list, and where the next one begins.
pub struct Listed<T> {
    pub items: Vec<T>,
    pub next: Option<String>,
}

/// An issue with its version, as JSON has it everywhere. In lists it has no history.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Numbered(pub Value);

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Export {
    /// Comma-separated values, for spreadsheets
    Csv,
    /// Markdown, for people
    Markdown,
}

impl Export {
    fn word(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Markdown => "markdown",
        }
    }
}

/// What is attached to a page.
pub struct Attached {
    pub source: SourceId,
    pub name: String,
    pub media_type: Option<String>,
    pub bytes: Bytes,
}

/// Which issues, in which order.
#[derive(Debug, Clone, Default)]
pub struct Question {
    pub filter: Filter,
    pub order: Order,
}

/// The order of issues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// The most severe first
    #[default]
    Severity,
    /// Those that were made last first
    Created,
    /// Those that were changed last first
    Updated,
    /// By title, from A to Z
    Title,
    /// Pending, active, blocked, resolved
    State,
}

impl Order {
    fn sort(self) -> Sort {
        match self {
            Self::Severity => Sort::Severity,
            Self::Created => Sort::Created,
            Self::Updated => Sort::Updated,
            Self::Title => Sort::Title,
            Self::State => Sort::State,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Severity => "severity",
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Title => "title",
            Self::State => "state",
        }
    }
}

/// What is to become of an issue.
#[derive(Debug, Clone)]
pub enum Change {
    Severity(Severity),
    Annotate(Annotation),
    State(State),
    Archived(bool),
}

/// Who wants a change to be made only so: why, and from which version.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    pub why: Option<String>,
    pub version: Option<String>,
}

macro_rules! either {
    ($desk:expr, $it:ident => $done:expr) => {
        match $desk {
            Desk::Here($it) => $done.await,
            Desk::There($it) => $done.await,
        }
    };
}

impl Desk {
    /// The workspace that is meant.
    pub async fn open(
        target: &Target,
        named: &Named,
        purpose: Use,
        output: &Output,
    ) -> Result<Self> {
        reach::open(target, named, purpose, output).await
    }

    /// Pages, by id.
    pub async fn pages(&self, after: Option<&str>, limit: usize) -> Result<Listed<PageSummary>> {
        either!(self, it => it.pages(after, limit))
    }

    /// One page.
    pub async fn page(&self, page: &PageId) -> Result<Page> {
        either!(self, it => it.page(page))
    }

    /// Puts a page, where people do.
    pub async fn put_page(
        &self,
        page: &PageId,
        title: &str,
        body: &str,
        html: bool,
    ) -> Result<Page> {
        either!(self, it => it.put_page(page, title, body, html))
    }

    /// Deletes a page, if it is there.
    pub async fn delete_page(&self, page: &PageId) -> Result {
        either!(self, it => it.delete_page(page))
    }

    /// Attaches a file to a page.
    pub async fn attach(&self, page: &PageId, attached: Attached) -> Result {
        either!(self, it => it.attach(page, attached))
    }

    /// Takes a file from a page, if it is there.
    pub async fn detach(&self, page: &PageId, source: &SourceId) -> Result {
        either!(self, it => it.detach(page, source))
    }

    /// The policies of a page.
    pub async fn policies(&mut self, page: &PageId, output: &Output) -> Result<Catalog> {
        either!(self, it => it.policies(page, output))
    }

    /// One policy as text, made if it is not there.
    pub async fn policy(
        &mut self,
        page: &PageId,
        source: &SourceId,
        language: Option<Language>,
        output: &Output,
    ) -> Result<Document> {
        either!(self, it => it.policy(page, source, language, output))
    }

    /// The same, made again also if it is there.
    pub async fn redo_policy(
        &mut self,
        page: &PageId,
        source: &SourceId,
        language: Option<Language>,
        output: &Output,
    ) -> Result<Document> {
        either!(self, it => it.redo_policy(page, source, language, output))
    }

    /// Has a model look for issues.
    pub async fn analyze(
        &mut self,
        page: &PageId,
        again: bool,
        output: &Output,
    ) -> Result<Analysis> {
        task::read(self.task(Task::Analyze { page: page.clone(), again }, output).await?)
    }

    /// What the last analysis came to.
    pub async fn last_analysis(&self, page: &PageId) -> Result<Option<Analysis>> {
        either!(self, it => it.last_analysis(page))
    }

    /// Does something, and shows what it is doing.
    pub async fn task(&mut self, task: Task, output: &Output) -> Result<Value> {
        either!(self, it => it.task(task, output))
    }

    /// Issues of a page.
    pub async fn issues(
        &self,
        page: &PageId,
        question: &Question,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Listed<Numbered>> {
        either!(self, it => it.issues(page, question, after, limit))
    }

    /// One issue.
    pub async fn issue(&self, page: &PageId, issue: IssueId) -> Result<Numbered> {
        either!(self, it => it.issue(page, issue))
    }

    /// Makes an issue.
    pub async fn create(&self, page: &PageId, new: NewIssue) -> Result<Numbered> {
        either!(self, it => it.create(page, new))
    }

    /// All issues of a page as text.
    pub async fn export(&self, page: &PageId, form: Export) -> Result<String> {
        either!(self, it => it.export(page, form))
    }

    /// Changes an issue.
    pub async fn change(
        &self,
        page: &PageId,
        issue: IssueId,
        change: Change,
        terms: Terms,
    ) -> Result<Numbered> {
        either!(self, it => it.change(page, issue, change, terms))
    }

    /// Waits for what this process still does for others, once its own is told.
    pub async fn leave(self, output: &mut Output) -> Result {
        output.flush()?;
        match self {
            Self::Here(here) => here.leave(output).await,
            Self::There(_) => Ok(()),
        }
    }
}
