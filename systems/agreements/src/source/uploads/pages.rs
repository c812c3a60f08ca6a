//! Pages that are put, changed and deleted.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use keyward_engine::{
    Commit, ErrorKind, Expect, Expiry, Json, List, Listed, Outcome, Put, Version,
};
use keyward_key::Prefix;

use super::content::{Written, note_key, took_too_long};
use super::manifest::{Attached, Kept, Manifest, kept, key, latest_key};
use super::{Uploads, contended, too_large};
use crate::page::UPLOADS;
use crate::{Attachment, BodyFormat, Error, Page, PageId, PageSummary, Result, SourceId};

/// So often a change is tried again, because others were faster.
const TRIES: usize = 32;
/// Manifests that are read at once; each has the text of its page.
const MANIFESTS_TOGETHER: usize = 16;
const TITLE_BYTES_MAX: usize = 1_000;
const NAME_BYTES_MAX: usize = 255;
/// For so long a deleted page's time is remembered: no clock is further behind than that.
const LATEST: Duration = Duration::from_secs(24 * 3_600);

impl Uploads {
    /// Puts a page, or replaces its title and its text. What is attached to it stays.
    pub async fn put_page(
        &self,
        page: &PageId,
        title: &str,
        body: &str,
        format: BodyFormat,
    ) -> Result<Page> {
        check_text("title", title, TITLE_BYTES_MAX)?;
        if body.len() as u64 > self.limits.body_bytes_max {
            let most = self.limits.body_bytes_max;
            return Err(too_large(format!("a page's text has at most {most} bytes")));
        }
        for _ in 0..TRIES {
            let at = key(page)?;
            let (kept, latest) = self.manifest_or_latest(page).await?;
            let expect = kept.as_ref().map_or(Expect::Absent, Kept::expected);
            let updated = self.stamp(latest)?;
            let attachments = kept.map(|kept| kept.manifest.attachments).unwrap_or_default();
            let (title, body) = (title.to_owned(), body.to_owned());
            let manifest = Manifest { title, body, format, updated, attachments };
            let commit = Commit::new().check(at.clone(), expect).put(at, manifest.put()?);
            if self.store.commit(commit).await?.is_applied() {
                return Ok(manifest.page(page));
            }
        }
        Err(contended(page))
    }

    /// Attaches a policy to a page, or replaces it, whole or not at all. If it fails with an unknown
    /// outcome it may be there or not, but never in part.
    pub async fn attach(
        &self,
        page: &PageId,
        source: &SourceId,
        name: &str,
        media_type: Option<&str>,
        bytes: &[u8],
    ) -> Result<Attachment> {
        check_text("name", name, NAME_BYTES_MAX)?;
        media_type.map_or(Ok(()), |media| check_text("media type", media, NAME_BYTES_MAX))?;
        if bytes.len() as u64 > self.limits.attachment_bytes_max {
            let most = self.limits.attachment_bytes_max;
            return Err(too_large(format!("an attachment has at most {most} bytes")));
        }
        // Asked before the work, and again when it is done.
        let kept = self.manifest(page).await?.ok_or_else(|| unknown(page))?;
        self.check_room(&kept.manifest, source)?;
        let written = self.write(page, bytes).await?;
        let attached = Attached {
            source: source.clone(),
            name: name.to_owned(),
            media_type: media_type.map(str::to_owned),
            created: Timestamp::UNIX_EPOCH,
            bytes: bytes.len() as u64,
            sha256: written.sha256.clone(),
            content: written.content.clone(),
            chunks: written.chunks,
        };
        let switched = self.switch(page, &written, attached).await;
        if switched.is_err()
            && let Err(error) = self.discard(page, &written).await
        {
            tracing::debug!(%page, %error, "what was written is left to be swept");
        }
        let (attachment, replaced) = switched?;
        if let Some(replaced) = replaced {
            self.tidy(page, &replaced).await;
        }
        Ok(attachment)
    }

    /// Puts what was written into the manifest. Gives what it replaced, too.
    async fn switch(
        &self,
        page: &PageId,
        written: &Written,
        mut attached: Attached,
    ) -> Result<(Attachment, Option<String>)> {
        let (at, note) = (key(page)?, note_key(page, &written.content)?);
        let source = attached.source.clone();
        let mut replaced = None;
        for _ in 0..TRIES {
            let kept = self.manifest(page).await?.ok_or_else(|| unknown(page))?;
            // A commit whose answer was lost.
            if let Some(there) =
                kept.manifest.find(&source).filter(|it| it.content == written.content)
            {
                return Ok((there.clone().attachment(), replaced));
            }
            self.check_room(&kept.manifest, &source)?;
            let expect = kept.expected();
            let mut manifest = kept.manifest;
            attached.created = self.stamp(Some(manifest.updated))?;
            manifest.updated = attached.created;
            replaced = manifest.remove(&source).map(|old| old.content);
            manifest.insert(attached.clone());
            let commit = Commit::new()
                .check(at.clone(), expect)
                .check(note.clone(), Expect::Version(written.note.clone()))
                .put(at.clone(), manifest.put()?)
                .delete(note.clone());
            match self.store.commit(commit).await {
                Ok(Outcome::Applied { .. }) => return Ok((attached.attachment(), replaced)),
                Ok(Outcome::Conflicted { failed }) if failed == [1] => {
                    // Given up; or named, by a commit that was on its way.
                    let kept = self.manifest(page).await?;
                    if !kept.is_some_and(|kept| kept.manifest.has(&written.content)) {
                        return Err(took_too_long());
                    }
                }
                Ok(Outcome::Conflicted { .. }) => {}
                // It was done or not, which the manifest tells.
                Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(contended(page))
    }

    /// Takes a policy from its page. `false` if it was not there.
    pub async fn detach(&self, page: &PageId, source: &SourceId) -> Result<bool> {
        let at = key(page)?;
        for _ in 0..TRIES {
            let Some(kept) = self.manifest(page).await? else { return Ok(false) };
            let expect = kept.expected();
            let mut manifest = kept.manifest;
            let Some(removed) = manifest.remove(source) else { return Ok(false) };
            manifest.updated = self.stamp(Some(manifest.updated))?;
            let commit = Commit::new().check(at.clone(), expect).put(at.clone(), manifest.put()?);
            if self.store.commit(commit).await?.is_applied() {
                self.tidy(page, &removed.content).await;
                return Ok(true);
            }
        }
        Err(contended(page))
    }

    /// Deletes a page, and what is attached to it. `false` if it was not there.
    pub async fn delete_page(&self, page: &PageId) -> Result<bool> {
        let at = key(page)?;
        for _ in 0..TRIES {
            let Some(kept) = self.manifest(page).await? else { return Ok(false) };
            // A page that is put again is newer than this one was, whoever's clock it goes by.
            let latest = Json::from_value(&kept.manifest.updated);
            let latest = latest.map_err(|error| Error::Invalid(error.to_string()))?;
            let latest = Put::new(latest).expiring(Expiry::After(LATEST));
            let commit = Commit::new()
                .check(at.clone(), kept.expected())
                .delete(at.clone())
                .put(latest_key(page)?, latest);
            if self.store.commit(commit).await?.is_applied() {
                for attached in &kept.manifest.attachments {
                    self.tidy(page, &attached.content).await;
                }
                return Ok(true);
            }
        }
        Err(contended(page))
    }

    pub(super) async fn manifest(&self, page: &PageId) -> Result<Option<Kept>> {
        let at = key(page)?;
        self.store.get(&at).await?.map(|entry| kept(&at, &entry)).transpose()
    }

    pub(super) async fn list_pages(&self) -> Result<Vec<PageSummary>> {
        let mut pages = Vec::new();
        let mut after = None;
        loop {
            let list = List::new(Prefix::from_segments([UPLOADS])).depth(1).after(after);
            let listing = self.store.list(&list).await?;
            let keys = listing.items.into_iter().filter_map(|item| match item {
                Listed::Key(key) => Some(key),
                // Contents, of a page or of none.
                Listed::Prefix(_) => None,
            });
            let keys: Vec<_> = keys.collect();
            for some in keys.chunks(MANIFESTS_TOGETHER) {
                for (key, entry) in some.iter().zip(self.store.get_many(some).await?) {
                    let Some(entry) = entry else { continue };
                    let page = key.segments().last().unwrap_or_default();
                    pages.push(kept(key, &entry)?.manifest.summary(PageId::new(&page)?));
                }
            }
            if pages.len() > self.limits.pages_max {
                let most = self.limits.pages_max;
                return Err(too_large(format!("there are more than {most} pages")));
            }
            after = listing.next;
            if after.is_none() {
                return Ok(pages);
            }
        }
    }

    /// The manifest of a page, and when it last changed, or was deleted.
    async fn manifest_or_latest(&self, page: &PageId) -> Result<(Option<Kept>, Option<Timestamp>)> {
        let keys = [key(page)?, latest_key(page)?];
        let seen = self.store.get_many(&keys).await?;
        if let Some(Some(entry)) = seen.first() {
            let kept = kept(&keys[0], entry)?;
            let updated = kept.manifest.updated;
            return Ok((Some(kept), Some(updated)));
        }
        let latest = seen.into_iter().next_back().flatten();
        let latest = latest.map(|entry| serde_json::from_slice(entry.value.as_bytes()));
        let latest = latest.transpose().map_err(|error| Error::damaged(&keys[1], error))?;
        Ok((None, latest))
    }

    /// The time of a change: now, and later than the one before it.
    fn stamp(&self, before: Option<Timestamp>) -> Result<Timestamp> {
        let now = self.clock.now();
        // As exact as its text: the state of an attachment is told by comparing these.
        let now = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
        let Some(before) = before else { return Ok(now) };
        let next = before.checked_add(SignedDuration::from_millis(1));
        Ok(now.max(next.map_err(|error| Error::Invalid(error.to_string()))?))
    }

    fn check_room(&self, manifest: &Manifest, source: &SourceId) -> Result<()> {
        let most = self.limits.attachments_max;
        if manifest.attachments.len() >= most && manifest.find(source).is_none() {
            return Err(too_large(format!("a page has at most {most} attachments")));
        }
        Ok(())
    }

    /// Removes what was replaced. What is left is swept later.
    async fn tidy(&self, page: &PageId, content: &str) {
        if let Err(error) = self.remove_content(page, content).await {
            tracing::debug!(%page, %error, "what was replaced is left to be swept");
        }
    }
}

impl Kept {
    fn expected(&self) -> Expect {
        Expect::Version(Version::clone(&self.version))
    }
}

fn unknown(page: &PageId) -> Error {
    Error::UnknownPage { page: page.to_string() }
}

fn check_text(what: &str, text: &str, bytes_max: usize) -> Result<()> {
    if text.is_empty() || text.len() > bytes_max || text.chars().any(char::is_control) {
        return Err(Error::Invalid(format!(
            "a {what} has 1 to {bytes_max} bytes, and no control characters"
        )));
    }
    Ok(())
}
