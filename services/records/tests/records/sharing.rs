//! Who sees what: owners, everybody, and what owners share.

use keyward_engine::{Code, Coded, Tier};
use keyward_records::{Caller, Filter, Merge, Precondition, Query, Record};
use keyward_stores::{Place, on_engines};

use crate::declared::{memory, open};
use crate::fixture::{Fixture, all, draft, ids, json, key, own, put};

on_engines!(
    memory: Memory, embedded: Embedded, postgres: Postgres, recoverable: Recoverable,
    advisory: Advisory;
    a_users_records_are_theirs_alone,
    what_is_shared_is_found_by_everybody_and_no_more_than_that,
    what_no_shared_index_finds_is_not_there_for_others,
    a_role_is_needed_where_one_is_asked_for,
);

async fn a_users_records_are_theirs_alone(place: Place) {
    let fixture = Fixture::new(place).await;
    let (ada, bob) = (fixture.space("notes", "ada"), fixture.space("notes", "bob"));
    put(&ada, "n1", r#"{"title":"mine"}"#).await;
    let foreign = own(&ada, "n1");
    assert_eq!(bob.get(&foreign).await.unwrap_err().code(), Code::Forbidden);
    assert_eq!(
        bob.put(&foreign, draft(r#"{"title":"x"}"#)).await.unwrap_err().code(),
        Code::Forbidden
    );
    let nobody = fixture.records.space("notes", &Caller::anonymous()).unwrap();
    assert_eq!(nobody.get(&foreign).await.unwrap_err().code(), Code::Forbidden);
    let query = Query::index("by_title").owner("ada");
    assert_eq!(bob.query(&query).await.unwrap_err().code(), Code::Forbidden);
    let operator = fixture.records.space("notes", &Caller::operator()).unwrap();
    fixture.place.clock().advance(std::time::Duration::from_secs(2));
    assert_eq!(ids(&operator.query(&query).await.unwrap().records), ["n1"]);
    assert_eq!(bob.get(&key("system:catalog")).await.unwrap_err().code(), Code::KeyMismatch);
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
    // What can be found can be read, as far as it is shared; by those without a name too.
    let nobody = fixture.records.space("posts", &Caller::anonymous()).unwrap();
    for reader in [&bob, &nobody] {
        assert_eq!(reader.get(&seen.key).await.unwrap().as_ref(), Some(seen));
        let keys = [seen.key.clone(), own(&ada, "none")];
        assert_eq!(reader.get_many(&keys).await.unwrap(), [Some(seen.clone()), None]);
    }
    assert_eq!(ada.get(&seen.key).await.unwrap().unwrap().value.as_str(), post);
    let values = keyward_key::Bindings::new().with("user", "ada").with("post", "p1");
    assert_eq!(bob.key(values.clone()).unwrap(), seen.key);
    let strangers = fixture.space("notes", "bob").key(values.with("note", "n1"));
    assert!(strangers.is_err(), "another user's key of a space that is not shared");
    // Whoever shows records as they are stored, and whoever asks for the past, is refused.
    assert_eq!(bob.admit_read(&seen.key).unwrap_err().code(), Code::Forbidden);
    assert_eq!(bob.history(&seen.key, None, 1).await.unwrap_err().code(), Code::Forbidden);
    let touch = bob.update(&seen.key, |_| Ok(None)).await;
    assert_eq!(touch.unwrap_err().code(), Code::Forbidden);
    // What is not shared cannot be asked for either.
    let asking = Filter::parse(r#"{"draft":{"exists":true}}"#).unwrap();
    let query = Query::index("recent").filter(asking);
    assert!(bob.query(&query).await.unwrap().records.is_empty());
    assert_eq!(ids(&ada.query(&query).await.unwrap().records), ["p1"]);
    assert_eq!(ada.query(&query).await.unwrap().records[0].value.as_str(), post);
}

async fn what_no_shared_index_finds_is_not_there_for_others(place: Place) {
    let fixture = Fixture::new(place).await;
    let (ada, bob) = (fixture.space("posts", "ada"), fixture.space("posts", "bob"));
    put(&ada, "p1", r#"{"text":"not published"}"#).await;
    put(&ada, "p2", r#"{"text":"no tags","tags":[]}"#).await;
    fixture.place.clock().advance(std::time::Duration::from_secs(2));
    for id in ["p1", "p2", "none"] {
        assert_eq!(bob.get(&own(&ada, id)).await.unwrap(), None, "{id}");
        assert_eq!(bob.get_many(&[own(&ada, id)]).await.unwrap(), [None], "{id}");
    }
    assert!(ada.get(&own(&ada, "p1")).await.unwrap().is_some());
}

async fn a_role_is_needed_where_one_is_asked_for(place: Place) {
    let fixture = Fixture::new(place).await;
    let reader = fixture.space("templates", "ada");
    let template = key("shared:templates:welcome");
    let refused = reader.put(&template, draft("1")).await.unwrap_err();
    assert_eq!(refused.code(), Code::Forbidden);
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
    assert_eq!(writer.get(&id).await.unwrap_err().code(), Code::Forbidden);
    let mut shown = None;
    let mut show = |record: Option<&Record>| {
        shown = record.cloned();
        Ok(None)
    };
    assert_eq!(writer.update(&id, &mut show).await.unwrap_err().code(), Code::Forbidden);
    assert!(both.update(&id, &mut show).await.unwrap().is_accepted());
    assert_eq!(shown.unwrap().value.as_str(), r#"{"a":1,"b":2}"#);
}

const LETTERS: &str = r#"
[stores.app]
[spaces.letters]
key = "user:{user}:letters:{id}"
ownership = "hybrid"
share = ["to"]
read_roles = ["reader"]
ttl = "1h"
sliding = true
[spaces.letters.indexes.to]
field = "to"
type = "text"
scope = "owner"
"#;

#[tokio::test]
async fn without_a_shared_index_or_a_role_nothing_of_others_is_read() {
    let (memory, clock) = memory(Tier::Atomic);
    let id = key("user:ada:letters:1");
    let read = async |schema: &str, caller: Caller| {
        open(&memory, &clock, schema).space("letters", &caller).unwrap().get(&id).await
    };
    let ada = Caller::user("ada").with_role("reader");
    let bob = Caller::user("bob").with_role("reader");
    let shared = LETTERS.replace("scope = \"owner\"", "scope = \"shared\"");
    let letters = open(&memory, &clock, &shared).space("letters", &ada).unwrap();
    let letter = draft(r#"{"to":"bob","text":"secret"}"#);
    assert!(letters.put(&id, letter).await.unwrap().is_accepted());
    assert_eq!(read(LETTERS, bob.clone()).await.unwrap_err().code(), Code::Forbidden);
    assert_eq!(read(&shared, Caller::user("bob")).await.unwrap_err().code(), Code::Forbidden);
    // Others who read it do not prolong its life.
    clock.advance(std::time::Duration::from_secs(3_000));
    let seen = read(&shared, bob).await.unwrap().unwrap();
    assert_eq!(seen.value.as_str(), r#"{"to":"bob"}"#);
    clock.advance(std::time::Duration::from_secs(700));
    assert_eq!(read(&shared, ada).await.unwrap(), None);
}
