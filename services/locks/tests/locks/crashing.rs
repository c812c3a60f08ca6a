//! A crash before and after every call that an operation makes.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Code, Coded, Commit, Engine, Entry, Store, Tier};
use keyward_locks::{Change, Locks, Mode, Options, Request, Result, Root, Target, Tried};
use keyward_memory::Memory;
use keyward_testkit::{Fault, Faults, FaultyEngine, VirtualClock, When};

use crate::fixture::{key, number, page, path, take};

#[derive(Debug, Clone, Copy)]
enum Operation {
    Acquire,
    Queue,
    Renew,
    Release,
    Break,
    Update,
    Delete,
    AskByName,
    RenewTicket,
    ReleaseTicket,
}

const ALL: [Operation; 10] = [
    Operation::Acquire,
    Operation::Queue,
    Operation::Renew,
    Operation::Release,
    Operation::Break,
    Operation::Update,
    Operation::Delete,
    Operation::AskByName,
    Operation::RenewTicket,
    Operation::ReleaseTicket,
];

fn root(engine: &FaultyEngine, seed: u64) -> Root {
    page(&locks(engine, seed))
}

fn locks(engine: &FaultyEngine, seed: u64) -> Locks {
    let options = Options { seed: Some(seed), ..Options::default() };
    Locks::new(Store::new(engine.clone()), VirtualClock::new(), options).unwrap()
}

fn increment(entry: Option<&Entry>) -> Result<Change> {
    let old = entry.map_or(0, |entry| entry.value.as_integer().unwrap());
    Ok(Change::Put(number(old + 1)))
}

/// Does an operation, on a handle that may fail at any call, and says how it was answered.
async fn act(locks: &Locks, operation: Operation, healthy: &Root) -> Result<()> {
    let root = &page(locks);
    let asked = [path("a")];
    let request = Request::default().wait_max(Duration::from_secs(30));
    match operation {
        Operation::Acquire => {
            let guard = root.acquire(&asked, Mode::Exclusive, &request).await?;
            assert!(guard.is_held());
            std::mem::forget(guard);
        }
        Operation::Queue => {
            let held = take(healthy, "a").await;
            let waiting = root.acquire(&asked, Mode::Exclusive, &request);
            let released = async {
                tokio::time::sleep(Duration::from_secs(3)).await;
                held.release().await
            };
            let (guard, released) = tokio::join!(waiting, released);
            released.unwrap();
            std::mem::forget(guard?);
        }
        Operation::Renew => {
            let guard = root.acquire(&asked, Mode::Exclusive, &request).await?;
            tokio::time::sleep(Request::TTL_DEFAULT / 2).await;
            std::mem::forget(guard);
        }
        Operation::Release => {
            let guard = root.acquire(&asked, Mode::Exclusive, &request).await?;
            guard.release().await?;
        }
        Operation::Break => {
            let held = take(healthy, "a").await;
            let broken = root.break_lock(&Target::Path(path("a")), "bob", "").await;
            held.release().await?;
            broken?;
        }
        Operation::AskByName => {
            let named = request.named("one request");
            let guard = root.acquire(&asked, Mode::Exclusive, &named).await?;
            // Whoever lost the answer finds the same elsewhere.
            let again = healthy.acquire(&asked, Mode::Exclusive, &named).await?;
            assert_eq!(again.token(), guard.token());
            let _ = again.detach();
            std::mem::forget(guard);
        }
        Operation::RenewTicket => {
            let ticket = take(healthy, "a").await.detach();
            for _ in 0..3 {
                tokio::time::sleep(Request::TTL_DEFAULT * 2 / 3).await;
                assert_eq!(locks.renew(&ticket).await?.ttl, Request::TTL_DEFAULT);
                let tried = healthy.try_acquire(&asked, Mode::Exclusive, &request).await?;
                assert!(matches!(tried, Tried::Held(_)), "it was renewed");
            }
        }
        Operation::ReleaseTicket => {
            let ticket = take(healthy, "a").await.detach();
            locks.release(&ticket).await?;
            let tried = healthy.try_acquire(&asked, Mode::Exclusive, &request).await?;
            let Tried::Granted(next) = tried else { panic!("it was released") };
            // Sent again, it leaves the next one alone.
            let again = locks.release(&ticket).await;
            assert!(healthy.list().await?.holders.iter().any(|it| it.token == next.token()));
            next.release().await?;
            again?;
        }
        Operation::Update | Operation::Delete => {
            let guard = root.acquire(&asked, Mode::Exclusive, &request).await?;
            let deletes = matches!(operation, Operation::Delete);
            let updated = guard
                .update(
                    &key("k"),
                    |entry| {
                        if deletes { Ok(Change::Delete) } else { increment(entry) }
                    },
                )
                .await;
            std::mem::forget(guard);
            updated?;
        }
    }
    Ok(())
}

/// Runs an operation with a fault at one call; then others must be able to go on, with a higher
/// token, and find what was acknowledged. Says whether the fault happened.
async fn run(tier: Tier, operation: Operation, at: u64, fault: Fault) -> bool {
    let told = format!("{tier} {operation:?} {at} {fault:?}");
    let memory: Arc<dyn Engine> =
        Arc::new(Memory::with(keyward_memory::Options::tier(tier), VirtualClock::new()));
    let healthy = root(&FaultyEngine::new(memory.clone(), Faults::none()), 1);
    let before = take(&healthy, "a").await;
    before.update(&key("k"), increment).await.unwrap();
    let first = before.token();
    before.release().await.unwrap();

    let engine = FaultyEngine::new(memory, Faults::script([(at, fault)]));
    let faulty = locks(&engine, 2);
    let answered = act(&faulty, operation, &healthy).await;
    let happened = engine.calls() > at;
    let crashed = engine.is_crashed();
    if !crashed && !matches!(operation, Operation::Update | Operation::Delete) {
        // One lost answer is nothing that a caller needs to know of; a failure before anything was
        // written may be told, and can be tried again.
        let retryable = |error: &keyward_locks::Error| error.retryable();
        assert!(answered.as_ref().err().is_none_or(retryable), "{told}: {answered:?}");
    }
    // The process dies in any case.
    engine.kill();
    let last = take(&healthy, "a").await;
    assert!(last.token() > first, "{told}");
    let value = last.get(&key("k")).await.unwrap().and_then(|entry| entry.value.as_integer());
    match (operation, &answered) {
        (Operation::Update, Ok(())) => assert_eq!(value, Some(2), "{told}"),
        (Operation::Update, Err(_)) => assert!([Some(1), Some(2)].contains(&value), "{told}"),
        (Operation::Delete, Ok(())) => assert_eq!(value, None, "{told}"),
        (Operation::Delete, Err(_)) => assert!([Some(1), None].contains(&value), "{told}"),
        _ => assert_eq!(value, Some(1), "{told}"),
    }
    last.update(&key("k"), increment).await.unwrap();
    last.release().await.unwrap();
    let standing = healthy.list().await.unwrap();
    assert_eq!((standing.holders.len(), standing.waiters.len()), (0, 0), "{told}");
    if tier == Tier::Atomic {
        tokio::time::sleep(Request::TTL_DEFAULT * 2).await;
        let left = healthy_roots(&healthy).await;
        assert_eq!(left, 0, "{told}: fences or leases are left");
    }
    happened
}

async fn healthy_roots(root: &Root) -> usize {
    use keyward_engine::Scan;
    use keyward_key::{KeyRange, Prefix};
    let store = root.clone();
    let below = KeyRange::under(&Prefix::parse("lock").unwrap());
    store.store().scan(&Scan::new(below)).await.unwrap().rows.len()
}

async fn everywhere(tier: Tier, operation: Operation) {
    let faults = [
        Fault::Crash(When::Before),
        Fault::Crash(When::After),
        Fault::Unanswered(When::Before),
        Fault::Unanswered(When::After),
        Fault::Fail,
    ];
    for fault in faults {
        let mut at = 0;
        while run(tier, operation, at, fault).await {
            at += 1;
        }
        assert!(at > 0, "{operation:?} makes calls");
    }
}

#[tokio::test(start_paused = true)]
async fn with_commits_of_several_keys_nothing_is_lost_or_stuck() {
    for operation in ALL {
        everywhere(Tier::Atomic, operation).await;
    }
}

#[tokio::test(start_paused = true)]
async fn with_commits_of_single_keys_nothing_is_lost_or_stuck() {
    for operation in ALL {
        everywhere(Tier::Recoverable, operation).await;
    }
}

/// The coarser guard looks whether it still holds, because a later one of its owner was there.
#[tokio::test(start_paused = true)]
async fn one_failure_does_not_end_an_update_above_a_later_guard() {
    const CALLS: u64 = 4;
    let mut begins_at = None;
    // The first time without a fault, to learn which call the update begins with.
    for at in std::iter::once(None).chain((0..CALLS).map(Some)) {
        let options = keyward_memory::Options::tier(Tier::Recoverable);
        let memory: Arc<dyn Engine> = Arc::new(Memory::with(options, VirtualClock::new()));
        let fault = begins_at.zip(at).map(|(first, at): (u64, u64)| (first + at, Fault::Fail));
        let engine = FaultyEngine::new(memory, Faults::script(fault));
        let coarse = take(&root(&engine, 1), "a").await;
        let below = [path("a:b")];
        let fine = coarse.descend(&below, Mode::Exclusive, &Request::default()).await.unwrap();
        fine.update(&key("k"), increment).await.unwrap();
        let first = *begins_at.get_or_insert(engine.calls());
        coarse.update(&key("k"), increment).await.unwrap_or_else(|error| panic!("{at:?}: {error}"));
        assert!(engine.calls() >= first + CALLS, "{at:?}");
        let value = coarse.get(&key("k")).await.unwrap().unwrap().value;
        assert_eq!(value.as_integer(), Some(2), "{at:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_lands_late_does_not_undo_the_holders_next_one() {
    let memory: Arc<dyn Engine> =
        Arc::new(Memory::with(keyward_memory::Options::default(), VirtualClock::new()));
    // Taking the lock is a look and a commit; the write after it is not answered.
    let engine = FaultyEngine::new(memory, Faults::script([(2, Fault::Late(Duration::MAX))]));
    let guard = take(&root(&engine, 1), "a").await;
    let write = |n| guard.commit(Commit::new().put(key("k"), number(n)));
    assert_eq!(write(1).await.unwrap_err().code(), Code::OutcomeUnknown);
    assert!(write(2).await.unwrap().is_applied());
    let landed = engine.land().await;
    assert!(matches!(&landed[..], [Ok(outcome)] if !outcome.is_applied()), "{landed:?}");
    assert_eq!(guard.get(&key("k")).await.unwrap().unwrap().value.as_integer(), Some(2));
    // The lock was not lost by it.
    assert!(write(3).await.unwrap().is_applied());
    assert!(guard.is_held());
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_write_that_lands_late_does_not_undo_what_a_guard_below_has_written() {
    let memory: Arc<dyn Engine> =
        Arc::new(Memory::with(keyward_memory::Options::default(), VirtualClock::new()));
    let engine = FaultyEngine::new(memory, Faults::script([(2, Fault::Late(Duration::MAX))]));
    let coarse = take(&root(&engine, 1), "a").await;
    let lost = coarse.commit(Commit::new().put(key("k"), number(1))).await;
    assert_eq!(lost.unwrap_err().code(), Code::OutcomeUnknown);
    let below = [path("a:b")];
    let fine = coarse.descend(&below, Mode::Exclusive, &Request::default()).await.unwrap();
    assert!(fine.commit(Commit::new().put(key("k"), number(2))).await.unwrap().is_applied());
    let landed = engine.land().await;
    assert!(matches!(&landed[..], [Ok(outcome)] if !outcome.is_applied()), "{landed:?}");
    assert_eq!(fine.get(&key("k")).await.unwrap().unwrap().value.as_integer(), Some(2));
    assert!(coarse.is_held() && fine.is_held());
}
