//! Tasks beside commits: pushes that a commit waits for only a moment, and the work that is due.
//!
//! A task that ends half-way, with its runtime for example, is a sender that died: the pending rows say what is left.

use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::push::Planned;
use crate::shared::Shared;
use crate::work::Flight;

/// How long a commit waits for its push. A value store that works has answered by then, so that it usually has the
/// value when the commit is acknowledged; one that hangs does not stop writers.
const PUSH_WAIT: Duration = Duration::from_secs(1);
/// How many pushes are under way at once. Each holds the values of a commit, and while the value store hangs they
/// would only grow in number. What is not pushed at once is tended later.
pub(crate) const PUSHES_MAX: usize = 128;
/// How often the background task looks for what is due. That costs nothing while nothing is.
const TEND_EVERY: Duration = Duration::from_secs(10);

/// How many pushes of this process are under way, in all its stores.
static UNDER_WAY: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

/// Waits until no push of this process is under way any more, in any store, but not longer than `longest`. For
/// processes that end after their last commit: a push that is cut off waits for the next opening of its store.
pub async fn finish_pushes(longest: Duration) {
    let mut under_way = UNDER_WAY.subscribe();
    // The sender is never dropped, and the time being up is no failure.
    let _ = timeout(longest, under_way.wait_for(|count| *count == 0)).await;
}

/// A push that is counted until it is done or dropped.
struct UnderWay;

impl UnderWay {
    fn new() -> Self {
        UNDER_WAY.send_modify(|count| *count += 1);
        Self
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY.send_modify(|count| *count -= 1);
    }
}

/// Starts the task that tends what is due for as long as the store is open, if there is a runtime.
pub(crate) fn start(shared: &Arc<Shared>) -> Option<AbortHandle> {
    let runtime = Handle::try_current().ok()?;
    let shared = Arc::downgrade(shared);
    Some(runtime.spawn(tend_forever(shared)).abort_handle())
}

async fn tend_forever(shared: Weak<Shared>) {
    loop {
        sleep(TEND_EVERY).await;
        let Some(shared) = shared.upgrade() else { return };
        if let Some(_tending) = Tending::begin(&shared) {
            shared.tend_round().await;
        }
    }
}

/// Waits for something, if there is a runtime not longer than `longest`. Nothing, if the time was up.
pub(crate) async fn within<T>(longest: Duration, act: impl Future<Output = T>) -> Option<T> {
    match Handle::try_current() {
        Ok(_) => timeout(longest, act).await.ok(),
        Err(_) => Some(act.await),
    }
}

impl Shared {
    /// Brings the value store to what was committed, in a task of its own, and waits for that at most [`PUSH_WAIT`].
    /// Then tends some of what is due, without waiting.
    ///
    /// Tasks may overtake each other. The older one then reads the pending row of the newer one after its own write
    /// has landed, and pushes that again.
    pub async fn follow(self: &Arc<Self>, planned: Vec<Planned>, flight: Flight) {
        // A commit of nothing but bookkeeping does not concern the value store.
        if planned.is_empty() {
            return;
        }
        // Noted first: if the caller drops the commit half-way, the rest is done later.
        self.push_later(&planned);
        let Ok(runtime) = Handle::try_current() else {
            self.push(planned).await;
            drop(flight);
            self.tend_some().await;
            return;
        };
        let push = async {
            let Ok(permit) = self.pushes.clone().acquire_owned().await else { return };
            let (shared, under_way) = (self.clone(), UnderWay::new());
            let task = runtime.spawn(async move {
                shared.push(planned).await;
                drop((flight, under_way, permit));
            });
            self.tend_beside(&runtime);
            // It fails only when its runtime ends.
            let _ = task.await;
        };
        let _ = timeout(PUSH_WAIT, push).await;
    }

    fn tend_beside(self: &Arc<Self>, runtime: &Handle) {
        if !self.is_something_due() {
            return;
        }
        if let Some(tending) = Tending::begin(self) {
            runtime.spawn(async move { tending.0.tend_some().await });
        }
    }
}

/// The right to tend, which one task at a time has.
struct Tending(Arc<Shared>);

impl Tending {
    fn begin(shared: &Arc<Shared>) -> Option<Self> {
        let is_free = !shared.tending.swap(true, Ordering::AcqRel);
        is_free.then(|| Self(shared.clone()))
    }
}

impl Drop for Tending {
    fn drop(&mut self) {
        self.0.tending.store(false, Ordering::Release);
    }
}
