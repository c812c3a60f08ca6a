//! Who sees what: owners, everybody, and what owners share.

use keyward_engine::Tier;
use keyward_records::{Caller, Filter, Merge, Precondition, Query, Record};
use keyward_stores::{Place, on_engines};

use crate::declared::{memory, open};
use crate::fixture::{Fixture, all, draft, ids, json, key, own, put};

on_engines!(
    memory: Memory, embedded: Embedded, postgres: Postgres, recoverable: Recoverable,
    advisory: Advisory;
    a_users_records_are_theirs_alone,
    what_is_shared_is_found_by_everybody_and_no_more_than_that,
    a_role_is_needed_where_one_is_asked_for,
);

async fn a_users_records_are_theirs_alone(place: Place) {
    let fixture = Fixture::new(place).await;
    let (ada, bob) = (fixture.space("notes", "ada"), fixture.space("notes", "bob"));
    put(&ada, "n1", r#"{"title":"mine"}"#).await;
    let foreign = own(&ada, "n1");
    assert_eq!(bob.get(&foreign).await.unwrap_err().code(), "forbidden");
    assert_eq!(bob.put(&foreign, draft(r#"{"title":"x"}"#)).await.unwrap_err().code(), "forbidden");
    let nobody = fixture.records.space("notes", &Caller::anonymous()).unwrap();
    assert_eq!(nobody.get(&foreign).await.unwrap_err().code(), "forbidden");
    let query = Query::index("by_title").owner("ada");
    assert_eq!(bob.query(&query).await.unwrap_err().code(), "forbidden");
    let operator = fixture.records.space("notes", &Caller::operator()).unwrap();
    fixture.place.clock().advance(std::time::Duration::from_secs(2));
    assert_eq!(ids(&operator.query(&query).await.unwrap().records), ["n1"]);
    assert_eq!(bob.get(&key("system:catalog")).await.unwrap_err().code(), "key-mismatch");
}

async fn what_is_shared_is_found_by_everybody_and_no_more_than_that(place: Place) {
    let fixture = Fixture::new(place).await;
    let (ada, bob) = (fixture.space("posts", "ada"), fixture.space("posts", "bob"));
    let post = r#"{"text":"hi","draft":"secret","tags":["rust"],"at":"2026-01-01T00:00:00Z"}"#;
    let metadata = json(r#"{"ip":"secret"}"#);
    let written = ada.put(&own(&ada, "p1"), draft(post).with_metadata(metadata)).await.unwrap();
    assert!(written.is_accepted());
    put(&bob, "p2", r#"{"text":"yo","tags":["rust"],"at":"2026-01-02T00:00:00Z"}"#).await;
    // Where reads are late, they are so by a second.
    fixture.place.clock().advance(std::time::Duration::from_secs(2));
    assert_eq!(all(&bob, Query::index("recent").descending()).await, ["p2", "p1"]);
    let found = bob.query(&Query::index("posts_by_tag").equal("rust")).await.unwrap();
    assert_eq!(ids(&found.records), ["p1", "p2"]);
    let seen = &found.records[0];
    assert_eq!(seen.value.as_str(), r#"{"text":"hi","tags":["rust"],"at":"2026-01-01T00:00:00Z"}"#);
    assert_eq!(seen.metadata, None);
    assert_eq!(bob.get(&seen.key).await.unwrap_err().code(), "forbidden");
    // What is not shared cannot be asked for either.
    let asking = Filter::parse(r#"{"draft":{"exists":true}}"#).unwrap();
    let query = Query::index("recent").filter(asking);
    assert!(bob.query(&query).await.unwrap().records.is_empty());
    assert_eq!(ids(&ada.query(&query).await.unwrap().records), ["p1"]);
    assert_eq!(ada.query(&query).await.unwrap().records[0].value.as_str(), post);
}

async fn a_role_is_needed_where_one_is_asked_for(place: Place) {
    let fixture = Fixture::new(place).await;
    let reader = fixture.space("templates", "ada");
    let template = key("shared:templates:welcome");
    let refused = reader.put(&template, draft("1")).await.unwrap_err();
    assert_eq!(refused.code(), "forbidden");
    assert!(refused.to_string().contains("editor"), "{refused}");
    let editor = Caller::user("bob").with_role("editor");
    let editor = fixture.records.space("templates", &editor).unwrap();
    assert!(editor.put(&template, draft("1")).await.unwrap().is_accepted());
    fixture.place.clock().advance(std::time::Duration::from_secs(2));
    assert_eq!(reader.get(&template).await.unwrap().unwrap().value.as_str(), "1");
}

const BOX: &str = r#"
[stores.app]
[spaces.box]
key = "shared:box:{id}"
ownership = "shared"
read_roles = ["reader"]
write_roles = ["writer"]
"#;

#[tokio::test]
async fn who_may_only_write_is_not_shown_what_is_there() {
    let (memory, clock) = memory(Tier::Atomic);
    let records = open(&memory, &clock, BOX);
    let writer = Caller::user("bob").with_role("writer");
    let both = records.space("box", &writer.clone().with_role("reader")).unwrap();
    let writer = records.space("box", &writer).unwrap();
    let id = key("shared:box:1");
    assert!(writer.put(&id, draft(r#"{"a":1}"#)).await.unwrap().is_accepted());
    let part = Merge::new(json(r#"{"b":2}"#));
    assert!(writer.merge(&id, part, Precondition::Any).await.unwrap().is_accepted());
    assert_eq!(writer.get(&id).await.unwrap_err().code(), "forbidden");
    let mut shown = None;
    let mut show = |record: Option<&Record>| {
        shown = record.cloned();
        Ok(None)
    };
    assert_eq!(writer.update(&id, &mut show).await.unwrap_err().code(), "forbidden");
    assert!(both.update(&id, &mut show).await.unwrap().is_accepted());
    assert_eq!(shown.unwrap().value.as_str(), r#"{"a":1,"b":2}"#);
}
