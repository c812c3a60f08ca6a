//! Who begins runs when they are due, with a clock that goes with the test's.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use keyward_engine::{Clock, Json, Put, Store};
use keyward_key::Key;
use keyward_memory::{Memory, Options};
use keyward_registry::{Registry, Result, Settings, Synced};
use keyward_testkit::VirtualClock;
use tokio::sync::oneshot;
use tokio::time::sleep;

/// A registry that is due every day at 16:00 UTC; the clock starts at the beginning of 2026.
fn registry(store: &Store, clock: VirtualClock) -> Registry {
    let settings: Settings = serde_json::from_str(r#"{"repository":"nowhere"}"#).unwrap();
    Registry::open("policies", store.clone(), settings, "cache".as_ref(), clock).unwrap()
}

fn memory(clock: VirtualClock) -> Store {
    Store::new(Memory::with(Options::default(), clock))
}

fn unchanged() -> Result<Synced> {
    Ok(Synced::Unchanged { commit: "0".repeat(40) })
}

/// The moments for which runs were begun, and when.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(String, String)>>>);

impl Seen {
    fn note(&self, moment: Timestamp, now: Timestamp) {
        self.0.lock().unwrap().push((moment.to_string(), now.to_string()));
    }

    fn moments(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(moment, _)| moment.clone()).collect()
    }

    fn times(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(_, time)| time.clone()).collect()
    }
}

/// Keeps the schedule for a time; every run ends at once and has changed nothing.
async fn keep(registry: &Registry, clock: VirtualClock, time: Duration, seen: &Seen) {
    let begin = |moment| {
        seen.note(moment, clock.now());
        async { unchanged() }
    };
    registry.keep_schedule(sleep(time), begin).await.unwrap();
}

const fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3_600)
}

#[tokio::test(start_paused = true)]
async fn a_run_begins_when_it_is_due() {
    let clock = VirtualClock::new();
    let store = memory(clock);
    let seen = Seen::default();
    keep(&registry(&store, clock), clock, hours(72), &seen).await;
    let days = ["2026-01-01T16:00:00Z", "2026-01-02T16:00:00Z", "2026-01-03T16:00:00Z"];
    assert_eq!(seen.moments(), days);
    assert!(seen.times().iter().zip(days).all(|(time, day)| time.starts_with(&day[..16])));
}

#[tokio::test(start_paused = true)]
async fn of_several_servers_one_begins_each_run_whatever_their_clocks_show() {
    let clock = VirtualClock::new();
    let store = memory(clock);
    let seen = Seen::default();
    let clocks = [0, -40, 90, 1_500].map(|ms| clock.skewed(SignedDuration::from_millis(ms)));
    let servers = clocks.map(|clock| {
        let (registry, seen) = (registry(&store, clock), seen.clone());
        tokio::spawn(async move { keep(&registry, clock, hours(24 * 10), &seen).await })
    });
    for server in servers {
        server.await.unwrap();
    }
    let days: Vec<String> = (1..=10).map(|day| format!("2026-01-{day:02}T16:00:00Z")).collect();
    assert_eq!(seen.moments(), days);
}

#[tokio::test(start_paused = true)]
async fn what_was_missed_while_down_is_made_good_once() {
    let clock = VirtualClock::new();
    let store = memory(clock);
    let seen = Seen::default();
    let registry = registry(&store, clock);
    keep(&registry, clock, hours(20), &seen).await;
    assert_eq!(seen.moments(), ["2026-01-01T16:00:00Z"]);

    // Down on the 2nd, the 3rd and the 4th at 16:00.
    sleep(hours(24 * 4 - 20)).await;
    keep(&registry, clock, hours(1), &seen).await;
    assert_eq!(seen.moments()[1..], ["2026-01-02T16:00:00Z"]);
    assert!(seen.times()[1].starts_with("2026-01-05T00:00:0"), "{:?}", seen.times());

    // Nothing is left to make good, and the next is begun in its turn.
    keep(&registry, clock, hours(16), &seen).await;
    assert_eq!(seen.moments()[2..], ["2026-01-05T16:00:00Z"]);
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_is_new_has_missed_nothing() {
    let clock = VirtualClock::new();
    let store = memory(clock);
    sleep(hours(20)).await;
    let seen = Seen::default();
    keep(&registry(&store, clock), clock, hours(19), &seen).await;
    assert_eq!(seen.moments(), [""; 0]);
    // It was scheduled from then on.
    sleep(hours(2)).await;
    keep(&registry(&store, clock), clock, hours(1), &seen).await;
    assert_eq!(seen.moments(), ["2026-01-02T16:00:00Z"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_its_server_did_not_finish_is_begun_again_by_the_next() {
    let clock = VirtualClock::new();
    let store = memory(clock);
    let registry = registry(&store, clock);
    let (begun, waiting) = oneshot::channel();
    let mut begun = Some(begun);
    let killed = registry.keep_schedule(pending(), |_| {
        begun.take().unwrap().send(()).unwrap();
        pending::<Result<Synced>>()
    });
    tokio::select! {
        _ = killed => unreachable!(),
        _ = waiting => {}
    }
    let seen = Seen::default();
    keep(&registry, clock, hours(1), &seen).await;
    assert_eq!(seen.moments(), ["2026-01-01T16:00:00Z"]);
    // Once it came to its end, it is not begun again.
    keep(&registry, clock, hours(1), &seen).await;
    assert_eq!(seen.moments().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_comes_to_nothing_is_tried_again_and_not_for_ever() {
    let clock = VirtualClock::new();
    let store = memory(clock);
    let seen = Seen::default();
    let begin = |moment| {
        seen.note(moment, clock.now());
        async { Ok(Synced::Busy { holder: "somebody".to_owned(), since: String::new() }) }
    };
    registry(&store, clock).keep_schedule(sleep(hours(20)), begin).await.unwrap();
    let minutes: Vec<String> = seen.times().iter().map(|time| time[11..16].to_owned()).collect();
    assert_eq!(minutes, ["16:00", "16:01", "16:06", "16:31"]);
    assert!(seen.moments().iter().all(|moment| moment == "2026-01-01T16:00:00Z"));
}

#[tokio::test(start_paused = true)]
async fn the_end_waits_for_the_run_that_is_being_done() {
    let clock = VirtualClock::new();
    let store = memory(clock);
    let seen = Seen::default();
    let begin = |moment| {
        let seen = seen.clone();
        async move {
            sleep(hours(2)).await;
            seen.note(moment, clock.now());
            unchanged()
        }
    };
    registry(&store, clock).keep_schedule(sleep(hours(17)), begin).await.unwrap();
    assert_eq!(seen.moments(), ["2026-01-01T16:00:00Z"]);
}

#[tokio::test(start_paused = true)]
async fn a_row_from_a_clock_that_was_years_ahead_stops_nothing() {
    let clock = VirtualClock::new();
    let store = memory(clock);
    let key = Key::parse("system:registry:policies:schedule").unwrap();
    for row in [
        r#"{"moment":"2039-01-01T16:00:00Z","begunAt":"2039-01-01T16:00:00Z","finished":true}"#,
        r#"{"moment":"soon"}"#,
    ] {
        store.put(key.clone(), Put::new(Json::parse(row).unwrap())).await.unwrap();
        let seen = Seen::default();
        keep(&registry(&store, clock), clock, hours(24), &seen).await;
        assert_eq!(seen.moments().len(), 1, "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_schedule_nothing_begins() {
    let clock = VirtualClock::new();
    let store = memory(clock);
    let settings = r#"{"repository":"nowhere","schedule":"off"}"#;
    let settings: Settings = serde_json::from_str(settings).unwrap();
    let registry = Registry::open("policies", store, settings, "cache".as_ref(), clock).unwrap();
    let seen = Seen::default();
    keep(&registry, clock, hours(100), &seen).await;
    assert_eq!(seen.moments(), [""; 0]);
}
