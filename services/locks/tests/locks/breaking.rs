//! Locks that are taken away, by simulated time.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Engine, Store};
use keyward_locks::{Error, Locks, Loss, Mode, Options, Request, Root, Target};
use keyward_memory::Memory;
use keyward_testkit::{Fault, Faults, FaultyEngine, VirtualClock, When};
use tokio::time::Instant;

use crate::fixture::{key, number, page, path, take};

fn memory(options: keyward_memory::Options) -> Arc<dyn Engine> {
    Arc::new(Memory::with(options, VirtualClock::new()))
}

fn root(engine: &Arc<dyn Engine>, seed: u64, faults: Faults) -> Root {
    let store = Store::new(FaultyEngine::new(engine.clone(), faults));
    let options = Options { seed: Some(seed), ..Options::default() };
    page(&Locks::new(store, VirtualClock::new(), options).unwrap())
}

/// The next one in line gets the lock while whoever broke it does not know yet that this worked.
#[tokio::test(start_paused = true)]
async fn breaking_a_path_breaks_only_who_held_it() {
    let engine = memory(keyward_memory::Options::default());
    let ours = root(&engine, 1, Faults::none());
    let held = take(&ours, "a").await;
    let waiting = tokio::spawn(async move { take(&ours, "a").await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let faults = Faults::script([
        (1, Fault::Unanswered(When::After)),
        (2, Fault::Delay(When::Before, Duration::from_secs(1))),
    ]);
    let theirs = root(&engine, 2, faults);
    let broken = theirs.break_lock(&Target::Path(path("a")), "bob", "stuck").await.unwrap();
    assert_eq!((broken.len(), broken[0].token), (1, held.token()));
    let next = waiting.await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!held.is_held());
    assert!(next.is_held(), "{:?}", next.loss());
}

/// The holder that was seen releases, and another one comes, before the break is written.
#[tokio::test(start_paused = true)]
async fn one_who_comes_after_the_break_was_decided_is_not_broken() {
    let engine = memory(keyward_memory::Options::default());
    let ours = root(&engine, 1, Faults::none());
    let held = take(&ours, "a").await;
    let late = Fault::Delay(When::Before, Duration::from_secs(2));
    let theirs = root(&engine, 2, Faults::script([(1, late)]));
    let target = Target::Path(path("a"));
    let next = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        held.release().await.unwrap();
        take(&ours, "a").await
    };
    let (broken, next) = tokio::join!(theirs.break_lock(&target, "bob", "stuck"), next);
    assert!(matches!(broken, Err(Error::NotHeld { .. })), "{broken:?}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(next.is_held(), "{:?}", next.loss());
}

#[tokio::test(start_paused = true)]
async fn a_broken_lock_is_known_at_once_also_after_its_watch_fell_behind() {
    let history = keyward_memory::Options { history: 2, ..keyward_memory::Options::default() };
    let engine = memory(history);
    let (ours, theirs) = (root(&engine, 1, Faults::none()), root(&engine, 2, Faults::none()));
    // Renewed every two hours: only a watch tells of the break sooner.
    let request = Request::default().ttl(Duration::from_secs(6 * 60 * 60));
    let held = ours.acquire(&[path("a")], Mode::Exclusive, &request).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let store = Store::from_arc(engine.clone());
    for n in 0..10 {
        // Nobody else runs in between: more happens than the watch can be told of.
        store.put(key("k"), number(n)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(held.is_held());
    theirs.break_lock(&Target::Token(held.token()), "bob", "stuck").await.unwrap();
    let broken = Instant::now();
    let told = Loss::Broken { by: "bob".to_owned(), reason: "stuck".to_owned() };
    assert_eq!(held.lost().await, told);
    assert_eq!(broken.elapsed(), Duration::ZERO);
}
