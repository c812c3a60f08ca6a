//! What a comparison tells.

use std::time::Duration;

use keyward_engine::Expiry;
use keyward_migrate::{Difference, Verified};

use crate::stores::{fill, key, number, put_all, revision, two, verify};

#[tokio::test]
async fn every_kind_of_difference_is_counted_and_the_first_are_named() {
    let (source, target) = two();
    put_all(&source, &["a", "b", "c", "d"]).await;
    put_all(&target, &["a", "b", "c:x", "d"]).await;
    target.put(key("b"), number(9)).await.unwrap();
    let before = revision(&target).await;
    assert_eq!(
        verify(&source, &target).await,
        Verified {
            equal: 2,
            missing: 1,
            different: 1,
            extra: 1,
            first: vec![
                (key("b"), Difference::Different),
                (key("c"), Difference::Missing),
                (key("c:x"), Difference::Extra),
            ],
        }
    );
    assert_eq!(revision(&target).await, before);
}

#[tokio::test]
async fn of_many_differences_only_the_first_are_named() {
    let (source, target) = two();
    fill(&source, 2_345).await;
    let mut told = Vec::new();
    let verified =
        keyward_migrate::verify(&source, &target, |so_far| told.push(so_far.keys())).await.unwrap();
    assert!(!verified.is_equal());
    assert_eq!((verified.missing, verified.first.len()), (2_345, Verified::FIRST_MAX));
    assert_eq!(verified.first[0].0, key("item:000000"));
    assert_eq!(told.last(), Some(&2_345));
}

#[tokio::test]
async fn an_end_one_millisecond_later_is_a_difference() {
    let (source, target) = two();
    for (store, ms) in [(&source, 60_000), (&target, 60_001)] {
        let end = Expiry::After(Duration::from_millis(ms));
        store.put(key("k"), number(1).expiring(end)).await.unwrap();
    }
    assert_eq!(verify(&source, &target).await.different, 1);
}
