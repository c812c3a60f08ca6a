//! The directory of text files that models edit.

use keyward_agents::{Actor, Memories, MemoryAnswer, MemoryCommand};
use keyward_engine::Tier;
use keyward_records::Relocated;
use keyward_stores::{Place, on_engines};

use crate::fixture::{Fixture, json, put};

on_engines!(
    memory: Memory, recoverable: Recoverable, embedded: Embedded, postgres: Postgres;
    a_model_is_answered_in_the_words_it_knows,
    what_cannot_be_done_is_told_in_the_words_a_model_knows,
    directories_are_renamed_and_removed_with_what_lies_in_them,
    edits_of_one_file_at_once_are_all_kept,
    a_renamed_entry_keeps_its_accesses_and_its_history,
    memories_of_two_users_are_apart,
);

fn command(text: &str) -> MemoryCommand {
    serde_json::from_str(text).unwrap()
}

async fn answer(memories: &Memories, text: &str) -> MemoryAnswer {
    memories.run(&command(text)).await.unwrap()
}

async fn done(memories: &Memories, text: &str) -> String {
    let answer = answer(memories, text).await;
    assert!(!answer.failed, "{text}: {}", answer.text);
    answer.text
}

async fn refused(memories: &Memories, text: &str) -> String {
    let answer = answer(memories, text).await;
    assert!(answer.failed, "{text}: {}", answer.text);
    answer.text
}

async fn create(memories: &Memories, path: &str, text: &str) {
    let command = MemoryCommand::Create { path: path.into(), file_text: text.into() };
    assert!(!memories.run(&command).await.unwrap().failed);
}

async fn a_model_is_answered_in_the_words_it_knows(place: Place) {
    let fixture = Fixture::new(place).await;
    let memories = fixture.user("ada").memories().unwrap();
    let header = "Here're the files and directories up to 2 levels deep in /memories, excluding \
                  hidden items and node_modules:";
    let empty = done(&memories, r#"{"command":"view","path":"/memories"}"#).await;
    assert_eq!(empty, format!("{header}\n0B\t/memories"));

    let made = r#"{"command":"create","path":"/memories/prefs.md","file_text":"one\ntwo\nthree\nfour\nfive\nsix\n"}"#;
    assert_eq!(done(&memories, made).await, "File created successfully at: /memories/prefs.md");
    let replaced = r#"{"command":"str_replace","path":"/memories/prefs.md","old_str":"four","new_str":"FOUR"}"#;
    assert_eq!(
        done(&memories, replaced).await,
        "The memory file has been edited. Here is the snippet showing the change (with line \
         numbers):\n     2\ttwo\n     3\tthree\n     4\tFOUR\n     5\tfive\n     6\tsix"
    );
    let inserted = r##"{"command":"insert","path":"/memories/prefs.md","insert_line":0,"insert_text":"# Ada\n"}"##;
    assert_eq!(done(&memories, inserted).await, "The file /memories/prefs.md has been edited.");
    let shown = r#"{"command":"view","path":"/memories/prefs.md","view_range":[1,2]}"#;
    assert_eq!(
        done(&memories, shown).await,
        "Here's the content of /memories/prefs.md with line numbers:\n     1\t# Ada\n     2\tone"
    );
    let to_the_end = r#"{"command":"view","path":"/memories/prefs.md","view_range":[6,-1]}"#;
    assert!(done(&memories, to_the_end).await.ends_with(":\n     6\tfive\n     7\tsix"));
    let removed = r#"{"command":"str_replace","path":"/memories/prefs.md","old_str":"one\n"}"#;
    done(&memories, removed).await;

    create(&memories, "/memories/projects/a/deep/notes.md", &"x".repeat(1_536)).await;
    create(&memories, "/memories/.hidden", "not shown").await;
    let listed = done(&memories, r#"{"command":"view","path":"/memories/"}"#).await;
    assert_eq!(
        listed,
        format!(
            "{header}\n1.5K\t/memories\n30B\t/memories/prefs.md\n1.5K\t/memories/projects/\n\
             1.5K\t/memories/projects/a/"
        )
    );
}

async fn what_cannot_be_done_is_told_in_the_words_a_model_knows(place: Place) {
    let fixture = Fixture::new(place).await;
    let memories = fixture.user("ada").memories().unwrap();
    create(&memories, "/memories/a.md", "dup\nmiddle\ndup\n").await;
    create(&memories, "/memories/dir/b.md", "b").await;
    for (command, told) in [
        (
            r#"{"command":"view","path":"/memories/none"}"#,
            "The path /memories/none does not exist. Please provide a valid path.",
        ),
        (
            r#"{"command":"create","path":"/memories/a.md","file_text":"x"}"#,
            "Error: File /memories/a.md already exists",
        ),
        (
            r#"{"command":"create","path":"/memories/dir","file_text":"x"}"#,
            "Error: /memories/dir is a directory",
        ),
        (
            r#"{"command":"create","path":"/memories/a.md/c","file_text":"x"}"#,
            "Error: /memories/a.md is a file, not a directory",
        ),
        (
            r#"{"command":"str_replace","path":"/memories/none","old_str":"a","new_str":"b"}"#,
            "Error: The path /memories/none does not exist. Please provide a valid path.",
        ),
        (
            r#"{"command":"str_replace","path":"/memories/a.md","old_str":"x","new_str":"b"}"#,
            "No replacement was performed, old_str `x` did not appear verbatim in /memories/a.md.",
        ),
        (
            r#"{"command":"str_replace","path":"/memories/a.md","old_str":"dup","new_str":"b"}"#,
            "No replacement was performed. Multiple occurrences of old_str `dup` in lines: 1, 3. \
             Please ensure it is unique",
        ),
        (
            r#"{"command":"insert","path":"/memories/none","insert_line":0,"insert_text":"x"}"#,
            "Error: The path /memories/none does not exist",
        ),
        (
            r#"{"command":"insert","path":"/memories/a.md","insert_line":4,"insert_text":"x"}"#,
            "Error: Invalid `insert_line` parameter: 4. It should be within the range of lines of \
             the file: [0, 3]",
        ),
        (
            r#"{"command":"delete","path":"/memories/none"}"#,
            "Error: The path /memories/none does not exist",
        ),
        (
            r#"{"command":"delete","path":"/memories"}"#,
            "Error: The directory /memories itself stays",
        ),
        (
            r#"{"command":"rename","old_path":"/memories/none","new_path":"/memories/x"}"#,
            "Error: The path /memories/none does not exist",
        ),
        (
            r#"{"command":"rename","old_path":"/memories/a.md","new_path":"/memories/dir/b.md"}"#,
            "Error: The destination /memories/dir/b.md already exists",
        ),
        (
            r#"{"command":"rename","old_path":"/memories/dir","new_path":"/memories/a.md/dir"}"#,
            "Error: /memories/a.md is a file, not a directory",
        ),
        (
            r#"{"command":"rename","old_path":"/memories/dir","new_path":"/memories/dir/in"}"#,
            "Error: /memories/dir cannot become /memories/dir/in, which lies in it",
        ),
    ] {
        assert_eq!(refused(&memories, command).await, told, "{command}");
    }
    for outside in ["/etc/passwd", "/memories/../a", "/memories/a//b", "memories/a"] {
        let command = MemoryCommand::Delete { path: outside.into() };
        let answer = memories.run(&command).await.unwrap();
        assert!(answer.failed && answer.text.contains("paths are /memories or below it"));
    }
    // Nothing of it did anything.
    let text = done(&memories, r#"{"command":"view","path":"/memories/a.md"}"#).await;
    assert!(text.ends_with(":\n     1\tdup\n     2\tmiddle\n     3\tdup"), "{text}");
}

async fn directories_are_renamed_and_removed_with_what_lies_in_them(place: Place) {
    let fixture = Fixture::new(place).await;
    let memories = fixture.user("ada").memories().unwrap();
    for n in 0..7 {
        create(&memories, &format!("/memories/old/{n}/f.md"), &n.to_string()).await;
    }
    create(&memories, "/memories/older.md", "stays").await;
    let renamed = r#"{"command":"rename","old_path":"/memories/old","new_path":"/memories/new"}"#;
    let told = done(&memories, renamed).await;
    assert_eq!(told, "Successfully renamed /memories/old to /memories/new");
    let gone = r#"{"command":"view","path":"/memories/old"}"#;
    refused(&memories, gone).await;
    let moved = done(&memories, r#"{"command":"view","path":"/memories/new/6/f.md"}"#).await;
    assert!(moved.ends_with("     1\t6"), "{moved}");
    let deleted = r#"{"command":"delete","path":"/memories/new"}"#;
    assert_eq!(done(&memories, deleted).await, "Successfully deleted /memories/new");
    let left = done(&memories, r#"{"command":"view","path":"/memories"}"#).await;
    assert!(left.ends_with(":\n5B\t/memories\n5B\t/memories/older.md"), "{left}");
}

async fn edits_of_one_file_at_once_are_all_kept(place: Place) {
    const EDITORS: usize = 8;
    const EDITS: usize = 5;
    let fixture = Fixture::new(place).await;
    let other = fixture.again().await;
    let memories = fixture.user("ada").memories().unwrap();
    create(&memories, "/memories/log.md", "start\n").await;
    let mut tasks = Vec::new();
    for editor in 0..EDITORS {
        let agents = if editor % 2 == 0 { &fixture.agents } else { &other };
        let user = agents.user("ada", Actor::agent(format!("editor-{editor}")));
        let memories = user.memories().unwrap();
        tasks.push(tokio::spawn(async move {
            for edit in 0..EDITS {
                let command = MemoryCommand::Insert {
                    path: "/memories/log.md".into(),
                    insert_line: 1,
                    insert_text: format!("{editor}-{edit}\n"),
                };
                assert!(!memories.run(&command).await.unwrap().failed);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let text = done(&memories, r#"{"command":"view","path":"/memories/log.md"}"#).await;
    for editor in 0..EDITORS {
        for edit in 0..EDITS {
            assert_eq!(text.matches(&format!("\t{editor}-{edit}")).count(), 1, "{text}");
        }
    }
}

async fn a_renamed_entry_keeps_its_accesses_and_its_history(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.namespace("default");
    put(&notes, "old", "1").await;
    put(&notes, "old", "2").await;
    for _ in 0..3 {
        notes.get("old").await.unwrap();
    }
    put(&notes, "taken", "9").await;
    assert_eq!(notes.rename("old", "taken").await.unwrap(), Relocated::Taken);
    assert_eq!(notes.rename("none", "new").await.unwrap(), Relocated::Absent);
    assert_eq!(notes.rename("old", "new").await.unwrap(), Relocated::Moved);
    assert_eq!(notes.get("old").await.unwrap(), None);
    // Three reads before, and this one.
    let entry = notes.entry("new").await.unwrap().unwrap();
    assert_eq!((entry.value, entry.access.count), (json("2"), 4));
    if fixture.store().capabilities().tier() == Tier::Atomic {
        assert_eq!(notes.history("new", None, 10).await.unwrap().len(), 2);
    }
    fixture.agents.close().await.unwrap();
    let again = fixture.again().await.user("ada", Actor::nobody());
    let entry = again.use_namespace("default").unwrap().entry("new").await.unwrap().unwrap();
    assert_eq!(entry.access.count, 4);
}

async fn memories_of_two_users_are_apart(place: Place) {
    let fixture = Fixture::new(place).await;
    let ada = fixture.user("ada").memories().unwrap();
    let bob = fixture.user("bob").memories().unwrap();
    create(&ada, "/memories/secret.md", "hers").await;
    refused(&bob, r#"{"command":"view","path":"/memories/secret.md"}"#).await;
    refused(&bob, r#"{"command":"delete","path":"/memories/secret.md"}"#).await;
    let listed = done(&bob, r#"{"command":"view","path":"/memories"}"#).await;
    assert!(listed.ends_with(":\n0B\t/memories"), "{listed}");
    create(&bob, "/memories/secret.md", "his").await;
    let hers = done(&ada, r#"{"command":"view","path":"/memories/secret.md"}"#).await;
    assert!(hers.ends_with("     1\thers"), "{hers}");
}
