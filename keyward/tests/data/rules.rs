//! What ordinary writes must leave alone.

use keyward::locks::{Locks, Options};
use keyward::records::{Caller, Draft};
use keyward::rules::{Keeper, RegistryKeys, WorkspaceKeys, WriteRules, admit_space};
use keyward::schema::Schema;
use keyward::{Bindings, Commit, Data, ErrorKind, Expect, Json, Key, Put, Store, SystemClock};

const SCHEMA: &str = r#"
[stores.app]
url = "memory:"
[spaces.users]
key = "user:{user}:profile"
ownership = "user"
[spaces.users.indexes.users_by_email]
field = "email"
type = "folded"
unique = true
scope = "shared"
[locks.page]
root = "page:{id}"
paths = []
"#;

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn one() -> Put {
    Put::new(Json::from_integer(1))
}

#[test]
fn every_key_has_the_keeper_that_made_it() {
    let schema = Schema::parse(SCHEMA, "schema.toml").unwrap();
    let rules = WriteRules::of_schema(&schema, "app", true)
        .with_registry(RegistryKeys::new("policies", Some("p")).unwrap())
        .with_workspace(WorkspaceKeys::new("desk"));
    for (text, keeper) in [
        ("system:catalog", Keeper::Machinery),
        ("system:registry:policies", Keeper::Machinery),
        ("index:users_by_email:a", Keeper::Machinery),
        ("user:ada:profile", Keeper::Space("users".into())),
        ("agents:ada:default:k", Keeper::Space("agent_data_store".into())),
        ("page:7", Keeper::Locks),
        ("p:policy:leave", Keeper::Registry("policies".into())),
        ("upload:a:latest", Keeper::Workspace(Some("desk".into()))),
        ("lease", Keeper::Locks),
    ] {
        let reserved = rules.admit(&key(text)).unwrap_err();
        assert_eq!(reserved.keeper, keeper, "{text}");
        assert!(reserved.to_string().starts_with(text), "{reserved}");
    }
    for text in ["user:7:name", "page:7:text", "agents:ada", "p:other:x"] {
        assert_eq!(rules.admit(&key(text)), Ok(()), "{text}");
    }
    assert_eq!(WriteRules::of_schema(&schema, "other", false).admit(&key("page:7")), Ok(()));
    assert_eq!(admit_space("agent_data_store").unwrap_err().kind(), ErrorKind::Reserved);
    assert!(admit_space("users").is_ok());
}

/// A store in which something was kept, and the same with its rules.
async fn kept() -> (Store, Store) {
    let data = Data::new(Schema::parse(SCHEMA, "schema.toml").unwrap());
    let users = data.space("users", &Caller::user("ada")).await.unwrap();
    let profile = users.key(Bindings::new()).unwrap();
    let draft = Draft::new(Json::parse(r#"{"email":"ada@example.org"}"#).unwrap());
    assert!(users.put(&profile, draft).await.unwrap().is_accepted());
    let store = data.records("app").await.unwrap().store().clone();
    let locks = Locks::new(store.clone(), SystemClock, Options::default()).unwrap();
    let root = locks.root(key("root")).unwrap();
    let path = root.path("").unwrap();
    let asked = keyward::locks::Request::default();
    drop(root.ask(&[path], keyward::locks::Mode::Exclusive, &asked).await.unwrap());
    let name = Put::new(Json::parse(r#""policies""#).unwrap());
    store.put(key("system:registry-of:p"), name).await.unwrap();
    let mut rules = WriteRules::without_schema();
    rules.learn(&store).await.unwrap();
    (store.clone(), rules.guard(store))
}

#[tokio::test]
async fn a_guarded_store_keeps_to_what_the_store_knows_of_itself() {
    let (store, guarded) = kept().await;
    for reserved in ["user:ada:profile", "user:eve:profile", "p:policy:x", "root", "job:1"] {
        let mixed = Commit::new().put(key("plain"), one()).delete(key(reserved));
        let error = guarded.commit(mixed).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Reserved, "{reserved}");
        assert!(error.message().starts_with(reserved), "{error}");
    }
    assert_eq!(store.get(&key("plain")).await.unwrap(), None, "nothing of it was written");
    guarded.put(key("plain"), one()).await.unwrap();
    // Checks of the caller keep their indexes.
    let twice = Commit::new()
        .check(key("other"), Expect::Absent)
        .check(key("plain"), Expect::Absent)
        .put(key("plain"), one());
    assert_eq!(
        guarded.commit(twice).await.unwrap(),
        keyward::Outcome::Conflicted { failed: vec![1] }
    );
    // A key as long as keys can be has no room for a mark, and is no root.
    let long = "k".repeat(store.limits().key_bytes_max - 8);
    guarded.put(key(&long), one()).await.unwrap();
}

#[tokio::test]
async fn where_commits_take_one_key_roots_are_looked_for_before() {
    let store = keyward::open("memory:?tier=recoverable").await.unwrap();
    let locks = Locks::new(store.clone(), SystemClock, Options::default()).unwrap();
    let root = locks.root(key("root")).unwrap();
    let path = root.path("").unwrap();
    let asked = keyward::locks::Request::default();
    drop(root.ask(&[path], keyward::locks::Mode::Exclusive, &asked).await.unwrap());
    let guarded = WriteRules::without_schema().guard(store);
    let error = guarded.put(key("root"), one()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Reserved, "{error}");
    guarded.put(key("root:below"), one()).await.unwrap();
}
