//! The pages of a workspace, and what is attached to them.

use bytes::Bytes;
use keyward::agreements::source::{SourceLimits, Uploads};
use keyward::agreements::{Attachment, BodyFormat, Error, Page, PageId, PageSummary, SourceId};
use keyward::{Code, Key};

use super::{page_id, reach, source_id};
use crate::agreements::{Kept, LookDue};
use crate::identity::{Identity, Need};
use crate::problem::{Problem, Result};
use crate::services::Services;

/// A page of pages, by id.
#[derive(Debug)]
pub struct Listed {
    pub items: Vec<PageSummary>,
    /// What comes after them, if something does.
    pub next: Option<String>,
}

/// A page of the pages of a workspace, by id.
pub async fn list(
    who: &Identity,
    services: &Services,
    name: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Listed> {
    let kept = reach(who, services, name, Need::Read)?;
    let mut items = kept.workspace.source().list().await?;
    items.retain(|page| after.is_none_or(|after| page.id.as_str() > after));
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| has_more).map(|last| last.id.to_string());
    Ok(Listed { items, next })
}

/// A page, with what is attached to it.
pub async fn show(who: &Identity, services: &Services, name: &str, page: &str) -> Result<Page> {
    let kept = reach(who, services, name, Need::Read)?;
    found(kept, &page_id(page)?).await
}

/// A page that its source has.
pub(super) async fn found(kept: &Kept, page: &PageId) -> Result<Page> {
    let found = kept.workspace.source().page(page).await?;
    Ok(found.ok_or_else(|| Error::UnknownPage { page: page.to_string() })?)
}

/// What a page says of itself.
#[derive(Debug)]
pub struct Text<'t> {
    pub title: &'t str,
    pub body: &'t str,
    pub format: BodyFormat,
}

/// Puts a page, or replaces its title and its text. What is attached to it stays.
pub async fn put(
    who: &Identity,
    services: &Services,
    name: &str,
    page: &str,
    text: &Text<'_>,
) -> Result<Page> {
    let (kept, page) = changed(who, services, name, page)?;
    let Text { title, body, format } = *text;
    let uploads = uploads(kept)?;
    // Before the first page: whoever looks at the store knows then whose keys these are.
    kept.workspace.occupy().await?;
    Ok(uploads.put_page(&page, title, body, format).await?)
}

/// Deletes a page, and what is attached to it; whether it was there.
pub async fn delete(who: &Identity, services: &Services, name: &str, page: &str) -> Result<bool> {
    let (kept, page) = changed(who, services, name, page)?;
    Ok(uploads(kept)?.delete_page(&page).await?)
}

/// What an attachment is said to be.
#[derive(Debug)]
pub struct Said<'s> {
    /// The name of its file.
    pub name: &'s str,
    pub media_type: Option<&'s str>,
}

/// Attaches a policy to a page, or replaces it. What was made of an older one is looked at again.
pub async fn attach(
    who: &Identity,
    services: &Services,
    name: &str,
    (page, source): (&str, &str),
    said: &Said<'_>,
    bytes: &[u8],
) -> Result<Attachment> {
    let (kept, page) = changed(who, services, name, page)?;
    let source = source_id(source)?;
    let due = LookDue::new(kept, &page);
    let attached = uploads(kept)?.attach(&page, &source, said.name, said.media_type, bytes).await?;
    due.look().await;
    Ok(attached)
}

/// Takes a policy from its page; whether it was there.
pub async fn detach(
    who: &Identity,
    services: &Services,
    name: &str,
    (page, source): (&str, &str),
) -> Result<bool> {
    let (kept, page) = changed(who, services, name, page)?;
    let source = source_id(source)?;
    let due = LookDue::new(kept, &page);
    let detached = uploads(kept)?.detach(&page, &source).await?;
    match detached {
        true => due.look().await,
        false => due.forget(),
    }
    Ok(detached)
}

/// What an attachment holds.
pub async fn content(
    who: &Identity,
    services: &Services,
    name: &str,
    (page, source): (&str, &str),
) -> Result<(Attachment, Bytes)> {
    let kept = reach(who, services, name, Need::Read)?;
    let (page, source) = (page_id(page)?, source_id(source)?);
    let mut attachments = found(kept, &page).await?.attachments.into_iter();
    let attachment = attachments.find(|attachment| attachment.source == source);
    let bytes = kept.workspace.source().read(&page, &source).await?;
    Ok(attachment.zip(bytes).ok_or_else(|| unknown(&page, &source))?)
}

pub(super) fn unknown(page: &PageId, source: &SourceId) -> Error {
    Error::UnknownPolicy { page: page.to_string(), source_id: source.to_string() }
}

/// The most bytes of an attachment. Refused if nothing can be attached here.
pub fn attachment_bytes_max(who: &Identity, services: &Services, name: &str) -> Result<usize> {
    uploads(reach(who, services, name, Need::Write)?)?;
    let bytes_max = SourceLimits::default().attachment_bytes_max;
    Ok(usize::try_from(bytes_max).unwrap_or(usize::MAX))
}

/// A workspace and a page of it that is to be changed.
fn changed<'a>(
    who: &Identity,
    services: &'a Services,
    name: &str,
    page: &str,
) -> Result<(&'a Kept, PageId)> {
    let kept = reach(who, services, name, Need::Write)?;
    let page = page_id(page)?;
    if let Ok(key) = Key::from_segments(["upload", page.as_str()]) {
        who.touches(&key);
    }
    Ok((kept, page))
}

/// The pages that can be changed here.
fn uploads(kept: &Kept) -> Result<&Uploads> {
    kept.workspace.uploads().ok_or_else(|| {
        let detail = format!("the pages of {} are kept elsewhere, and only read here", kept.name());
        Problem::new(Code::ReadOnly, detail)
            .hint("Change them where they are kept; what was made of them follows.")
    })
}
