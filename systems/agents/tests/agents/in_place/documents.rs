//! The documents themselves: what the original program writes is read, and it reads what is written.

use std::collections::BTreeSet;

use keyward_agents::{Actor, Document, UserData};
use keyward_engine::{Code, Coded, Json};
use keyward_testkit::Meaning;

use super::place::InPlace;
use crate::fixture::{json, keys, namespaces, put, set};

on_documents!(
    the_documents_of_the_format_are_read_as_they_are,
    what_is_written_has_the_fields_of_the_format_and_no_other,
    fields_of_other_programs_survive_every_write,
    documents_are_exported_and_imported_the_same,
    odd_documents_are_read_and_written,
    what_a_database_cannot_hold_is_refused,
);

/// The example documents of the format.
const EXAMPLES: [(&str, &str); 3] = [
    (
        "user_123:default:Z3JlZXRpbmc=",
        r#"{"userId":"user_123","namespace":"default","key":"greeting","value":"Hello, World!","createdByAgent":"hello-agent","accessCount":1,"createdAt":"2026-02-05T10:00:00Z","updatedAt":"2026-02-05T10:00:00Z"}"#,
    ),
    (
        "user_123:files:my-repo:c3JjL21haW4ucHk=",
        r#"{"userId":"user_123","namespace":"files:my-repo","key":"src/main.py","value":{"content":"def main():\n    print('Hello')\n","lines":2,"language":"python","functions":["main"]},"metadata":{"indexed_at":"2026-02-05T09:00:00Z","file_size":42,"sha256":"abc123..."},"createdByAgent":"repo-indexer","lastAccessedByAgent":"code-searcher","accessCount":15,"createdAt":"2026-02-05T09:00:00Z","updatedAt":"2026-02-05T09:00:00Z","lastAccessedAt":"2026-02-05T14:30:00Z"}"#,
    ),
    (
        "user_123:cache:github:cmVwb3M=",
        r#"{"userId":"user_123","namespace":"cache:github","key":"repos","value":[{"name":"repo-a","stars":100},{"name":"repo-b","stars":50}],"metadata":{"cached_at":"2026-02-05T12:00:00Z","ttl_seconds":3600,"api_endpoint":"/user/repos"},"createdByAgent":"github-fetcher","accessCount":3,"createdAt":"2026-02-05T12:00:00Z","updatedAt":"2026-02-05T12:00:00Z"}"#,
    ),
];

/// A document with its id, as exports have it.
fn with_id(id: &str, fields: &str) -> Meaning {
    Meaning::of(&format!(r#"{{"_id":"{id}",{}"#, &fields[1..]))
}

async fn exported(user: &UserData) -> BTreeSet<String> {
    let (mut documents, mut after) = (BTreeSet::new(), None);
    loop {
        let page = user.export(None, after, 2).await.unwrap();
        documents.extend(page.documents.iter().map(|it| Meaning::of(it.as_str()).to_json()));
        after = page.next;
        if after.is_none() {
            return documents;
        }
    }
}

async fn the_documents_of_the_format_are_read_as_they_are(place: InPlace) {
    place.load(&EXAMPLES).await;
    let user = place.agents().await.user("user_123", Actor::nobody());
    let expected: BTreeSet<String> =
        EXAMPLES.iter().map(|(id, fields)| with_id(id, fields).to_json()).collect();
    assert_eq!(exported(&user).await, expected);
    assert_eq!(namespaces(&user, 10).await, ["cache:github", "default", "files:my-repo"]);
    let files = user.use_namespace("files:my-repo").unwrap();
    assert_eq!(keys(&files, "", 10).await, ["src/main.py"]);
    let entry = files.entry("src/main.py").await.unwrap().unwrap();
    assert_eq!(entry.id().compose(), EXAMPLES[1].0);
    assert_eq!(entry.created_at, "2026-02-05T09:00:00Z");
    assert_eq!(
        (entry.access.count, entry.access.at.as_deref()),
        (15, Some("2026-02-05T14:30:00Z"))
    );
    assert_eq!(entry.access.agent.as_deref(), Some("code-searcher"));
    // Reading changes nothing but who read.
    place.clock().advance_to("2026-03-01T08:00:00.75Z".parse().unwrap());
    let agents = place.agents().await;
    let reader = agents.user("user_123", Actor::agent("reader"));
    let reader = reader.use_namespace("files:my-repo").unwrap();
    for _ in 0..5 {
        assert!(reader.get("src/main.py").await.unwrap().is_some());
    }
    agents.close().await.unwrap();
    let read = EXAMPLES[1].1.replace("code-searcher", "reader");
    let read = read.replace("\"accessCount\":15", "\"accessCount\":20");
    let read = read.replace("2026-02-05T14:30:00Z", "2026-03-01T08:00:00Z");
    assert_eq!(place.meaning(EXAMPLES[1].0).await, Meaning::of(&read));
    for (id, fields) in [EXAMPLES[0], EXAMPLES[2]] {
        assert_eq!(place.meaning(id).await, Meaning::of(fields));
    }
}

async fn what_is_written_has_the_fields_of_the_format_and_no_other(place: InPlace) {
    const FIELDS: [&str; 11] = [
        "userId",
        "namespace",
        "key",
        "value",
        "metadata",
        "createdByAgent",
        "lastAccessedByAgent",
        "accessCount",
        "createdAt",
        "updatedAt",
        "lastAccessedAt",
    ];
    let agents = place.agents().await;
    let notes = agents.user("ada", Actor::agent("tester")).use_namespace("n").unwrap();
    place.clock().advance(std::time::Duration::from_micros(1_234_567));
    let made = set("null").metadata(json(r#"{"a":null}"#));
    assert!(notes.set("k", made).await.unwrap().is_accepted());
    assert!(notes.get("k").await.unwrap().is_some());
    agents.close().await.unwrap();
    let Meaning::Object(members) = place.meaning("ada:n:aw==").await else { panic!("no object") };
    let names: BTreeSet<&str> = members.keys().map(String::as_str).collect();
    assert_eq!(names, FIELDS.into());
    for name in ["createdAt", "updatedAt", "lastAccessedAt"] {
        assert_eq!(members[name].text(), Some("2026-01-01T00:00:01Z"), "{name}");
    }
    assert_eq!(members["accessCount"], Meaning::of("1"));
    // By nobody, there is less to say.
    let nobody = place.agents().await.user("ada", Actor::nobody()).use_namespace("n").unwrap();
    put(&nobody, "l", "1").await;
    let written = r#"{"userId":"ada","namespace":"n","key":"l","value":1,"accessCount":0,"createdAt":"2026-01-01T00:00:01Z","updatedAt":"2026-01-01T00:00:01Z"}"#;
    assert_eq!(place.meaning("ada:n:bA==").await, Meaning::of(written));
}

async fn fields_of_other_programs_survive_every_write(place: InPlace) {
    const FOREIGN: &str = r#""schema":2,"tenant":{"id":"t1","labels":["a","b"]},"ttl":1770285600"#;
    let id = "ada:default:aw==";
    let old = format!(
        r#"{{{FOREIGN},"userId":"ada","namespace":"default","key":"k","value":1,"metadata":{{"a":1}},"createdByAgent":"old","accessCount":2,"createdAt":"2025-02-05T10:00:00Z","updatedAt":"2025-02-05T10:00:00Z"}}"#
    );
    place.load(&[(id, &old)]).await;
    let agents = place.agents().await;
    let notes = agents.user("ada", Actor::agent("tester")).use_namespace("default").unwrap();
    let has_them = async || {
        let now = place.meaning(id).await;
        let foreign = Meaning::of(&format!("{{{FOREIGN}}}"));
        for name in ["schema", "tenant", "ttl"] {
            assert_eq!(now.member(name), foreign.member(name), "{name}");
        }
        now
    };
    put(&notes, "k", "2").await;
    let now = has_them().await;
    assert_eq!(now.member("createdByAgent").and_then(|it| it.text()), Some("old"));
    assert_eq!(now.member("createdAt").and_then(|it| it.text()), Some("2025-02-05T10:00:00Z"));
    assert_eq!(now.member("accessCount"), Some(&Meaning::of("2")));
    assert!(notes.get("k").await.unwrap().is_some());
    agents.flush().await.unwrap();
    assert_eq!(has_them().await.member("accessCount"), Some(&Meaning::of("3")));
    let patch = keyward_agents::Patch::new().metadata(json(r#"{"b":2}"#));
    assert!(notes.patch("k", patch).await.unwrap().is_accepted());
    has_them().await;
    let document = Document::parse_all(EXAMPLES[0].1).unwrap().remove(0);
    let user = agents.user("ada", Actor::nobody());
    let import =
        Document { id: keyward_agents::DocumentId::new("ada", "default", "k"), ..document };
    user.import(vec![import]).await.unwrap();
    let now = has_them().await;
    assert_eq!(now.member("value").and_then(|it| it.text()), Some("Hello, World!"));
    assert_eq!((now.member("metadata"), now.member("lastAccessedAt")), (None, None));
}

async fn documents_are_exported_and_imported_the_same(place: InPlace) {
    let user = place.agents().await.user("user_123", Actor::nobody());
    let text: Vec<String> =
        EXAMPLES.iter().map(|(id, fields)| with_id(id, fields).to_json()).collect();
    let documents = Document::parse_all(&text.join("\n")).unwrap();
    let imported = user.import(documents.clone()).await.unwrap();
    assert_eq!((imported.created, imported.replaced), (3, 0));
    for (id, fields) in EXAMPLES {
        assert_eq!(place.meaning(id).await, Meaning::of(fields), "{id}");
    }
    place.settle().await;
    assert_eq!(exported(&user).await, text.iter().cloned().collect());
    // Again, nothing is counted twice.
    let imported = user.import(documents).await.unwrap();
    assert_eq!((imported.created, imported.replaced), (0, 3));
    assert_eq!(exported(&user).await, text.into_iter().collect());
}

async fn odd_documents_are_read_and_written(place: InPlace) {
    let id = "ada:default:aw==";
    let odd = r#"{"userId":"ada","namespace":"default","key":"k","metadata":"text","createdByAgent":null,"updatedAt":"2026-02-05T10:00:00"}"#;
    place.load(&[(id, odd)]).await;
    let agents = place.agents().await;
    let notes = agents.user("ada", Actor::agent("tester")).use_namespace("default").unwrap();
    let entry = notes.entry("k").await.unwrap().unwrap();
    assert_eq!(
        (entry.value.as_str(), entry.metadata, entry.created_by_agent),
        ("null", None, None)
    );
    assert_eq!((entry.created_at, entry.access.count), ("2026-02-05T10:00:00".to_owned(), 1));
    agents.flush().await.unwrap();
    assert_eq!(place.meaning(id).await.member("accessCount"), Some(&Meaning::of("1")));
    let metadata = json(r#"{"a":1}"#);
    assert!(notes.set("k", set("2").metadata(metadata)).await.unwrap().is_accepted());
    let now = place.meaning(id).await;
    assert_eq!(now.member("metadata"), Some(&Meaning::of(r#"{"a":1}"#)));
    assert_eq!(now.member("createdAt").and_then(|it| it.text()), Some("2026-02-05T10:00:00"));
}

async fn what_a_database_cannot_hold_is_refused(place: InPlace) {
    let notes = place.namespace("default").await;
    put(&notes, "k", "1").await;
    for value in ["1e309", "123456789012345678901234567890123456789", "[[1]]", "1e-400"] {
        match notes.set("k", set(value)).await {
            Ok(_) => {
                let held = notes.get("k").await.unwrap().unwrap();
                assert_eq!(Meaning::of(held.as_str()), Meaning::of(value));
                put(&notes, "k", "1").await;
            }
            Err(error) => {
                assert_eq!(error.code(), Code::Invalid, "{value}: {error}");
                assert_eq!(notes.get("k").await.unwrap().unwrap().as_str(), "1");
            }
        }
    }
    let long = "k".repeat(place.documents().await.limits().id_bytes_max);
    let refused = notes.set(&long, set("1")).await.unwrap_err();
    assert!([Code::Invalid, Code::LimitExceeded].contains(&refused.code()), "{refused}");
    assert_eq!(notes.get(&long).await.unwrap_or_default(), None);
    let bytes_max = place.documents().await.limits().document_bytes_max;
    let large = Json::parse(format!("\"{}\"", "x".repeat(bytes_max))).unwrap();
    let refused = notes.set("large", keyward_agents::Set::new(large)).await.unwrap_err();
    assert!(
        [Code::LimitExceeded, Code::ValueTooLarge].contains(&refused.code()),
        "{}",
        refused.code()
    );
    assert_eq!(notes.get("large").await.unwrap(), None);
}
