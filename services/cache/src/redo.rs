//! Computing a result again although it is good, because somebody does not like it.

use std::fmt::Display;

use keyward_engine::{Entry, Expiry, Json};
use keyward_key::Key;
use keyward_locks::{Change, Error as LockError, Mode, Request, Updated};

use crate::cache::Look;
use crate::compute::Computing;
use crate::label::{Label, Stored};
use crate::{Cache, Cached, Error, Fetch, Origin, Result};

impl Cache {
    /// Computes a result again, also if the cached one is good for its source. What is cached is given to
    /// `compute`, and to everybody who asks, until there is a new result: a computation that fails changes
    /// nothing. What was made from the old result is dropped with it.
    ///
    /// A computation that returns the value it was given says that there is nothing new: that value stays,
    /// and so does everything that was made from it.
    ///
    /// Of all callers in all processes that ask for this at the same time, one runs its function, and the
    /// others wait and get the same. Where nothing good is cached, this is [`Cache::get_or_compute`].
    ///
    /// A result of a newer state of the source than the caller knows stays: it is returned, and nothing is
    /// computed.
    pub async fn redo<F, C, E>(&self, key: &Key, fetch: &Fetch, compute: F) -> Result<Cached>
    where
        F: FnOnce(Option<Json>) -> C,
        C: Future<Output = Result<Json, E>>,
        E: Display,
    {
        self.check(key, fetch)?;
        let Look::Fresh(seen) = self.look(key, &fetch.source).await? else {
            self.inner.metrics.misses.inc();
            return self.compute_once(key, fetch, || compute(None)).await;
        };
        if seen.label.source.is_newer_than(&fetch.source) {
            self.inner.metrics.hits.inc();
            return Ok(seen.cached(Origin::Stored));
        }
        self.inner.metrics.misses.inc();
        let (root, path) = self.lock_of(key, fetch)?;
        let request = Request::default()
            .ttl(fetch.lease)
            .wait_max(fetch.wait_max)
            .purpose(format!("compute {key} again"));
        let guard = match root.acquire(&[path], Mode::Exclusive, &request).await {
            Ok(guard) => guard,
            Err(LockError::TimedOut { .. }) => {
                return Err(Error::TimedOut { key: key.clone(), waited: fetch.wait_max });
            }
            Err(error) => return Err(error.into()),
        };
        match self.look(key, &fetch.source).await? {
            Look::Fresh(held) if held.label == seen.label => {
                let computation = format!("{}#{}", root.key(), guard.token());
                let computing = Computing { cache: self, key, fetch, guard, computation };
                computing.run_again(held, compute).await
            }
            // Somebody else has computed it since this was asked for.
            Look::Fresh(newer) => {
                self.inner.metrics.shared.inc();
                Ok(newer.cached(Origin::Shared))
            }
            Look::Stale(_) | Look::Absent => {
                guard.release().await?;
                self.compute_once(key, fetch, || compute(None)).await
            }
        }
    }
}

impl Computing<'_> {
    /// Computes although there is a good result, which stays if nothing new comes of it.
    async fn run_again<F, C, E>(self, held: Stored, compute: F) -> Result<Cached>
    where
        F: FnOnce(Option<Json>) -> C,
        C: Future<Output = Result<Json, E>>,
        E: Display,
    {
        let used = self.used().await?;
        let value = held.entry.value.clone();
        match self.computed(|| compute(Some(value))).await? {
            Ok(value) if value == held.entry.value => self.confirm(held).await,
            Ok(value) => self.replace(value, &used).await,
            Err(error) => Err(self.fail(&error.to_string()).await),
        }
    }

    /// Notes that a result was computed again and is the same. It keeps its identity, so that what was made
    /// from it stays good; those who wait to compute it again see the note.
    async fn confirm(&self, held: Stored) -> Result<Cached> {
        let label = Label { redone: Some(self.computation.clone()), ..held.label.clone() };
        let mut put = label.put(&held.entry.value, None)?;
        put.expiry = held.entry.expires.map(Expiry::At);
        let note = |entry: Option<&Entry>| {
            let found = entry.and_then(|entry| Stored::of(entry.clone()));
            Ok(match found.is_some_and(|found| found.label == held.label) {
                true => Change::Put(put.clone()),
                false => Change::Keep,
            })
        };
        let updated = self.guard.update(self.key, note).await;
        let version = match updated.map_err(|error| self.refused(error))? {
            Updated::Put(version) => Some(version),
            // It was dropped meanwhile.
            Updated::Kept | Updated::Deleted => None,
        };
        self.cache.inner.metrics.computed.inc();
        Ok(Cached { version, ..held.cached(Origin::Computed) })
    }
}
