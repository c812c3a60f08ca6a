//! Only what is certainly gone is removed, and nothing else with it.

use std::time::Duration;

use keyward_cache::{Presence, Purge, PurgeOptions, Purged, Swept};
use keyward_engine::{Code, Coded, Put, Scan, Store, SystemClock};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_locks::{LockPath, Locks, Mode, Options, Request};
use keyward_stores::{Place, on_databases, on_engines, on_every_engine};

use crate::{Runs, cache, json, key, version};

on_every_engine!(
    clearing_a_root_touches_nothing_of_another,
    only_what_is_certainly_gone_is_purged,
    a_root_that_is_worked_on_is_left_alone,
    a_sweep_is_claimed_once,
    many_entries_are_removed_to_the_last,
);
on_databases!(clearing_a_root_touches_nothing_of_another, a_sweep_is_claimed_once);
on_engines!(recoverable: Recoverable;
    clearing_a_root_touches_nothing_of_another,
    only_what_is_certainly_gone_is_purged,
);
// Where the test owns the clock.
on_engines!(owned_clock: Embedded; the_next_sweep_is_a_day_later);

fn locks(store: &Store) -> Locks {
    Locks::new(store.clone(), SystemClock, Options::default()).unwrap()
}

fn purge(store: &Store) -> Purge {
    Purge::new(locks(store), SystemClock, PurgeOptions::default()).unwrap()
}

async fn filled(place: &Place) -> Store {
    let store = place.store().await;
    for text in [
        "page7:policy:1",
        "page7:policy:1:fr",
        "page7:issue:1",
        "page70:policy:1",
        "page8:policy:1",
        "page",
        "job:1",
        "job:1:trace",
        "system:purposes",
    ] {
        store.put(key(text), Put::new(json("1"))).await.unwrap();
    }
    store
}

/// The keys that were filled in and are still there.
async fn left(store: &Store) -> Vec<String> {
    let rows = store.scan(&Scan::new(KeyRange::all()).keys_only()).await.unwrap().rows;
    let keys = rows.into_iter().map(|row| row.key.to_string());
    keys.filter(|key| !key.starts_with("lock:") && !key.starts_with("system:purged")).collect()
}

async fn clearing_a_root_touches_nothing_of_another(place: Place) {
    let store = filled(&place).await;
    let cleared = purge(&store).clear(&key("page7")).await.unwrap();
    assert_eq!(cleared, 3);
    let left = left(&store).await;
    assert_eq!(
        left,
        [
            "job:1",
            "job:1:trace",
            "page",
            "page7",
            "page70:policy:1",
            "page8:policy:1",
            "system:locks:page7",
            "system:purposes"
        ],
        "the catalog of locks at page7 stays"
    );
    for no_root in ["job", "system", "page7:policy", "lock"] {
        let refused = purge(&store).clear(&key(no_root)).await.unwrap_err();
        assert_eq!(refused.code(), Code::Invalid, "{no_root}");
    }
    assert_eq!(self::left(&store).await, left);
}

async fn only_what_is_certainly_gone_is_purged(place: Place) {
    let store = filled(&place).await;
    let (cache, runs) = (cache(&place).await, Runs::default());
    let fetch = version("1").depends_on(key("page7:text"));
    cache.get_or_compute(&key("page7:summary"), &fetch, runs.make("1")).await.unwrap();
    let mut asked = Vec::new();
    let look = |root: Key| {
        asked.push(root.to_string());
        std::future::ready(match root.to_string().as_str() {
            "page7" => Presence::Gone,
            "page70" => Presence::Unknown("the wiki answers 503".into()),
            _ => Presence::Present,
        })
    };
    let swept = purge(&store).sweep(look).await.unwrap().unwrap();
    // What is gone is asked about again once it is locked; neither job nor system is a page.
    assert_eq!(asked, ["page7", "page7", "page70", "page8"]);
    assert_eq!((swept.roots, swept.entries), (3, 4));
    assert_eq!(
        swept.told,
        [
            (key("page7"), Purged::Removed { entries: 4 }),
            (key("page70"), Purged::Unknown("the wiki answers 503".into())),
        ]
    );
    let left = left(&store).await;
    for kept in ["page70:policy:1", "page8:policy:1", "job:1", "job:1:trace"] {
        assert!(left.contains(&kept.to_owned()), "{kept}");
    }
    assert!(!left.iter().any(|key| key.starts_with("page7:")), "{left:?}");
    assert!(!left.iter().any(|key| key.contains("dependants")), "{left:?}");
    // A page without entries is not asked about again.
    let swept = purge(&store).sweep_now(|_| std::future::ready(Presence::Present)).await.unwrap();
    assert_eq!(swept.roots, 2);
}

async fn a_root_that_is_worked_on_is_left_alone(place: Place) {
    let store = filled(&place).await;
    let root = locks(&store).root(key("page7")).unwrap();
    let path = LockPath::parse("policies:1").unwrap();
    let guard = root.acquire(&[path], Mode::Exclusive, &Request::default()).await.unwrap();
    let options = PurgeOptions { wait_max: Duration::from_millis(20), ..PurgeOptions::default() };
    let purge = Purge::new(locks(&store), SystemClock, options).unwrap();
    let purged = purge.purge(&key("page7"), Presence::Gone).await.unwrap();
    assert!(matches!(purged, Purged::Locked(_)), "{purged:?}");
    guard.release().await.unwrap();
    let purged = purge.purge(&key("page7"), Presence::Gone).await.unwrap();
    assert_eq!(purged, Purged::Removed { entries: 3 });
}

async fn a_sweep_is_claimed_once(place: Place) {
    filled(&place).await;
    let mut sweeps = Vec::new();
    for _ in 0..8 {
        let purge = purge(&place.store().await);
        sweeps.push(tokio::spawn(async move {
            purge.sweep(|_| std::future::ready(Presence::Present)).await.unwrap()
        }));
    }
    let mut done: Vec<Swept> = Vec::new();
    for sweep in sweeps {
        done.extend(sweep.await.unwrap());
    }
    assert_eq!(done.len(), 1);
    // Roots below a prefix are claimed apart.
    let under = Prefix::parse("page7:").unwrap();
    let options = PurgeOptions { under, ..PurgeOptions::default() };
    let purge = Purge::new(locks(&place.store().await), SystemClock, options).unwrap();
    let swept = purge.sweep(|_| std::future::ready(Presence::Gone)).await.unwrap().unwrap();
    assert_eq!(swept.entries, 1 + 1 + 1);
}

async fn the_next_sweep_is_a_day_later(place: Place) {
    let store = filled(&place).await;
    let purge = purge(&store);
    let present = |_| std::future::ready(Presence::Present);
    assert!(purge.sweep(present).await.unwrap().is_some());
    place.clock().advance(Duration::from_secs(24 * 60 * 60 - 1));
    assert!(purge.sweep(present).await.unwrap().is_none());
    place.clock().advance(Duration::from_secs(1));
    assert!(purge.sweep(present).await.unwrap().is_some());
}

async fn many_entries_are_removed_to_the_last(place: Place) {
    let store = filled(&place).await;
    for n in 0..1_001 {
        store.put(key(&format!("page7:n:{n}")), Put::new(json("1"))).await.unwrap();
    }
    assert_eq!(purge(&store).clear(&key("page7")).await.unwrap(), 1_004);
}
