//! What the test server owes every other test: an acknowledged write is read, whatever fails.

use keyward_cloudflare_kv::CloudflareKv;
use keyward_engine::{Json, Put, Scan, Store};
use keyward_key::{Key, KeyRange};
use keyward_testkit::TestClock;

use crate::server::{Namespace, address};

#[tokio::test]
async fn writes_that_workerd_did_not_take_are_made_by_the_next_read() {
    let namespace = Namespace::prompt();
    let options = namespace.options(address());
    let store = Store::new(CloudflareKv::open_with(options, TestClock::new()).await.unwrap());
    namespace.control(serde_json::json!({ "fail": 1 }));
    let keys = ["a", "b", "c"].map(|name| Key::parse(name).unwrap());
    for key in &keys {
        store.put(key.clone(), Put::new(Json::from_integer(1))).await.unwrap();
    }
    // The first listing fails with workerd, and is sent again.
    let page = store.scan(&Scan::new(KeyRange::all()).keys_only()).await.unwrap();
    assert_eq!(page.rows.into_iter().map(|row| row.key).collect::<Vec<_>>(), keys);
}

#[tokio::test]
async fn a_program_that_reads_only_once_is_told_of_the_failure() {
    let namespace = Namespace::prompt();
    namespace.control(serde_json::json!({ "fail": 1 }));
    namespace.write("small", "1");
    namespace.write("large", vec![b'1'; 200_000]);
    assert_eq!(namespace.plain("GET", "/keys", "").status, 503);
    assert_eq!(namespace.names(), ["large", "small"]);
    // Of several writes of one name the last counts, also after a failure.
    namespace.control(serde_json::json!({ "fail": 1 }));
    namespace.write("small", "2");
    assert_eq!(namespace.plain("DELETE", "/values/large", "").status, 503);
    namespace.write("small", "3");
    assert_eq!(namespace.value("small").as_deref(), Some("3"));
    assert_eq!(namespace.names(), ["small"]);
}
