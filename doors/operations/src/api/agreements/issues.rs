//! The issues of a page.

use keyward::Coded;
use keyward::agreements::{
    Annotation, By, Error, Filter, Issue, IssueId, IssuePage, NewIssue, PageId, PageIssues,
    Severity, Sort, State, Versioned,
};
use keyward::{Code, Key, Version};

use super::{name_of, page_id, pages, reach};
use crate::agreements::Kept;
use crate::api::entries::Precondition;
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::services::Services;

/// Which issues are listed, and how.
#[derive(Debug, Default)]
pub struct Listing {
    pub filter: Filter,
    pub sort: Sort,
    /// Where the page before ended.
    pub after: Option<String>,
    pub limit: usize,
}

/// A page of issues.
pub async fn list(
    who: &Identity,
    services: &Services,
    name: &str,
    page: &str,
    listing: &Listing,
) -> Result<IssuePage> {
    let issues = reached(who, services, name, page).await?;
    let Listing { filter, sort, after, limit } = listing;
    Ok(issues.list(filter, *sort, after.as_deref(), *limit).await?)
}

/// All issues, in the order of their ids.
pub async fn all(
    who: &Identity,
    services: &Services,
    name: &str,
    page: &str,
) -> Result<Vec<Issue>> {
    Ok(reached(who, services, name, page).await?.all().await?)
}

/// One issue.
pub async fn show(
    who: &Identity,
    services: &Services,
    name: &str,
    (page, issue): (&str, &str),
) -> Result<Versioned> {
    let kept = reach(who, services, name, Need::Read)?;
    Ok(kept.workspace.issues().of(&page_id(page)?)?.get(IssueId::parse(issue)?).await?)
}

/// Makes an issue.
pub async fn create(
    who: &Identity,
    services: &Services,
    name: &str,
    page: &str,
    new: NewIssue,
) -> Result<Versioned> {
    let kept = reach(who, services, name, Need::Write)?;
    let page = page_id(page)?;
    // Issues are of pages that are there.
    pages::found(kept, &page).await?;
    let made = kept.workspace.issues().of(&page)?.create(new, &By::new(name_of(who))).await?;
    touch(who, &page, made.issue.id);
    Ok(made)
}

/// What is to be changed of an issue.
#[derive(Debug, Clone)]
pub enum Change {
    Classify(Severity),
    Annotate(Annotation),
    Transition(State),
    Archive(bool),
}

/// Changes an issue, if it is as the precondition says.
pub async fn change(
    who: &Identity,
    services: &Services,
    name: &str,
    (page, issue): (&str, &str),
    change: Change,
    why: Option<String>,
    precondition: &Precondition,
) -> Result<Versioned> {
    let kept = reach(who, services, name, Need::Write)?;
    let (page, id) = (page_id(page)?, IssueId::parse(issue)?);
    touch(who, &page, id);
    let issues = kept.workspace.issues().of(&page)?;
    let expected = expected(&issues, id, precondition).await?;
    let by = By { why, expected: expected.clone(), ..By::new(name_of(who)) };
    let changed = match change {
        Change::Classify(severity) => issues.classify(id, severity, &by).await,
        Change::Annotate(annotation) => issues.annotate(id, annotation, &by).await,
        Change::Transition(to) => issues.transition(id, to, &by).await,
        Change::Archive(archived) => issues.archive(id, archived, &by).await,
    };
    changed.map_err(|error| match error {
        Error::Moved { .. } if expected.is_some() => {
            Problem::new(Code::PreconditionFailed, error.to_string()).hint(error.hint())
        }
        error => error.into(),
    })
}

/// The version that an issue must have.
async fn expected(
    issues: &PageIssues,
    id: IssueId,
    precondition: &Precondition,
) -> Result<Option<Version>> {
    match precondition {
        Precondition::None | Precondition::Present => Ok(None),
        Precondition::OneOf(versions) => match versions.as_slice() {
            [only] => Ok(Some(only.clone())),
            several => {
                // Whichever of them it has; if none, the first is as wrong as the others.
                let now = issues.get(id).await?.version;
                let first = several.first().cloned().unwrap_or_else(|| Version::parse(""));
                Ok(Some(if several.contains(&now) { now } else { first }))
            }
        },
        Precondition::Absent => Err(Problem::invalid("an issue is changed that is there")
            .hint("Leave out If-None-Match; nothing was done.")),
    }
}

/// The issues of a page that is there, or has some.
async fn reached(
    who: &Identity,
    services: &Services,
    name: &str,
    page: &str,
) -> Result<PageIssues> {
    let kept: &Kept = reach(who, services, name, Need::Read)?;
    let page = page_id(page)?;
    pages::found(kept, &page).await?;
    Ok(kept.workspace.issues().of(&page)?)
}

/// Remembers for the audit log that an issue is changed.
fn touch(who: &Identity, page: &PageId, issue: IssueId) {
    if let Ok(key) = Key::from_segments([page.as_str(), "issue", &issue.to_string()]) {
        who.touches(&key);
    }
}
