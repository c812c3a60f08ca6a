//! watch.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

#[test]
fn a_watch_sees_what_another_process_does_until_it_is_interrupted() {
    let kw = Sandbox::new();
    let watch = kw.start(&["watch", "user", "--text", "--values"]);
    let begun = watch.next_note();
    assert!(begun.starts_with("watching for changes below user:, after revision 0"), "{begun}");

    kw.ok(&["put", "user:7:name", r#""Ada""#]);
    assert_eq!(watch.next_line(), "1  put      user:7:name\t\"Ada\"");
    kw.ok(&["put", "other", "1"]);
    kw.ok(&["del", "user:7:name"]);
    assert_eq!(watch.next_line(), "3  deleted  user:7:name");

    watch.interrupt();
    assert_eq!(watch.next_note(), "go on with --since 3");
    assert_eq!(watch.ended(), Some(0));
}

#[test]
fn a_watch_resumes_where_it_ended() {
    let kw = Sandbox::new();
    for (key, value) in [("a", "1"), ("b", "2.0"), ("a", "3")] {
        kw.ok(&["put", key, value]);
    }
    assert_eq!(
        kw.ok(&["watch", "--since", "1", "--count", "2"]),
        "{\"revision\":2,\"kind\":\"put\",\"key\":\"b\"}\n{\"revision\":3,\"kind\":\"put\",\"key\":\"a\"}\n"
    );
    assert_eq!(
        kw.ok(&["watch", "--key", "b", "--since", "0", "--count", "1", "--values", "--json"]),
        "{\"revision\":2,\"kind\":\"put\",\"key\":\"b\",\"value\":2.0,\"version\":\"2\"}\n"
    );
}

#[test]
fn a_count_ends_a_watch_in_the_middle_of_a_commit() {
    let kw = Sandbox::filled("item", 10);
    let seen = kw.ok(&["watch", "item", "--since", "0", "--count", "4"]);
    assert_eq!(seen.lines().count(), 4);
}

#[test]
fn json_lines_come_out_one_by_one() {
    let kw = Sandbox::new();
    let watch = kw.start(&["watch", "--since", "0", "--json"]);
    for n in 1..=3 {
        kw.ok(&["put", &format!("k:{n}"), "1"]);
        let line: Value = serde_json::from_str(&watch.next_line()).unwrap();
        assert_eq!(line, json!({"revision": n, "kind": "put", "key": format!("k:{n}")}));
    }
}

#[test]
fn a_history_that_is_not_there_exits_with_9() {
    let kw = Sandbox::new();
    kw.ok(&["put", "k", "1"]);
    let told = kw.fails(9, &["watch", "--since", "99"]);
    assert!(told.starts_with("error: revision 99 is yet to come: the store is at 1\n"), "{told}");
    let told: Value =
        serde_json::from_str(&kw.fails(9, &["watch", "--since", "99", "--json"])).unwrap();
    assert_eq!(told["error"]["code"], "gone");
}

#[test]
fn a_store_without_history_cannot_be_watched() {
    let kw = Sandbox::new();
    let told = kw.fails(4, &["-s", "memory:?tier=recoverable", "watch"]);
    assert!(told.starts_with("error: the memory engine cannot watch"), "{told}");
}
