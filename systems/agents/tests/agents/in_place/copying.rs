//! Entries copied between layouts.

use keyward_agents::{
    Actor, Agents, CopiedEntries, DocumentLayout, EntryCopy, Error, OnConflict, Options, Set,
};
use keyward_engine::{Code, Coded, Json, Store, Tier};
use keyward_memory::Memory;
use keyward_testkit::Meaning;

use super::place::{InMemory, InPlace, entry, open};
use super::watched::Watched;
use crate::fixture::{json, put};

on_documents!(
    entries_go_from_documents_to_a_store_and_back_the_same,
    entries_go_from_one_database_to_another,
    a_copy_that_is_run_again_writes_nothing,
    what_differs_is_decided_by_the_policy,
    accesses_are_never_taken_back,
    accesses_that_are_counted_during_a_copy_stay,
    what_the_target_cannot_hold_is_refused_or_left_out,
    a_plan_writes_nothing,
    a_plan_names_what_the_target_would_refuse,
);

/// An agent data store of the ordinary layout.
fn store(place: &InPlace, tier: Tier) -> Agents {
    let memory = Memory::with(keyward_memory::Options::tier(tier), place.clock().clone());
    Agents::alone(Store::new(memory), Options::default(), place.clock().clone()).unwrap()
}

async fn apply(copy: EntryCopy) -> CopiedEntries {
    copy.apply(|_| ()).await.unwrap()
}

async fn exported(agents: &Agents, user: &str) -> Vec<String> {
    let user = agents.user(user, Actor::nobody());
    let (mut documents, mut after) = (Vec::new(), None);
    loop {
        let page = user.export(None, after, 100).await.unwrap();
        documents.extend(page.documents.iter().map(|it| Meaning::of(it.as_str()).to_json()));
        after = page.next;
        if after.is_none() {
            return documents;
        }
    }
}

/// Entries of two users, of which some are large, old, or were accessed often.
async fn fill(agents: &Agents, place: &InPlace) {
    for user in ["ada", "bob"] {
        let user = agents.user(user, Actor::agent("tester"));
        for n in 0..150 {
            let notes = user.use_namespace(["default", "files:a b", "n:ü"][n % 3]).unwrap();
            let value = json(&format!(r#"{{"n":{n},"text":"é\n","list":[1.50,null]}}"#));
            let set = Set::new(value).metadata(json(&format!(r#"{{"m":{n}}}"#)));
            assert!(notes.set(&format!("k/{n}"), set).await.unwrap().is_accepted());
            if n % 10 == 0 {
                assert!(notes.get(&format!("k/{n}")).await.unwrap().is_some());
            }
            place.clock().advance(std::time::Duration::from_millis(300));
        }
    }
    agents.flush().await.unwrap();
    place.settle().await;
}

async fn entries_go_from_documents_to_a_store_and_back_the_same(place: InPlace) {
    let documents = place.agents().await;
    fill(&documents, &place).await;
    for tier in [Tier::Atomic, Tier::Recoverable, Tier::Advisory] {
        let target = store(&place, tier);
        let copied = apply(EntryCopy::new(documents.clone(), target.clone()).user("ada")).await;
        assert_eq!((copied.added, copied.entries()), (150, 150));
        // Where the last writer wins, reads are late too.
        place.clock().advance(std::time::Duration::from_secs(60));
        assert_eq!(exported(&target, "ada").await, exported(&documents, "ada").await);
        assert_eq!(exported(&target, "bob").await, [] as [String; 0]);
        // And back, all users of it, into another database.
        let other = other_database(&place).await;
        let copied = apply(EntryCopy::new(target.clone(), other.clone())).await;
        assert_eq!((copied.added, copied.entries()), (150, 150));
        assert_eq!(exported(&other, "ada").await, exported(&documents, "ada").await);
    }
    // A database of documents cannot list its users.
    let all = EntryCopy::new(documents, store(&place, Tier::Atomic)).plan(|_| ()).await;
    assert_eq!(all.unwrap_err().code(), Code::Unsupported);
}

/// Agent data in documents of another kind.
async fn other_database(place: &InPlace) -> Agents {
    let other = InPlace::new(InMemory::by_fields(), place.clock().clone()).await;
    other.agents().await
}

async fn entries_go_from_one_database_to_another(place: InPlace) {
    let (source, target) = (place.agents().await, other_database(&place).await);
    fill(&source, &place).await;
    let copy = || EntryCopy::new(source.clone(), target.clone());
    let mut told = Vec::new();
    let one = copy().user("ada").namespace("files:a b");
    let copied = one.apply(|so_far| told.push(so_far.entries())).await.unwrap();
    assert_eq!((copied.added, copied.entries()), (50, 50));
    assert!(told.is_sorted() && told.last() == Some(&50), "{told:?}");
    let copied = apply(copy().user("ada")).await;
    assert_eq!((copied.added, copied.equal), (100, 50));
    let copied = apply(copy().user("bob")).await;
    assert_eq!(copied.added, 150);
    for user in ["ada", "bob"] {
        assert_eq!(exported(&target, user).await, exported(&source, user).await);
    }
}

async fn a_copy_that_is_run_again_writes_nothing(place: InPlace) {
    let source = store(&place, Tier::Atomic);
    fill(&source, &place).await;
    let target = place.agents().await;
    let copy = EntryCopy::new(source, target).user("ada");
    assert_eq!(apply(copy.clone()).await.added, 150);
    let before = place.document("ada:default:ay8w").await.unwrap();
    let copied = apply(copy).await;
    assert_eq!((copied.equal, copied.entries()), (150, 150));
    assert_eq!(place.document("ada:default:ay8w").await.unwrap(), before);
}

async fn what_differs_is_decided_by_the_policy(place: InPlace) {
    let source = store(&place, Tier::Atomic);
    let notes = source.user("ada", Actor::agent("s")).use_namespace("default").unwrap();
    let others = place.namespace("default").await;
    put(&others, "older here", "\"target\"").await;
    put(&notes, "newer here", "\"source\"").await;
    place.clock().advance(std::time::Duration::from_secs(60));
    put(&others, "newer here", "\"target\"").await;
    put(&notes, "older here", "\"source\"").await;
    put(&notes, "only there", "\"source\"").await;
    put(&others, "only here", "\"target\"").await;
    let copy = |on_conflict: OnConflict| {
        let target = place.agents();
        let source = source.clone();
        async move { EntryCopy::new(source, target.await).user("ada").on_conflict(on_conflict) }
    };
    let value = async |key: &str| others.get(key).await.unwrap().unwrap().to_string();
    let stopped = copy(OnConflict::Stop).await.apply(|_| ()).await.unwrap_err();
    assert!(matches!(&stopped, Error::Differs { key, .. } if key == "newer here"), "{stopped}");
    assert_eq!(stopped.code(), Code::PreconditionFailed);
    let planned = copy(OnConflict::Stop).await.plan(|_| ()).await.unwrap();
    assert_eq!((planned.added, planned.kept, planned.differing.len()), (1, 2, 2));
    let copied = apply(copy(OnConflict::Keep).await).await;
    assert_eq!((copied.added, copied.kept), (1, 2));
    assert_eq!(copied.differing[0].key, "newer here");
    assert_eq!(value("older here").await, "\"target\"");
    let copied = apply(copy(OnConflict::Newer).await).await;
    assert_eq!((copied.replaced, copied.kept, copied.equal), (1, 1, 1));
    assert_eq!(value("older here").await, "\"source\"");
    assert_eq!(value("newer here").await, "\"target\"");
    let copied = apply(copy(OnConflict::Replace).await).await;
    assert_eq!((copied.replaced, copied.equal), (1, 2));
    assert_eq!(value("newer here").await, "\"source\"");
    assert_eq!(value("only here").await, "\"target\"");
}

async fn accesses_are_never_taken_back(place: InPlace) {
    let source = store(&place, Tier::Atomic);
    let notes = source.user("ada", Actor::agent("s")).use_namespace("default").unwrap();
    put(&notes, "k", "1").await;
    let read = async |notes: &keyward_agents::Namespace, times: usize| {
        for _ in 0..times {
            assert!(notes.get("k").await.unwrap().is_some());
        }
    };
    read(&notes, 3).await;
    let target = place.agents().await;
    let copy = EntryCopy::new(source, target.clone()).user("ada");
    let count =
        async || place.meaning("ada:default:aw==").await.member("accessCount").unwrap().to_json();
    assert_eq!(apply(copy.clone()).await.added, 1);
    assert_eq!(count().await, "3");
    let others = target.user("ada", Actor::agent("t")).use_namespace("default").unwrap();
    read(&others, 4).await;
    assert_eq!(apply(copy.clone()).await.equal, 1);
    assert_eq!(count().await, "7");
    read(&notes, 10).await;
    assert_eq!(apply(copy.clone()).await.replaced, 1);
    assert_eq!(count().await, "13");
    assert_eq!(apply(copy).await.equal, 1);
}

async fn accesses_that_are_counted_during_a_copy_stay(place: InPlace) {
    for (of_source, of_target) in [(0, 5), (3, 5), (20, 5), (6, 5), (1, 0)] {
        let source = store(&place, Tier::Atomic);
        let notes = source.user("ada", Actor::agent("s")).use_namespace("default").unwrap();
        let key = format!("k{of_source}-{of_target}");
        put(&notes, &key, "\"source\"").await;
        for _ in 0..of_source {
            assert!(notes.get(&key).await.unwrap().is_some());
        }
        let id = format!("ada:default:{}", data_encoding::BASE64URL.encode(key.as_bytes()));
        let fields = entry("ada", "default", &key, "\"target\"");
        let fields = fields.replace("\"accessCount\":1", &format!("\"accessCount\":{of_target}"));
        place.load(&[(&id, &fields)]).await;
        // The original program counts before the entry is put, and before its accesses are.
        let documents = Watched::counting(place.documents().await);
        let layout = DocumentLayout::open(documents.clone(), place.clock().clone()).unwrap();
        let copy = EntryCopy::new(source, open(layout, place.clock()));
        let copy = copy.user("ada").on_conflict(OnConflict::Replace);
        assert_eq!(apply(copy.clone()).await.replaced, 1, "{key}");
        let counted = documents.counted();
        assert!(counted > 0, "{key}");
        let document = place.meaning(&id).await;
        assert_eq!(document.member("value").and_then(|it| it.text()), Some("source"));
        let count = document.member("accessCount").unwrap().to_json();
        assert_eq!(count, of_source.max(of_target + counted).to_string(), "{key}");
        assert_eq!(apply(copy).await.equal, 1, "{key}");
        assert_eq!(documents.counted(), counted, "nothing is put again");
    }
}

async fn a_plan_names_what_the_target_would_refuse(place: InPlace) {
    let source = store(&place, Tier::Atomic);
    let limits = *place.documents().await.limits();
    let knows_numbers = limits.engine != "memory-documents";
    let digits = "123456789012345678901234567890123456789";
    let deep = format!("{}{}", "[{\"a\":".repeat(12), "1".to_owned() + &"}]".repeat(12));
    let large = format!("\"{}\"", "x".repeat(limits.document_bytes_max));
    let random = || format!("n{}", fastrand::u32(..));
    let mut values = vec![
        ("ada", random(), "fits".to_owned(), "1.50".to_owned()),
        ("a:b", random(), "k".to_owned(), "1".to_owned()),
        // Some databases take no ids with slashes, or with _ at the beginning.
        ("a/b", random(), "k".to_owned(), "1".to_owned()),
        ("ada", "files:apache/repo".to_owned(), "k".to_owned(), "1".to_owned()),
        ("_ada", random(), "k".to_owned(), "1".to_owned()),
        ("__ada", random(), "k".to_owned(), "1".to_owned()),
    ];
    if knows_numbers {
        for value in [
            digits,
            "1e309",
            "1e126",
            "1e-131",
            "0.1234567890123456789",
            "[[1]]",
            r#"{"":1}"#,
            r#"{"__a__":1}"#,
            "9223372036854775808",
            &deep,
        ] {
            values.push((
                "ada",
                random(),
                format!("value {}", value.len()) + value.get(..6).unwrap_or(value),
                value.to_owned(),
            ));
        }
    }
    if large.len() < Options::default().value_bytes_max {
        values.push(("ada", random(), "large".to_owned(), large));
    }
    values.push(("ada", random(), "k".repeat(limits.id_bytes_max), "1".to_owned()));
    for (user, namespace, key, value) in values {
        let target = place.agents().await;
        let source = source.clone();
        let notes = source.user(user, Actor::nobody()).use_namespace(&namespace).unwrap();
        put(&notes, &key, &value).await;
        let copy = EntryCopy::new(source, target).user(user).namespace(&namespace);
        let planned = copy.plan(|_| ()).await.unwrap();
        let shown: String = format!("{user} {key} {value}").chars().take(100).collect();
        assert_eq!(planned.entries(), 1, "{shown}");
        match copy.apply(|_| ()).await {
            Ok(copied) => {
                assert_eq!((copied.added, planned.added, planned.refused), (1, 1, 0), "{shown}");
                assert!(planned.refusals.is_empty());
            }
            Err(Error::InEntry { key: refused, source, .. }) => {
                assert_eq!((planned.added, planned.refused), (0, 1), "{shown}: {source}");
                assert_eq!((&planned.refusals[0].0.key, &refused), (&key, &key));
                assert!(!planned.refusals[0].1.is_empty());
            }
            Err(error) => panic!("{shown}: {error}"),
        }
    }
}

async fn what_the_target_cannot_hold_is_refused_or_left_out(place: InPlace) {
    let source = store(&place, Tier::Atomic);
    let target = place.agents().await;
    let colon = source.user("a:b", Actor::agent("s")).use_namespace("default").unwrap();
    put(&colon, "k", "1").await;
    let copy = |user: &str| EntryCopy::new(source.clone(), target.clone()).user(user);
    let refused = copy("a:b").apply(|_| ()).await.unwrap_err();
    assert!(matches!(&refused, Error::InEntry { user, .. } if user == "a:b"), "{refused}");
    assert_eq!(refused.code(), Code::Invalid);
    let notes = source.user("ada", Actor::agent("s")).use_namespace("default").unwrap();
    let minute = std::time::Duration::from_secs(60);
    let ending = crate::fixture::set("1").ttl(minute);
    assert!(notes.set("ending", ending).await.unwrap().is_accepted());
    put(&notes, "staying", "1").await;
    let copied = apply(copy("ada")).await;
    assert_eq!((copied.added, copied.expiring), (1, 1));
    assert_eq!(place.namespace("default").await.get("ending").await.unwrap(), None);
    // Where entries can end, it ends as it would have.
    let other = store(&place, Tier::Atomic);
    assert_eq!(apply(EntryCopy::new(source.clone(), other.clone()).user("ada")).await.added, 2);
    let others = other.user("ada", Actor::nobody()).use_namespace("default").unwrap();
    place.clock().advance(minute / 2);
    assert!(others.get("ending").await.unwrap().is_some());
    place.clock().advance(minute);
    assert_eq!(others.get("ending").await.unwrap(), None);
    // The clock of the process is not asked about what the database cannot hold.
    let large = Json::parse("123456789012345678901234567890123456789e300").unwrap();
    assert!(notes.set("z", Set::new(large)).await.unwrap().is_accepted());
    match copy("ada").apply(|_| ()).await {
        Ok(copied) => assert_eq!(copied.added, 1),
        Err(refused) => assert_eq!(refused.code(), Code::Invalid, "{refused}"),
    }
}

async fn a_plan_writes_nothing(place: InPlace) {
    let source = store(&place, Tier::Atomic);
    fill(&source, &place).await;
    let fields = entry("ada", "default", "k/0", "\"other\"");
    place.load(&[("ada:default:ay8w", &fields)]).await;
    let before = place.document("ada:default:ay8w").await;
    let target = place.agents().await;
    let planned = EntryCopy::new(source, target).plan(|_| ()).await.unwrap();
    assert_eq!((planned.added, planned.kept, planned.entries()), (299, 1, 300));
    assert_eq!(planned.differing[0].compose(), "ada:default:ay8w");
    assert_eq!(place.document("ada:default:ay8w").await, before);
    assert_eq!(place.document("ada:files:a b:ay8x").await, None);
}
