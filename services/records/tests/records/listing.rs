//! Keys by levels, and what is done to all of them.

use keyward_key::Bindings;
use keyward_records::{ListedItem, Listing, Query, Space};
use keyward_stores::{Place, on_engines};

use crate::fixture::{Fixture, all, key, put};

on_engines!(
    memory: Memory, embedded: Embedded, postgres: Postgres, recoverable: Recoverable;
    a_listing_shows_the_callers_keys_and_no_others,
    everything_below_a_prefix_is_deleted_also_past_one_page,
);

async fn listed(space: &Space, listing: Listing) -> Vec<String> {
    let mut listing = listing;
    let mut found = Vec::new();
    loop {
        let page = space.list(&listing).await.unwrap();
        found.extend(page.items.into_iter().map(|item| match item {
            ListedItem::Key(key) => key.to_string(),
            ListedItem::Prefix(prefix) => prefix.to_string(),
        }));
        match page.next {
            Some(next) => listing = listing.after(Some(next)),
            None => return found,
        }
    }
}

async fn a_listing_shows_the_callers_keys_and_no_others(place: Place) {
    let fixture = Fixture::new(place).await;
    for user in ["7", "70", "8"] {
        let notes = fixture.space("notes", user);
        put(&notes, "n1", r#"{"title":"a"}"#).await;
        put(&notes, "n2", r#"{"title":"b"}"#).await;
        let people = fixture.space("people", user);
        let me = people.key(Bindings::new()).unwrap();
        let value = crate::fixture::draft(&format!(r#"{{"email":"{user}@x"}}"#));
        assert!(people.put(&me, value).await.unwrap().is_accepted());
    }
    let none = Bindings::new;
    for limit in [1, 100] {
        let own = listed(&fixture.space("notes", "7"), Listing::new(none()).limit(limit)).await;
        assert_eq!(own, ["user:7:notes:n1", "user:7:notes:n2"]);
        let me = listed(&fixture.space("people", "7"), Listing::new(none()).limit(limit)).await;
        assert_eq!(me, ["user:7"]);
        let operator = keyward_records::Caller::operator();
        let notes = fixture.records.space("notes", &operator).unwrap();
        let users = listed(&notes, Listing::new(none()).depth(1).limit(limit)).await;
        assert_eq!(users, ["user:7:", "user:70:", "user:8:"]);
        let down = listed(&notes, Listing::new(none()).depth(1).limit(limit).descending()).await;
        assert_eq!(down, ["user:8:", "user:70:", "user:7:"]);
        let people = fixture.records.space("people", &operator).unwrap();
        let all = listed(&people, Listing::new(none()).limit(limit)).await;
        assert_eq!(all, ["user:7", "user:70", "user:8"]);
    }
}

async fn everything_below_a_prefix_is_deleted_also_past_one_page(place: Place) {
    let fixture = Fixture::new(place).await;
    let (ada, bob) = (fixture.space("notes", "ada"), fixture.space("notes", "bob"));
    for n in 0..230 {
        put(&ada, &format!("n{n}"), &format!(r#"{{"title":"t{n}","tags":["x"]}}"#)).await;
    }
    put(&bob, "n1", r#"{"title":"t"}"#).await;
    assert_eq!(ada.delete_prefix(Bindings::new()).await.unwrap(), 230);
    assert!(all(&ada, Query::index("by_tag")).await.is_empty());
    assert_eq!(all(&bob, Query::index("by_title")).await, ["n1"]);
    let left = fixture.store().get(&key("user:bob:notes:n1")).await.unwrap();
    assert!(left.is_some());
}
