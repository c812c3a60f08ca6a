//! What a copy does.

use std::sync::Arc;

use fastrand::Rng;
use keyward_engine::{Commit, Expiry, Json, Limits, Store, Tier};
use keyward_memory::{Memory, Options};
use keyward_migrate::{Copied, Copy};
use keyward_testkit::{Call, Fault, Faults, FaultyEngine, Replay, Test, TestClock, seeds};

use crate::stores::{
    content, copy, fill, key, memory, memory_of, number, put_all, revision, scatter, two, verify,
};

#[tokio::test]
async fn random_stores_are_equal_after_a_copy() {
    let test = Test {
        package: "keyward-migrate",
        path: "migrate::copying::random_stores_are_equal_after_a_copy",
    };
    for seed in seeds(50, 2_000) {
        let _replay = Replay::new(test, seed);
        let mut rng = Rng::with_seed(seed);
        let (source, target) = two();
        let (many, others) = (rng.usize(..300), rng.usize(..300));
        scatter(&source, &mut rng, many).await;
        scatter(&target, &mut rng, others).await;
        let small = Limits {
            scan_rows_max: rng.usize(1..50),
            commit_keys_max: rng.usize(1..50),
            ..*target.limits()
        };
        let (source, target) = (source.with_limits(small), target.with_limits(small));

        let compared = verify(&source, &target).await;
        let before = content(&target).await;
        let kept = copy(&source, &target).await;
        assert_eq!(
            (kept.added, kept.replaced, kept.equal, kept.extra, kept.pruned),
            (compared.missing, compared.different, compared.equal, compared.extra, 0)
        );
        let mut expected = before;
        expected.extend(content(&source).await);
        assert_eq!(content(&target).await, expected);

        let pruning = Copy::new(source.clone(), target.clone()).prune(true);
        assert_eq!(pruning.run(|_| ()).await.unwrap().pruned, compared.extra);
        assert_eq!(content(&target).await, content(&source).await);
        assert!(verify(&source, &target).await.is_equal());
    }
}

#[tokio::test]
async fn a_second_copy_writes_nothing() {
    let (source, target) = two();
    fill(&source, 2_500).await;
    assert_eq!(copy(&source, &target).await, Copied { added: 2_500, ..Copied::default() });
    let before = revision(&target).await;
    assert_eq!(copy(&source, &target).await, Copied { equal: 2_500, ..Copied::default() });
    assert_eq!(revision(&target).await, before);
}

#[tokio::test]
async fn what_differs_is_replaced_in_value_metadata_and_end() {
    let (source, target) = two();
    let end = TestClock::START + std::time::Duration::from_millis(90_001);
    let note = || Json::parse(r#"{"by":"Ada"}"#).unwrap();
    let all = || number(1).with_metadata(note()).expiring(Expiry::At(end));
    source.put(key("value"), all()).await.unwrap();
    source.put(key("metadata"), all()).await.unwrap();
    source.put(key("end"), all()).await.unwrap();
    source.put(key("same"), all()).await.unwrap();
    let late = Expiry::At(end + std::time::Duration::from_millis(1));
    target.put(key("value"), number(2).with_metadata(note()).expiring(late)).await.unwrap();
    target.put(key("metadata"), number(1).expiring(Expiry::At(end))).await.unwrap();
    target.put(key("end"), number(1).with_metadata(note()).expiring(late)).await.unwrap();
    target.put(key("same"), all()).await.unwrap();

    assert_eq!(copy(&source, &target).await, Copied { replaced: 3, equal: 1, ..Copied::default() });
    assert_eq!(content(&target).await, content(&source).await);
    let copied = target.get(&key("end")).await.unwrap().unwrap();
    assert_eq!((copied.metadata, copied.expires), (Some(note()), Some(end)));
}

#[tokio::test]
async fn what_only_the_target_holds_is_left_alone_unless_it_is_pruned() {
    let (source, target) = two();
    put_all(&source, &["b", "d"]).await;
    put_all(&target, &["a", "b:c", "e", "f"]).await;
    assert_eq!(copy(&source, &target).await, Copied { added: 2, extra: 4, ..Copied::default() });
    assert_eq!(content(&target).await.len(), 6);
    let pruning = Copy::new(source.clone(), target.clone()).prune(true);
    assert_eq!(
        pruning.run(|_| ()).await.unwrap(),
        Copied { equal: 2, pruned: 4, ..Copied::default() }
    );
    assert_eq!(content(&target).await, content(&source).await);
}

#[tokio::test]
async fn a_target_that_takes_one_key_at_a_time_gets_them_one_by_one() {
    let source = memory_of(Tier::Atomic);
    fill(&source, 1_500).await;
    for tier in [Tier::Recoverable, Tier::Advisory] {
        let target = memory_of(tier);
        assert_eq!(copy(&source, &target).await.added, 1_500);
    }
    let target = memory_of(Tier::Recoverable);
    copy(&source, &target).await;
    assert_eq!(content(&target).await, content(&source).await);
    // And back.
    let back = memory_of(Tier::Atomic);
    copy(&target, &back).await;
    assert!(verify(&source, &back).await.is_equal());
}

#[tokio::test]
async fn a_first_copy_reads_the_source_in_pages_and_looks_at_the_target_once() {
    let clock = TestClock::new();
    let counted = || {
        let engine = Memory::with(Options::default(), clock.clone());
        FaultyEngine::new(Arc::new(engine), Faults::none())
    };
    let calls = |engine: &FaultyEngine, call| {
        engine.trace().iter().filter(|&&made| made == (call, Fault::None)).count()
    };
    let (source, target) = (counted(), counted());
    fill(&Store::from_arc(source.inner()), 25_000).await;
    let (from, to) = (Store::new(source.clone()), Store::new(target.clone()));
    let mut told = Vec::new();
    let copied = Copy::new(from, to).run(|so_far| told.push(so_far.entries())).await.unwrap();
    assert_eq!(copied.added, 25_000);
    assert!(told.is_sorted() && told.last() == Some(&25_000), "{told:?}");
    assert_eq!(told.len(), 25);
    assert_eq!((calls(&source, Call::Scan), calls(&source, Call::Get)), (25, 0));
    assert_eq!((calls(&target, Call::Scan), calls(&target, Call::Get)), (1, 0));
    assert_eq!(calls(&target, Call::Commit), 25);
}

#[tokio::test]
async fn large_entries_go_in_commits_of_their_own() {
    let (source, target) = two();
    for n in 0..6 {
        let value = Json::parse(format!("\"{}\"", "x".repeat(700_000))).unwrap();
        let put = keyward_engine::Put::new(value);
        source.put(key(&format!("k:{n}")), put).await.unwrap();
    }
    copy(&source, &target).await;
    assert_eq!(revision(&target).await.unwrap().0, 6);
    assert_eq!(content(&target).await, content(&source).await);
}

#[tokio::test]
async fn entries_that_have_ended_are_not_copied() {
    let clock = TestClock::new();
    let (source, target) = (memory(&clock), memory(&clock));
    let second = std::time::Duration::from_secs(1);
    let commit = Commit::new()
        .put(key("brief"), number(1).expiring(Expiry::After(second)))
        .put(key("stays"), number(1));
    assert!(source.commit(commit).await.unwrap().is_applied());
    copy(&source, &target).await;
    clock.advance(second);
    assert_eq!(copy(&source, &target).await, Copied { equal: 1, ..Copied::default() });
    let verified = verify(&source, &target).await;
    assert!(verified.is_equal() && verified.equal == 1, "{verified:?}");
}
