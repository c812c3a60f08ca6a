//! Unique indexes that another program keeps, with bare ids in their entries.

use keyward_engine::{Put, Store, Tier};
use keyward_memory::Memory;
use keyward_migrate::{Definition, Error, Phase, Preview, State};
use keyward_records::{Caller, Draft, Query, Records};
use keyward_stores::{Place, on_every_engine};
use keyward_testkit::TestClock;

use crate::crashing::crash_everywhere;
use crate::fixture::{
    add, assert_done, assert_well, json, key, migrator, open, operator, put_raw, records, rows,
    scratch,
};

on_every_engine!(
    entries_that_fit_are_rewritten_and_missing_ones_added,
    what_does_not_fit_is_told_and_nothing_is_written,
    what_does_not_fit_is_set_aside_if_that_is_wanted,
    writers_leave_the_entries_of_others_alone_until_they_are_adopted,
    a_value_of_two_records_is_told_whether_or_not_an_entry_is_there,
    entries_are_given_back_if_somebody_gets_in_between,
);

const SCHEMA: &str = r#"
[stores.app]
[spaces.users]
key = "user:{userId}"
ownership = "user"
[spaces.users.value]
type = "object"
[spaces.users.value.properties]
email = { type = "string" }
[spaces.users.indexes.email]
field = "email"
unique = true
scope = "shared"
"#;

/// Users as the other program writes them, each but the last two with an entry.
async fn fill(store: &Store) {
    for n in 0..20 {
        put_raw(store, &format!("user:u{n:02}"), &user(n)).await;
        if n < 18 {
            put_raw(store, &format!("index:email:u{n}@example.org"), &format!("\"u{n:02}\"")).await;
        }
    }
    put_raw(store, "user:nameless", r#"{"name":"has no address","n":1.50}"#).await;
}

fn user(n: usize) -> String {
    format!(r#"{{"name":"U {n}","email":"u{n}@example.org","n":1.50}}"#)
}

/// Everything but what Keyward says of its migrations.
async fn content(records: &Records) -> Vec<(String, String)> {
    let rows = rows(records.store(), "").await;
    rows.into_iter().filter(|(key, _)| !key.starts_with("system:migration")).collect()
}

/// What is planned.
async fn planned(records: &Records, clock: &TestClock) -> Definition {
    let plan = migrator(records, clock).plan().await.unwrap();
    assert_eq!(plan.build.len(), 1);
    let step = plan.build.into_iter().next().unwrap();
    assert_eq!(step.to_string(), "adopt the index email of users");
    step
}

async fn preview(place: &Place, records: &Records, step: &Definition) -> Preview {
    let migrator = migrator(records, place.clock());
    migrator.preview(step, &scratch(place, records)).await.unwrap()
}

/// Whom an address leads to.
async fn found(records: &Records, address: &str) -> Vec<String> {
    let users = records.space("users", &Caller::operator()).unwrap();
    let answer = users.query(&Query::index("email").equal(address)).await.unwrap();
    answer.records.into_iter().map(|record| record.key.to_string()).collect()
}

async fn entries_that_fit_are_rewritten_and_missing_ones_added(place: Place) {
    let records = open(&place, SCHEMA).await;
    fill(records.store()).await;
    let before = content(&records).await;
    let step = planned(&records, place.clock()).await;
    let told = preview(&place, &records, &step).await;
    assert_eq!((told.rows, told.changed, told.problem_count), (21, 18, 0));
    let example = r#"index:email:u0@example.org = "u00" → index:email:u0@example.org = "user:u00""#;
    assert_eq!(format!("{} → {}", told.examples[0].0, told.examples[0].1), example);
    assert_eq!(content(&records).await, before, "a preview writes nothing");

    let done = migrator(&records, place.clock()).run(step, |_| ()).await.unwrap();
    assert_done(&done);
    for n in 0..20 {
        assert_eq!(found(&records, &format!("u{n}@example.org")).await, [format!("user:u{n:02}")]);
    }
    let entries = rows(records.store(), "index:").await;
    assert_eq!(entries.len(), 20);
    assert!(entries.iter().all(|(_, value)| value.starts_with("\"user:u")), "{entries:?}");
    assert_eq!(records.store().get(&key("user:u03")).await.unwrap().unwrap().value, json(&user(3)));
    assert_well(&records).await;
    // It is unique from now on, and planned no more.
    let users = operator(&records, "users");
    let twin = Draft::new(json(r#"{"email":"u1@example.org"}"#));
    let refused = users.put(&key("user:twin"), twin).await.unwrap_err();
    assert!(matches!(refused, keyward_records::Error::UniqueClash { .. }), "{refused}");
    assert!(migrator(&records, place.clock()).plan().await.unwrap().is_empty());
}

/// Two entries that do not fit their record, one of no record, one that is none.
async fn misfit(store: &Store) {
    put_raw(store, "index:email:old@example.org", r#""u03""#).await;
    put_raw(store, "index:email:nobody@example.org", r#""gone""#).await;
    put_raw(store, "index:email:none@example.org", r#"{"id":7}"#).await;
    put_raw(store, "user:u05", r#"{"name":"moved","email":"new@example.org"}"#).await;
}

async fn what_does_not_fit_is_told_and_nothing_is_written(place: Place) {
    let records = open(&place, SCHEMA).await;
    fill(records.store()).await;
    misfit(records.store()).await;
    let before = content(&records).await;
    let step = planned(&records, place.clock()).await;
    let told = preview(&place, &records, &step).await;
    let done = migrator(&records, place.clock()).run(step.clone(), |_| ()).await.unwrap();
    assert_eq!((done.state, done.phase, done.counts.problems), (State::Failed, Phase::End, 4));
    assert_eq!(done.problems, told.problems);
    let named: Vec<String> =
        done.problems.iter().map(|it| format!("{}: {}", it.key, it.message)).collect();
    assert_eq!(
        named,
        [
            "index:email:nobody@example.org: it names user:gone, and there is no such record",
            "index:email:none@example.org: it holds {\"id\":7}, which is no id of a record",
            "index:email:old@example.org: it names user:u03, and that record has another value",
            "index:email:u5@example.org: it names user:u05, and that record has another value",
        ]
    );
    assert_eq!(content(&records).await, before);
    // Nobody builds it meanwhile, and once everything fits, it is adopted.
    assert_eq!(planned(&records, place.clock()).await, step);
    for (at, _) in &before {
        if ["old@", "nobody@", "none@", "u5@"]
            .iter()
            .any(|part| at.contains(&format!("email:{part}")))
        {
            records.store().delete(key(at)).await.unwrap();
        }
    }
    assert_done(&migrator(&records, place.clock()).run(step, |_| ()).await.unwrap());
    assert_eq!(found(&records, "new@example.org").await, ["user:u05"]);
    assert_well(&records).await;
}

async fn what_does_not_fit_is_set_aside_if_that_is_wanted(place: Place) {
    let records = open(&place, SCHEMA).await;
    fill(records.store()).await;
    misfit(records.store()).await;
    put_raw(records.store(), "system:set-aside:index:email:old@example.org", "1").await;
    let step = planned(&records, place.clock()).await.setting_aside();
    let told = preview(&place, &records, &step).await;
    assert_eq!((told.changed, told.problem_count), (21, 0));
    assert_done(&migrator(&records, place.clock()).run(step, |_| ()).await.unwrap());
    let aside = rows(records.store(), "system:set-aside:").await;
    let expected = [
        ("system:set-aside:index:email:nobody@example.org", r#""gone""#),
        ("system:set-aside:index:email:none@example.org", r#"{"id":7}"#),
        ("system:set-aside:index:email:old@example.org", "1"),
        ("system:set-aside:index:email:old@example.org:1", r#""u03""#),
        ("system:set-aside:index:email:u5@example.org", r#""u05""#),
    ];
    assert_eq!(aside, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    assert_eq!(found(&records, "new@example.org").await, ["user:u05"]);
    assert_eq!(rows(records.store(), "index:").await.len(), 20);
    assert_well(&records).await;
}

async fn writers_leave_the_entries_of_others_alone_until_they_are_adopted(place: Place) {
    let records = open(&place, SCHEMA).await;
    fill(records.store()).await;
    let users = operator(&records, "users");
    let new = Draft::new(json(r#"{"email":"new@example.org"}"#));
    assert!(users.put(&key("user:new"), new).await.unwrap().is_accepted());
    let entries = rows(records.store(), "index:").await;
    assert_eq!(entries.len(), 18);
    assert!(entries.iter().all(|(_, value)| value.starts_with("\"u")), "{entries:?}");
    let asked = users.query(&Query::index("email").equal("u1@example.org")).await;
    assert!(matches!(asked, Err(keyward_records::Error::IndexNotReady { .. })), "{asked:?}");
    let step = planned(&records, place.clock()).await;
    assert_done(&migrator(&records, place.clock()).run(step, |_| ()).await.unwrap());
    assert_eq!(found(&records, "new@example.org").await, ["user:new"]);
    assert_well(&records).await;
}

async fn a_value_of_two_records_is_told_whether_or_not_an_entry_is_there(place: Place) {
    let records = open(&place, SCHEMA).await;
    fill(records.store()).await;
    for (at, address) in [("user:v1", "u1"), ("user:w1", "w"), ("user:w2", "w")] {
        put_raw(records.store(), at, &format!(r#"{{"email":"{address}@example.org"}}"#)).await;
    }
    let before = content(&records).await;
    // Moving entries aside decides nothing here.
    let step = planned(&records, place.clock()).await.setting_aside();
    assert_eq!(preview(&place, &records, &step).await.problem_count, 2);
    let done = migrator(&records, place.clock()).run(step, |_| ()).await.unwrap();
    assert_eq!(done.state, State::Failed);
    let named: Vec<String> =
        done.problems.iter().map(|it| format!("{}: {}", it.key, it.message)).collect();
    assert_eq!(
        named,
        [
            "user:v1: it has the value of index:email:u1@example.org, which is that of user:u01",
            "user:w2: it has the value of index:email:w@example.org, which is that of user:w1",
        ]
    );
    assert_eq!(content(&records).await, before);
}

async fn entries_are_given_back_if_somebody_gets_in_between(place: Place) {
    let records = open(&place, SCHEMA).await;
    fill(records.store()).await;
    let before = rows(records.store(), "index:").await;
    let step = planned(&records, place.clock()).await;
    // The other program still writes, and adds an entry of nobody when all were compared.
    let late = key("index:email:late@example.org");
    let (other, writing) = (place.store().await, tokio::runtime::Handle::current());
    let mut walked = false;
    let done = migrator(&records, place.clock())
        .run(step, |migration| {
            if migration.phase == Phase::Walk && !std::mem::replace(&mut walked, true) {
                let put = other.put(late.clone(), Put::new(json(r#""ghost""#)));
                tokio::task::block_in_place(|| writing.block_on(put)).unwrap();
            }
        })
        .await
        .unwrap();
    assert_eq!(
        (done.state, done.problems[0].key.as_str()),
        (State::Failed, "index:email:late@example.org")
    );
    let mut expected = before;
    for (n, at) in [(18, "u18"), (19, "u19")] {
        // These had none, and have one now, as the other program would have written it.
        expected.push((format!("index:email:{at}@example.org"), format!("\"u{n}\"")));
    }
    expected.push((late.to_string(), r#""ghost""#.to_owned()));
    expected.sort();
    let mut entries = rows(records.store(), "index:").await;
    entries.sort();
    assert_eq!(entries, expected);
    assert!(!records.catalog().await.unwrap().indexes.contains_key("email"));
    records.store().delete(late).await.unwrap();
    let step = planned(&records, place.clock()).await;
    assert_done(&migrator(&records, place.clock()).run(step, |_| ()).await.unwrap());
    assert_well(&records).await;
}

#[tokio::test]
async fn an_index_is_adopted_in_the_end_wherever_adopting_it_crashed() {
    crash_everywhere(
        Tier::Atomic,
        [SCHEMA.to_owned(), SCHEMA.to_owned()],
        async |records| fill(records.store()).await,
        async |records, clock| {
            migrator(records, clock).run(add(records, "users", "email"), |_| ()).await
        },
    )
    .await;
}

#[tokio::test]
async fn nothing_is_lost_wherever_setting_aside_crashed() {
    crash_everywhere(
        Tier::Atomic,
        [SCHEMA.to_owned(), SCHEMA.to_owned()],
        async |records| {
            fill(records.store()).await;
            misfit(records.store()).await;
        },
        async |records, clock| {
            let Definition::AddIndex { space, index } = add(records, "users", "email") else {
                panic!("it is an index to add");
            };
            let step = Definition::AdoptIndex { space, index, set_aside: true };
            migrator(records, clock).run(step, |_| ()).await
        },
    )
    .await;
}

#[tokio::test]
async fn where_commits_take_one_key_adopting_is_refused_and_nothing_is_written() {
    let clock = TestClock::new();
    let options = keyward_memory::Options::tier(Tier::Recoverable);
    let store = Store::new(Memory::with(options, clock.clone()));
    fill(&store).await;
    let records = records(store, &clock, SCHEMA);
    let step = planned(&records, &clock).await;
    let before = rows(records.store(), "").await;
    let refused = migrator(&records, &clock).run(step, |_| ()).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(_)), "{refused}");
    assert!(refused.to_string().contains("copy the store"), "{refused}");
    assert_eq!(rows(records.store(), "").await, before);
}
