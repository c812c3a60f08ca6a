//! Exports to a folder.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::fixture::{Fixture, drained, read};

#[tokio::test]
async fn a_policy_is_exported_as_a_file_with_front_matter() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({ "site": { "export": fixture.place("out") } }));
    fixture
        .repository
        .write("docs/학칙.md", "---\nowner: 학생처\n---\n# 학칙: \"제1조\" # 총칙\n\n본문\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(1, 0, 0));
    let sha = fixture.repository.id_of("docs/학칙.md");
    let updated = fixture.value("policy:학칙").await.unwrap()["lastUpdated"].clone();
    assert_eq!(
        read(fixture.path("out/policies/학칙/policy.md")),
        format!(
            "---\npolicyName: 학칙\ntitle: \"학칙: \\\"제1조\\\" # 총칙\"\nstatus: active\nsha: {sha}\n\
             path: docs/학칙.md\nlastUpdated: {updated}\nfrontMatter:\n  owner: 학생처\n---\n\n\
             # 학칙: \"제1조\" # 총칙\n\n본문\n",
        )
    );
}

#[tokio::test]
async fn names_that_are_odd_are_folders_of_their_own() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({ "site": { "export": fixture.place("out") } }));
    let names = [
        "100%",
        "%31%30%30%25",
        "a:b",
        "a#b",
        "~",
        "a.",
        ".hidden",
        "...",
        "CON",
        "a b",
        "개인 정보",
        "*",
        "'",
    ];
    for name in names {
        fixture.repository.write(&format!("{name}.md"), format!("# Of {name}\n"));
    }
    fixture.sync(&registry).await;
    let done = fixture.drain(&registry).await;
    assert_eq!(done, drained(names.len() as u64, 0, 0));
    for name in names {
        let file = read(fixture.path("out/policies").join(name).join("policy.md"));
        assert!(file.ends_with(&format!("\n# Of {name}\n")), "{file}");
    }
    let written = std::fs::read_dir(fixture.path("out/policies")).unwrap().count();
    assert_eq!(written, names.len());
}

#[tokio::test]
async fn links_in_an_export_lead_nowhere() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({ "site": { "export": fixture.place("out") } }));
    std::fs::create_dir_all(fixture.path("outside")).unwrap();
    std::fs::create_dir_all(fixture.path("out/policies/b")).unwrap();
    std::fs::write(fixture.path("outside/policy.md"), "theirs").unwrap();
    symlink(fixture.path("outside"), fixture.path("out/policies/a")).unwrap();
    symlink(fixture.path("outside/policy.md"), fixture.path("out/policies/b/policy.md")).unwrap();
    fixture.repository.write("a.md", "# A\n").write("b.md", "# B\n");
    fixture.sync(&registry).await;
    // A folder that is a link is refused; a file that is one is replaced.
    assert_eq!(fixture.drain(&registry).await, drained(1, 1, 1));
    let error = registry.queue().message("a").await.unwrap().unwrap().error.unwrap();
    assert!(error.contains("links are not followed"), "{error}");
    assert!(read(fixture.path("out/policies/b/policy.md")).ends_with("# B\n"));
    let metadata = std::fs::symlink_metadata(fixture.path("out/policies/b/policy.md")).unwrap();
    assert!(metadata.is_file());

    // A deletion removes nothing there, and repair neither reads nor writes.
    let repaired = registry.repair("site").await.unwrap();
    assert_eq!((repaired.written, repaired.problem_count), (0, 1), "{repaired:?}");
    fixture.repository.remove("a.md");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(0, 1, 1));
    assert_eq!(read(fixture.path("outside/policy.md")), "theirs");
    assert_eq!(std::fs::read_dir(fixture.path("outside")).unwrap().count(), 1);

    // The folder of all policies as well.
    std::fs::remove_dir_all(fixture.path("out/policies/b")).unwrap();
    std::fs::remove_dir_all(fixture.path("out/policies")).unwrap();
    symlink(fixture.path("outside"), fixture.path("out/policies")).unwrap();
    fixture.repository.write("c.md", "# C\n");
    fixture.sync(&registry).await;
    assert_eq!(registry.drain().await.unwrap().completed, 0);
    assert_eq!(std::fs::read_dir(fixture.path("outside")).unwrap().count(), 1);
}

#[tokio::test]
async fn what_others_keep_beside_a_policy_stays() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({ "site": { "export": fixture.place("out") } }));
    fixture.repository.write("a.md", "# A\n").write("b.md", "# B\n");
    fixture.sync(&registry).await;
    fixture.drain(&registry).await;
    std::fs::write(fixture.path("out/policies/a/note.txt"), "mine").unwrap();
    fixture.repository.remove("a.md").remove("b.md").write("c.md", "# C\n");
    fixture.sync(&registry).await;
    assert_eq!(fixture.drain(&registry).await, drained(3, 0, 0));
    assert!(!fixture.path("out/policies/a/policy.md").exists());
    assert_eq!(read(fixture.path("out/policies/a/note.txt")), "mine");
    assert!(!fixture.path("out/policies/b").exists());
}

#[tokio::test]
async fn what_a_writer_that_died_has_left_is_swept_away() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({ "site": { "export": fixture.place("out") } }));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    std::fs::create_dir_all(fixture.path("out/policies/a")).unwrap();
    std::fs::write(fixture.path("out/policies/a/.policy.md.00ff.part"), "hal").unwrap();
    assert_eq!(fixture.drain(&registry).await, drained(1, 0, 0));
    let left: Vec<_> = std::fs::read_dir(fixture.path("out/policies/a"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["policy.md"]);
}

#[tokio::test]
async fn a_file_that_is_right_is_not_touched_when_a_change_comes_again() {
    let fixture = Fixture::new();
    let registry = fixture.registry(json!({
        "site": { "export": fixture.place("out") }, "never": { "command": ["false"] },
    }));
    fixture.repository.write("a.md", "# A\n");
    fixture.sync(&registry).await;
    fixture.drain(&registry).await;
    let file = fixture.path("out/policies/a/policy.md");
    let inode = |file: &std::path::Path| {
        std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(file).unwrap())
    };
    let before = inode(&file);
    // As if it had not been written down that the export has accepted.
    let done = keyward_key::Key::parse("system:registry:policies:done:site:a").unwrap();
    fixture.store().delete(done.clone()).await.unwrap();
    fixture.drain(&registry).await;
    assert!(fixture.store().get(&done).await.unwrap().is_some());
    assert_eq!(inode(&file), before);
}
