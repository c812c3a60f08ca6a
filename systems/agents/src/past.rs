//! Earlier versions of entries.

use jiff::Timestamp;
use keyward_engine::Json;
use keyward_records::{Past, PastAct, Precondition, Record, Redaction, Written};

use crate::Result;
use crate::entry::Body;
use crate::namespace::{Namespace, is_refused, was_there};
use crate::track::Line;

/// An earlier version of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastEntry {
    /// Its number: later ones are higher.
    pub seq: u64,
    /// What was done: entries are updated, restored and deleted.
    pub act: PastAct,
    /// When, by the clock of whoever did it.
    pub at: Timestamp,
    /// The user for whom it was done.
    pub user: Option<String>,
    /// The agent that did it.
    pub agent: Option<String>,
    /// In which run of the agent.
    pub run: Option<String>,
    /// The value; `None` where the entry was deleted, and where it was redacted.
    pub value: Option<Json>,
    /// What was said about the value.
    pub metadata: Option<Json>,
    /// Who took the value and metadata away, if anybody did.
    pub redacted: Option<Redaction>,
}

/// A page of earlier versions of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PastPage {
    /// The newest first.
    pub versions: Vec<PastEntry>,
    /// The number before which to go on; `None` at the end.
    pub next: Option<u64>,
}

impl PastEntry {
    fn read(past: Past) -> keyward_records::Result<Self> {
        let Past { seq, act, at, user, agent, run, value, redacted, .. } = past;
        let body = value.as_ref().map(Body::read).transpose()?;
        let json = |text: &str| Json::from_stored(text.to_owned());
        let metadata = body.and_then(|body| body.metadata).map(json);
        let value = body.map(|body| json(body.value));
        Ok(Self { seq, act, at, user, agent, run, value, metadata, redacted })
    }
}

impl Namespace {
    /// Earlier versions of an entry, the newest first: at most `limit`, those before number `before` if
    /// one is given. Also of an entry that was deleted. Refused where the engine keeps no history.
    pub async fn history(
        &self,
        key: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<PastEntry>> {
        self.history_page(key, before, limit, usize::MAX).await.map(|page| page.versions)
    }

    /// A page of earlier versions of an entry, as [`history`](Namespace::history) gives them. It ends after
    /// `bytes_max` bytes, and has at least one version.
    pub async fn history_page(
        &self,
        key: &str,
        before: Option<u64>,
        limit: usize,
        bytes_max: usize,
    ) -> Result<PastPage> {
        let place = self.place(key)?;
        let page = self.space.history_page(&place, before, limit, bytes_max).await?;
        let past = page.versions.into_iter().map(PastEntry::read);
        let versions: Vec<PastEntry> = past.collect::<keyward_records::Result<_>>()?;
        let (found, count) = (Some(!versions.is_empty()), Some(versions.len()));
        self.log(Line { found, count, ..Line::of("history").key(key) });
        Ok(PastPage { versions, next: page.next })
    }

    /// Gives an entry the value and metadata it had in an earlier version, as a new version. Who made it
    /// and when stays; it is updated now. Refused for a version that was redacted or is not kept.
    pub async fn restore(&self, key: &str, seq: u64, expect: Precondition) -> Result<Written> {
        let place = self.place(key)?;
        let rules = self.known_rules().await?;
        let writer = self.writer(&rules);
        let mut seen = self.before(&place, &rules);
        let remake = |record: Option<&Record>, past: &Json, _: Option<&Json>| {
            writer.restored(record, past, &mut seen)
        };
        let written = self.space.restore_with(&place, seq, expect, remake).await?;
        self.wrote(&place, &written, &seen);
        let (found, refused) = (was_there(&written), is_refused(&written));
        self.log(Line { found, refused, ..Line::of("restore").key(key) });
        Ok(written)
    }

    /// Takes the value and metadata of an earlier version away, for good; who wrote it and when stays.
    /// False if there is nothing to take: it was redacted before, or the entry was deleted in it. Refused
    /// for the version that the entry has now.
    ///
    /// Lines of operations logs show the beginnings of values, and are not changed by it; they end by
    /// themselves.
    pub async fn redact(&self, key: &str, seq: u64) -> Result<bool> {
        let redacted = self.space.redact(&self.place(key)?, seq).await?;
        self.log(Line { found: Some(redacted), ..Line::of("redact").key(key) });
        Ok(redacted)
    }
}
