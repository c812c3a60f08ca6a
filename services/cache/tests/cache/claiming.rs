//! Asking in one process, computing in another.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use keyward_cache::{Cache, Claim, Error, Fetch, Options, Origin, Source, Ticket};
use keyward_engine::{Code, Coded, Engine, Event, Store, SystemClock, Tier};
use keyward_key::KeyRange;
use keyward_memory::Memory;
use keyward_stores::{Place, on_engines, on_every_engine};
use keyward_testkit::{Fault, Faults, FaultyEngine, VirtualClock, When};

use crate::{Runs, cache, json, key, version};

on_every_engine!(
    who_claims_first_computes_and_the_others_wait,
    a_ticket_caches_one_value,
    a_claim_and_a_computation_keep_each_other_away,
    a_failure_is_told_by_whoever_has_the_ticket,
    a_claim_by_the_same_name_is_the_same,
    what_is_claimed_makes_sense,
);
on_engines!(recoverable: Recoverable;
    who_claims_first_computes_and_the_others_wait,
    a_ticket_caches_one_value,
    a_claim_and_a_computation_keep_each_other_away,
    a_failure_is_told_by_whoever_has_the_ticket,
    a_claim_by_the_same_name_is_the_same,
    what_is_claimed_makes_sense,
);

/// A ticket as it comes out of a text.
fn compute(claim: Claim) -> Ticket {
    match claim {
        Claim::Compute(ticket) => {
            serde_json::from_str(&serde_json::to_string(&ticket).unwrap()).unwrap()
        }
        Claim::Fresh(cached) => panic!("{cached:?} is there"),
    }
}

fn fresh(claim: Claim) -> (String, Origin) {
    match claim {
        Claim::Fresh(cached) => (cached.value.as_str().to_owned(), cached.origin),
        Claim::Compute(ticket) => panic!("nobody computes {ticket:?}"),
    }
}

async fn who_claims_first_computes_and_the_others_wait(place: Place) {
    let (ours, theirs, key) = (cache(&place).await, cache(&place).await, key("a"));
    let ticket = compute(ours.claim(&key, &version("1"), None).await.unwrap());
    assert_eq!((ticket.key(), ticket.source()), (&key, &Source::version("1")));
    let impatient = version("1").wait_max(Duration::ZERO);
    let told = theirs.claim(&key, &impatient, None).await.unwrap_err();
    assert!(matches!(told, Error::TimedOut { .. }), "{told}");
    assert_eq!(theirs.renew(&ticket).await.unwrap().ttl, Fetch::LEASE_DEFAULT);
    let asked = version("1");
    let waiting = theirs.claim(&key, &asked, None);
    let published = async {
        let store = place.store().await;
        assert_eq!(store.get(&key).await.unwrap(), None);
        ours.publish(&ticket, json("17")).await.unwrap()
    };
    let (waited, published) = tokio::join!(waiting, published);
    assert_eq!(fresh(waited.unwrap()).0, "17");
    assert_eq!((published.value, published.origin), (json("17"), Origin::Computed));
    let again = fresh(theirs.claim(&key, &version("1"), None).await.unwrap());
    assert_eq!(again, ("17".to_owned(), Origin::Stored));
    assert_eq!((ours.metrics().computed.get(), theirs.metrics().hits.get()), (1, 1));
}

async fn a_ticket_caches_one_value(place: Place) {
    let (ours, theirs, key) = (cache(&place).await, cache(&place).await, key("a"));
    let ticket = compute(ours.claim(&key, &version("1"), None).await.unwrap());
    let (one, other) =
        tokio::join!(ours.publish(&ticket, json("1")), theirs.publish(&ticket, json("2")));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!((&one.value, &one.version), (&other.value, &other.version));
    assert_eq!(ours.publish(&ticket, json("3")).await.unwrap().version, one.version);
    // Once another source was computed, the ticket is nobody's.
    let newer = compute(ours.claim(&key, &version("2"), None).await.unwrap());
    for late in [
        ours.publish(&ticket, json("4")).await.map(drop),
        ours.renew(&ticket).await.map(drop),
        ours.fail(&ticket, "no").await.map(drop),
    ] {
        assert!(matches!(late, Err(Error::Lost { .. })), "{late:?}");
    }
    ours.abandon(&ticket).await.unwrap();
    theirs.publish(&newer, json("5")).await.unwrap();
    assert_eq!(fresh(ours.claim(&key, &version("2"), None).await.unwrap()).0, "5");
}

async fn a_claim_and_a_computation_keep_each_other_away(place: Place) {
    let (ours, theirs, runs) = (cache(&place).await, cache(&place).await, Runs::default());
    let key = key("a");
    let ticket = compute(ours.claim(&key, &version("1"), None).await.unwrap());
    let asked = version("1");
    let computing = theirs.get_or_compute(&key, &asked, runs.make("2"));
    let (computed, published) = tokio::join!(computing, ours.publish(&ticket, json("1")));
    published.unwrap();
    assert_eq!((computed.unwrap().value, runs.count()), (json("1"), 0));
    // One that is given back is computed by whoever waits.
    let ticket = compute(ours.claim(&key, &version("2"), None).await.unwrap());
    let asked = version("2");
    let computing = theirs.get_or_compute(&key, &asked, runs.make("2"));
    let (computed, abandoned) = tokio::join!(computing, ours.abandon(&ticket));
    abandoned.unwrap();
    assert_eq!((computed.unwrap().value, runs.count()), (json("2"), 1));
}

async fn a_failure_is_told_by_whoever_has_the_ticket(place: Place) {
    const PAUSE: Duration = Duration::from_secs(600);
    let patient = async || {
        let options =
            Options { failure_pause: PAUSE, failure_pause_max: PAUSE, ..Options::default() };
        Cache::new(place.store().await, SystemClock, options).unwrap()
    };
    let (ours, theirs, key) = (patient().await, patient().await, key("a"));
    let ticket = compute(ours.claim(&key, &version("1"), None).await.unwrap());
    let held = theirs.fail(&ticket, "no such page").await.unwrap();
    assert_eq!((held.times, held.retry_after), (1, PAUSE));
    let told = ours.claim(&key, &version("1"), None).await.unwrap_err();
    assert!(matches!(&told, Error::Failed { message, times: 1, .. } if message == "no such page"));
    assert_eq!(ours.fail(&ticket, "again").await.unwrap().times, 1, "its answer may be lost");
    compute(ours.claim(&key, &version("2"), None).await.unwrap());
}

async fn a_claim_by_the_same_name_is_the_same(place: Place) {
    let (ours, theirs, key) = (cache(&place).await, cache(&place).await, key("a"));
    let asked = version("1").wait_max(Duration::ZERO);
    let first = compute(ours.claim(&key, &asked, Some("x")).await.unwrap());
    let again = compute(theirs.claim(&key, &asked, Some("x")).await.unwrap());
    assert_eq!(first.lock().token(), again.lock().token());
    let other = theirs.claim(&key, &asked, Some("y")).await;
    assert!(matches!(other, Err(Error::TimedOut { .. })));
    theirs.publish(&again, json("1")).await.unwrap();
    assert_eq!(fresh(ours.claim(&key, &asked, Some("x")).await.unwrap()).0, "1");
}

async fn what_is_claimed_makes_sense(place: Place) {
    let cache = cache(&place).await;
    let root = cache.locks().root(key("page")).unwrap();
    let under = version("1").under(root, keyward_locks::LockPath::root());
    let refused = cache.claim(&key("a"), &under, None).await.unwrap_err();
    assert_eq!(refused.code(), Code::Invalid);
    let ticket = compute(cache.claim(&key("a"), &version("1"), None).await.unwrap());
    let mut text = serde_json::to_value(&ticket).unwrap();
    text["lock"]["root"] = "page".into();
    let forged: Ticket = serde_json::from_value(text).unwrap();
    for refused in [
        cache.publish(&forged, json("1")).await.map(drop),
        cache.fail(&forged, "no").await.map(drop),
        cache.renew(&forged).await.map(drop),
        cache.abandon(&forged).await,
    ] {
        assert_eq!(refused.unwrap_err().code(), Code::Invalid);
    }
    cache.publish(&ticket, json("1")).await.unwrap();
}

fn on(engine: &FaultyEngine, seed: u64) -> Cache {
    let options = Options { seed: Some(seed), ..Options::default() };
    Cache::new(Store::new(engine.clone()), SystemClock, options).unwrap()
}

/// Publishes with a fault at one call of the process that does; then again in another one. Says
/// whether the fault happened.
async fn published(tier: Tier, at: u64, fault: Fault) -> bool {
    let told = format!("{tier} {at} {fault:?}");
    let memory: Arc<dyn Engine> =
        Arc::new(Memory::with(keyward_memory::Options::tier(tier), VirtualClock::new()));
    let healthy = on(&FaultyEngine::new(memory.clone(), Faults::none()), 1);
    let (key, asked) = (key("a"), version("1").lease(Duration::from_secs(600)));
    let ticket = compute(healthy.claim(&key, &asked, None).await.unwrap());
    let engine = FaultyEngine::new(memory, Faults::script([(at, fault)]));
    let first = on(&engine, 2).publish(&ticket, json("1")).await;
    let happened = engine.calls() > at;
    engine.kill();
    // Whoever got no answer sends it again, and finds it done or does it.
    let second = healthy.publish(&ticket, json("2")).await;
    let second = second.unwrap_or_else(|error| panic!("{told}: {error}"));
    if let Ok(first) = first {
        assert_eq!((&first.value, &first.version), (&second.value, &second.version), "{told}");
    }
    let found = fresh(healthy.claim(&key, &asked, None).await.unwrap()).0;
    assert_eq!(found, second.value.as_str(), "{told}");
    happened
}

#[tokio::test(start_paused = true)]
async fn a_publication_can_be_sent_again_whatever_broke() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        for fault in [
            Fault::Crash(When::Before),
            Fault::Crash(When::After),
            Fault::Unanswered(When::Before),
            Fault::Unanswered(When::After),
            Fault::Fail,
        ] {
            let mut at = 0;
            while published(tier, at, fault).await {
                at += 1;
            }
            assert!(at > 3, "{tier} {fault:?}: publishing makes calls");
        }
    }
}

/// Publishes with one ticket in two processes at once, each with one late call. Says whether both
/// calls were made.
async fn twice(tier: Tier, one_at: u64, other_at: u64) -> bool {
    let told = format!("{tier} {one_at} {other_at}");
    let memory: Arc<dyn Engine> =
        Arc::new(Memory::with(keyward_memory::Options::tier(tier), VirtualClock::new()));
    let late = |at, seconds| {
        let late = Fault::Delay(When::Before, Duration::from_secs(seconds));
        FaultyEngine::new(memory.clone(), Faults::script([(at, late)]))
    };
    let (first, second) = (late(one_at, 1), late(other_at, 2));
    let healthy = on(&late(u64::MAX, 0), 1);
    let (key, asked) = (key("a"), version("1"));
    let ticket = compute(healthy.claim(&key, &asked, None).await.unwrap());
    let (one, other) = (on(&first, 2), on(&second, 3));
    let mut events = healthy.locks().store().watch(KeyRange::exactly(&key), None);
    let can_tell = matches!(events.next().await, Some(Ok(Event::Reached(_))));
    assert_eq!(can_tell, tier == Tier::Atomic);
    let (one, other) =
        tokio::join!(one.publish(&ticket, json("1")), other.publish(&ticket, json("2")));
    let (one, other) = (one.expect(&told), other.expect(&told));
    assert_eq!(one.value, other.value, "{told}");
    let found = fresh(healthy.claim(&key, &asked, None).await.unwrap()).0;
    assert_eq!(found, one.value.as_str(), "{told}");
    let mut changes = 0;
    while let Some(Some(Ok(event))) = events.next().now_or_never() {
        changes += usize::from(matches!(event, Event::Changed { .. }));
    }
    assert_eq!(changes, usize::from(can_tell), "{told}: that many publications");
    first.calls() > one_at && second.calls() > other_at
}

#[tokio::test(start_paused = true)]
async fn one_ticket_used_twice_at_once_caches_one_value() {
    const CALLS_MAX: u64 = 16;
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let mut pairs = 0;
        for one_at in 0..CALLS_MAX {
            for other_at in 0..CALLS_MAX {
                pairs += u64::from(twice(tier, one_at, other_at).await);
            }
        }
        assert!(pairs > CALLS_MAX, "{tier}: {pairs} pairs of late calls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_nobody_renews_passes_the_right_on() {
    let memory: Arc<dyn Engine> =
        Arc::new(Memory::with(keyward_memory::Options::default(), VirtualClock::new()));
    let cache = on(&FaultyEngine::new(memory, Faults::none()), 1);
    let key = key("a");
    let dead = compute(cache.claim(&key, &version("1"), None).await.unwrap());
    let next = compute(cache.claim(&key, &version("1"), None).await.unwrap());
    assert!(next.lock().token() > dead.lock().token());
    let late = cache.publish(&dead, json("1")).await;
    assert!(matches!(late, Err(Error::Lost { .. })), "{late:?}");
    cache.publish(&next, json("2")).await.unwrap();
    let late = cache.publish(&dead, json("1")).await;
    assert!(matches!(late, Err(Error::Lost { .. })), "{late:?}");
    assert_eq!(fresh(cache.claim(&key, &version("1"), None).await.unwrap()).0, "2");
}
