//! Readiness: whether every store takes writes, found out by a small write to each.
//!
//! Probes are throttled. Whoever asks shares the probe that is running or the answer of the last
//! one, so `/readyz` costs a store one commit every few seconds at most, however often it is asked.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use keyward::{Code, ErrorKind, Expiry, ExpirySupport, Json, Put, Store};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::control::place;
use crate::problem::{Problem, Result};

/// How long the answer of a probe is used that the store took.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// How long that of one is used that it did not take: a store that is well again is ready soon.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long a store may take for a probe before it counts as unready.
const PROBE_TIME_MAX: Duration = Duration::from_secs(2);
/// How long the entry that a probe writes is kept, on engines with expiry.
const PROBE_KEPT: Duration = Duration::from_secs(60);

/// The last probe of each store.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<BTreeMap<String, Probe>>);

#[derive(Debug, Clone)]
struct Probe {
    began: Instant,
    /// `None` while it runs.
    outcome: watch::Receiver<Option<Result<(), ErrorKind>>>,
}

impl Readiness {
    /// Fails with the first store that does not take writes.
    pub async fn check<'s>(
        &self,
        stores: impl Iterator<Item = (&'s str, &'s Store)>,
    ) -> Result<()> {
        // All are started before the first is waited for.
        let probes: Vec<_> = stores.map(|(name, store)| (name, self.probe(name, store))).collect();
        for (name, probe) in probes {
            probe.ended().await.map_err(|failure| unready(name, failure))?;
        }
        Ok(())
    }

    /// The probe of a store: the last one while it runs or is recent, else a new one.
    fn probe(&self, name: &str, store: &Store) -> Probe {
        let mut probes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(probe) = probes.get(name)
            && (probe.is_running() || probe.began.elapsed() < probe.interval())
        {
            return probe.clone();
        }
        let probe = Probe::start(name.to_owned(), store.clone());
        probes.insert(name.to_owned(), probe.clone());
        probe
    }
}

impl Probe {
    /// Starts a probe that runs to its end, whoever waits for it: a store that hangs has one
    /// waiting write of ours, not one for each request.
    fn start(name: String, store: Store) -> Self {
        let (tell, outcome) = watch::channel(None);
        tokio::spawn(async move {
            let written = write(&store).await;
            if let Err(error) = &written {
                tracing::warn!(store = name, %error, "the store is not ready");
            }
            tell.send_replace(Some(written.map_err(|error| error.kind())));
        });
        Self { began: Instant::now(), outcome }
    }

    /// How long its answer is used.
    fn interval(&self) -> Duration {
        match &*self.outcome.borrow() {
            Some(Ok(())) => PROBE_INTERVAL,
            _ => RETRY_INTERVAL,
        }
    }

    fn is_running(&self) -> bool {
        self.outcome.borrow().is_none() && self.outcome.has_changed().is_ok()
    }

    /// Waits for the outcome, but not longer than a probe may take.
    async fn ended(mut self) -> Result<(), Failure> {
        let time_left = PROBE_TIME_MAX.saturating_sub(self.began.elapsed());
        match timeout(time_left, self.outcome.wait_for(Option::is_some)).await {
            Ok(Ok(outcome)) => outcome.unwrap_or(Ok(())).map_err(Failure::Refused),
            // It ended without an outcome, by a panic.
            Ok(Err(_)) => Err(Failure::Refused(ErrorKind::Internal)),
            Err(_) => Err(Failure::TimedOut),
        }
    }
}

/// Why a store is not ready.
#[derive(Debug, Clone, Copy)]
enum Failure {
    Refused(ErrorKind),
    TimedOut,
}

/// Writes an entry of the server's own, which no listing or watch shows.
async fn write(store: &Store) -> keyward::Result<()> {
    store.check_space().await?;
    let key = place("ready", "probe");
    let expiry = match store.capabilities().expiry {
        ExpirySupport::Supported { ttl_min, .. } => Some(Expiry::After(PROBE_KEPT.max(ttl_min))),
        ExpirySupport::Unsupported => None,
    };
    let put = Put { expiry, ..Put::new(Json::from_integer(1)) };
    match store.put(key.clone(), put).await {
        // A store of another server, of whose own keys we reach none: it answers.
        Err(error) if is_refused(&error) => match store.get(&key).await {
            Err(error) if is_refused(&error) => Ok(()),
            read => read.map(drop),
        },
        written => written.map(drop),
    }
}

fn is_refused(error: &keyward::Error) -> bool {
    matches!(error.kind(), ErrorKind::Forbidden | ErrorKind::Reserved | ErrorKind::Unsupported)
}

/// What is answered. Anybody may ask, so it says no more than the kind of the error; the whole error
/// is in the log.
fn unready(name: &str, failure: Failure) -> Problem {
    let (cause, why) = match failure {
        Failure::TimedOut => ("timeout", "a write took too long; is its write lock held?"),
        Failure::Refused(kind) => (kind.code().name(), explain(kind)),
    };
    Problem::new(Code::Unavailable, format!("the store {name} takes no writes: {why}"))
        .hint("The server's log has the whole error.")
        .retryable()
        .with("store", name)
        .with("cause", cause)
}

fn explain(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Full => "there is no space left",
        ErrorKind::Misplaced => "its disk is read-only, or permission was denied",
        ErrorKind::Unavailable => "it cannot be reached, or another process holds its write lock",
        ErrorKind::Corrupt => "its data is damaged",
        _ => "the write failed",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use keyward::{
        BoxFuture, Capabilities, Commit, Engine, Entry, Error, Key, Outcome, Page, Scan, Stats,
    };
    use keyward_memory::Memory;
    use keyward_testkit::{Faults, FaultyEngine};

    use super::*;

    /// An engine in memory that counts commits, and refuses them with an error of this kind.
    struct Refusing {
        inner: Memory,
        kind: ErrorKind,
        commits: Arc<AtomicUsize>,
    }

    impl Engine for Refusing {
        fn capabilities(&self) -> &Capabilities {
            self.inner.capabilities()
        }

        fn get_many<'a>(
            &'a self,
            keys: &'a [Key],
        ) -> BoxFuture<'a, keyward::Result<Vec<Option<Entry>>>> {
            self.inner.get_many(keys)
        }

        fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, keyward::Result<Page>> {
            self.inner.scan(scan)
        }

        fn commit(&self, _: Commit) -> BoxFuture<'_, keyward::Result<Outcome>> {
            self.commits.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Err(Error::new(self.kind, "secret detail")) })
        }

        fn stats(&self) -> BoxFuture<'_, keyward::Result<Stats>> {
            self.inner.stats()
        }
    }

    async fn asked(readiness: &Readiness, store: &Store) -> Result<()> {
        readiness.check([("main", store)].into_iter()).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_takes_no_writes_is_unready_and_its_name_and_the_cause_are_told() {
        for kind in [ErrorKind::Full, ErrorKind::Misplaced, ErrorKind::Unavailable] {
            let commits = Arc::new(AtomicUsize::new(0));
            let store = Store::new(Refusing { inner: Memory::new(), kind, commits });
            let problem = asked(&Readiness::default(), &store).await.unwrap_err();
            assert_eq!(problem.status(), 503);
            assert!(problem.detail().contains("main"), "{}", problem.detail());
            assert!(!problem.detail().contains("secret"), "{}", problem.detail());
            assert_eq!(problem.more()["cause"], kind.code().name());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_may_only_be_read_is_ready_if_it_answers() {
        let commits = Arc::new(AtomicUsize::new(0));
        let kind = ErrorKind::Forbidden;
        let store = Store::new(Refusing { inner: Memory::new(), kind, commits });
        asked(&Readiness::default(), &store).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn many_requests_share_one_probe_and_its_answer() {
        let commits = Arc::new(AtomicUsize::new(0));
        let kind = ErrorKind::Full;
        let store = Store::new(Refusing { inner: Memory::new(), kind, commits: commits.clone() });
        let readiness = Readiness::default();
        for _ in 0..3 {
            let requests = (0..100).map(|_| asked(&readiness, &store));
            let answers = futures_util::future::join_all(requests).await;
            assert!(answers.iter().all(Result::is_err));
        }
        assert_eq!(commits.load(Ordering::Relaxed), 1);
        tokio::time::sleep(PROBE_INTERVAL).await;
        asked(&readiness, &store).await.unwrap_err();
        assert_eq!(commits.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_hangs_is_unready_in_time_and_ready_when_it_goes_on() {
        let engine = FaultyEngine::new(Arc::new(Memory::new()), Faults::none());
        let store = Store::new(engine.clone());
        let readiness = Readiness::default();
        asked(&readiness, &store).await.unwrap();
        engine.pause();
        tokio::time::sleep(PROBE_INTERVAL).await;
        let began = Instant::now();
        let problem = asked(&readiness, &store).await.unwrap_err();
        assert_eq!(problem.more()["cause"], "timeout");
        assert_eq!(began.elapsed(), PROBE_TIME_MAX);
        // The same probe still hangs, so the next request is answered at once.
        asked(&readiness, &store).await.unwrap_err();
        assert_eq!(began.elapsed(), PROBE_TIME_MAX);
        engine.resume();
        tokio::time::sleep(PROBE_INTERVAL).await;
        asked(&readiness, &store).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_entry_of_a_probe_expires() {
        let store = Store::new(Memory::new());
        asked(&Readiness::default(), &store).await.unwrap();
        let entry = store.get(&place("ready", "probe")).await.unwrap().unwrap();
        assert!(entry.expires.is_some());
    }
}
