//! Two schemas that give one name to different spaces of one store.

use keyward_engine::Tier;
use keyward_migrate::{Doctor, Error};
use keyward_records::Draft;
use keyward_stores::{Place, on_engines};

use crate::fixture::{
    PLAIN, add, assert_done, found, indexed, json, key, migrate, migrator, open, operator, rows,
};
use crate::rekeying::rekey;

on_engines!(
    memory: Memory, embedded: Embedded, postgres: Postgres, recoverable: Recoverable;
    the_second_of_two_spaces_with_one_name_is_told_and_touches_nothing_of_the_first,
    a_space_whose_keys_changed_is_told_until_its_records_are_moved,
);

/// Other notes, of teams.
const TEAMS: &str = r#"
[stores.app]
[spaces.notes]
key = "team:{team}:notes:{note}"
ownership = "shared"
[spaces.notes.value]
type = "object"
[spaces.notes.value.properties]
title = { type = "string" }
author = { type = "string" }
[spaces.notes.indexes.by_title]
field = "title"
[spaces.notes.indexes.by_author]
field = "author"
"#;

async fn write(records: &keyward_records::Records, at: &str) {
    let draft = Draft::new(json(r#"{"title":"t"}"#));
    assert!(operator(records, "notes").put(&key(at), draft).await.unwrap().is_accepted());
}

async fn the_second_of_two_spaces_with_one_name_is_told_and_touches_nothing_of_the_first(
    place: Place,
) {
    let users = open(&place, &indexed()).await;
    write(&users, "user:ada:notes:n1").await;
    migrate(&users, place.clock()).await;
    let teams = open(&place, TEAMS).await;
    let before = rows(users.store(), "index").await;
    assert_eq!(before.len(), 1);

    let plan = migrator(&teams, place.clock()).plan().await.unwrap();
    assert!(plan.build.is_empty() && plan.undeclared.is_empty() && !plan.is_empty(), "{plan:?}");
    let told: Vec<&str> = plan.differing.iter().map(|it| it.keys.as_str()).collect();
    assert_eq!(told, ["user:{user}:notes:{note}"]);
    for index in ["by_title", "by_author"] {
        let step = add(&teams, "notes", index);
        let refused = migrator(&teams, place.clock()).run(step, |_| ()).await.unwrap_err();
        assert!(matches!(refused, Error::Refused(_)), "{refused:?}");
        assert!(refused.to_string().contains("another name"), "{refused}");
    }
    // Nor by writing: no index of the second is made under the name of the first.
    write(&teams, "team:x:notes:n1").await;
    assert!(!users.catalog().await.unwrap().indexes.contains_key("by_author"));
    let report = Doctor::new(teams.clone()).repair(true).run(|_| ()).await.unwrap();
    assert_eq!(report.counts.get("space-differs"), Some(&1), "{report:#?}");
    assert_eq!(report.repaired, 0, "{report:#?}");
    let after = rows(users.store(), "index").await;
    assert!(before.iter().all(|entry| after.contains(entry)), "{after:?}");
    assert_eq!(found(&users, "ada", "by_title", "t").await, 1);
    assert!(migrator(&users, place.clock()).plan().await.unwrap().is_empty());

    // Under another name, and with other names of indexes, it is a space like any other.
    let renamed = TEAMS.replace("spaces.notes", "spaces.team_notes");
    let renamed = renamed.replace("by_title", "by_team_title");
    let teams = open(&place, &renamed).await;
    let plan = migrator(&teams, place.clock()).plan().await.unwrap();
    assert!(plan.differing.is_empty() && plan.build.len() == 2, "{plan:?}");
    migrate(&teams, place.clock()).await.iter().for_each(assert_done);
}

async fn a_space_whose_keys_changed_is_told_until_its_records_are_moved(place: Place) {
    let old = open(&place, &indexed()).await;
    write(&old, "user:ada:notes:n1").await;
    migrate(&old, place.clock()).await;
    let (from, to) = ("user:{user}:notes:{note}", "user:{user}:papers:{note}");
    let new = open(&place, &indexed().replace(from, to)).await;
    let plan = migrator(&new, place.clock()).plan().await.unwrap();
    assert_eq!(plan.differing.len(), 1, "{plan:?}");
    assert!(plan.differing[0].to_string().contains("rekey"), "{plan:?}");
    let moved = migrator(&new, place.clock()).run(rekey(from, to, &[]), |_| ()).await.unwrap();
    assert_done(&moved);
    assert!(migrator(&new, place.clock()).plan().await.unwrap().is_empty());
    let report = Doctor::new(new.clone()).run(|_| ()).await.unwrap();
    assert_eq!(report.left(), 0, "{report:#?}");
    assert_eq!(found(&new, "ada", "by_title", "t").await, 1);
    // Whoever comes with the old schema now is the one who is told.
    let late = open(&place, &indexed()).await;
    assert_eq!(migrator(&late, place.clock()).plan().await.unwrap().differing.len(), 1);
}

/// What an earlier version left in the catalog says nothing of keys.
#[tokio::test]
async fn a_catalog_that_knows_no_keys_learns_them_with_the_next_index() {
    let place = Place::new(keyward_stores::Kind::Memory);
    let users = open(&place, &indexed()).await;
    assert_eq!(users.store().capabilities().tier(), Tier::Atomic);
    write(&users, "user:ada:notes:n1").await;
    let forget = users.change_catalog(|content| {
        content.spaces.clear();
        content.indexes.remove("by_tag");
        Ok(())
    });
    forget.await.unwrap();
    let teams = open(&place, TEAMS).await;
    let plan = migrator(&teams, place.clock()).plan().await.unwrap();
    assert!(plan.differing.is_empty(), "nothing tells them apart: {plan:?}");
    let step = add(&users, "notes", "by_tag");
    assert_done(&migrator(&users, place.clock()).run(step, |_| ()).await.unwrap());
    let plan = migrator(&teams, place.clock()).plan().await.unwrap();
    assert_eq!(plan.differing.len(), 1, "{plan:?}");
    assert!(migrator(&open(&place, PLAIN).await, place.clock()).plan().await.is_ok());
}
