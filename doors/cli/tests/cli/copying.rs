//! copy.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, is_absent};

const DATA: &str = "embedded:./data";
const COPY: &str = "embedded:./copy";

/// Waits until the copy has grown. Looks only at sizes: a copy is quicker than another command.
fn wait_for_first_commits(kw: &Sandbox) {
    const GROWN: u64 = 1 << 20;
    let size = || -> u64 {
        let files = std::fs::read_dir(kw.path("copy")).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    };
    while size() < GROWN {}
}

#[test]
fn a_copy_is_the_same_byte_for_byte() {
    let kw = Sandbox::new();
    let lines = r#"{"key":"a%3Ab:%25:","value":12345678901234567890.000}
{"key":"text","value":"\u00e9 é \" \\ 漢","metadata":{"n":1.0,"t":"x"}}
{"key":"timed","value":{"b":1,"a":[]},"metadata":{},"expires":"2999-01-01T00:00:00.123000Z"}
"#;
    kw.run_with(&["import"], lines).ok();
    assert_eq!(
        kw.ok(&["copy", DATA, COPY, "--verify"]),
        "copied 3 entries\nverified: 3 entries equal\n"
    );
    assert_eq!(kw.ok(&["-s", COPY, "export"]), lines);
}

#[test]
fn a_second_copy_brings_only_what_has_changed() {
    let kw = Sandbox::filled("item", 2_500);
    assert_eq!(kw.ok(&["copy", DATA, COPY]), "copied 2,500 entries\n");
    let revision = || kw.json(&["-s", COPY, "stats"])["revision"].clone();
    let before = revision();
    assert_eq!(kw.ok(&["copy", DATA, COPY]), "copied 0 entries, 2,500 equal already\n");
    assert_eq!(revision(), before);
    kw.ok(&["put", "item:000007", "\"new\""]);
    kw.ok(&["put", "more", "1"]);
    assert_eq!(
        kw.json(&["copy", DATA, COPY, "--verify", "--json"]),
        json!({"added": 1, "replaced": 1, "equal": 2499, "extra": 0, "pruned": 0, "verified": 2501})
    );
    assert_eq!(kw.ok(&["-s", COPY, "export"]), kw.ok(&["export"]));
}

#[test]
fn what_only_the_target_holds_is_told_and_removed_only_if_so_asked() {
    let kw = Sandbox::filled("item", 3);
    kw.ok(&["-s", COPY, "put", "own", "1"]);
    assert_eq!(kw.ok(&["copy", DATA, COPY]), "copied 3 entries, 1 only in the target\n");
    assert_eq!(kw.ok(&["-s", COPY, "get", "own"]), "1\n");

    let told = kw.fails(10, &["copy", DATA, COPY, "--verify"]);
    let expected = "error: the stores are not equal: 3 entries equal, 1 only in the target\n\
                    hint: The first of them: own (only in the target). \
                    --prune removes what only the target holds.\n";
    assert_eq!(told, expected);
    let told: Value =
        serde_json::from_str(&kw.fails(10, &["copy", DATA, COPY, "--verify", "--json"])).unwrap();
    assert_eq!(told["error"]["code"], "differs");

    assert_eq!(
        kw.ok(&["copy", DATA, COPY, "--verify", "--prune"]),
        "copied 0 entries, 3 equal already, 1 removed from the target\n\
         verified: 3 entries equal\n"
    );
    assert_eq!(kw.ok(&["-s", COPY, "ls"]).lines().count(), 3);
}

#[test]
fn a_copy_that_is_killed_goes_on_when_it_is_run_again() {
    const ENTRIES: u64 = 30_000;
    let kw = Sandbox::filled("item", 30_000);
    // On a busy machine a kill may come before the first commit or after the last.
    let there = (0..50).find_map(|_| {
        let _ = std::fs::remove_dir_all(kw.path("copy"));
        let copy = kw.start(&["copy", DATA, COPY]);
        wait_for_first_commits(&kw);
        copy.kill();
        drop(copy);
        let there = kw.json(&["-s", COPY, "stats"])["entries"].as_u64().unwrap();
        (0 < there && there < ENTRIES).then_some(there)
    });
    let there = there.expect("a copy was killed in the middle");
    assert_eq!(
        kw.json(&["copy", DATA, COPY, "--verify", "--json"]),
        json!({
            "added": ENTRIES - there, "replaced": 0, "equal": there,
            "extra": 0, "pruned": 0, "verified": ENTRIES,
        })
    );
    assert_eq!(kw.ok(&["-s", COPY, "export"]), kw.ok(&["export"]));
}

#[test]
fn an_interrupted_copy_says_how_far_it_came() {
    let kw = Sandbox::filled("item", 30_000);
    let copy = kw.start(&["copy", DATA, COPY]);
    wait_for_first_commits(&kw);
    copy.interrupt();
    // A quick copy may be done before the signal arrives.
    if let Some(told) = copy.note() {
        assert_eq!(told, "error: interrupted");
        let hint = copy.next_note();
        assert!(hint.starts_with("hint: Copied before that: "), "{hint}");
        assert!(hint.ends_with("Running it again goes on from there."), "{hint}");
        assert_eq!(copy.ended(), Some(130));
    }
    let copied = kw.ok(&["copy", DATA, COPY, "--verify"]);
    assert!(copied.ends_with("verified: 30,000 entries equal\n"), "{copied}");
}

#[test]
fn a_store_that_takes_one_key_at_a_time_and_one_that_shows_writes_late_are_targets_too() {
    let kw = Sandbox::filled("item", 1_200);
    for target in ["memory:", "memory:?tier=recoverable", "memory:?tier=advisory"] {
        assert_eq!(
            kw.ok(&["copy", DATA, target, "--verify"]),
            "copied 1,200 entries\nverified: 1,200 entries equal\n",
            "{target}"
        );
    }
}

#[test]
fn an_empty_source_is_copied_too() {
    let kw = Sandbox::new();
    assert_eq!(
        kw.ok(&["copy", "memory:", COPY, "--verify"]),
        "copied 0 entries\nverified: 0 entries equal\n"
    );
}

#[test]
fn a_store_copied_into_itself_under_another_name_stays_as_it_is() {
    let kw = Sandbox::filled("item", 1_200);
    let absolute = format!("embedded:{}", kw.path("data").display());
    let before = (kw.ok(&["export"]), kw.json(&["stats"])["revision"].clone());
    for name in [&*absolute, "embedded:./home/../data", "embedded:data"] {
        std::fs::create_dir_all(kw.path("home")).unwrap();
        let said = kw.ok(&["copy", DATA, name, "--prune", "--verify"]);
        assert_eq!(
            said, "copied 0 entries, 1,200 equal already\nverified: 1,200 entries equal\n",
            "{name}"
        );
        assert_eq!((kw.ok(&["export"]), kw.json(&["stats"])["revision"].clone()), before);
    }
}

#[test]
fn the_source_must_be_there_and_be_another_store() {
    let kw = Sandbox::new();
    let told = kw.fails(1, &["copy", DATA, COPY]);
    assert!(told.starts_with("error: the source: there is no store at embedded:./data"), "{told}");
    assert!(is_absent(&kw.path("data")) && is_absent(&kw.path("copy")));
    kw.ok(&["put", "k", "1"]);
    let told = kw.fails(2, &["copy", DATA, DATA]);
    assert!(told.starts_with("error: the source and the target are the same store"), "{told}");
    kw.fails(2, &["copy", DATA, "nonsense:"]);
    kw.fails(2, &["copy", DATA]);
}

/// Between engines. The server's address stands in the environment.
mod postgres {

    use serde_json::json;

    use super::{COPY, DATA};
    use crate::sandbox::{Running, Sandbox};

    const ENTRIES: u64 = 60_000;

    /// A store on the server that no other test uses. Emptied when it is dropped.
    struct Place<'s> {
        kw: &'s Sandbox,
        url: String,
    }

    impl<'s> Place<'s> {
        fn new(kw: &'s Sandbox) -> Self {
            let server = std::env::var("KEYWARD_TEST_POSTGRES").expect(
                "start the servers with ./test or testing/services/run, or set KEYWARD_TEST_POSTGRES",
            );
            let mark = if server.contains('?') { '&' } else { '?' };
            Self { kw, url: format!("{server}{mark}store=copying-{:032x}", fastrand::u128(..)) }
        }

        /// How many entries it holds; none if it does not exist yet.
        fn entries(&self) -> u64 {
            match self.kw.run(&["-s", &self.url, "stats", "--json"]) {
                ran if ran.code() == Some(0) => {
                    let stats: serde_json::Value = serde_json::from_str(&ran.ok()).unwrap();
                    stats["entries"].as_u64().unwrap()
                }
                _ => 0,
            }
        }

        /// A copy to here that has begun to write.
        fn begin_copy(&self) -> Running {
            let copy = self.kw.start(&["copy", DATA, &self.url]);
            while self.entries() == 0 {}
            copy
        }
    }

    impl Drop for Place<'_> {
        fn drop(&mut self) {
            self.kw.run(&["copy", "memory:", &self.url, "--prune"]);
        }
    }

    #[test]
    fn to_postgres_and_back_every_byte_is_the_same() {
        let kw = Sandbox::filled("item", 2_500);
        let lines = r#"{"key":"a%3Ab:%25:","value":12345678901234567890.000}
{"key":"text","value":"\u00e9 é \" \\ 漢","metadata":{"n":1.0,"t":"x"}}
{"key":"timed","value":{"b":1,"a":[]},"metadata":{},"expires":"2999-01-01T00:00:00.123000Z"}
"#;
        kw.run_with(&["import"], lines).ok();
        let there = Place::new(&kw);
        let done = "copied 2,503 entries\nverified: 2,503 entries equal\n";
        assert_eq!(kw.ok(&["copy", DATA, &there.url, "--verify"]), done);
        assert_eq!(kw.ok(&["copy", &there.url, COPY, "--verify"]), done);
        let exported = kw.ok(&["export"]);
        assert!(lines.lines().all(|line| exported.contains(line)));
        assert_eq!(kw.ok(&["-s", &there.url, "export"]), exported);
        assert_eq!(kw.ok(&["-s", COPY, "export"]), exported);
    }

    #[test]
    fn a_copy_to_postgres_that_is_killed_goes_on_when_it_is_run_again() {
        let kw = Sandbox::filled("item", ENTRIES as usize);
        // On a busy machine a kill may come after the last commit. What was sent before it may still be
        // done after it.
        let resumed = (0..50).find_map(|_| {
            let there = Place::new(&kw);
            let copy = there.begin_copy();
            copy.kill();
            drop(copy);
            let done = kw.json(&["copy", DATA, &there.url, "--verify", "--json"]);
            let (added, equal) = (done["added"].as_u64()?, done["equal"].as_u64()?);
            (added > 0 && equal > 0).then_some((there, done, added, equal))
        });
        let (there, done, added, equal) = resumed.expect("a copy was killed in the middle");
        assert_eq!(added + equal, ENTRIES);
        assert_eq!((&done["replaced"], &done["verified"]), (&json!(0), &json!(ENTRIES)));
        assert_eq!(kw.ok(&["-s", &there.url, "export"]), kw.ok(&["export"]));
    }

    #[test]
    fn several_copies_at_once_into_one_store_do_not_disturb_each_other() {
        let kw = Sandbox::filled("item", 20_000);
        let there = Place::new(&kw);
        let copies = [(); 3].map(|()| kw.start(&["copy", DATA, &there.url, "--verify"]));
        for copy in copies {
            assert_eq!(copy.note(), None);
            assert_eq!(copy.ended(), Some(0));
        }
        assert_eq!(kw.ok(&["-s", &there.url, "export"]), kw.ok(&["export"]));
    }

    #[test]
    fn an_interrupted_copy_to_postgres_says_how_far_it_came_and_that_it_can_go_on() {
        let kw = Sandbox::filled("item", ENTRIES as usize);
        // On a busy machine the signal may come after the end.
        let interrupted = (0..50).find_map(|_| {
            let there = Place::new(&kw);
            let copy = there.begin_copy();
            copy.interrupt();
            let told = copy.note()?;
            Some((there, told, copy.next_note(), copy.ended()))
        });
        let (there, told, hint, code) = interrupted.expect("a copy was interrupted in the middle");
        assert_eq!((&*told, code), ("error: interrupted", Some(130)));
        assert!(hint.starts_with("hint: Copied before that: "), "{hint}");
        assert!(hint.ends_with("Running it again goes on from there."), "{hint}");
        let copied = kw.ok(&["copy", DATA, &there.url, "--verify"]);
        assert!(copied.ends_with("verified: 60,000 entries equal\n"), "{copied}");
        assert!(!copied.starts_with("copied 60,000"), "what was there was copied again: {copied}");
    }

    #[test]
    fn a_store_copied_into_itself_under_another_name_stays_as_it_is() {
        let kw = Sandbox::filled("item", 1_200);
        let there = Place::new(&kw);
        kw.ok(&["copy", DATA, &there.url]);
        let revision = || kw.json(&["-s", &there.url, "stats"])["revision"].clone();
        let before = revision();
        for name in [
            there.url.replacen("postgres:", "postgresql:", 1),
            there.url.replacen("127.0.0.1", "localhost", 1) + "&sslmode=disable",
        ] {
            let said = kw.ok(&["copy", &there.url, &name, "--prune", "--verify"]);
            assert_eq!(
                said, "copied 0 entries, 1,200 equal already\nverified: 1,200 entries equal\n",
                "{name}"
            );
            assert_eq!(revision(), before);
        }
        assert_eq!(kw.ok(&["-s", &there.url, "export"]), kw.ok(&["export"]));
    }
}
