//! Ends of entries: exact, although Forge deletes what has expired up to 48 hours late.

use std::time::Duration;

use keyward_engine::{Clock, Expiry, Scan, Store};
use keyward_key::KeyRange;
use keyward_testkit::TestClock;
use serde_json::json;

use crate::installation::{Installation, OnTestClock, key, put};

const HOURS_48_MS: u64 = 48 * 3_600_000;

async fn late(installation: &Installation, clock: &TestClock) -> Store {
    installation.control(json!({"deletionDelay": HOURS_48_MS})).await;
    Store::new(OnTestClock::open(installation, installation.options(), clock.clone()).await)
}

async fn keys(store: &Store) -> Vec<String> {
    let page = store.scan(&Scan::new(KeyRange::all())).await.unwrap();
    page.rows.iter().map(|row| row.key.to_string()).collect()
}

#[tokio::test]
async fn an_expired_entry_is_absent_at_once_although_forge_still_has_it() {
    let (installation, clock) = (Installation::new(), TestClock::new());
    let store = late(&installation, &clock).await;
    let slot = key("job:task456");
    let ttl = Duration::from_millis(1_500);
    store.put(slot.clone(), put("1").expiring(Expiry::After(ttl))).await.unwrap();
    let end = clock.now() + ttl;
    clock.advance(ttl - Duration::from_millis(1));
    assert_eq!(store.get(&slot).await.unwrap().unwrap().expires, Some(end));
    clock.advance(Duration::from_millis(1));
    assert_eq!(store.get(&slot).await.unwrap(), None);
    assert_eq!(keys(&store).await, [""; 0]);

    clock.advance(Duration::from_secs(1));
    assert_eq!(store.get(&slot).await.unwrap(), None, "its end in Forge has passed too");
    assert_eq!(installation.stored(&["job:task456"]).await, [Some(json!(1))], "it is still there");
    clock.advance(Duration::from_millis(HOURS_48_MS));
    store.get(&slot).await.unwrap();
    assert_eq!(installation.names().await, [""; 0], "Forge has deleted both rows");
}

#[tokio::test]
async fn the_end_that_an_app_gave_counts_before_forge_deletes_the_row() {
    let (installation, clock) = (Installation::new(), TestClock::new());
    let store = late(&installation, &clock).await;
    store.get(&key("any")).await.unwrap();
    let body =
        json!({"key": "job:1", "value": 1, "options": {"ttl": {"value": 2, "unit": "MINUTES"}}});
    assert_eq!(installation.call("set", body).await.0, 204);
    let entry = store.get(&key("job:1")).await.unwrap().unwrap();
    assert_eq!(entry.expires, Some(clock.now() + Duration::from_secs(120)));
    clock.advance(Duration::from_secs(120));
    assert_eq!(store.get(&key("job:1")).await.unwrap(), None);
    assert_eq!(keys(&store).await, [""; 0]);
    assert_eq!(installation.stored(&["job:1"]).await, [Some(json!(1))]);
}

#[tokio::test]
async fn an_entry_may_outlive_the_year_that_forge_allows() {
    let (installation, clock) = (Installation::new(), TestClock::new());
    installation.control(json!({"deletionDelay": 0})).await;
    let store =
        Store::new(OnTestClock::open(&installation, installation.options(), clock.clone()).await);
    let year = Duration::from_secs(365 * 86_400);
    let second = Duration::from_secs(1);
    for (name, ttl) in [("year", year), ("more", year + second)] {
        store.put(key(name), put("1").expiring(Expiry::After(ttl))).await.unwrap();
    }
    clock.advance(year - second);
    assert!(store.get(&key("year")).await.unwrap().is_some());
    clock.advance(second);
    assert_eq!(store.get(&key("year")).await.unwrap(), None);
    assert!(store.get(&key("more")).await.unwrap().is_some());
    clock.advance(second);
    assert_eq!(store.get(&key("more")).await.unwrap(), None);
    assert_eq!(keys(&store).await, [""; 0]);
}
