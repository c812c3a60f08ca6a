//! What a schema declares, with its stores.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod coordinators;
mod doctoring;
mod riding;
mod rules;
mod urls;

use std::path::Path;

use keyward::records::{Caller, Draft, Error};
use keyward::schema::Schema;
use keyward::{Bindings, Code, Coded, Data, ErrorKind, Json};

const SCHEMA: &str = r#"
[stores.near]
url = "embedded:./near"
[stores.far]
url = "postgres://nobody@127.0.0.1:1/none"
[stores.somewhere]

[spaces.notes]
store = "near"
key = "user:{user}:notes:{note}"
ownership = "user"
[spaces.orders]
store = "far"
key = "order:{order}"
ownership = "shared"
[spaces.tasks]
store = "somewhere"
key = "task:{task}"
ownership = "shared"
"#;

fn schema_in(folder: &Path) -> Data {
    std::fs::write(folder.join("schema.toml"), SCHEMA).unwrap();
    Data::load(&folder.join("schema.toml")).unwrap()
}

fn kind(error: &Error) -> Option<ErrorKind> {
    match error {
        Error::Store(error) => Some(error.kind()),
        _ => None,
    }
}

#[tokio::test]
async fn a_space_needs_no_store_but_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let data = schema_in(folder.path());
    let ada = Caller::user("ada");
    let notes = data.space("notes", &ada).await.unwrap();
    let key = notes.key(Bindings::new().with("note", "n1")).unwrap();
    let written = notes.put(&key, Draft::new(Json::from_integer(1))).await.unwrap();
    assert!(written.is_accepted());
    // Beside the schema file, wherever the program runs.
    assert!(folder.path().join("near").exists());
    // The store stays open, and another handle sees the same.
    let again = data.clone().existing_space("notes", &ada).await.unwrap().unwrap();
    assert_eq!(again.get(&key).await.unwrap().unwrap().value, Json::from_integer(1));
    assert_eq!(kind(&data.space("orders", &ada).await.unwrap_err()), Some(ErrorKind::Unavailable));
}

#[tokio::test]
async fn reading_makes_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let data = schema_in(folder.path());
    assert!(data.existing_space("notes", &Caller::operator()).await.unwrap().is_none());
    assert!(data.existing_records("near").await.unwrap().is_none());
    assert!(!folder.path().join("near").exists());
}

#[tokio::test]
async fn a_store_can_be_in_another_place_than_the_schema_says() {
    let data = Data::new(Schema::parse(SCHEMA, "schema.toml").unwrap());
    let operator = Caller::operator();
    let nowhere = data.space("tasks", &operator).await.unwrap_err();
    assert_eq!(nowhere.to_string(), "the schema does not say where the store somewhere is");
    let data = data.at("somewhere", "memory:").unwrap();
    assert_eq!(data.url("somewhere").unwrap(), "memory:");
    let tasks = data.space("tasks", &operator).await.unwrap();
    let key = tasks.key(Bindings::new().with("task", "t1")).unwrap();
    assert!(tasks.put(&key, Draft::new(Json::from_integer(1))).await.unwrap().is_accepted());
    // One place in memory, not one for each who asks.
    let again = data.space("tasks", &operator).await.unwrap();
    assert!(again.get(&key).await.unwrap().is_some());

    let unknown = data.at("elsewhere", "memory:").unwrap_err();
    assert_eq!(kind(&unknown), Some(ErrorKind::Invalid));
    assert!(unknown.to_string().contains("it declares far, near, somewhere"), "{unknown}");
}

#[tokio::test]
async fn a_space_that_is_not_declared_is_refused_with_those_that_are() {
    let data = Data::new(Schema::parse(SCHEMA, "schema.toml").unwrap());
    let error = data.space("nots", &Caller::operator()).await.unwrap_err();
    assert_eq!(error.code(), Code::UnknownSpace);
    assert!(error.to_string().contains("notes, orders, tasks"), "{error}");
}

#[tokio::test]
async fn what_can_never_fit_into_the_store_is_refused_when_it_is_opened() {
    let literal = "x".repeat(1_990);
    let text = format!(
        "[stores.s]\nurl = 'embedded:./s'\n[spaces.long]\nkey = '{literal}:{{n}}'\nownership = 'shared'\n"
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("schema.toml"), text).unwrap();
    let data = Data::load(&folder.path().join("schema.toml")).unwrap();
    let error = data.space("long", &Caller::operator()).await.unwrap_err();
    assert_eq!(kind(&error), Some(ErrorKind::LimitExceeded));
    assert!(error.to_string().contains("the keys of the space long have at least"), "{error}");
    assert!(error.to_string().contains("schema.toml:4: "), "{error}");
    assert!(!folder.path().join("s").exists(), "nothing was made for it");
    let error = data.existing_space("long", &Caller::operator()).await.unwrap_err();
    assert_eq!(kind(&error), Some(ErrorKind::LimitExceeded));
    let problems = data.check().unwrap();
    assert_eq!(
        problems.iter().map(|it| (it.code, it.line)).collect::<Vec<_>>(),
        [("key-too-long", 4)]
    );
    // Elsewhere it fits.
    let elsewhere = data.clone().at("s", "memory:").unwrap();
    assert!(elsewhere.check().unwrap().is_empty());
    assert!(elsewhere.space("long", &Caller::operator()).await.is_ok());
    assert_eq!(
        kind(&data.at("s", "rocks:x").unwrap().check().unwrap_err()),
        Some(ErrorKind::Invalid)
    );
}
