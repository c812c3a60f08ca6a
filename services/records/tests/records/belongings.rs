//! Everything of one user.

use keyward_engine::{Put, Scan};
use keyward_key::{KeyRange, Pattern};
use keyward_records::{Belonging, Position, Removed};
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Fixture, json, key, put};

on_every_engine!(a_users_things_are_told_and_removed_and_nobody_elses);

async fn a_users_things_are_told_and_removed_and_nobody_elses(place: Place) {
    let fixture = Fixture::new(place).await;
    let entry = |text: &str| fixture.store().put(key(text), Put::new(json("1")));
    // Users whose names begin alike, or look like more than one segment.
    for user in ["ada", "adam", "ada:b", "bob"] {
        let notes = fixture.space("notes", user);
        for note in ["one", "two"] {
            put(&notes, note, r#"{"title":"t","tags":["x","y"]}"#).await;
        }
        put(&fixture.space("posts", user), "p", r#"{"text":"hi","tags":["x"]}"#).await;
        let own = keyward_key::Prefix::from_segments(["user", user]);
        for last in ["theme", "lock"] {
            entry(&own.child(last).to_key().unwrap().to_string()).await.unwrap();
        }
    }
    let ada = fixture.records.belongings("ada").unwrap();
    let ada = ada.sparing([Pattern::parse("user:{user}:lock").unwrap()]);

    let mut told = Vec::new();
    let mut next = Some(Position::default());
    while let Some(position) = next {
        let (things, after) = ada.page(position).await.unwrap();
        told.extend(things.into_iter().map(|thing| match thing {
            Belonging::Record { space, record } => format!("{space} {}", record.key),
            Belonging::Past { space, key, .. } => format!("past {space} {key}"),
            Belonging::Entry { key, .. } => format!("entry {key}"),
        }));
        next = after;
    }
    told.sort();
    let expected = [
        "entry user:ada:theme",
        "notes user:ada:notes:one",
        "notes user:ada:notes:two",
        "posts user:ada:posts:p",
    ];
    assert_eq!(told, expected);

    let others = |keys: Vec<String>| -> Vec<String> {
        let mut others = keys;
        others.retain(|key| !key.split(':').any(|segment| segment == "ada"));
        others
    };
    let before = others(keys(&fixture).await);
    let removed = ada.remove().await.unwrap();
    assert_eq!(removed, Removed { records: 3, versions: 0, entries: 1 });
    let after = keys(&fixture).await;
    let left: Vec<&String> =
        after.iter().filter(|key| key.split(':').any(|segment| segment == "ada")).collect();
    assert_eq!(left, ["user:ada:lock"], "index entries go with their records");
    assert_eq!(others(after), before);
    assert_eq!(ada.remove().await.unwrap(), Removed::default());
}

async fn keys(fixture: &Fixture) -> Vec<String> {
    let mut scan = Scan::new(KeyRange::all()).keys_only();
    let mut keys = Vec::new();
    loop {
        let page = fixture.store().scan(&scan).await.unwrap();
        keys.extend(page.rows.iter().map(|row| row.key.to_string()));
        if page.next.is_none() {
            keys.sort();
            return keys;
        }
        scan.after = page.next;
    }
}
