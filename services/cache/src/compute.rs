//! Computing under a lock.

use std::fmt::Display;
use std::mem::discriminant;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use keyward_engine::{
    BoxFuture, Commit, Entry, ErrorKind, Event, Expect, Json, Outcome, Put, Tier, Version,
};
use keyward_key::{Key, KeyRange};
use keyward_locks::{
    Change, Error as LockError, Guard, LockPath, Mode, Request, Root, Tried, Updated,
};
use tokio::time::{self, Instant};

use crate::cache::{Look, Stale};
use crate::failure::Failure;
use crate::label::{Label, Stored};
use crate::{Cache, Cached, Error, Fetch, Origin, Result, dependants};

/// How often a result is tried to be written, while the lock is held.
const WRITES_MAX: u32 = 6;
/// How often others may change the key while a result is written.
const ATTEMPTS_MAX: usize = 16;
const WRITE_PAUSE: Duration = Duration::from_millis(50);

/// A lock, or the result that came while it was waited for.
enum Awaited {
    Lock(Guard),
    Result(Stored),
}

/// A computation that may begin, or the result that came before it could.
pub(crate) enum Begun<'c> {
    Computing(Computing<'c>),
    Result(Cached),
}

impl Cache {
    /// Takes the lock and computes, unless somebody else's result comes first.
    pub(crate) async fn lead<F, C, E>(
        &self,
        key: &Key,
        fetch: &Fetch,
        (stale, end): (Stale, Instant),
        compute: F,
    ) -> Result<Cached>
    where
        F: FnOnce() -> C,
        C: Future<Output = Result<Json, E>>,
        E: Display,
    {
        match self.begin(key, fetch, (stale, end), None).await? {
            Begun::Computing(computing) => computing.run(stale, compute).await,
            Begun::Result(cached) => Ok(cached),
        }
    }

    /// Takes the lock, unless somebody else's result comes first. By the same name, the same lock is
    /// had again.
    pub(crate) async fn begin<'c>(
        &'c self,
        key: &'c Key,
        fetch: &'c Fetch,
        (stale, end): (Stale, Instant),
        name: Option<&str>,
    ) -> Result<Begun<'c>> {
        let (root, path) = self.lock_of(key, fetch)?;
        let mut request = Request::default()
            .ttl(fetch.lease)
            .wait_max(end.saturating_duration_since(Instant::now()))
            .purpose(format!("compute {key}"));
        if let Some(name) = name {
            request = request.named(name);
        }
        let tried =
            root.try_acquire(std::slice::from_ref(&path), Mode::Exclusive, &request).await?;
        let awaited = match tried {
            Tried::Granted(guard) => Awaited::Lock(guard),
            Tried::Held(_) => self.lock_or_result(key, fetch, &root, path, &request).await?,
        };
        let guard = match awaited {
            Awaited::Lock(guard) => guard,
            Awaited::Result(stored) => {
                self.inner.metrics.shared.inc();
                return Ok(Begun::Result(stored.cached(Origin::Shared)));
            }
        };
        // Somebody else may have computed it between the first look and the lock.
        match self.look(key, &fetch.source).await {
            Ok(Look::Stale(found)) if stale == Stale::Dropped => {
                self.drop_found(key, Some(&found)).await?;
            }
            Ok(Look::Stale(_) | Look::Absent) => {}
            Ok(Look::Fresh(stored)) => {
                self.give_back(guard, name).await;
                self.inner.metrics.shared.inc();
                return Ok(Begun::Result(stored.cached(Origin::Shared)));
            }
            Err(error) => {
                self.give_back(guard, name).await;
                return Err(error);
            }
        }
        let computation = format!("{}#{}", root.key(), guard.token());
        Ok(Begun::Computing(Computing { cache: self, key, fetch, guard, computation }))
    }

    /// Gives a lock back that is not needed: in the background, unless it was asked for by name.
    async fn give_back(&self, guard: Guard, name: Option<&str>) {
        if name.is_some() {
            // What cannot be given back ends with its lease.
            let _ = guard.release().await;
        }
    }

    async fn lock_or_result(
        &self,
        key: &Key,
        fetch: &Fetch,
        root: &Root,
        path: LockPath,
        request: &Request,
    ) -> Result<Awaited> {
        let paths = [path];
        let mut lock = pin!(root.acquire(&paths, Mode::Exclusive, request));
        let store = &self.inner.store;
        if store.capabilities().watch.is_supported() {
            let mut events = store.watch(KeyRange::exactly(key), None);
            loop {
                let event = tokio::select! {
                    biased;
                    guard = &mut lock => return self.awaited(key, fetch, guard),
                    event = events.next() => event,
                };
                match event {
                    Some(Ok(Event::Reached(_) | Event::Changed { .. })) => {
                        if let Look::Fresh(stored) = self.look(key, &fetch.source).await? {
                            return Ok(Awaited::Result(stored));
                        }
                    }
                    // The lock alone will do.
                    Some(Ok(Event::TooOld { .. }) | Err(_)) | None => break,
                }
            }
        }
        let guard = lock.await;
        self.awaited(key, fetch, guard)
    }

    fn awaited(
        &self,
        key: &Key,
        fetch: &Fetch,
        guard: Result<Guard, LockError>,
    ) -> Result<Awaited> {
        match guard {
            Ok(guard) => Ok(Awaited::Lock(guard)),
            Err(LockError::TimedOut { .. }) => {
                Err(Error::TimedOut { key: key.clone(), waited: fetch.wait_max })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// A computation that holds its lock.
pub(crate) struct Computing<'c> {
    pub cache: &'c Cache,
    pub key: &'c Key,
    pub fetch: &'c Fetch,
    pub guard: Guard,
    /// What tells it from all others.
    pub computation: String,
}

impl Computing<'_> {
    async fn run<F, C, E>(self, stale: Stale, compute: F) -> Result<Cached>
    where
        F: FnOnce() -> C,
        C: Future<Output = Result<Json, E>>,
        E: Display,
    {
        let used = self.used().await?;
        match self.computed(compute).await? {
            Ok(value) => match stale {
                Stale::Kept => self.replace(value, &used).await,
                Stale::Dropped => self.finish(value, &used).await,
            },
            Err(error) => Err(self.fail(&error.to_string()).await),
        }
    }

    /// What the function comes to, unless the lock is lost before that.
    pub async fn computed<F, C, E>(&self, compute: F) -> Result<Result<Json, E>>
    where
        F: FnOnce() -> C,
        C: Future<Output = Result<Json, E>>,
    {
        let metrics = &self.cache.inner.metrics;
        let begun = Instant::now();
        let made = tokio::select! {
            made = compute() => made,
            _ = self.guard.lost() => {
                metrics.lost.inc();
                return Err(Error::Lost { key: self.key.clone() });
            }
        };
        metrics.computing_seconds.observe(begun.elapsed().as_secs_f64());
        Ok(made)
    }

    /// Caches what was computed in the place of a result that was given out all the while.
    pub async fn replace(&self, value: Json, used: &[Option<String>]) -> Result<Cached> {
        // They were made from what is about to be replaced. Before it is: who finds the new value looks
        // no further.
        dependants::of(self.cache, self.key, None).await?.delete(self.cache).await?;
        self.finish(value, used).await
    }

    /// Caches what was computed, if what it was made from is still what was used.
    pub async fn finish(&self, value: Json, used: &[Option<String>]) -> Result<Cached> {
        let cached = match &self.made_from(used).await? {
            Some(made_from) => self.publish(value, made_from).await?,
            None => self.label().computed(value, None),
        };
        self.cache.inner.metrics.computed.inc();
        Ok(cached)
    }

    /// Remembers that the computation failed, and tells it.
    pub async fn fail(&self, message: &str) -> Error {
        self.cache.inner.metrics.failed.inc();
        self.remember(message).await
    }

    /// What the result is made from, as it is.
    async fn needed(&self) -> Result<Vec<Option<Entry>>> {
        let entries = self.cache.inner.store.get_many(&self.fetch.depends_on).await?;
        Ok(entries.into_iter().map(keyward_locks::present).collect())
    }

    /// What of it the computation can use: what is there, unless it is too old.
    pub async fn used(&self) -> Result<Vec<Option<String>>> {
        let used = |entry: Option<Entry>| {
            entry.filter(|entry| !self.is_too_old(entry)).map(Stored::identity)
        };
        Ok(self.needed().await?.into_iter().map(used).collect())
    }

    /// What the result was made from, if that can be told: what was there when the computation began,
    /// unchanged; and where nothing was, or something too old to be used, what the computation left.
    async fn made_from(&self, used: &[Option<String>]) -> Result<Option<Vec<Option<Entry>>>> {
        let now = self.needed().await?;
        let unchanged = used.iter().zip(&now).all(|(used, now)| {
            used.is_none() || now.as_ref().map(|now| Stored::identity(now.clone())) == *used
        });
        Ok(unchanged.then_some(now))
    }

    /// Whether an entry is one that this computation cannot have used: made of an earlier state of
    /// the same source.
    fn is_too_old(&self, entry: &Entry) -> bool {
        let asked = &self.fetch.source;
        Stored::of(entry.clone()).is_some_and(|stored| {
            let same_kind = discriminant(&stored.label.source) == discriminant(asked);
            same_kind && !stored.is_good_for(asked)
        })
    }

    fn label(&self) -> Label {
        let now = self.cache.inner.clock.now();
        Label::new(now, &self.fetch.source, self.computation.clone())
    }

    /// Caches a result.
    fn publish<'a>(
        &'a self,
        value: Json,
        made_from: &'a [Option<Entry>],
    ) -> BoxFuture<'a, Result<Cached>> {
        Box::pin(async move {
            let mut label = self.label();
            for (parent, entry) in self.fetch.depends_on.iter().zip(made_from) {
                if let Some(entry) = entry {
                    label = label.made_from(parent, &Stored::identity(entry.clone()));
                }
            }
            let put = label.put(&value, self.fetch.ttl)?;
            let mut pause = WRITE_PAUSE;
            for last in (0..WRITES_MAX).map(|n| n + 1 == WRITES_MAX) {
                let written = match self.cache.inner.store.capabilities().tier() {
                    Tier::Atomic => self.write_together(&put, made_from).await,
                    Tier::Recoverable | Tier::Advisory => self.write_alone(&put).await,
                };
                match written {
                    Ok(Some(version)) => return Ok(label.computed(value, Some(version))),
                    Ok(None) => {
                        // What it was made from has changed.
                        return Ok(label.computed(value, None));
                    }
                    Err(Error::Store(error)) | Err(Error::Lock(LockError::Store(error)))
                        if !last && may_pass(error.kind()) => {}
                    Err(error) => return Err(error),
                }
                time::sleep(pause).await;
                pause *= 2;
                // An unanswered write may have been done.
                if let Some(version) = self.written().await {
                    return Ok(label.computed(value, Some(version)));
                }
            }
            Err(Error::Lost { key: self.key.clone() })
        })
    }

    /// The version that this very computation wrote.
    async fn written(&self) -> Option<Version> {
        let entry = self.cache.inner.store.get(self.key).await.ok()?;
        let stored = Stored::read(self.key, entry).ok()??;
        (stored.label.computation == self.computation).then_some(stored.entry.version)
    }

    /// In one commit, with what is kept about it; `None` if what it was made from has changed.
    async fn write_together(
        &self,
        put: &Put,
        made_from: &[Option<Entry>],
    ) -> Result<Option<Version>> {
        for _ in 0..ATTEMPTS_MAX {
            // Whoever has the same ticket may have published already.
            let held = self.cache.peek(self.key).await?;
            let expect = match held {
                Some(held) if held.label.computation == self.computation => {
                    return Ok(Some(held.entry.version));
                }
                Some(held) => Expect::Version(held.entry.version),
                None => Expect::Absent,
            };
            let commit = Commit::new().check(self.key.clone(), expect);
            let mut commit = commit.put(self.key.clone(), put.clone());
            for (parent, entry) in self.fetch.depends_on.iter().zip(made_from) {
                let (edge, edge_put) = dependants::edge(parent, self.key, self.fetch.ttl)?;
                let version = entry.as_ref().map(|entry| entry.version.clone());
                let expect = version.map_or(Expect::Absent, Expect::Version);
                commit = commit.check(parent.clone(), expect).put(edge, edge_put);
            }
            let commit = Failure::forgotten(commit, self.key)?;
            match self.guard.commit(commit).await {
                Ok(Outcome::Applied { versions, .. }) => {
                    let version = versions.into_iter().next().flatten();
                    return Ok(Some(version.ok_or_else(no_version)?));
                }
                // Only the key itself has changed: look again.
                Ok(Outcome::Conflicted { failed }) if failed == [0] => {}
                Ok(Outcome::Conflicted { .. }) => return Ok(None),
                Err(error) => return Err(self.refused(error)),
            }
        }
        Err(LockError::Contended { key: self.key.clone(), attempts: ATTEMPTS_MAX }.into())
    }

    /// Key by key: first what says on whom the result depends, then the result.
    async fn write_alone(&self, put: &Put) -> Result<Option<Version>> {
        let store = &self.cache.inner.store;
        for parent in &self.fetch.depends_on {
            let (edge, edge_put) = dependants::edge(parent, self.key, self.fetch.ttl)?;
            store.put(edge, edge_put).await?;
        }
        let write = |held: Option<&Entry>| {
            // Whoever has the same ticket may have published already.
            let held = held.and_then(|held| Stored::of(held.clone()));
            Ok(match held.is_some_and(|held| held.label.computation == self.computation) {
                true => Change::Keep,
                false => Change::Put(put.clone()),
            })
        };
        let updated = self.guard.update(self.key, write).await;
        let updated = updated.map_err(|error| self.refused(error))?;
        store.delete(Failure::count_key(self.key)?).await?;
        store.delete(Failure::hold_key(self.key)?).await?;
        match updated {
            Updated::Put(version) => Ok(Some(version)),
            Updated::Kept => Ok(Some(self.written().await.ok_or_else(no_version)?)),
            Updated::Deleted => Err(no_version()),
        }
    }

    pub fn refused(&self, error: LockError) -> Error {
        self.cache.refused(self.key, error)
    }

    /// Remembers a failure, and tells it.
    async fn remember(&self, message: &str) -> Error {
        let (key, inner) = (self.key, &self.cache.inner);
        let counted = async {
            let before = inner.store.get(&Failure::count_key(key)?).await?;
            let before = before.as_ref().and_then(Failure::read);
            let (source, now) = (&self.fetch.source, inner.clock.now());
            let failure = Failure::next(before, message, source, now);
            for (key, put) in failure.puts(key, inner.backoff)? {
                inner.store.put(key, put).await?;
            }
            Ok::<_, Error>(failure)
        };
        // Where it cannot be remembered, those who come next find out for themselves.
        let failure = counted.await.unwrap_or_else(|_| {
            Failure::next(None, message, &self.fetch.source, inner.clock.now())
        });
        let pause = inner.backoff.after(failure.times);
        failure.error(key, pause)
    }
}

fn may_pass(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unavailable | ErrorKind::OutcomeUnknown)
}

fn no_version() -> Error {
    keyward_engine::Error::new(ErrorKind::Internal, "a put has no version").into()
}
