//! Reading one key and many, and how late that may be.

use std::time::Duration;

use keyward_engine::{Consistency, Scan};
use keyward_key::{Key, KeyRange};

use super::{key, put};
use crate::subject::Subject;

pub async fn many_keys_come_back_in_the_order_asked_for(subject: Subject) {
    let (a, b, absent) = (key("a"), key("b"), key("absent"));
    subject.put(&a, put("1")).await;
    subject.put(&b, put("2")).await;

    let asked = [&b, &absent, &a, &b, &absent, &b].map(Key::clone);
    let entries = subject.store.get_many(&asked).await.unwrap();
    let values: Vec<_> =
        entries.iter().map(|entry| entry.as_ref().map(|entry| entry.value.as_str())).collect();
    let expected = [Some("2"), None, Some("1"), Some("2"), None, Some("2")];
    assert_eq!(values, expected);
    assert_eq!(entries[2], subject.get(&a).await, "as a single read");
}

pub async fn reading_no_keys_gives_nothing(subject: Subject) {
    assert_eq!(subject.store.get_many(&[]).await.unwrap(), []);
}

pub async fn more_keys_than_one_read_takes_come_back_all_the_same(subject: Subject) {
    let count = subject.limits().get_keys_max + 1;
    // Every third is there: enough to notice a shift by one.
    let keys: Vec<Key> = (0..count).map(|n| key(&format!("many:{n}"))).collect();
    let some = keys.iter().step_by(3).cloned();
    let puts = some.enumerate().map(|(n, key)| (key, put(&n.to_string())));
    subject.fill(puts).await;

    let entries = subject.store.get_many(&keys).await.unwrap();
    assert_eq!(entries.len(), count);
    for (n, entry) in entries.iter().enumerate() {
        let expected = (n % 3 == 0).then(|| (n / 3).to_string());
        let value = entry.as_ref().map(|entry| entry.value.to_string());
        assert_eq!(value, expected, "key {n}");
    }
}

pub async fn reads_are_as_late_as_declared_and_no_later(subject: Subject) {
    let key = key("news");
    let seen = async || {
        let value = subject.get(&key).await.map(|entry| entry.value.to_string());
        let rows = subject.rows(Scan::new(KeyRange::all())).await;
        let entry = rows.into_iter().next().and_then(|row| row.entry);
        assert_eq!(entry.map(|entry| entry.value.to_string()), value, "scans are as late as reads");
        value
    };
    let write = async |text: &str| {
        subject.store.put(key.clone(), put(text)).await.unwrap();
    };
    match subject.capabilities().consistency {
        Consistency::Strong => {
            for n in 0..20 {
                write(&n.to_string()).await;
                assert_eq!(seen().await, Some(n.to_string()), "seen at once");
            }
        }
        Consistency::LateScans { .. } => {
            for n in 0..20 {
                write(&n.to_string()).await;
                let value = subject.get(&key).await.map(|entry| entry.value.to_string());
                assert_eq!(value, Some(n.to_string()), "a read of a key sees it at once");
                let several = subject.store.get_many(&[key.clone(), self::key("none")]).await;
                let value = several.unwrap()[0].as_ref().map(|entry| entry.value.to_string());
                assert_eq!(value, Some(n.to_string()), "and so does one of several");
            }
            subject.settle().await;
            assert_eq!(seen().await.as_deref(), Some("19"), "scans after the lag");
            subject.store.delete(key.clone()).await.unwrap();
            assert_eq!(subject.get(&key).await, None);
            subject.settle().await;
            assert_eq!(seen().await, None);
        }
        Consistency::Eventual { lag } if subject.owns_time() => {
            let moment = Duration::from_millis(1);
            write("1").await;
            subject.pass(lag - moment).await;
            assert_eq!(seen().await, None, "the old is still seen");
            subject.pass(moment).await;
            assert_eq!(seen().await.as_deref(), Some("1"));

            write("2").await;
            write("3").await;
            assert_eq!(seen().await.as_deref(), Some("1"));
            subject.pass(lag).await;
            assert_eq!(seen().await.as_deref(), Some("3"), "the last writer wins");

            subject.store.delete(key.clone()).await.unwrap();
            subject.pass(lag - moment).await;
            assert_eq!(seen().await.as_deref(), Some("3"), "a deleted key lingers");
            subject.pass(moment).await;
            assert_eq!(seen().await, None);
        }
        Consistency::Eventual { .. } => {
            write("1").await;
            subject.settle().await;
            assert_eq!(seen().await.as_deref(), Some("1"), "seen after the lag");
        }
    }
}
