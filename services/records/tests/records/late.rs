//! Where reads are late.

use keyward_records::Query;
use keyward_stores::{Kind, Place};

use crate::fixture::{Fixture, all, put};

/// The second space is first written before anybody can read what the first one left in the catalog.
#[tokio::test]
async fn spaces_first_written_within_the_lag_all_have_their_indexes() {
    let fixture = Fixture::new(Place::new(Kind::Advisory)).await;
    let (notes, sessions) = (fixture.space("notes", "ada"), fixture.space("sessions", "ada"));
    put(&notes, "n", r#"{"title":"t"}"#).await;
    put(&sessions, "s", r#"{"device":"d"}"#).await;
    fixture.place.clock().advance(std::time::Duration::from_secs(10));
    for records in [fixture.records.clone(), fixture.again().await] {
        let notes = records.space("notes", notes.caller()).unwrap();
        let sessions = records.space("sessions", sessions.caller()).unwrap();
        assert_eq!(all(&notes, Query::index("by_title")).await, ["n"]);
        assert_eq!(all(&sessions, Query::index("by_device")).await, ["s"]);
    }
}
