//! Documents of others under an id or in a list: never shown, never overwritten.

use keyward_agents::{Actor, Document};
use keyward_engine::{Code, Coded, Json, Put};

use super::place::{InPlace, entry};
use crate::fixture::{keys, namespaces, put, set};

on_documents!(
    two_users_of_one_id_never_meet,
    users_with_a_colon_are_read_by_agents_and_never_written,
    a_document_that_says_something_else_is_no_entry,
    users_that_look_alike_are_apart,
    ids_are_never_escaped,
);

/// `a` in `b:default` and `a:b` in `default` have the same id for every key.
const ID: &str = "a:b:default:aw==";

async fn two_users_of_one_id_never_meet(place: InPlace) {
    let fields = entry("a", "b:default", "k", "\"of a\"");
    place.load(&[(ID, &fields)]).await;
    let agents = place.agents().await;
    let owner = agents.user("a", Actor::agent("x"));
    let owned = owner.use_namespace("b:default").unwrap();
    assert_eq!(owned.get("k").await.unwrap().unwrap().as_str(), "\"of a\"");
    let thief = agents.user("a:b", Actor::agent("thief"));
    let stolen = thief.use_namespace("default").unwrap();
    assert_eq!(stolen.get("k").await.unwrap(), None);
    assert_eq!(stolen.entry("k").await.unwrap(), None);
    assert_eq!(stolen.get_many(&["k"]).await.unwrap(), [None]);
    assert_eq!(keys(&stolen, "", 10).await, [] as [&str; 0]);
    assert_eq!(namespaces(&thief, 10).await, [] as [&str; 0]);
    assert_eq!(thief.export(None, None, 10).await.unwrap().documents, []);
    assert_eq!(stolen.stats().await.unwrap().record_count, 0);
    assert_eq!(stolen.set("k", set("1")).await.unwrap_err().code(), Code::Invalid);
    assert!(stolen.delete("k").await.is_err() || place.document(ID).await.is_some());
    assert!(stolen.rename("k", "l").await.is_err() || place.document(ID).await.is_some());
    agents.close().await.unwrap();
    let now = place.meaning(ID).await;
    assert_eq!(now.member("userId").and_then(|it| it.text()), Some("a"));
    assert_eq!(now.member("value").and_then(|it| it.text()), Some("of a"));
    assert_eq!(now.member("lastAccessedByAgent").and_then(|it| it.text()), Some("x"));
}

async fn users_with_a_colon_are_read_by_agents_and_never_written(place: InPlace) {
    let fields = entry("a:b", "default", "k", "\"of a:b\"");
    place.load(&[(ID, &fields)]).await;
    let before = place.document(ID).await;
    let agents = place.agents().await;
    // What an agent reads is counted, but not here.
    let user = agents.user("a:b", Actor::agent("reader"));
    let notes = user.use_namespace("default").unwrap();
    assert_eq!(notes.get("k").await.unwrap().unwrap().as_str(), "\"of a:b\"");
    assert_eq!(notes.entry("k").await.unwrap().unwrap().access.count, 3);
    assert_eq!(keys(&notes, "", 10).await, ["k"]);
    assert_eq!(namespaces(&user, 10).await, ["default"]);
    let refusals = [
        notes.set("k", set("1")).await.map(drop),
        notes.set("new", set("1")).await.map(drop),
        notes.delete("k").await.map(drop),
        notes.rename("k", "l").await.map(drop),
        notes.clear("").await.map(drop),
        notes.set_many(vec![("k".to_owned(), set("1"))]).await.map(drop),
    ];
    for refused in refusals {
        assert_eq!(refused.unwrap_err().code(), Code::Invalid);
    }
    let said = notes.set("k", set("1")).await.unwrap_err().to_string();
    assert!(said.contains("\"a:b\"") && said.contains("colon"), "{said}");
    // The other user of that id sees nothing, and overwrites nothing.
    let other = agents.user("a", Actor::agent("x"));
    let others = other.use_namespace("b:default").unwrap();
    assert_eq!(others.get("k").await.unwrap(), None);
    assert_eq!(keys(&others, "", 10).await, [] as [&str; 0]);
    assert_eq!(others.set("k", set("1")).await.unwrap_err().code(), Code::Invalid);
    assert!(!others.delete("k").await.unwrap());
    agents.close().await.unwrap();
    assert_eq!((agents.gathered().entries, agents.gathered().accesses), (0, 0));
    assert_eq!(place.document(ID).await, before);
    let row = keyward_key::Key::parse("system:access:agents:a%3Ab:default:k").unwrap();
    let store = agents.records().store();
    let put = Put::new(Json::parse(r#"{"count":9,"born":"2025-02-05T10:00:00Z"}"#).unwrap());
    let _ = store.put(row.clone(), put).await.unwrap();
    store.delete(row).await.unwrap();
    assert_eq!(place.document(ID).await, before);
}

/// Whoever writes documents by hand may write what is not so.
async fn a_document_that_says_something_else_is_no_entry(place: InPlace) {
    let id = "ada:default:aw==";
    let forged = [
        (id, entry("eve", "default", "k", "1")),
        ("ada:notes:aw==", entry("ada", "default", "k", "2")),
        ("ada:default:bA==", entry("ada", "default", "m", "3")),
        ("eve:default:aw==", entry("ada", "default", "k", "4")),
        ("ada:default:not base64", entry("ada", "default", "x", "5")),
        ("just-an-id", entry("ada", "default", "y", "6")),
        (
            "ada:default:cQ==",
            r#"{"userId":"ada","namespace":"default","key":7,"value":1}"#.to_owned(),
        ),
        ("ada:default:cg==", r#"{"userId":"ada","namespace":"default"}"#.to_owned()),
    ];
    let forged: Vec<(&str, &str)> = forged.iter().map(|(id, it)| (*id, it.as_str())).collect();
    place.load(&forged).await;
    let notes = place.namespace("default").await;
    put(&notes, "good", "1").await;
    place.settle().await;
    for key in ["k", "l", "m", "x", "y", "q", "r"] {
        assert_eq!(notes.get(key).await.unwrap(), None, "{key}");
    }
    let entries = notes.get_all("", None, 100).await.unwrap().entries;
    assert_eq!(entries.iter().map(|it| it.key.as_str()).collect::<Vec<_>>(), ["good"]);
    let refused = notes.set("k", set("1")).await.unwrap_err();
    assert_eq!(refused.code(), Code::Invalid, "{refused}");
    assert!(refused.to_string().contains(id), "{refused}");
    assert!(!notes.delete("k").await.unwrap());
    for (id, fields) in forged {
        let found = place.document(id).await.unwrap();
        let given = Json::parse(fields.to_owned()).unwrap();
        let meaning = |json: &Json| keyward_testkit::Meaning::of(json.as_str());
        assert_eq!(meaning(&found.fields), meaning(&given), "{id}");
    }
}

async fn users_that_look_alike_are_apart(place: InPlace) {
    let alike =
        ["ada", "ad", "adam", "Ada", "ad\u{e1}", "ada\u{301}", "ada\u{200d}", "ada ", "a%64a"];
    let agents = place.agents().await;
    for (n, user) in alike.iter().enumerate() {
        let notes = agents.user(user, Actor::agent("x")).use_namespace("default").unwrap();
        put(&notes, "k", &n.to_string()).await;
        put(&notes, &format!("k{n}"), "1").await;
    }
    place.settle().await;
    for (n, user) in alike.iter().enumerate() {
        let notes = place.user(user).await.use_namespace("default").unwrap();
        assert_eq!(notes.get("k").await.unwrap().unwrap().as_str(), n.to_string(), "{user:?}");
        assert_eq!(keys(&notes, "", 10).await, ["k".to_owned(), format!("k{n}")], "{user:?}");
    }
}

async fn ids_are_never_escaped(place: InPlace) {
    let agents = place.agents().await;
    for (user, namespace, key, id) in [
        ("50%", "a:b", "x y", "50%:a:b:eCB5"),
        ("a%3Ab", "default", "k", "a%3Ab:default:aw=="),
        ("café", "näm", "ü>?", "café:näm:w7w-Pw=="),
        ("user one", "two words", "~~~", "user one:two words:fn5-"),
    ] {
        let notes = agents.user(user, Actor::agent("x")).use_namespace(namespace).unwrap();
        put(&notes, key, "1").await;
        let document = place.meaning(id).await;
        let text = |name: &str| document.member(name).and_then(|it| it.text()).map(str::to_owned);
        assert_eq!(text("userId").as_deref(), Some(user));
        assert_eq!(text("namespace").as_deref(), Some(namespace));
        assert_eq!(text("key").as_deref(), Some(key));
        // What is shown is the id that is stored.
        place.settle().await;
        let shown = format!("{{\"_id\":{},", serde_json::json!(id));
        let entry = notes.entry(key).await.unwrap().unwrap();
        assert!(entry.to_document().as_str().starts_with(&shown), "{}", entry.to_document());
        let rev = entry.to_document_with_rev();
        assert!(rev.as_str().starts_with(&shown), "{rev}");
        let user = agents.user(user, Actor::nobody());
        let exported = user.export(Some(namespace), None, 10).await.unwrap().documents;
        assert!(exported[0].as_str().starts_with(&shown), "{exported:?}");
        let documents = Document::parse_all(exported[0].as_str()).unwrap();
        assert_eq!(user.import(documents).await.unwrap().replaced, 1);
    }
}
