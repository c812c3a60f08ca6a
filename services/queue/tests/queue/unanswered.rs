//! Commits that are not answered, and land later than what was done about it.

use std::sync::{Arc, Mutex};

use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Commit, Engine, Entry, Error, ErrorKind, Event, Outcome,
    Page, Put, Result, Revision, Scan, Stats, Store,
};
use keyward_key::{Key, KeyRange};
use keyward_memory::Memory;
use keyward_queue::{Ended, Enqueued, Failure, Message, Queue};
use keyward_testkit::TestClock;

use crate::fixture::{claim_ids, json, message, one, options};

/// An engine whose first commit is not answered, and lands when it is let go.
#[derive(Clone)]
struct Late {
    inner: Memory,
    first: Arc<Mutex<First>>,
}

#[derive(Default)]
enum First {
    #[default]
    Awaited,
    Underway(Commit),
    Landed,
}

impl Late {
    fn new(clock: &TestClock) -> Self {
        let inner = Memory::with(keyward_memory::Options::default(), clock.clone());
        Self { inner, first: Arc::default() }
    }

    async fn let_go(&self) -> Outcome {
        let first = std::mem::replace(&mut *self.first.lock().unwrap(), First::Landed);
        let First::Underway(commit) = first else { panic!("nothing is under way") };
        self.inner.commit(commit).await.unwrap()
    }
}

impl Engine for Late {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        self.inner.get_many(keys)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        self.inner.scan(scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        let mut first = self.first.lock().unwrap();
        if matches!(*first, First::Awaited) {
            *first = First::Underway(commit);
            return Box::pin(async { Err(Error::new(ErrorKind::OutcomeUnknown, "no answer")) });
        }
        self.inner.commit(commit)
    }

    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        self.inner.watch(range, since)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.inner.stats()
    }
}

/// The commit of an enqueuing is slow, so another is sent; the message ends; then the first lands.
async fn lands_after_the_end(message: Message, completes: bool) {
    let clock = TestClock::new();
    let engine = Late::new(&clock);
    let queue = Queue::new(Store::new(engine.clone()), "q", clock, options()).unwrap();
    queue.enqueue(message).await.unwrap();
    let attempt = one(&queue).await;
    let ended = match completes {
        true => attempt.complete(None).await,
        false => attempt.fail(Failure::permanent("no")).await,
    };
    assert_eq!(ended.unwrap(), Ended::Accepted);
    assert!(!engine.let_go().await.is_applied());
    assert!(claim_ids(&queue, 9).await.is_empty());
}

#[tokio::test]
async fn a_message_whose_enqueuing_was_slow_completes_once() {
    lands_after_the_end(message("1"), true).await;
}

#[tokio::test]
async fn a_message_with_an_id_whose_enqueuing_was_slow_completes_once() {
    lands_after_the_end(message("1").id("a"), true).await;
}

#[tokio::test]
async fn a_dead_letter_whose_enqueuing_was_slow_stays_one() {
    lands_after_the_end(message("1"), false).await;
    lands_after_the_end(message("1").id("a"), false).await;
}

fn in_memory() -> (Store, Queue) {
    let clock = TestClock::new();
    let store = Store::new(Memory::with(keyward_memory::Options::default(), clock.clone()));
    let queue = Queue::new(store.clone(), "q", clock, options()).unwrap();
    (store, queue)
}

#[tokio::test]
async fn a_late_commit_does_not_double_a_completed_message() {
    let (store, queue) = in_memory();
    let message = || message("1").id("a");
    let (late, _) = queue.enqueue_in(Commit::new(), vec![message()]).await.unwrap();
    queue.enqueue(message()).await.unwrap();
    assert_eq!(one(&queue).await.complete(None).await.unwrap(), Ended::Accepted);
    assert!(matches!(queue.enqueue(message()).await.unwrap(), Enqueued::Duplicate { .. }));
    assert!(!store.commit(late).await.unwrap().is_applied());
    assert!(claim_ids(&queue, 9).await.is_empty());
}

#[tokio::test]
async fn a_commit_sent_again_does_not_double_a_completed_message() {
    let (store, queue) = in_memory();
    let data = Commit::new().put(Key::parse("data").unwrap(), Put::new(json("1")));
    let (commit, _) = queue.enqueue_in(data, vec![message("1")]).await.unwrap();
    assert!(store.commit(commit.clone()).await.unwrap().is_applied());
    one(&queue).await.complete(None).await.unwrap();
    assert!(!store.commit(commit).await.unwrap().is_applied());
}
