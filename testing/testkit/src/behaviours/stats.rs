//! What an engine tells about its size.

use keyward_engine::{Consistency, Scan, Tier, WatchSupport};
use keyward_key::KeyRange;

use super::{key, put};
use crate::subject::Subject;

pub async fn entries_are_counted(subject: Subject) {
    let count = async || subject.store.stats().await.unwrap().entries;
    assert_eq!(count().await, 0);
    subject.fill((0..50).map(|n| (key(&format!("a:{n}")), put("1")))).await;
    assert_eq!(count().await, 50);
    subject.put(&key("a:0"), put("2")).await;
    assert_eq!(count().await, 50, "a key written again counts once");
    for n in 0..20 {
        subject.delete(&key(&format!("a:{n}"))).await;
    }
    subject.delete(&key("absent")).await;
    assert_eq!(count().await, 30);
    let rows = subject.rows(Scan::new(KeyRange::all())).await;
    assert_eq!(rows.len(), 30);
}

pub async fn revisions_are_told_by_engines_that_keep_a_history(subject: Subject) {
    subject.put(&key("a"), put("1")).await;
    let stats = subject.store.stats().await.unwrap();
    if !subject.can_resume() {
        assert_eq!((stats.revision, stats.earliest_revision), (None, None));
        return;
    }
    assert!(stats.earliest_revision.unwrap() <= stats.revision.unwrap());
    subject.put(&key("a"), put("1")).await;
    let later = subject.store.stats().await.unwrap();
    assert!(later.revision > stats.revision);
}

pub async fn the_capabilities_agree_with_each_other(subject: Subject) {
    let capabilities = subject.capabilities();
    let limits = capabilities.limits;
    assert!(!capabilities.engine.is_empty());
    for (name, limit, least) in [
        ("key_bytes_max", limits.key_bytes_max, 255),
        ("value_bytes_max", limits.value_bytes_max, 64 << 10),
        ("metadata_bytes_max", limits.metadata_bytes_max, 1_024),
        ("commit_keys_max", limits.commit_keys_max, 1),
        ("get_keys_max", limits.get_keys_max, 1),
        ("scan_rows_max", limits.scan_rows_max, 1),
    ] {
        assert!(limit >= least, "{name} is only {limit}");
    }
    let largest_entry = limits.key_bytes_max + limits.value_bytes_max + limits.metadata_bytes_max;
    assert!(limits.commit_bytes_max >= largest_entry, "an entry that is allowed fits a commit");
    if capabilities.tier() == Tier::Atomic {
        assert_eq!(capabilities.consistency, Consistency::Strong);
    }
    if capabilities.watch == WatchSupport::Resumable {
        assert!(subject.revision().await.is_some());
    }
}
