//! Records that end.

use std::time::Duration;

use keyward_engine::{Code, Coded};
use keyward_records::{Query, Ttl};
use keyward_stores::{Place, on_engines};

use crate::fixture::{Fixture, all, draft, own, put};

// PostgreSQL goes by its own clock, which no test can move.
on_engines!(
    memory: Memory, embedded: Embedded, recoverable: Recoverable;
    a_record_ends_with_its_entries,
    reading_prolongs_a_life_past_its_half,
    a_life_of_ones_own,
);

const MINUTE: Duration = Duration::from_secs(60);

async fn a_record_ends_with_its_entries(place: Place) {
    let fixture = Fixture::new(place).await;
    let sessions = fixture.space("sessions", "ada");
    put(&sessions, "s1", r#"{"device":"phone"}"#).await;
    assert_eq!(all(&sessions, Query::index("by_device")).await, ["s1"]);
    fixture.place.clock().advance(61 * MINUTE);
    assert!(all(&sessions, Query::index("by_device")).await.is_empty());
    assert_eq!(sessions.get(&own(&sessions, "s1")).await.unwrap(), None);
    put(&sessions, "s1", r#"{"device":"laptop"}"#).await;
    assert_eq!(all(&sessions, Query::index("by_device")).await, ["s1"]);
}

async fn reading_prolongs_a_life_past_its_half(place: Place) {
    let fixture = Fixture::new(place).await;
    let sessions = fixture.space("sessions", "ada");
    put(&sessions, "s1", r#"{"device":"phone"}"#).await;
    let key = own(&sessions, "s1");
    let first = sessions.get(&key).await.unwrap().unwrap();
    fixture.place.clock().advance(29 * MINUTE);
    // Before half of its life, a read writes nothing.
    assert_eq!(sessions.get(&key).await.unwrap().unwrap(), first);
    fixture.place.clock().advance(2 * MINUTE);
    assert!(sessions.get(&key).await.unwrap().is_some());
    for _ in 0..5 {
        fixture.place.clock().advance(40 * MINUTE);
        let record = sessions.get(&key).await.unwrap().unwrap();
        assert!(record.expires > first.expires);
        assert_eq!(all(&sessions, Query::index("by_device")).await, ["s1"]);
    }
    fixture.place.clock().advance(61 * MINUTE);
    assert_eq!(sessions.get(&key).await.unwrap(), None);
}

async fn a_life_of_ones_own(place: Place) {
    let fixture = Fixture::new(place).await;
    let sessions = fixture.space("sessions", "ada");
    let key = own(&sessions, "s1");
    let short = draft(r#"{"device":"tv"}"#).ttl(Ttl::After(10 * MINUTE));
    assert!(sessions.put(&key, short).await.unwrap().is_accepted());
    fixture.place.clock().advance(6 * MINUTE);
    // Prolonged by what was asked for, not by what the space says.
    assert!(sessions.get(&key).await.unwrap().is_some());
    fixture.place.clock().advance(9 * MINUTE);
    assert!(sessions.get(&key).await.unwrap().is_some());
    fixture.place.clock().advance(11 * MINUTE);
    assert!(sessions.get(&key).await.unwrap().is_none());
    let ever = draft(r#"{"device":"tv"}"#).ttl(Ttl::Never);
    assert!(sessions.put(&key, ever).await.unwrap().is_accepted());
    // Longer than entries outlive their records anywhere.
    fixture.place.clock().advance(6_000 * MINUTE);
    assert!(sessions.get(&key).await.unwrap().is_some());
    assert_eq!(all(&sessions, Query::index("by_device")).await, ["s1"]);
    let never = sessions.put(&key, draft("{}").ttl(Ttl::After(Duration::ZERO))).await;
    assert_eq!(never.unwrap_err().code(), Code::Invalid);
}
