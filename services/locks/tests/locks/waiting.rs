//! Those who wait, by simulated time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keyward_engine::{Coded, Engine, Store, Tier, WatchSupport};
use keyward_locks::{Error, Guard, Locks, Loss, Mode, Options, Request, Root};
use keyward_memory::Memory;
use keyward_testkit::{Faults, FaultyEngine, VirtualClock};
use tokio::time::Instant;

use crate::fixture::{page, path, take, try_take};

/// A process on a shared engine.
struct Node {
    engine: FaultyEngine,
    root: Root,
    locks: Locks,
}

fn engine(tier: Tier) -> Arc<dyn Engine> {
    Arc::new(Memory::with(keyward_memory::Options::tier(tier), VirtualClock::new()))
}

fn node(engine: &Arc<dyn Engine>, watches: bool) -> Node {
    let watch = engine.capabilities().watch;
    let engine = FaultyEngine::new(engine.clone(), Faults::none()).acting_as(|able| {
        able.watch = if watches { watch } else { WatchSupport::Unsupported };
    });
    static NODES: AtomicU64 = AtomicU64::new(0);
    let seed = Some(NODES.fetch_add(1, Ordering::Relaxed));
    let options = Options { seed, ..Options::default() };
    let locks = Locks::new(Store::new(engine.clone()), VirtualClock::new(), options).unwrap();
    Node { engine, root: page(&locks), locks }
}

fn waits(node: &Node, text: &'static str, mode: Mode) -> tokio::task::JoinHandle<Guard> {
    let root = node.root.clone();
    tokio::spawn(async move {
        root.acquire(&[path(text)], mode, &Request::default().wait_forever()).await.unwrap()
    })
}

async fn settled() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_are_served_in_the_order_of_their_arrival() {
    let engine = engine(Tier::Atomic);
    let nodes: Vec<Node> = (0..4).map(|_| node(&engine, true)).collect();
    let held = take(&nodes[0].root, "a").await;
    let mut waiting = Vec::new();
    for node in &nodes[1..] {
        waiting.push(waits(node, "a", Mode::Exclusive));
        settled().await;
    }
    let standing = nodes[0].root.list().await.unwrap();
    assert_eq!(standing.waiters.len(), 3);
    let began = Instant::now();
    let mut held = held;
    for next in waiting {
        let before = held.token();
        held.release().await.unwrap();
        held = next.await.unwrap();
        assert!(held.token() > before);
    }
    assert_eq!(began.elapsed(), Duration::ZERO, "they are woken, nobody looks again and again");
    assert_eq!(nodes[3].locks.metrics().contended.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn those_who_share_do_not_overtake_one_who_does_not() {
    let engine = engine(Tier::Atomic);
    let nodes: Vec<Node> = (0..3).map(|_| node(&engine, true)).collect();
    let reads = try_take(&nodes[0].root, "a", Mode::Shared).await.unwrap();
    let writes = waits(&nodes[1], "a", Mode::Exclusive);
    settled().await;
    assert!(try_take(&nodes[2].root, "a:b", Mode::Shared).await.is_none());
    let reads_later = waits(&nodes[2], "a:b", Mode::Shared);
    settled().await;
    assert!(try_take(&nodes[2].root, "c", Mode::Exclusive).await.is_some(), "nobody waits for c");
    reads.release().await.unwrap();
    let writes = writes.await.unwrap();
    assert!(!reads_later.is_finished());
    writes.release().await.unwrap();
    assert!(reads_later.await.unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_holder_may_go_on_below_its_guard_while_others_wait_for_it() {
    let engine = engine(Tier::Atomic);
    let (ours, theirs) = (node(&engine, true), node(&engine, true));
    let held = take(&ours.root, "a").await;
    let waiting = waits(&theirs, "", Mode::Exclusive);
    settled().await;
    let request = Request::default();
    let below = held.descend(&[path("a:b")], Mode::Exclusive, &request).await.unwrap();
    let aside = ours.root.acquire(&[path("c")], Mode::Exclusive, &request.under(&held)).await;
    assert!(aside.is_ok());
    held.release().await.unwrap();
    settled().await;
    assert!(!waiting.is_finished());
    drop((below, aside));
    assert!(waiting.await.unwrap().is_held());
}

/// One waits for the owner, and another one for that one.
#[tokio::test(start_paused = true)]
async fn an_owner_does_not_wait_for_those_who_wait_for_it() {
    let engine = engine(Tier::Atomic);
    let nodes: Vec<Node> = (0..4).map(|_| node(&engine, true)).collect();
    let held = take(&nodes[0].root, "a").await;
    let asks = |node: &Node, paths: [&str; 2]| {
        let (root, paths) = (node.root.clone(), paths.map(path));
        tokio::spawn(async move {
            root.acquire(&paths, Mode::Exclusive, &Request::default()).await.unwrap()
        })
    };
    let first = asks(&nodes[1], ["a", "b"]);
    settled().await;
    let second = asks(&nodes[2], ["b", "c"]);
    settled().await;
    assert_eq!(nodes[0].root.list().await.unwrap().waiters.len(), 2);
    // Whoever has nothing to do with the owner waits behind them.
    assert!(try_take(&nodes[3].root, "c", Mode::Exclusive).await.is_none());
    let began = Instant::now();
    let request = Request::default().under(&held);
    let more = nodes[0].root.acquire(&[path("c")], Mode::Exclusive, &request).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    held.release().await.unwrap();
    let first = first.await.unwrap();
    assert!(!second.is_finished());
    drop((more, first));
    assert!(second.await.unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_empty_again_is_shown_as_empty() {
    let engine = engine(Tier::Atomic);
    let (ours, theirs) = (node(&engine, true), node(&engine, true));
    let shown = |node: &Node| {
        let metrics = node.locks.metrics();
        (metrics.queue_depth.get(), metrics.queue_age.get() > 0.0)
    };
    let held = take(&ours.root, "a").await;
    let waiting = waits(&theirs, "a", Mode::Exclusive);
    // Looks again when the lease in its way might have ended.
    tokio::time::sleep(Request::TTL_DEFAULT).await;
    assert_eq!(shown(&theirs), (1, true));
    held.release().await.unwrap();
    let held = waiting.await.unwrap();
    assert_eq!(shown(&theirs), (0, false), "after the grant");

    let request = Request::default().wait_max(Request::TTL_DEFAULT);
    let refused = ours.root.acquire(&[path("a")], Mode::Exclusive, &request).await;
    assert!(matches!(refused, Err(Error::TimedOut { .. })));
    assert_eq!(shown(&ours), (0, false), "after it gave up");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn the_dead_are_replaced_soon_after_their_lease_and_no_sooner() {
    for (tier, watches) in [(Tier::Atomic, true), (Tier::Atomic, false), (Tier::Recoverable, false)]
    {
        let engine = engine(tier);
        let (ours, theirs) = (node(&engine, watches), node(&engine, watches));
        let held = take(&ours.root, "a").await;
        let died = Instant::now();
        ours.engine.kill();
        let next = take(&theirs.root, "a").await;
        let after = died.elapsed();
        let (min, max) = (Request::TTL_DEFAULT, Request::TTL_DEFAULT * 7 / 4);
        assert!((min..=max).contains(&after), "{tier} {watches}: {after:?}");
        assert!(next.is_held() && !held.is_held());
        assert_eq!(held.loss(), Some(Loss::Expired));
        // Dead waiters are no reason to wait either.
        let waiter = node(&engine, watches);
        let dead = waits(&waiter, "a", Mode::Exclusive);
        tokio::time::sleep(Duration::from_secs(5)).await;
        waiter.engine.kill();
        dead.abort();
        next.release().await.unwrap();
        let last = take(&theirs.root, "a").await;
        assert!(last.is_held(), "{tier} {watches}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_stood_still_is_lost_for_good() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let engine = engine(tier);
        let (ours, theirs) = (node(&engine, true), node(&engine, true));
        let held = take(&ours.root, "a").await;
        ours.engine.pause();
        let next = take(&theirs.root, "a").await;
        ours.engine.resume();
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert!(!held.is_held() && next.is_held(), "{tier}");
        held.release().await.unwrap();
        assert!(try_take(&ours.root, "a", Mode::Exclusive).await.is_none(), "{tier}");
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_with_who_is_in_the_way() {
    let engine = engine(Tier::Atomic);
    let (ours, theirs) = (node(&engine, true), node(&engine, true));
    let held = take(&ours.root, "policies").await;
    let began = Instant::now();
    let request = Request::default().wait_max(Duration::from_secs(90));
    let asked = [path("policies:1")];
    let refused = theirs.root.acquire(&asked, Mode::Exclusive, &request).await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::from_secs(90));
    assert!(matches!(refused, Error::TimedOut { .. }) && refused.retryable());
    let told = refused.to_string();
    assert!(told.contains("somebody") && told.contains("on policies"), "{told}");
    assert_eq!(ours.root.list().await.unwrap().waiters, [], "it left the line");
    assert_eq!(theirs.locks.metrics().timed_out.get(), 1);
    assert!(held.is_held());
}

#[tokio::test(start_paused = true)]
async fn where_nobody_tells_of_changes_waiters_look_fifteen_times() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let engine = engine(tier);
        let (ours, theirs) = (node(&engine, false), node(&engine, false));
        let held = take(&ours.root, "a").await;
        let began = Instant::now();
        let request = Request::default().wait_forever();
        let refused = theirs.root.acquire(&[path("a")], Mode::Exclusive, &request).await;
        assert!(matches!(refused, Err(Error::TimedOut { .. })), "{tier}");
        // 1 + 2 + 4 + 8 + 16 + 10 * 30 seconds at the most, and half of it at least.
        let waited = began.elapsed().as_secs();
        assert!((165..=332).contains(&waited), "{tier}: {waited} s");
        drop(held);
    }
}

#[tokio::test(start_paused = true)]
async fn one_who_gives_up_leaves_the_line() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let engine = engine(tier);
        let (ours, theirs) = (node(&engine, true), node(&engine, true));
        let held = take(&ours.root, "a").await;
        let gives_up = waits(&theirs, "a", Mode::Exclusive);
        settled().await;
        assert_eq!(ours.root.list().await.unwrap().waiters.len(), 1);
        gives_up.abort();
        settled().await;
        assert_eq!(ours.root.list().await.unwrap().waiters.len(), 0, "{tier}");
        drop(held);
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_line_is_refused() {
    let engine = engine(Tier::Atomic);
    let node = node(&engine, true);
    let mut guards = Vec::new();
    for n in 0..256 {
        let text = format!("a:{n}");
        let asked = [path(&text)];
        guards.push(node.root.acquire(&asked, Mode::Exclusive, &Request::default()).await.unwrap());
    }
    let asked = [path("b")];
    let full = node.root.acquire(&asked, Mode::Exclusive, &Request::default()).await.unwrap_err();
    assert!(matches!(full, Error::Full { .. }), "{full}");
    // The dead make room.
    node.engine.kill();
    tokio::time::sleep(Request::TTL_DEFAULT * 2).await;
    let other = self::node(&engine, true);
    let asked = [path("b")];
    assert!(other.root.acquire(&asked, Mode::Exclusive, &Request::default()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_machine_clock_that_was_set_back_does_not_keep_the_dead_alive() {
    // The engine's clock stands still: no lease ever expires by it.
    let clock = keyward_testkit::TestClock::new();
    let engine: Arc<dyn Engine> = Arc::new(Memory::with(keyward_memory::Options::default(), clock));
    let (ours, theirs) = (node(&engine, true), node(&engine, true));
    let held = take(&ours.root, "a").await;
    ours.engine.kill();
    let began = Instant::now();
    let next = take(&theirs.root, "a").await;
    assert!(began.elapsed() >= Request::TTL_DEFAULT * 5 / 4);
    assert!(next.token() > held.token());
}
