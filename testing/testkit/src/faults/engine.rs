use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Commit, Engine, Entry, Error, ErrorKind, Event, Outcome,
    Page, Result, Revision, Scan, Stats, WatchSupport, cannot_watch,
};
use keyward_key::{Key, KeyRange};

use super::switch::Switch;
use super::{Call, Fault, Faults, When};

/// An engine whose calls go wrong by plan: a handle of one process on a store that others may use
/// too. Clones are the same handle.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use std::sync::Arc;
/// use keyward_engine::{ErrorKind, Json, Put, Store};
/// use keyward_key::Key;
/// use keyward_memory::Memory;
/// use keyward_testkit::{Faults, FaultyEngine, When};
///
/// let faulty = FaultyEngine::new(Arc::new(Memory::new()), Faults::crash_at(1, When::Before));
/// let store = Store::new(faulty.clone());
/// let (a, one) = (Key::parse("a")?, Put::new(Json::from_integer(1)));
/// store.put(a.clone(), one.clone()).await?;
/// let crashed = store.put(a.clone(), one).await.unwrap_err();
/// assert_eq!(crashed.kind(), ErrorKind::Unavailable);
///
/// // The next process finds what the first one left.
/// let store = Store::new(faulty.revive());
/// assert!(store.get(&a).await?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct FaultyEngine {
    inner: Arc<dyn Engine>,
    script: Arc<Mutex<Script>>,
    /// What the handle says it can do.
    capabilities: Arc<Capabilities>,
    /// Whether this handle is dead. Handles of one store have one each.
    crashed: Arc<Switch>,
    /// Whether this handle stands still, likewise.
    paused: Arc<Switch>,
    /// Commits of all handles that are answered, and have not landed yet, in the order of their
    /// sending.
    late: Arc<Mutex<Vec<Late>>>,
}

/// A commit that lands later. Whoever takes it out lands it.
type Late = Arc<Mutex<Option<Commit>>>;

struct Script {
    faults: Faults,
    trace: Vec<(Call, Fault)>,
}

impl FaultyEngine {
    /// A handle on an engine, with faults to come.
    pub fn new(inner: Arc<dyn Engine>, faults: Faults) -> Self {
        let trace = Vec::new();
        Self {
            capabilities: Arc::new(inner.capabilities().clone()),
            inner,
            script: Arc::new(Mutex::new(Script { faults, trace })),
            crashed: Arc::default(),
            paused: Arc::default(),
            late: Arc::default(),
        }
    }

    /// The same handle on an engine that says something else of itself: a memory engine that acts as
    /// a shared server, or as one that cannot watch.
    #[must_use]
    pub fn acting_as(mut self, change: impl FnOnce(&mut Capabilities)) -> Self {
        change(Arc::make_mut(&mut self.capabilities));
        self
    }

    /// Another handle on the same engine, alive, as of a process started after this one crashed.
    /// The plan and the count of calls go on.
    #[must_use]
    pub fn revive(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            script: self.script.clone(),
            capabilities: self.capabilities.clone(),
            crashed: Arc::default(),
            paused: Arc::default(),
            late: self.late.clone(),
        }
    }

    /// The engine itself, without faults: to look at what is left.
    pub fn inner(&self) -> Arc<dyn Engine> {
        self.inner.clone()
    }

    /// Whether this handle is dead.
    pub fn is_crashed(&self) -> bool {
        self.crashed.is_on()
    }

    /// Kills the handle between calls, as a SIGKILL of its process would.
    pub fn kill(&self) {
        self.crash();
    }

    /// Stops the handle, as SIGSTOP would its process: no call begins, none is answered, and watches
    /// are silent, until [`resume`](Self::resume).
    pub fn pause(&self) {
        self.paused.turn(true);
    }

    /// Lets a stopped handle go on.
    pub fn resume(&self) {
        self.paused.turn(false);
    }

    /// Lets the commits land that are [late](Fault::Late), of all handles, one after the other, and
    /// tells what became of each.
    pub async fn land(&self) -> Vec<Result<Outcome>> {
        let late = std::mem::take(&mut *locked(&self.late));
        let mut landed = Vec::new();
        for commit in late {
            let commit = locked(&commit).take();
            if let Some(commit) = commit {
                landed.push(self.inner.commit(commit).await);
            }
        }
        landed
    }

    fn send_late(&self, commit: Commit, after: Duration) {
        let sent: Late = Arc::new(Mutex::new(Some(commit)));
        let mut late = locked(&self.late);
        late.retain(|late| locked(late).is_some());
        late.push(sent.clone());
        if after == Duration::MAX {
            return;
        }
        let inner = self.inner.clone();
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let commit = locked(&sent).take();
            if let Some(commit) = commit {
                // Nobody waits for its answer.
                let _ = inner.commit(commit).await;
            }
        });
    }

    async fn going_on(&self) {
        self.paused.is(false).await;
    }

    /// How many calls were made, by all handles. Calls of a dead handle do not count.
    pub fn calls(&self) -> u64 {
        self.script().trace.len() as u64
    }

    /// What happened to each call, in order.
    pub fn trace(&self) -> Vec<(Call, Fault)> {
        self.script().trace.clone()
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        locked(&self.script)
    }

    fn next_fault(&self, call: Call) -> Fault {
        let mut script = self.script();
        let number = script.trace.len() as u64;
        let fault = script.faults.next(number);
        script.trace.push((call, fault));
        fault
    }

    fn crash(&self) {
        self.crashed.turn(true);
    }

    /// Refuses what a dead handle is asked, before anything is done.
    fn alive(&self) -> Result<()> {
        if self.is_crashed() { Err(dead()) } else { Ok(()) }
    }

    async fn call<T>(&self, call: Call, act: impl Future<Output = Result<T>>) -> Result<T> {
        self.going_on().await;
        let answer = match self.begin(call) {
            Ok(fault) => self.answered(call, fault, act).await,
            Err(error) => Err(error),
        };
        self.going_on().await;
        answer
    }

    async fn call_commit(&self, commit: Commit) -> Result<Outcome> {
        self.going_on().await;
        let answer = match self.begin(Call::Commit) {
            Ok(Fault::Late(after)) => {
                self.send_late(commit, after);
                Err(unanswered(Call::Commit))
            }
            Ok(fault) => self.answered(Call::Commit, fault, self.inner.commit(commit)).await,
            Err(error) => Err(error),
        };
        self.going_on().await;
        answer
    }

    fn begin(&self, call: Call) -> Result<Fault> {
        self.alive()?;
        Ok(self.next_fault(call))
    }

    async fn answered<T>(
        &self,
        call: Call,
        fault: Fault,
        act: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match fault {
            Fault::None => act.await,
            Fault::Fail => Err(Error::new(ErrorKind::Unavailable, "injected failure")),
            Fault::Unanswered(When::Before) | Fault::Late(_) => Err(unanswered(call)),
            Fault::Unanswered(When::After) => {
                // Whether it worked is just what the caller does not learn.
                let _ = act.await;
                Err(unanswered(call))
            }
            Fault::Crash(When::Before) => {
                self.crash();
                Err(dead())
            }
            Fault::Crash(When::After) => {
                let _ = act.await;
                self.crash();
                Err(unanswered(call))
            }
            fault @ (Fault::Delay(When::Before, _) | Fault::Yield(When::Before, _)) => {
                wait(fault).await;
                self.alive()?;
                act.await
            }
            fault @ (Fault::Delay(When::After, _) | Fault::Yield(When::After, _)) => {
                let answer = act.await;
                wait(fault).await;
                if self.is_crashed() {
                    return Err(unanswered(call));
                }
                answer
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn wait(fault: Fault) {
    match fault {
        Fault::Delay(_, time) => tokio::time::sleep(time).await,
        Fault::Yield(_, times) => {
            for _ in 0..times {
                tokio::task::yield_now().await;
            }
        }
        _ => {}
    }
}

fn dead() -> Error {
    Error::new(ErrorKind::Unavailable, "crashed")
}

/// The error of a call whose answer did not arrive.
fn unanswered(call: Call) -> Error {
    let kind = match call {
        Call::Commit => ErrorKind::OutcomeUnknown,
        Call::Get | Call::Scan => ErrorKind::Unavailable,
    };
    Error::new(kind, "injected loss of the answer")
}

impl Engine for FaultyEngine {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn store_id(&self) -> Option<String> {
        self.inner.store_id()
    }

    fn push_through<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<bool>>> {
        self.inner.push_through(key)
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(self.call(Call::Get, self.inner.get_many(keys)))
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(self.call(Call::Scan, self.inner.scan(scan)))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(self.call_commit(commit))
    }

    /// Passes on what the engine tells, until the handle crashes.
    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        if self.capabilities.watch == WatchSupport::Unsupported {
            return cannot_watch(self.capabilities.engine);
        }
        let events = self.inner.watch(range, since);
        let (crashed, paused) = (self.crashed.clone(), self.paused.clone());
        Box::pin(stream::unfold(Some((events, crashed, paused)), async |watching| {
            let (mut events, crashed, paused) = watching?;
            let event = tokio::select! {
                biased;
                () = crashed.is(true) => None,
                event = events.next() => Some(event?),
            };
            paused.is(false).await;
            match event {
                Some(event) => Some((event, Some((events, crashed, paused)))),
                None => Some((Err(dead()), None)),
            }
        }))
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(async move {
            self.alive()?;
            self.inner.stats().await
        })
    }

    fn verify<'a>(&'a self, range: &'a KeyRange) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.alive()?;
            self.inner.verify(range).await
        })
    }

    fn expired(&self) -> BoxFuture<'_, Result<Option<u64>>> {
        Box::pin(async move {
            self.alive()?;
            self.inner.expired().await
        })
    }

    fn backup<'a>(&'a self, file: &'a Path) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.alive()?;
            self.inner.backup(file).await
        })
    }
}
