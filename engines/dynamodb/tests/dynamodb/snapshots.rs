//! Reads of many keys, more than fit into one of DynamoDB's answers.

use keyward_engine::{Commit, ErrorKind, Json, Put};
use keyward_key::Key;

use crate::server::{Fresh, key, put, runtime};

/// Together they are more than the four megabytes that a transaction reads.
const ROWS: usize = 12;
/// How often the pair comes and goes.
const FLIPS: usize = 40;

fn large(n: i64) -> Put {
    Put::new(Json::from_stored(format!("\"{n:04}{}\"", "x".repeat(390_000))))
}

fn keys() -> Vec<Key> {
    (0..ROWS).map(|n| key(&format!("row:{n}"))).collect()
}

#[test]
fn a_read_of_any_size_comes_back_whole() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let store = fresh.store().await;
        let mut wanted = keys();
        for (n, key) in wanted.iter().enumerate() {
            store.put(key.clone(), large(n as i64)).await.unwrap();
        }
        wanted.insert(3, key("absent"));
        let entries = store.get_many(&wanted).await.unwrap();
        for (n, entry) in entries.iter().enumerate() {
            assert_eq!(entry.is_none(), n == 3, "{n}");
        }
        let first = &entries[0].as_ref().unwrap().value;
        assert!(first.as_str().starts_with("\"0000x"));
    });
}

#[test]
fn a_read_of_any_size_sees_no_half_of_a_commit() {
    runtime().block_on(async {
        let fresh = Fresh::store_table().await;
        let (store, writing) = (fresh.store().await, fresh.store().await);
        let mut wanted = keys();
        for key in &wanted {
            store.put(key.clone(), large(0)).await.unwrap();
        }
        // Either both of the pair are there, or neither is.
        let pair = [key("pair:a"), key("pair:b")];
        wanted.extend(pair.iter().cloned());
        let writer = tokio::spawn(async move {
            let [a, b] = pair;
            for n in 0..FLIPS {
                let value = put(&n.to_string());
                let both = Commit::new().put(a.clone(), value.clone()).put(b.clone(), value);
                assert!(writing.commit(both).await.unwrap().is_applied());
                let neither = Commit::new().delete(a.clone()).delete(b.clone());
                assert!(writing.commit(neither).await.unwrap().is_applied());
            }
        });
        let mut was_written = true;
        while was_written {
            was_written = !writer.is_finished();
            let entries = match store.get_many(&wanted).await {
                Ok(entries) => entries,
                // Honest, as long as somebody writes all the time.
                Err(error) if was_written && error.kind() == ErrorKind::Unavailable => continue,
                Err(error) => panic!("nobody writes any more: {error}"),
            };
            let [.., a, b] = &entries[..] else { unreachable!("there are more") };
            assert_eq!(a.as_ref().map(|it| &it.value), b.as_ref().map(|it| &it.value));
        }
        writer.await.unwrap();
    });
}
