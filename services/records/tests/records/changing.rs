//! Putting, merging, updating, deleting.

use keyward_engine::{Code, Coded};
use keyward_records::{Caller, Draft, Error, Merge, Operation, Precondition, Written};
use keyward_stores::{Place, on_databases, on_engines, on_every_engine};

use crate::fixture::{Fixture, draft, json, own, put};

on_every_engine!(a_batch_is_all_or_nothing, a_unique_value_changes_hands_in_one_commit);
on_databases!(a_batch_is_all_or_nothing, a_unique_value_changes_hands_in_one_commit);

mod single {
    use super::*;

    on_engines!(
        memory: Memory, embedded: Embedded, postgres: Postgres, recoverable: Recoverable,
        cloudflare_kv: CloudflareKv, couchdb: CouchDb, dynamodb: DynamoDb, firestore: Firestore,
        forge_entity: ForgeEntity, forge_kvs: ForgeKvs;
        a_record_is_what_was_put,
        a_precondition_decides,
        an_update_keeps_metadata_and_runs_again_after_a_race,
        a_unique_value_has_one_holder,
    );
}

async fn a_record_is_what_was_put(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.space("notes", "ada");
    let key = own(&notes, "n1");
    assert_eq!(notes.get(&key).await.unwrap(), None);
    let value = r#"{"title":"one","n":12345678901234567890.10}"#;
    let metadata = json(r#"{"by":"me"}"#);
    let written = notes.put(&key, draft(value).with_metadata(metadata.clone())).await.unwrap();
    let record = notes.get(&key).await.unwrap().unwrap();
    assert_eq!(record.value.as_str(), value);
    assert_eq!(record.metadata, Some(metadata));
    assert_eq!(written, Written::Applied { version: record.version.clone(), created: true });
    assert_eq!(notes.delete(&key, Precondition::Any).await.unwrap(), Written::Removed);
    let nothing = Written::Unchanged { version: None };
    assert_eq!(notes.delete(&key, Precondition::Any).await.unwrap(), nothing);
    assert_eq!(notes.get_many(&[key]).await.unwrap(), [None]);
}

async fn a_precondition_decides(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.space("notes", "ada");
    let key = own(&notes, "n1");
    let present = draft(r#"{"title":"x"}"#).expecting(Precondition::Present);
    let refused = Written::Conflicted { current: None };
    assert_eq!(notes.put(&key, present.clone()).await.unwrap(), refused);
    let version = put(&notes, "n1", r#"{"title":"a"}"#).await;
    let created = notes.create(&key, draft(r#"{"title":"b"}"#)).await.unwrap();
    assert_eq!(created, Written::Conflicted { current: Some(version.clone()) });
    let on = |version| draft(r#"{"title":"c"}"#).expecting(Precondition::Version(version));
    assert!(notes.put(&key, on(version.clone())).await.unwrap().is_accepted());
    assert!(!notes.put(&key, on(version.clone())).await.unwrap().is_accepted());
    assert!(!notes.delete(&key, Precondition::Version(version)).await.unwrap().is_accepted());
    assert!(notes.put(&key, present).await.unwrap().is_accepted());
}

async fn a_batch_is_all_or_nothing(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.space("notes", "ada");
    put(&notes, "n1", r#"{"title":"a"}"#).await;
    let operations = |expect: Precondition| {
        vec![
            Operation::Put(own(&notes, "n2"), draft(r#"{"title":"b"}"#)),
            Operation::Merge(own(&notes, "n1"), Merge::new(json(r#"{"votes":1}"#)), expect),
        ]
    };
    let written = notes.together(operations(Precondition::Absent)).await.unwrap();
    assert!(written[0].is_accepted() && !written[1].is_accepted());
    assert_eq!(notes.get(&own(&notes, "n2")).await.unwrap(), None);
    notes.together(operations(Precondition::Present)).await.unwrap();
    let merged = notes.get(&own(&notes, "n1")).await.unwrap().unwrap();
    assert_eq!(merged.value.as_str(), r#"{"title":"a","votes":1}"#);
    let twice = vec![
        Operation::Delete(own(&notes, "n1"), Precondition::Any),
        Operation::Delete(own(&notes, "n1"), Precondition::Any),
    ];
    assert_eq!(notes.together(twice).await.unwrap_err().code(), Code::BadChange);
}

async fn an_update_keeps_metadata_and_runs_again_after_a_race(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.space("notes", "ada");
    let key = own(&notes, "n1");
    let first = draft(r#"{"title":"a","votes":0}"#).with_metadata(json(r#"{"by":"me"}"#));
    assert!(notes.put(&key, first).await.unwrap().is_accepted());
    let adders = (0..8).map(|_| {
        let (notes, key) = (notes.clone(), key.clone());
        tokio::spawn(async move {
            for _ in 0..5 {
                let written = notes
                    .update(&key, |record| {
                        let text = record.unwrap().value.to_string();
                        let votes = text.rsplit(':').next().unwrap().trim_end_matches('}');
                        let votes: u32 = votes.parse().unwrap();
                        let text = format!(r#"{{"title":"a","votes":{}}}"#, votes + 1);
                        Ok(Some(json(&text)))
                    })
                    .await;
                assert!(written.unwrap().is_accepted());
            }
        })
    });
    for adder in adders.collect::<Vec<_>>() {
        adder.await.unwrap();
    }
    let record = notes.get(&key).await.unwrap().unwrap();
    assert_eq!(record.value.as_str(), r#"{"title":"a","votes":40}"#);
    assert_eq!(record.metadata, Some(json(r#"{"by":"me"}"#)));
}

async fn a_unique_value_has_one_holder(place: Place) {
    let fixture = Fixture::new(place).await;
    let people = |user: &str| fixture.space("people", user);
    let me = |user: &str| people(user).key(keyward_key::Bindings::new()).unwrap();
    let with = |email: &str| Draft::new(json(&format!(r#"{{"email":{email:?}}}"#)));
    assert!(people("ada").put(&me("ada"), with("Ada@example.org")).await.unwrap().is_accepted());
    let clash = people("bob").put(&me("bob"), with("ada@EXAMPLE.org")).await.unwrap_err();
    let Error::UniqueClash { index, holder, .. } = clash else { panic!("{clash}") };
    assert_eq!((index.as_str(), holder), ("email", None));
    let operator = fixture.records.space("people", &Caller::operator()).unwrap();
    let clash = operator.put(&me("bob"), with("ada@example.org")).await.unwrap_err();
    let Error::UniqueClash { holder, .. } = clash else { panic!("{clash}") };
    assert_eq!(holder, Some(me("ada")));
    // A change of address frees the old one, in the same moment.
    assert!(
        people("ada").put(&me("ada"), with("countess@example.org")).await.unwrap().is_accepted()
    );
    assert!(people("bob").put(&me("bob"), with("ada@example.org")).await.unwrap().is_accepted());
    assert!(people("bob").delete(&me("bob"), Precondition::Any).await.unwrap().is_accepted());
    let bob = people("bob").put(&me("bob"), with("ada@example.org")).await.unwrap();
    assert!(bob.is_accepted());
}

async fn a_unique_value_changes_hands_in_one_commit(place: Place) {
    let fixture = Fixture::new(place).await;
    let operator = fixture.records.space("people", &Caller::operator()).unwrap();
    let put = |user: &str, email: &str| {
        let value = json(&format!(r#"{{"email":{email:?}}}"#));
        Operation::Put(crate::fixture::key(&format!("user:{user}")), Draft::new(value))
    };
    let both = |ada: &str, bob: &str| operator.together(vec![put("ada", ada), put("bob", bob)]);
    assert!(both("a@x", "b@x").await.unwrap().iter().all(Written::is_accepted));
    assert!(both("b@x", "a@x").await.unwrap().iter().all(Written::is_accepted));
    let clash = both("c@x", "c@x").await.unwrap_err();
    assert_eq!(clash.code(), Code::UniqueClash);
    let found = operator.query(&keyward_records::Query::index("email").equal("a@x")).await.unwrap();
    assert_eq!(crate::fixture::ids(&found.records), ["bob"]);
}
