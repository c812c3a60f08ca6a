//! Entries as documents.

use keyward_agents::{Actor, Document, DocumentReader, Error, Incoming, UserData};
use keyward_engine::{Code, Coded, Json};
use keyward_stores::{Place, on_engines};
use serde_json::Value;

use crate::fixture::{Fixture, declared, json, keys, set};

on_engines!(
    memory: Memory, recoverable: Recoverable, embedded: Embedded, postgres: Postgres;
    the_documents_of_the_format_come_out_as_they_went_in,
    what_is_exported_is_imported_elsewhere_the_same,
    a_document_that_does_not_fit_is_refused_with_the_reason,
    documents_of_several_users_go_to_their_users,
    documents_before_one_that_is_refused_are_there_and_counted,
    documents_of_all_users_before_one_that_is_refused_are_there_and_none_after_it,
    documents_before_one_that_no_index_takes_are_there_and_none_after_it,
    documents_before_one_whose_unique_value_is_taken_are_there_and_none_after_it,
    times_that_are_made_have_one_form_and_imported_ones_stay,
);

/// A text, an analysis of a file, and an answer that was cached.
const DOCUMENTS: &str = r#"[
{
    "_id": "user_123:default:Z3JlZXRpbmc=",
    "userId": "user_123",
    "namespace": "default",
    "key": "greeting",
    "value": "Hello, World!",
    "createdByAgent": "hello-agent",
    "accessCount": 1,
    "createdAt": "2026-02-05T10:00:00Z",
    "updatedAt": "2026-02-05T10:00:00Z"
},
{
    "_id": "user_123:files:my-repo:c3JjL21haW4ucHk=",
    "userId": "user_123",
    "namespace": "files:my-repo",
    "key": "src/main.py",
    "value": {
        "content": "def main():\n    print('Hello')\n",
        "lines": 2,
        "language": "python",
        "functions": ["main"]
    },
    "metadata": {
        "indexed_at": "2026-02-05T09:00:00Z",
        "file_size": 42,
        "sha256": "abc123..."
    },
    "createdByAgent": "repo-indexer",
    "lastAccessedByAgent": "code-searcher",
    "accessCount": 15,
    "createdAt": "2026-02-05T09:00:00Z",
    "updatedAt": "2026-02-05T09:00:00Z",
    "lastAccessedAt": "2026-02-05T14:30:00Z"
},
{
    "_id": "user_123:cache:github:cmVwb3M=",
    "userId": "user_123",
    "namespace": "cache:github",
    "key": "repos",
    "value": [
        {"name": "repo-a", "stars": 100},
        {"name": "repo-b", "stars": 50}
    ],
    "metadata": {
        "cached_at": "2026-02-05T12:00:00Z",
        "ttl_seconds": 3600,
        "api_endpoint": "/user/repos"
    },
    "createdByAgent": "github-fetcher",
    "accessCount": 3,
    "createdAt": "2026-02-05T12:00:00Z",
    "updatedAt": "2026-02-05T12:00:00Z"
}
]"#;

async fn exported(user: &UserData, namespace: Option<&str>) -> Vec<Json> {
    let (mut documents, mut after) = (Vec::new(), None);
    loop {
        let page = user.export(namespace, after, 2).await.unwrap();
        documents.extend(page.documents);
        after = page.next;
        if after.is_none() {
            return documents;
        }
    }
}

fn values(documents: &[Json]) -> Vec<Value> {
    documents.iter().map(|document| serde_json::from_str(document.as_str()).unwrap()).collect()
}

async fn the_documents_of_the_format_come_out_as_they_went_in(place: Place) {
    let fixture = Fixture::new(place).await;
    let user = fixture.agents.user("user_123", Actor::agent("importer"));
    let imported = user.import(Document::parse_all(DOCUMENTS).unwrap()).await.unwrap();
    assert_eq!((imported.created, imported.replaced), (3, 0));
    let again = user.import(Document::parse_all(DOCUMENTS).unwrap()).await.unwrap();
    assert_eq!((again.created, again.replaced), (0, 3));
    let mut expected: Vec<Value> = serde_json::from_str(DOCUMENTS).unwrap();
    expected.sort_by_key(|document| document["namespace"].as_str().unwrap().to_owned());
    let documents = exported(&user, None).await;
    assert_eq!(values(&documents), expected);
    let files = exported(&user, Some("files:my-repo")).await;
    assert_eq!(values(&files), expected[2..]);
    // From one who did not import it.
    let other = fixture.again().await.user("user_123", Actor::agent("report-generator"));
    let greeting =
        other.use_namespace("default").unwrap().entry("greeting").await.unwrap().unwrap();
    assert_eq!(greeting.access.count, 2);
    assert!(greeting.to_document_with_rev().as_str().contains(r#""_rev":""#));
}

async fn what_is_exported_is_imported_elsewhere_the_same(place: Place) {
    let fixture = Fixture::new(place).await;
    let ada = fixture.user("a:b%");
    for namespace in ["default", "files:apache/repo"] {
        let namespace = ada.use_namespace(namespace).unwrap();
        let entries = (0..120).map(|n| {
            let value = set(&format!(r#"{{"n":{n}.50,"big":123456789012345678901234567890}}"#));
            (format!("k/{n:03}"), value.metadata(json(r#"{"a":null}"#)))
        });
        for written in namespace.set_many(entries.collect()).await.unwrap() {
            assert!(written.is_accepted());
        }
        assert!(namespace.get("k/007").await.unwrap().is_some());
    }
    fixture.agents.close().await.unwrap();
    let documents = exported(&ada, None).await;
    assert_eq!(documents.len(), 240);
    let lines: Vec<&str> = documents.iter().map(Json::as_str).collect();
    let other = Fixture::new(Place::new(fixture.place.kind())).await;
    let elsewhere = other.user("a:b%");
    let read = Document::parse_all(&lines.join("\n")).unwrap();
    assert_eq!(elsewhere.import(read).await.unwrap().created, 240);
    // Text for text.
    assert_eq!(exported(&elsewhere, None).await, documents);
}

async fn a_document_that_does_not_fit_is_refused_with_the_reason(place: Place) {
    let fixture = Fixture::new(place).await;
    let ada = fixture.user("ada");
    let times = r#""createdAt":"2026-02-05T10:00:00Z","updatedAt":"2026-02-05T10:00:00Z""#;
    for (fields, reason) in [
        (r#""_id":"ada:default:aw==","key":"x","value":1"#, "does not fit its fields"),
        (r#""_id":"ada:d:aw==","userId":"ada","namespace":"d","key":"x","value":1"#, "whose is"),
        (r#""_id":"ada:default","value":1"#, "no document id"),
        (r#""key":"k","value":1"#, "no _id"),
        (r#""_id":"ada:default:aw==""#, "no value"),
        (r#""_id":"ada:default:aw==","value":1,"metadata":[]"#, "metadata is no object"),
        (r#""_id":"ada:default:aw==","value":1,"accessCount":-1"#, "accessCount"),
        (r#""_id":"ada:default:aw==","value":1,"lastAccessedAt":"noon""#, "not a time"),
        (r#""_id":"ada:default:aw==","value":1,"colour":"red""#, "colour"),
        (r#""_id":"ada:default:aw==","value":1,"createdByAgent":7"#, "createdByAgent"),
    ] {
        let good = format!(r#"{{"_id":"ada:default:aw==","_rev":"1-abc","value":1,{times}}}"#);
        let bad = Document::parse_all(&format!("{good}\n{{{fields},{times}}}")).unwrap_err();
        assert_eq!(bad.code(), Code::BadDocument);
        let told = bad.to_string();
        assert!(told.contains("document 2") && told.contains(reason), "{fields}: {told}");
    }
    assert!(Document::parse_all("{").unwrap_err().to_string().contains("document 1"));
    assert!(Document::parse_all(" \n ").unwrap().is_empty());
    // Another user's are refused before anything is taken.
    let both = format!(
        r#"[{{"_id":"ada:default:aw==","value":1,{times}}},{{"_id":"bob:default:aw==","value":1,{times}}}]"#
    );
    let foreign = ada.import(Document::parse_all(&both).unwrap()).await.unwrap_err();
    assert!(
        foreign.to_string().contains(r#"document 2 cannot be imported: it belongs to user "bob""#)
    );
    assert!(keys(&ada.use_namespace("default").unwrap(), "", 10).await.is_empty());
    // A user's id with a colon, as programs write it that do not escape it.
    let unescaped = format!(
        r#"{{"_id":"a:b:default:aw==","userId":"a:b","namespace":"default","key":"k","value":1,{times}}}"#
    );
    let user = fixture.user("a:b");
    assert_eq!(user.import(Document::parse_all(&unescaped).unwrap()).await.unwrap().created, 1);
    assert!(exported(&user, None).await[0].as_str().contains(r#""_id":"a%3Ab:default:aw==""#));
}

fn incoming(text: &str) -> Vec<Incoming> {
    let mut reader = DocumentReader::new(1 << 20);
    let mut found = Vec::new();
    reader.push(text.as_bytes(), &mut found).unwrap();
    reader.finish().unwrap();
    found
}

fn line(user: &str, key: &str, value: &str) -> String {
    let at = "2026-02-05T10:00:00Z";
    format!(
        r#"{{"userId":"{user}","namespace":"n","key":"{key}","value":{value},"createdAt":"{at}","updatedAt":"{at}"}}"#
    ) + "\n"
}

async fn documents_of_several_users_go_to_their_users(place: Place) {
    let fixture = Fixture::new(place).await;
    let agents = &fixture.agents;
    let users = ["ada", "bob", "c:d"];
    let text: String = (0..90).map(|n| line(users[n % 3], &format!("{n:02}"), "1.50")).collect();
    // Of two documents of one entry, the last one counts.
    let text = text + &line("bob", "01", "2");
    let reach = |user: &str| Ok(agents.user(user, Actor::agent("importer")));
    let imported = agents.import_all_users(incoming(&text), reach).await.unwrap();
    assert_eq!((imported.created, imported.replaced), (90, 1));
    let mut before = Vec::new();
    for user in users {
        let documents = exported(&fixture.user(user), None).await;
        assert_eq!(documents.len(), 30);
        assert!(values(&documents).iter().all(|document| document["userId"] == user));
        before.push(documents);
    }
    assert!(before[0][0].as_str().contains(r#""value":1.50"#));
    assert!(before[1][0].as_str().contains(r#""value":2,"#), "{}", before[1][0]);
    // Again, it changes nothing.
    let again = agents.import_all_users(incoming(&text), reach).await.unwrap();
    assert_eq!((again.created, again.replaced), (0, 91));
    for (user, before) in users.iter().zip(before) {
        assert_eq!(exported(&fixture.user(user), None).await, before);
    }
}

async fn documents_before_one_that_is_refused_are_there_and_counted(place: Place) {
    let fixture = Fixture::new(place).await;
    let ada = fixture.user("ada");
    let mut text: String = (0..8).map(|n| line("ada", &n.to_string(), "1")).collect();
    text += &line("ada", "big", &format!("\"{}\"", "x".repeat(1 << 20)));
    text += &line("ada", "late", "1");
    let mut reader = DocumentReader::new(4 << 20);
    let mut found = Vec::new();
    reader.push(text.as_bytes(), &mut found).unwrap();
    let error = ada.import_read(found).await.unwrap_err();
    assert_eq!(error.document(), Some((9, Some(9))), "{error}");
    assert!(matches!(error, Error::Partly { done: 8, .. }), "{error}");
    let n = ada.use_namespace("n").unwrap();
    assert_eq!(keys(&n, "", 100).await, ["0", "1", "2", "3", "4", "5", "6", "7"]);
}

async fn documents_of_all_users_before_one_that_is_refused_are_there_and_none_after_it(
    place: Place,
) {
    let fixture = Fixture::new(place).await;
    let agents = &fixture.agents;
    let users = ["ada", "bob", "cy"];
    let big = format!("\"{}\"", "x".repeat(1 << 20));
    let read = |text: &str| {
        let (mut reader, mut found) = (DocumentReader::new(4 << 20), Vec::new());
        reader.push(text.as_bytes(), &mut found).unwrap();
        found
    };
    let mut text: String = (0..7).map(|n| line(users[n % 3], &n.to_string(), "1")).collect();
    // The user of the bad one has one document before it, and those of others are around it.
    text += &line("bob", "big", &big);
    text += &(8..11).map(|n| line(users[n % 3], &n.to_string(), "1")).collect::<String>();
    let reach = |user: &str| Ok(agents.user(user, Actor::agent("importer")));
    let error = agents.import_all_users(read(&text), reach).await.unwrap_err();
    assert_eq!(error.document(), Some((8, Some(8))), "{error}");
    assert!(matches!(error, Error::Partly { done: 7, .. }), "{error}");
    let of =
        async |user: &str| keys(&fixture.user(user).use_namespace("n").unwrap(), "", 100).await;
    assert_eq!(of("ada").await, ["0", "3", "6"]);
    assert_eq!(of("bob").await, ["1", "4"]);
    assert_eq!(of("cy").await, ["2", "5"]);
    // A user who cannot be reached is as bad.
    let known = |user: &str| match user {
        "ada" => Ok(agents.user(user, Actor::agent("importer"))),
        _ => Err(Error::Invalid("nobody".to_owned())),
    };
    let text = line("ada", "a", "1") + &line("eve", "e", "1") + &line("ada", "z", "1");
    let error = agents.import_all_users(read(&text), known).await.unwrap_err();
    assert_eq!(error.document(), Some((2, Some(2))), "{error}");
    assert!(matches!(error, Error::Partly { done: 1, .. }), "{error}");
    assert_eq!(of("ada").await, ["0", "3", "6", "a"]);
}

const INDEXED: &str = r#"
[stores.app]
[spaces.agent_data_store]
key = "agents:{user}:{namespace}:{key}"
ownership = "user"
indexes.by_due = { field = "value.due", type = "integer" }
indexes.by_slug = { field = "value.slug", type = "text", unique = true }
"#;

fn due(user: &str, key: &str, due: &str) -> String {
    line(user, key, &format!(r#"{{"due":{due}}}"#))
}

async fn documents_before_one_that_no_index_takes_are_there_and_none_after_it(place: Place) {
    let agents = declared(place.store().await, &place, INDEXED);
    let reach = |user: &str| Ok(agents.user(user, Actor::agent("importer")));
    let of =
        async |user: &str| keys(&reach(user).unwrap().use_namespace("n").unwrap(), "", 100).await;
    let bad = r#""bad""#;
    let text = due("sam", "s1", "1") + &due("sam", "s2", "2") + &due("sam", "s3", bad);
    let text = text + &due("sam", "s4", "4");
    let error = reach("sam").unwrap().import_read(incoming(&text)).await.unwrap_err();
    assert_eq!(
        (error.document(), error.code()),
        (Some((3, Some(3))), Code::Unindexable),
        "{error}"
    );
    assert!(matches!(error, Error::Partly { done: 2, .. }), "{error}");
    assert_eq!(of("sam").await, ["s1", "s2"]);
    let text = due("ada", "m1", "1") + &due("bob", "m2", bad) + &due("ada", "m3", "3");
    let text = text + &due("cy", "m4", "4");
    let error = agents.import_all_users(incoming(&text), reach).await.unwrap_err();
    assert_eq!(
        (error.document(), error.code()),
        (Some((2, Some(2))), Code::Unindexable),
        "{error}"
    );
    assert!(matches!(error, Error::Partly { done: 1, .. }), "{error}");
    for (user, expected) in [("ada", &["m1"][..]), ("bob", &[]), ("cy", &[])] {
        assert_eq!(of(user).await, expected, "{user}");
    }
    agents.close().await.unwrap();
}

async fn documents_before_one_whose_unique_value_is_taken_are_there_and_none_after_it(
    place: Place,
) {
    let agents = declared(place.store().await, &place, INDEXED);
    let ada = agents.user("ada", Actor::agent("importer"));
    let slug = |key: &str, slug: &str| line("ada", key, &format!(r#"{{"slug":"{slug}"}}"#));
    let text = slug("a", "x") + &slug("b", "y") + &slug("c", "x") + &slug("d", "z");
    let error = ada.import_read(incoming(&text)).await.unwrap_err();
    assert_eq!(
        (error.document(), error.code()),
        (Some((3, Some(3))), Code::UniqueClash),
        "{error}"
    );
    assert!(matches!(error, Error::Partly { done: 2, .. }), "{error}");
    assert_eq!(keys(&ada.use_namespace("n").unwrap(), "", 100).await, ["a", "b"]);
    agents.close().await.unwrap();
}

async fn times_that_are_made_have_one_form_and_imported_ones_stay(place: Place) {
    let fixture = Fixture::new(place).await;
    let ada = fixture.agents.user("ada", Actor::agent("writer").in_run("r1"));
    let own = ada.use_namespace("own").unwrap();
    assert!(own.set("k", set("1")).await.unwrap().is_accepted());
    own.get("k").await.unwrap();
    let times = r#""createdAt":"2026-02-05T11:00:00.5+01:00","updatedAt":"2026-02-05T10:00:00""#;
    let came = format!(r#"{{"_id":"ada:came:aw==","value":[1.0, "\u00e9" ],{times}}}"#);
    ada.import(Document::parse_all(&came).unwrap()).await.unwrap();
    fixture.agents.close().await.unwrap();
    let one_form = |time: &Value| {
        let time = time.as_str().unwrap();
        assert!(time.len() == 27 && time.ends_with('Z') && time.as_bytes()[19] == b'.', "{time}");
    };
    let documents = exported(&ada, None).await;
    assert!(documents[0].as_str().contains(times), "{}", documents[0]);
    assert!(documents[0].as_str().contains(r#""value":[1.0,"\u00e9"]"#), "{}", documents[0]);
    let made = &values(&documents)[1];
    for field in ["createdAt", "updatedAt", "lastAccessedAt"] {
        one_form(&made[field]);
    }
    for operation in ada.operations("r1", None, 10).await.unwrap().operations {
        one_form(&serde_json::to_value(&operation).unwrap()["at"]);
    }
}
