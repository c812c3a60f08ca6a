//! Lists by the database's own index.

use std::collections::BTreeSet;

use keyward_engine::DocumentList;

use super::super::database::{Database, assert_same, entry, is_applied, json, list};

pub async fn a_list_has_all_groups_of_its_owner_and_nothing_else(database: Database) {
    database.prepare().await;
    for (id, owner, group) in [
        ("d1", "ada", "default"),
        ("d2", "ada", "files:my-repo"),
        ("d3", "ada", "default"),
        ("d4", "bob", "default"),
        ("d5", "ada:default", "default"),
        ("d6", "ad", "a"),
        ("d7", "adam", "default"),
    ] {
        database.create(id, &entry(owner, group, "1")).await;
    }
    database.assert_listed("ada", None, &["d1", "d2", "d3"]).await;
    database.assert_listed("bob", None, &["d4"]).await;
    let rows = database.rows(list("ada", None)).await;
    let groups: BTreeSet<(&str, &str)> =
        rows.iter().map(|row| (row.id.as_str(), row.group.as_str())).collect();
    let expected = [("d1", "default"), ("d2", "files:my-repo"), ("d3", "default")];
    assert_eq!(groups, expected.into());
}

pub async fn a_list_of_a_group_has_that_group_alone(database: Database) {
    database.prepare().await;
    for (id, owner, group) in [
        ("d1", "a", "b"),
        ("d2", "a", "b:default"),
        ("d3", "a:b", "default"),
        ("d4", "a", "b:default"),
        ("d5", "a", "B"),
        ("d6", "a", "b "),
        ("d7", "a", "c/d?e=f&g+h%20 \"i\" 'j' é"),
        ("d8", "o'hara \"x\" & \\ % + ü", "b"),
    ] {
        database.create(id, &entry(owner, group, "1")).await;
    }
    for (owner, group, ids) in [
        ("a", "b", &["d1"][..]),
        ("a", "b:default", &["d2", "d4"]),
        ("a:b", "default", &["d3"]),
        ("a", "B", &["d5"]),
        ("a", "b ", &["d6"]),
        ("a", "c/d?e=f&g+h%20 \"i\" 'j' é", &["d7"]),
        ("o'hara \"x\" & \\ % + ü", "b", &["d8"]),
        ("a", "default", &[]),
        ("a:b", "b", &[]),
        ("a", "b:defaul", &[]),
    ] {
        database.assert_listed(owner, Some(group), ids).await;
    }
}

/// Some databases compare texts as people sort them, who see no difference between these.
pub async fn owners_that_look_alike_are_apart(database: Database) {
    database.prepare().await;
    let alike = [
        "ada",
        "Ada",
        "ad\u{e1}",
        "ada\u{301}",
        "ada\u{200d}",
        "ada\u{ad}",
        "ada ",
        "\u{2170}",
        "i",
    ];
    for (n, text) in alike.iter().enumerate() {
        database.create(&format!("owner {n}"), &entry(text, "n", "1")).await;
        database.create(&format!("group {n}"), &entry("bob", text, "1")).await;
    }
    for (n, text) in alike.iter().enumerate() {
        database.assert_listed(text, None, &[&format!("owner {n}")]).await;
        database.assert_listed(text, Some("n"), &[&format!("owner {n}")]).await;
        database.assert_listed("bob", Some(text), &[&format!("group {n}")]).await;
    }
}

pub async fn thousands_of_documents_are_listed_over_pages_once_each(database: Database) {
    const DOCUMENTS: usize = 2_600;
    database.prepare().await;
    let group = |n: usize| ["default", "files:my-repo", "n"][n % 3];
    let all = (0..DOCUMENTS).map(|n| {
        let id = format!("ada:{}:{n}", group(n));
        (id, entry("ada", group(n), &n.to_string()))
    });
    let others = (0..50).map(|n| (format!("bob:{n}"), entry("bob", group(n), "1")));
    database.fill(all.chain(others).collect()).await;
    let ids = |which: &dyn Fn(usize) -> bool| -> Vec<String> {
        let some = (0..DOCUMENTS).filter(|n| which(*n));
        some.map(|n| format!("ada:{}:{n}", group(n))).collect()
    };
    let (all, some) = (ids(&|_| true), ids(&|n| group(n) == "default"));
    for (of, ids) in [(None, &all), (Some("default"), &some)] {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        database.assert_listed("ada", of, &ids).await;
        // In small pages, whose ends lie elsewhere.
        let small = DocumentList { limit: 97, ..list("ada", of) };
        let rows = database.rows(small).await;
        let listed: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(listed, ids.iter().copied().collect::<BTreeSet<&str>>());
    }
}

pub async fn lists_carry_documents_only_if_asked_for(database: Database) {
    database.prepare().await;
    let fields = |n: usize| entry("ada", "n", &format!(r#"{{"n":{n},"text":"x"}}"#));
    for n in 0..30 {
        database.create(&format!("d{n}"), &fields(n)).await;
    }
    let ids: Vec<String> = (0..30).map(|n| format!("d{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    database.assert_listed("ada", Some("n"), &ids).await;
    for group in [None, Some("n")] {
        let with = DocumentList { with_documents: true, limit: 7, ..list("ada", group) };
        let rows = database.rows(with).await;
        assert_eq!(rows.len(), 30);
        for row in rows {
            let document = row.document.unwrap();
            assert_eq!(document.id, row.id);
            let n = row.id.trim_start_matches('d').parse().unwrap();
            assert_same(&document.fields, &fields(n));
        }
    }
    // A document of a list is good for a swap, as one that was read by its id.
    let with = DocumentList { with_documents: true, ..list("ada", Some("n")) };
    let row = database.rows(with).await.into_iter().find(|row| row.id == "d3").unwrap();
    let swapped = database.put("d3", &fields(99), row.document.as_ref()).await;
    assert!(is_applied(&swapped));
}

pub async fn a_list_follows_creates_and_deletes(database: Database) {
    database.prepare().await;
    let first = database.create("d1", &entry("ada", "n", "1")).await;
    database.assert_listed("ada", Some("n"), &["d1"]).await;
    database.create("d2", &entry("ada", "n", "1")).await;
    database.assert_listed("ada", Some("n"), &["d1", "d2"]).await;
    // A document that moves to another group or owner is listed there alone.
    assert!(is_applied(&database.put("d1", &entry("ada", "m", "1"), Some(&first)).await));
    database.assert_listed("ada", Some("n"), &["d2"]).await;
    database.assert_listed("ada", Some("m"), &["d1"]).await;
    let second = database.present("d2").await;
    assert!(is_applied(&database.documents.delete(&second).await.unwrap()));
    database.assert_listed("ada", None, &["d1"]).await;
    database.assert_listed("ada", Some("n"), &[]).await;
}

pub async fn documents_without_owner_or_group_are_in_no_list(database: Database) {
    database.prepare().await;
    for (id, fields) in [
        ("d1", r#"{"namespace":"n","key":"k","value":1}"#),
        ("d2", r#"{"userId":"ada","key":"k","value":1}"#),
        ("d3", r#"{"anything":"else"}"#),
        ("d4", r#"{}"#),
    ] {
        database.create(id, &json(fields)).await;
    }
    database.create("d5", &entry("ada", "n", "1")).await;
    database.assert_listed("ada", Some("n"), &["d5"]).await;
    database.assert_listed("ada", None, &["d5"]).await;
}

pub async fn an_owner_without_documents_has_an_empty_list(database: Database) {
    database.prepare().await;
    database.assert_listed("nobody", None, &[]).await;
    database.assert_listed("nobody", Some("n"), &[]).await;
    database.create("d1", &entry("ada", "n", "1")).await;
    database.settle().await;
    database.assert_listed("nobody", None, &[]).await;
}
