//! Reading policies.

use bytes::Bytes;
use keyward_engine::{Cursor, Scan};
use unicode_normalization::UnicodeNormalization;

use crate::{Content, Error, Page, Policy, Registry, Result};

/// How many entries are read at once.
const SCAN: usize = 500;
/// How many entries are looked at for one page of a search.
const LOOKED_AT_MAX: usize = 20_000;
/// The longest text that is searched for.
const TEXT_BYTES_MAX: usize = 1_000;

impl Registry {
    /// One policy. A name is found however its accents are composed.
    pub async fn policy(&self, name: &str) -> Result<Option<Policy>> {
        let key = self.inner.places.policy(name);
        if let Some(entry) = self.inner.store.get(&key).await? {
            return Ok(Some(Policy::of(name, entry.value)));
        }
        let composed: String = name.nfc().collect();
        if composed == name {
            return Ok(None);
        }
        let entry = self.inner.store.get(&self.inner.places.policy(&composed)).await?;
        Ok(entry.map(|entry| Policy::of(&composed, entry.value)))
    }

    /// One page of policies, in the order of names. `after` is the last name of the page before.
    pub async fn policies(&self, after: Option<&str>, limit: usize) -> Result<Page<Policy>> {
        self.page(after, limit, |_, _| true).await
    }

    /// One page of the policies whose name or title has this text in it, whatever the case. A page may
    /// be short, even empty, and still have a next one: so much of the registry is looked at for each.
    pub async fn search(
        &self,
        text: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<Policy>> {
        if text.len() > TEXT_BYTES_MAX {
            let message = format!("a text to search for has at most {TEXT_BYTES_MAX} bytes");
            return Err(Error::Invalid(message));
        }
        let wanted = folded(text);
        let has = |text: &str| folded(text).contains(&wanted);
        self.page(after, limit, |name, policy| has(name) || has(&policy.title)).await
    }

    /// A policy and its content, read from git. The repository is fetched from if the content is not
    /// at hand; if it is not there either, that is an error.
    pub async fn content(&self, name: &str) -> Result<Option<Content>> {
        let Some(policy) = self.policy(name).await? else { return Ok(None) };
        if policy.sha.is_empty() {
            let message =
                format!("{name:?} is an entry of version 1, without a content; sync first");
            return Err(Error::Invalid(message));
        }
        let bytes = self.blob(&policy.sha).await?;
        Ok(Some(Content { policy, bytes }))
    }

    /// A content by its id, fetched if it is not at hand.
    pub(crate) async fn blob(&self, sha: &str) -> Result<Bytes> {
        let source = &self.inner.source;
        let mut blob = source.blob(sha).await?;
        if blob.is_none() {
            source.fetch().await?;
            blob = source.blob(sha).await?;
        }
        blob.ok_or_else(|| {
            let message = format!("the blob {sha} is not in the repository any more; sync first");
            Error::Source { message, retryable: false }
        })
    }

    async fn page(
        &self,
        after: Option<&str>,
        limit: usize,
        wanted: impl Fn(&str, &Policy) -> bool,
    ) -> Result<Page<Policy>> {
        let places = &self.inner.places;
        let limit = limit.clamp(1, Self::PAGE_MAX);
        let mut cursor = after.map(|name| Cursor::after_key(&places.policy(name)));
        let (mut items, mut looked_at, mut last) = (Vec::new(), 0, None);
        loop {
            let scan = Scan::new(places.policies()).limit(SCAN.min(limit + 1)).after(cursor);
            let page = self.inner.store.scan(&scan).await?;
            for row in page.rows {
                let (Some(name), Some(entry)) = (places.name_of(&row.key), row.entry) else {
                    continue;
                };
                if items.len() == limit {
                    return Ok(Page { items, next: last });
                }
                looked_at += 1;
                let policy = Policy::of(&name, entry.value);
                if wanted(&name, &policy) {
                    items.push(policy);
                }
                last = Some(name);
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(Page { items, next: None });
            }
            if looked_at >= LOOKED_AT_MAX {
                return Ok(Page { items, next: last });
            }
        }
    }
}

/// A text as it is compared: composed, and in lower case.
fn folded(text: &str) -> String {
    text.nfc().flat_map(char::to_lowercase).collect()
}
