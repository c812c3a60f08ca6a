//! A doctor that knows what Keyward itself keeps.

use keyward::cache::{Cache, Fetch, Options as CacheOptions, Source};
use keyward::locks::{LockPath, Locks, Mode, Options, Request};
use keyward::rules::{RegistryKeys, WorkspaceKeys, WriteRules};
use keyward::schema::Schema;
use keyward::{Data, Json, Key, Put, SystemClock};

#[tokio::test]
async fn keywards_own_entries_are_no_unknown_keys() {
    let schema = "[stores.app]\nurl = 'memory:'\n[spaces.notes]\nkey = 'note:{id}'\n\
                  ownership = 'shared'\n";
    let data = Data::new(Schema::parse(schema, "schema.toml").unwrap());
    let records = data.records("app").await.unwrap();
    let store = records.store().clone();
    let key = |text: &str| Key::parse(text).unwrap();

    // The root of locks that no schema declares.
    let locks = Locks::new(store.clone(), SystemClock, Options::default()).unwrap();
    let root = locks.root(key("page:7")).unwrap();
    let path = LockPath::parse("policies").unwrap();
    let guard = root.acquire(&[path], Mode::Exclusive, &Request::default()).await.unwrap();
    guard.release().await.unwrap();
    // A cached result.
    let cache = Cache::new(store.clone(), SystemClock, CacheOptions::default()).unwrap();
    let fetch = Fetch::of(Source::version("1"));
    let compute = async || Ok::<_, String>(Json::from_integer(1));
    cache.get_or_compute(&key("p7:text"), &fetch, compute).await.unwrap();
    // What a registry and a workspace of agreements keep.
    let put = async |at: &str| store.put(key(at), Put::new(Json::from_integer(1))).await.unwrap();
    for at in ["system:registry-of:docs", "docs:policy:p1", "docs:metadata:sync:lastRun"] {
        put(at).await;
    }
    for at in ["system:agreements", "abc:policy:att", "abc:policy:att:fr", "abc:issue:1"] {
        put(at).await;
    }
    for at in ["upload:abc", "upload:abc:content:c1:000001", "upload:abc:latest"] {
        put(at).await;
    }
    let examine = async || {
        let rules = WriteRules::new(records.declarations(), []);
        let doctor = keyward::doctor(records.clone(), rules).await.unwrap();
        doctor.run(|_| ()).await.unwrap()
    };
    let report = examine().await;
    assert_eq!(report.left(), 0, "{:#?}", report.found);
    // Beside what the rules keep for a registry, its prefix is like any other.
    for stray in ["docs:draft", "stray"] {
        put(stray).await;
    }
    let report = examine().await;
    let told: Vec<&str> = report.found.iter().map(|found| found.key.as_str()).collect();
    assert_eq!(told, ["docs:draft", "stray"]);
}

#[tokio::test]
async fn what_plain_writes_must_leave_to_a_system_is_never_an_unknown_key() {
    let schema = "[stores.app]\nurl = 'memory:'\n[spaces.notes]\nkey = 'note:{id}'\n\
                  ownership = 'shared'\n";
    let data = Data::new(Schema::parse(schema, "schema.toml").unwrap());
    let records = data.records("app").await.unwrap();
    let kept = ["upload:p1", "upload:p1:content:c1", "p1:analysis", "queue:q1", "dead-letter:q1"];
    for at in kept {
        let put = Put::new(Json::from_integer(1));
        records.store().put(Key::parse(at).unwrap(), put).await.unwrap();
    }
    // Known from the configuration: neither has worked in the store yet.
    let rules = WriteRules::new(records.declarations(), [])
        .with_registry(RegistryKeys::new("docs", None).unwrap())
        .with_workspace(WorkspaceKeys::new("desk"));
    for at in kept {
        assert!(rules.admit(&Key::parse(at).unwrap()).is_err(), "{at}");
    }
    let report = keyward::doctor(records, rules).await.unwrap().run(|_| ()).await.unwrap();
    assert_eq!(report.left(), 0, "{:#?}", report.found);
}
