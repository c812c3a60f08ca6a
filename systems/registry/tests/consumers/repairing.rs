//! Exports that put themselves right.

use keyward_engine::{Code, Coded};
use keyward_registry::{Error, Repaired};
use serde_json::json;

use crate::fixture::{Fixture, drained, read};
use crate::server::{Answer, Server};

fn file(fixture: &Fixture, name: &str) -> std::path::PathBuf {
    fixture.path("out/policies").join(name).join("policy.md")
}

#[tokio::test]
async fn what_an_export_missed_while_it_was_away_is_put_right_and_its_dead_letters_dropped() {
    let fixture = Fixture::new();
    let server = Server::start([]).await;
    let registry = fixture.registry(json!({
        "site": { "export": fixture.place("out") }, "hook": { "post": server.url },
    }));
    fixture.repository.write("a.md", "# A\n").write("gone.md", "# Gone\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(2, 0, 0));

    // The disk is away: one policy is changed, one comes, one goes.
    std::fs::rename(fixture.path("out"), fixture.path("away")).unwrap();
    std::fs::write(fixture.path("out"), "no folder").unwrap();
    fixture.repository.write("a.md", "# A2\n").write("새.md", "# 새\n").remove("gone.md");
    fixture.sync(&registry).await;
    for left in [3, 3, 0] {
        assert_eq!(fixture.drain(&registry).await, drained(0, 3, left));
    }
    assert_eq!(fixture.dead_letters(&registry).await.len(), 3);
    assert_eq!(server.seen().len(), 5);
    let refused = registry.repair("site").await.unwrap_err();
    assert!(matches!(refused, Error::Consumer { .. }), "{refused}");
    assert_eq!(fixture.dead_letters(&registry).await.len(), 3);

    std::fs::remove_file(fixture.path("out")).unwrap();
    std::fs::rename(fixture.path("away"), fixture.path("out")).unwrap();
    let repaired = registry.repair("site").await.unwrap();
    let expected =
        Repaired { checked: 2, written: 2, removed: 1, dead_letters: 3, ..Repaired::default() };
    assert_eq!(repaired, expected);
    assert!(read(file(&fixture, "a")).ends_with("# A2\n"));
    assert!(read(file(&fixture, "새")).ends_with("# 새\n"));
    assert!(!fixture.path("out/policies/gone").exists());
    assert!(fixture.dead_letters(&registry).await.is_empty());
    let accepted = fixture.accepted().await;
    let expected = ["hook:a update", "hook:gone delete", "hook:새 add"];
    assert_eq!(accepted[..3], expected);
    assert_eq!(accepted[3..], ["site:a update", "site:gone delete", "site:새 update"]);
    // Nothing is left to be done, and nobody is told again.
    let again = registry.repair("site").await.unwrap();
    assert_eq!(again, Repaired { checked: 2, ..Repaired::default() });
    assert_eq!(fixture.drain(&registry).await, drained(0, 0, 0));
    assert_eq!(server.seen().len(), 5);
}

#[tokio::test]
async fn a_dead_letter_stays_as_long_as_another_consumer_has_to_be_told() {
    let fixture = Fixture::new();
    let no = || Answer::Say(500, String::new());
    let server = Server::start(std::iter::repeat_with(no).take(3)).await;
    let registry = fixture.registry(json!({
        "site": { "export": fixture.place("out") }, "hook": { "post": server.url },
    }));
    std::fs::write(fixture.path("out"), "no folder").unwrap();
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    for left in [1, 1, 0] {
        fixture.drain(&registry).await;
        assert_eq!(registry.queue().stats().await.unwrap().delayed.count, left);
    }
    std::fs::remove_file(fixture.path("out")).unwrap();
    let repaired = registry.repair("site").await.unwrap();
    assert_eq!((repaired.written, repaired.dead_letters), (1, 0));
    assert_eq!(registry.requeue_all().await.unwrap(), 1);
    assert_eq!(fixture.drain(&registry).await, drained(1, 0, 0));
    assert_eq!(server.seen().len(), 4);
}

#[tokio::test]
async fn files_that_were_deleted_or_changed_are_written_anew_and_those_of_others_left_alone() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({ "site": { "export": fixture.place("out") } }));
    for name in ["deleted", "changed", "same-size", "emptied", "fine"] {
        fixture.repository.write(&format!("{name}.md"), "# Title\n\nBody\n");
    }
    fixture.sync(&registry).await;
    fixture.drain(&registry).await;
    let right = read(file(&fixture, "deleted"));
    let fine = std::fs::metadata(file(&fixture, "fine")).unwrap().modified().unwrap();
    std::fs::remove_file(file(&fixture, "deleted")).unwrap();
    std::fs::write(file(&fixture, "changed"), "other").unwrap();
    let same_size = read(file(&fixture, "same-size")).replace("Body", "Ydob");
    std::fs::write(file(&fixture, "same-size"), same_size).unwrap();
    std::fs::write(file(&fixture, "emptied"), "").unwrap();
    std::fs::create_dir_all(fixture.path("out/policies/theirs")).unwrap();
    std::fs::write(file(&fixture, "theirs"), "theirs").unwrap();
    std::fs::write(fixture.path("out/policies/note"), "theirs").unwrap();
    std::fs::write(fixture.path("out/index.html"), "theirs").unwrap();

    let repaired = registry.repair("site").await.unwrap();
    let expected = Repaired { checked: 5, written: 4, unknown: 1, ..Repaired::default() };
    assert_eq!(repaired, expected);
    assert_eq!(read(file(&fixture, "deleted")), right);
    for name in ["changed", "same-size", "emptied"] {
        assert!(read(file(&fixture, name)).ends_with("# Title\n\nBody\n"), "{name}");
    }
    assert_eq!(std::fs::metadata(file(&fixture, "fine")).unwrap().modified().unwrap(), fine);
    for path in ["out/policies/theirs/policy.md", "out/policies/note", "out/index.html"] {
        assert_eq!(read(fixture.path(path)), "theirs");
    }
}

#[tokio::test]
async fn an_export_that_is_new_is_filled() {
    let fixture = Fixture::new();
    let before = fixture.registry(json!({ "log": { "command": ["true"] } }));
    fixture.repository.write("a.md", "# A\n").write("b.md", "# B\n");
    fixture.sync(&before).await;
    fixture.drain(&before).await;
    let registry = fixture.registry(json!({ "site": { "export": fixture.place("out") } }));
    let repaired = registry.repair("site").await.unwrap();
    assert_eq!(repaired, Repaired { checked: 2, written: 2, ..Repaired::default() });
    assert!(read(file(&fixture, "b")).ends_with("# B\n"));
}

#[tokio::test]
async fn only_exports_can_be_put_right() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({ "log": { "command": ["true"] } }));
    let refused = registry.repair("log").await.unwrap_err();
    assert!(matches!(refused, Error::Consumer { .. }), "{refused}");
    let refused = registry.repair("nobody").await.unwrap_err();
    assert_eq!(refused.code(), Code::UnknownConsumer);
}

#[tokio::test]
async fn what_a_writer_that_did_not_know_of_a_deletion_has_left_is_removed() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({ "site": { "export": fixture.place("out") } }));
    fixture.repository.write("a.md", "# A\n").write("b.md", "# B\n");
    fixture.sync(&registry).await;
    fixture.drain(&registry).await;
    let written = read(file(&fixture, "a"));
    fixture.repository.remove("a.md");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(1, 0, 0));
    // It comes late, and its writer dies.
    std::fs::create_dir_all(fixture.path("out/policies/a")).unwrap();
    std::fs::write(file(&fixture, "a"), &written).unwrap();
    let repaired = registry.repair("site").await.unwrap();
    assert_eq!(repaired, Repaired { checked: 1, removed: 1, ..Repaired::default() });
    assert!(!fixture.path("out/policies/a").exists());
}
