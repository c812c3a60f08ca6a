//! One user against another: whatever stands in a user's id, a namespace, a key, a prefix or a cursor,
//! nothing of the other user's is seen or changed.

use fastrand::Rng;
use keyward_agents::{Actor, Document, Namespace, Patch, Search, UserData};
use keyward_engine::{Code, Coded, Entry, Scan};
use keyward_key::{Key, KeyRange};
use keyward_records::{Caller, Filter, Precondition};
use keyward_stores::{Place, on_engines};
use keyward_testkit::{Replay, Test, seeds};

use crate::fixture::{Fixture, json, put, set};

on_engines!(
    memory: Memory, recoverable: Recoverable, embedded: Embedded, postgres: Postgres;
    users_with_colons_are_apart,
    everything_of_a_user_is_handed_out_and_removed,
);

async fn users_with_colons_are_apart(place: Place) {
    let fixture = Fixture::new(place).await;
    for (user, namespace) in
        [("a:b", "games"), ("a", "b:games"), ("a", "games"), ("a%3Ab", "games")]
    {
        let namespace = fixture.user(user).use_namespace(namespace).unwrap();
        assert_eq!(namespace.get("k").await.unwrap(), None, "{user}");
        put(&namespace, "k", &format!("\"{user}\"")).await;
        let names = crate::fixture::namespaces(&fixture.user(user), 10).await;
        assert!(names.contains(&namespace.name().to_owned()), "{names:?}");
    }
    assert_eq!(crate::fixture::namespaces(&fixture.user("a"), 1).await, ["b:games", "games"]);
    assert_eq!(crate::fixture::namespaces(&fixture.user("a:b"), 1).await, ["games"]);
    let nobody = fixture.user("");
    assert_eq!(nobody.use_namespace("games").unwrap_err().code(), Code::Invalid);
    assert_eq!(nobody.list_namespaces(None, 1).await.unwrap_err().code(), Code::Invalid);
    assert_eq!(fixture.agents.caller(&Caller::operator()).unwrap_err().code(), Code::Invalid);
    let games = fixture.user("a").use_namespace("games").unwrap();
    assert_eq!(games.get("").await.unwrap_err().code(), Code::Invalid);
    assert_eq!(fixture.user("a").use_namespace("").unwrap_err().code(), Code::Invalid);
}

async fn everything_of_a_user_is_handed_out_and_removed(place: Place) {
    let fixture = Fixture::new(place).await;
    for user in ["ada", "bob"] {
        let user = fixture.agents.user(user, Actor::agent("a").in_run("r"));
        let notes = user.use_namespace("notes").unwrap();
        let settings = keyward_agents::Settings { honour_ttl_seconds: true, ..Default::default() };
        notes.configure(settings).await.unwrap();
        put(&notes, "k", "1").await;
        put(&notes, "k", "2").await;
        assert!(notes.get("k").await.unwrap().is_some());
    }
    fixture.agents.close().await.unwrap();
    let of_bob = |rows: &[(Key, Entry)]| {
        let bobs = rows.iter().filter(|(key, _)| key.segments().any(|segment| segment == "bob"));
        bobs.count()
    };
    let bobs = of_bob(&everything(&fixture).await);
    let things = fixture.agents.belongings("ada").unwrap();
    things.remove().await.unwrap();
    let left = everything(&fixture).await;
    let of_ada: Vec<String> = left
        .iter()
        .filter(|(key, _)| key.segments().any(|segment| segment == "ada"))
        .map(|(key, _)| key.to_string())
        .collect();
    assert!(of_ada.is_empty(), "{of_ada:?}");
    assert_eq!(of_bob(&left), bobs);
}

async fn everything(fixture: &Fixture) -> Vec<(Key, Entry)> {
    let scan = Scan::new(KeyRange::all()).limit(10_000);
    let rows = fixture.store().scan(&scan).await.unwrap().rows;
    rows.into_iter().map(|row| (row.key, row.entry.unwrap())).collect()
}

const VICTIM: &str = "ada";
const TEXTS: [&str; 16] = [
    "ada",
    "bob",
    "notes",
    "k",
    "secret",
    ":",
    "ada:notes",
    "..",
    "%3A",
    "ada:notes:k",
    "agents",
    "agents:ada:notes",
    "\u{0}",
    "\u{1}",
    "\u{0}ada",
    "system",
];

fn text(rng: &mut Rng) -> String {
    let parts = rng.usize(1..4);
    let joint = ["", ":", "\u{0}", "/"][rng.usize(..4)];
    let parts: Vec<&str> = (0..parts).map(|_| TEXTS[rng.usize(..TEXTS.len())]).collect();
    parts.join(joint)
}

/// Tries something, and gives everything that was told.
async fn attempt(
    user: &UserData,
    cursors: &[String],
    rng: &mut Rng,
    replay: &mut Replay,
) -> String {
    let Ok(namespace) = user.use_namespace(&text(rng)) else { return String::new() };
    let (key, act) = (text(rng), rng.u8(..14));
    let cursor = (rng.bool()).then(|| cursors[rng.usize(..cursors.len())].clone());
    replay.step(format!("{act} {:?} {key:?} {cursor:?}", namespace.name()));
    match act {
        0 => format!("{:?}", namespace.get(&key).await),
        1 => format!("{:?}", namespace.entry(&key).await),
        2 => format!("{:?}", namespace.set(&key, set("1")).await),
        3 => format!("{:?}", namespace.patch(&key, Patch::new().value(json("2"))).await),
        4 => format!("{:?}", namespace.delete(&key).await),
        5 => format!("{:?}", namespace.list_keys(&key, cursor, 5).await),
        6 => format!("{:?}", user.list_namespaces(cursor, 5).await),
        7 => format!("{:?}", namespace.get_all(&key, cursor, 5).await),
        8 => format!("{:?}", namespace.history(&key, None, 5).await),
        9 => format!("{:?}", namespace.restore(&key, 1, Precondition::Any).await),
        10 => format!("{:?}", user.operations(&key, cursor, 5).await),
        11 => format!("{:?}", user.export(Some(namespace.name()), cursor, 5).await),
        12 => {
            let filter = Filter::parse(r#"{"value":"the secret"}"#).unwrap();
            let search = Search::new().filter(filter).after(cursor);
            format!("{:?}", namespace.search(&search).await)
        }
        _ => format!("{:?}", namespace.clear(&key).await),
    }
}

async fn cursors_of(victim: &UserData, namespace: &Namespace) -> Vec<String> {
    let mut cursors = vec!["".to_owned(), "AAAA".to_owned()];
    cursors.extend(victim.list_namespaces(None, 1).await.unwrap().next);
    cursors.extend(namespace.list_keys("", None, 1).await.unwrap().next);
    cursors.extend(namespace.get_all("", None, 1).await.unwrap().next);
    cursors.extend(victim.export(None, None, 1).await.unwrap().next);
    cursors.extend(victim.operations("k", None, 1).await.unwrap().next);
    assert_eq!(cursors.len(), 7);
    cursors
}

#[tokio::test]
async fn nothing_of_another_user_is_seen_or_changed() {
    let path = "apart::nothing_of_another_user_is_seen_or_changed";
    for seed in seeds(40, 1_000) {
        let mut replay = Replay::new(Test { package: "keyward-agents", path }, seed);
        let mut rng = Rng::with_seed(seed);
        let fixture = Fixture::new(Place::new(keyward_stores::Kind::Memory)).await;
        let victim = fixture.agents.user(VICTIM, Actor::agent("a").in_run("k"));
        for namespace in ["notes", "ada", "k"] {
            let namespace = victim.use_namespace(namespace).unwrap();
            for key in ["k", "secret", "ada:notes"] {
                put(&namespace, key, r#""the secret""#).await;
            }
        }
        let cursors = cursors_of(&victim, &victim.use_namespace("notes").unwrap()).await;
        fixture.agents.close().await.unwrap();
        let of_victim = |rows: Vec<(Key, Entry)>| -> Vec<(Key, Entry)> {
            let is_victims = |key: &Key| {
                let segments: Vec<String> = key.segments().map(|it| it.into_owned()).collect();
                match segments[0].as_str() {
                    "agents" => segments[1] == VICTIM,
                    "system" => match segments[1].as_str() {
                        "access" => segments[3] == VICTIM,
                        "history" => segments[4] == VICTIM,
                        "agent-log" | "agent-settings" => segments[2] == VICTIM,
                        _ => false,
                    },
                    _ => false,
                }
            };
            rows.into_iter().filter(|(key, _)| is_victims(key)).collect()
        };
        let before = of_victim(everything(&fixture).await);
        assert!(before.len() > 20);
        let names = ["bob", "ad", "adaa", "ada:", "ada:notes", "ada\u{0}", "%61da"];
        for _ in 0..300 {
            let name = names[rng.usize(..names.len())];
            let attacker = fixture.agents.user(name, Actor::agent("a").in_run("k"));
            let told = attempt(&attacker, &cursors, &mut rng, &mut replay).await;
            assert!(!told.contains("the secret"), "{told}");
        }
        fixture.agents.close().await.unwrap();
        assert_eq!(of_victim(everything(&fixture).await), before);
    }
}

#[tokio::test]
async fn a_document_of_another_user_is_never_taken() {
    let fixture = Fixture::new(Place::new(keyward_stores::Kind::Memory)).await;
    let times = r#""createdAt":"2026-02-05T10:00:00Z","updatedAt":"2026-02-05T10:00:00Z""#;
    for text in [
        format!(r#"{{"_id":"ada:notes:aw==","value":1,{times}}}"#),
        format!(r#"{{"userId":"ada","namespace":"notes","key":"k","value":1,{times}}}"#),
        format!(
            r#"{{"_id":"bob:x:notes:aw==","userId":"bob:x","namespace":"notes","key":"k","value":1,{times}}}"#
        ),
    ] {
        let documents = Document::parse_all(&text).unwrap();
        assert_eq!(
            fixture.user("bob").import(documents).await.unwrap_err().code(),
            Code::BadDocument
        );
    }
}

#[tokio::test]
async fn records_of_entries_are_read_like_others_and_written_by_nobody_else() {
    let fixture = Fixture::new(Place::new(keyward_stores::Kind::Memory)).await;
    put(&fixture.user("ada").use_namespace("notes").unwrap(), "k", "1").await;
    let ada = Caller::user("ada");
    let space = fixture.agents.records().space(keyward_agents::SPACE, &ada).unwrap();
    let key = "agents:ada:notes:k".parse().unwrap();
    assert!(space.get(&key).await.unwrap().is_some());
    let draft = keyward_records::Draft::new(json("7"));
    assert_eq!(space.put(&key, draft).await.unwrap_err().code(), Code::Forbidden);
    let deleted = space.delete(&key, Precondition::Any).await;
    assert_eq!(deleted.unwrap_err().code(), Code::Forbidden);
    // As a caller with roles of their own.
    let notes = fixture.agents.caller(&ada.with_role("editor")).unwrap();
    put(&notes.use_namespace("notes").unwrap(), "k", "2").await;
}

#[tokio::test]
async fn roles_of_a_declared_space_are_asked_for_settings_and_logs_too() {
    const SCHEMA: &str = r#"
[stores.app]
[spaces.agent_data_store]
key = "agents:{user}:{namespace}:{key}"
ownership = "user"
read_roles = ["reader"]
write_roles = ["writer"]
"#;
    let place = Place::new(keyward_stores::Kind::Memory);
    let agents = crate::fixture::declared(place.store().await, &place, SCHEMA);
    let settings = keyward_agents::Settings { honour_ttl_seconds: true, ..Default::default() };
    let ada = Caller::user("ada").in_run("r1");
    for (reads, writes) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut caller = ada.clone();
        for (role, has) in [("reader", reads), ("writer", writes)] {
            caller = if has { caller.with_role(role) } else { caller };
        }
        let user = agents.caller(&caller).unwrap();
        let notes = user.use_namespace("notes").unwrap();
        let refused = |has: bool, refused: Option<keyward_agents::Error>| match refused {
            None => assert!(has, "{reads} {writes}"),
            Some(error) => {
                assert!(!has, "{reads} {writes}: {error}");
                assert_eq!(error.code(), Code::Forbidden);
            }
        };
        refused(writes, notes.configure(settings).await.err());
        refused(reads, notes.settings().await.err());
        refused(reads, user.operations("r1", None, 10).await.err());
        refused(reads, user.runs(None, 10).await.err());
        refused(reads && writes, notes.set("k", set("1")).await.err());
    }
}
