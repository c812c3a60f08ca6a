//! What is granted, refused and given back.

use std::time::Duration;

use keyward_engine::{Code, Coded, Json, Put, Store, Tier};
use keyward_locks::{Error, Life, LockPath, Locks, Loss, Mode, Request, Target, Tried, Wanted};
use keyward_memory::{Memory, Options as MemoryOptions};
use keyward_stores::{Place, on_databases, on_engines, on_every_engine};
use keyward_testkit::VirtualClock;

use crate::fixture::{key, locks, locks_on, page, path, take, try_take};

on_every_engine!(
    paths_exclude_their_like_their_ancestors_and_their_descendants,
    shared_holders_share_and_keep_exclusive_ones_out,
    several_paths_are_taken_together_or_not_at_all,
    locks_of_several_roots_are_taken_in_one_order,
    a_descendant_is_taken_under_ones_own_guard,
    an_ancestor_is_refused_while_a_descendant_is_held,
    a_broken_lock_is_remembered_and_its_holder_is_told,
    the_list_says_who_holds_what,
    a_dropped_guard_is_released,
    a_foreign_value_at_the_root_is_left_alone,
    a_catalog_that_was_deleted_gives_no_token_twice_while_a_lock_is_held,
);
on_databases!(
    paths_exclude_their_like_their_ancestors_and_their_descendants,
    several_paths_are_taken_together_or_not_at_all,
    a_catalog_that_was_deleted_gives_no_token_twice_while_a_lock_is_held,
);
on_engines!(couchdb: CouchDb, forge_entity: ForgeEntity;
    paths_exclude_their_like_their_ancestors_and_their_descendants,
    several_paths_are_taken_together_or_not_at_all,
);
on_engines!(recoverable: Recoverable;
    paths_exclude_their_like_their_ancestors_and_their_descendants,
    shared_holders_share_and_keep_exclusive_ones_out,
    several_paths_are_taken_together_or_not_at_all,
    locks_of_several_roots_are_taken_in_one_order,
    a_descendant_is_taken_under_ones_own_guard,
    an_ancestor_is_refused_while_a_descendant_is_held,
    the_list_says_who_holds_what,
    a_dropped_guard_is_released,
    a_foreign_value_at_the_root_is_left_alone,
);

async fn paths_exclude_their_like_their_ancestors_and_their_descendants(place: Place) {
    let (one, other) = (locks(&place).await, locks(&place).await);
    let held = take(&page(&one), "policies:12").await;
    for (asked, free) in [
        ("", false),
        ("policies", false),
        ("policies:12", false),
        ("policies:12:fr", false),
        ("policies:1", true),
        ("policies:123", true),
        ("policies:13:fr", true),
        ("issues", true),
        ("issues:12", true),
    ] {
        let guard = try_take(&page(&other), asked, Mode::Exclusive).await;
        assert_eq!(guard.is_some(), free, "{asked:?}");
        if let Some(guard) = guard {
            guard.release().await.unwrap();
        }
    }
    let elsewhere = other.root(key("page:70")).unwrap();
    assert!(try_take(&elsewhere, "policies:12", Mode::Exclusive).await.is_some());
    held.release().await.unwrap();
    assert!(try_take(&page(&other), "", Mode::Exclusive).await.is_some());
}

async fn shared_holders_share_and_keep_exclusive_ones_out(place: Place) {
    let root = page(&locks(&place).await);
    let reads_all = try_take(&root, "policies", Mode::Shared).await.unwrap();
    let reads_one = try_take(&root, "policies:1", Mode::Shared).await.unwrap();
    assert!(try_take(&root, "policies:2", Mode::Exclusive).await.is_none());
    assert!(try_take(&root, "", Mode::Exclusive).await.is_none());
    reads_all.release().await.unwrap();
    assert!(try_take(&root, "policies:1", Mode::Exclusive).await.is_none());
    let writes = try_take(&root, "policies:2", Mode::Exclusive).await.unwrap();
    assert!(try_take(&root, "policies", Mode::Shared).await.is_none());
    writes.release().await.unwrap();
    reads_one.release().await.unwrap();
    assert!(try_take(&root, "", Mode::Exclusive).await.is_some());
}

async fn several_paths_are_taken_together_or_not_at_all(place: Place) {
    let root = page(&locks(&place).await);
    let issue = take(&root, "issues:7").await;
    let both = [path("policies:1"), path("issues")];
    let tried = root.try_acquire(&both, Mode::Exclusive, &Request::default()).await.unwrap();
    assert!(matches!(tried, Tried::Held(holder) if holder.token == issue.token()));
    assert!(try_take(&root, "policies:1", Mode::Exclusive).await.is_some(), "nothing is left");
    issue.release().await.unwrap();
    let together = root.acquire(&both, Mode::Exclusive, &Request::default()).await.unwrap();
    assert!(try_take(&root, "issues:7", Mode::Exclusive).await.is_none());
    assert!(try_take(&root, "policies:1:fr", Mode::Exclusive).await.is_none());
    together.release().await.unwrap();
    let none = root.acquire(&[], Mode::Exclusive, &Request::default()).await;
    assert_eq!(none.unwrap_err().code(), Code::Invalid);
}

async fn locks_of_several_roots_are_taken_in_one_order(place: Place) {
    let locks = locks(&place).await;
    let roots = ["b", "a", "c"].map(|name| locks.root(key(name)).unwrap());
    let wanted: Vec<Wanted> = roots
        .iter()
        .map(|root| Wanted {
            root: root.clone(),
            paths: vec![LockPath::root()],
            mode: Mode::Exclusive,
        })
        .collect();
    let guards = locks.acquire_all(&wanted, &Request::default()).await.unwrap();
    let order: Vec<String> = guards.iter().map(|guard| guard.root().key().to_string()).collect();
    assert_eq!(order, ["a", "b", "c"]);
    for guard in guards {
        guard.release().await.unwrap();
    }

    let last = take(&roots[2], "x").await;
    let soon = Request::default().wait_max(Duration::from_millis(50));
    let refused = locks.acquire_all(&wanted, &soon).await.unwrap_err();
    assert!(matches!(refused, Error::TimedOut { .. }), "{refused}");
    assert!(try_take(&roots[0], "", Mode::Exclusive).await.is_some(), "nothing is left");
    assert!(try_take(&roots[1], "", Mode::Exclusive).await.is_some(), "nothing is left");
    last.release().await.unwrap();
    let twice = [wanted[0].clone(), wanted[0].clone()];
    assert!(locks.acquire_all(&twice, &Request::default()).await.is_err());
}

async fn a_descendant_is_taken_under_ones_own_guard(place: Place) {
    let (ours, others) = (locks(&place).await, locks(&place).await);
    let (root, theirs) = (page(&ours), page(&others));
    let policies = take(&root, "policies").await;
    let request = Request::default();
    let french = [path("policies:1:fr")];
    let child = policies.descend(&french, Mode::Exclusive, &request).await.unwrap();
    assert!(child.token() > policies.token());
    assert!(try_take(&theirs, "policies:1:fr", Mode::Shared).await.is_none());
    // The coarse lock goes, the fine one stays.
    policies.release().await.unwrap();
    assert!(try_take(&theirs, "policies:1", Mode::Exclusive).await.is_none());
    let sibling = try_take(&theirs, "policies:1:de", Mode::Exclusive).await;
    assert!(sibling.is_some());
    child.release().await.unwrap();

    let reads = root.acquire(&[path("issues")], Mode::Shared, &request).await.unwrap();
    let issue = [path("issues:7")];
    assert!(reads.descend(&issue, Mode::Shared, &request).await.is_ok());
    let upgrade = reads.descend(&issue, Mode::Exclusive, &request).await.unwrap_err();
    assert!(upgrade.to_string().contains("held shared"), "{upgrade}");
    let aside = reads.descend(&[path("policies:1")], Mode::Shared, &request).await.unwrap_err();
    assert!(aside.to_string().contains("not below"), "{aside}");
}

async fn an_ancestor_is_refused_while_a_descendant_is_held(place: Place) {
    let root = page(&locks(&place).await);
    let issue = take(&root, "issues:7").await;
    let request = Request::default().under(&issue);
    for above in ["", "issues", "issues:7"] {
        let asked = [path(above)];
        let refused = root.acquire(&asked, Mode::Exclusive, &request).await.unwrap_err();
        assert!(matches!(refused, Error::WouldDeadlock { .. }), "{above:?}: {refused}");
        let refused = issue.descend(&asked, Mode::Shared, &request).await.unwrap_err();
        assert!(matches!(refused, Error::WouldDeadlock { .. }), "{above:?}: {refused}");
    }
    // Something else is no reason to refuse.
    let policy = root.acquire(&[path("policies:1")], Mode::Exclusive, &request).await;
    assert!(policy.is_ok());
}

async fn a_broken_lock_is_remembered_and_its_holder_is_told(place: Place) {
    // With commits of several keys the holder hears of it, however long its lease is.
    break_one(locks(&place).await, locks(&place).await).await;
}

/// With commits of single keys the holder learns it with its next renewal, which only simulated time
/// brings about without a wait.
#[tokio::test(start_paused = true)]
async fn with_commits_of_single_keys_the_holder_of_a_broken_lock_is_told() {
    let memory = Memory::with(MemoryOptions::tier(Tier::Recoverable), VirtualClock::new());
    let store = Store::new(memory);
    break_one(locks_on(store.clone()), locks_on(store)).await;
}

async fn break_one(ours: Locks, others: Locks) {
    let request = Request::default();
    let held = [path("policies:1")];
    let guard = page(&ours).acquire(&held, Mode::Exclusive, &request).await.unwrap();
    let root = page(&others);
    let nothing = root.break_lock(&Target::Path(path("policies")), "bob", "stuck").await;
    let nothing = nothing.unwrap_err();
    assert!(matches!(nothing, Error::NotHeld { .. }), "{nothing}");
    assert!(nothing.to_string().contains("policies:1"), "{nothing}");

    let broken = root.break_lock(&Target::Token(guard.token()), "bob", "stuck").await.unwrap();
    assert_eq!((broken.len(), broken[0].token), (1, guard.token()));
    let told = Loss::Broken { by: "bob".to_owned(), reason: "stuck".to_owned() };
    assert_eq!(guard.lost().await, told);
    assert!(!guard.is_held());
    assert_eq!(root.list().await.unwrap().broken, broken);
    let next = try_take(&root, "policies:1", Mode::Exclusive).await.unwrap();
    guard.release().await.unwrap();
    assert!(next.is_held());
    assert!(try_take(&root, "policies:1", Mode::Exclusive).await.is_none());
}

async fn the_list_says_who_holds_what(place: Place) {
    let locks = locks(&place).await;
    let root = page(&locks);
    assert_eq!(root.list().await.unwrap().holders, []);
    let request = Request::default().purpose("translate");
    let held = [path("policies:1"), path("issues")];
    let guard = root.acquire(&held, Mode::Shared, &request).await.unwrap();
    let standing = root.list().await.unwrap();
    let [holder] = &standing.holders[..] else { panic!("{standing:?}") };
    assert_eq!(holder.token, guard.token());
    assert_eq!((holder.mode, holder.paths.len()), (Mode::Shared, 2));
    assert!(held.iter().all(|path| holder.paths.contains(path)));
    assert_eq!(holder.who.to_string(), format!("ada@here (pid {}), translate", std::process::id()));
    let atomic = locks.store().capabilities().tier() == Tier::Atomic;
    assert_eq!(holder.life, if atomic { Life::Alive } else { Life::Unknown });

    let far = locks.root(key("a:b:c")).unwrap();
    let other = take(&far, "x").await;
    if atomic {
        let first = locks.roots(None, 1).await.unwrap();
        let second = locks.roots(first.next.clone(), 1).await.unwrap();
        let rest = locks.roots(None, 10).await.unwrap();
        assert_eq!(rest.roots, [key("a:b:c"), key("page:7")]);
        assert_eq!([&first.roots[..], &second.roots[..]].concat(), rest.roots);
    } else {
        assert_eq!(locks.roots(None, 10).await.unwrap_err().code(), Code::Unsupported);
    }
    other.release().await.unwrap();
    guard.release().await.unwrap();
    if atomic {
        assert_eq!(locks.roots(None, 10).await.unwrap().roots, []);
    }
}

async fn a_dropped_guard_is_released(place: Place) {
    let root = page(&locks(&place).await);
    drop(take(&root, "a").await);
    // Waits until it is.
    let next = take(&root, "a").await;
    next.release().await.unwrap();
}

#[tokio::test]
async fn a_lease_that_nobody_could_have_asked_for_is_refused() {
    let store = Store::new(Memory::new());
    let root = page(&locks_on(store.clone()));
    let guard = take(&root, "policies").await;
    let entry = store.get(&key("page:7")).await.unwrap().unwrap();
    let ttl = format!("\"ttl_ms\":{}", Request::TTL_DEFAULT.as_millis());
    let longer = |ttl_ms: u128| {
        let value = entry.value.as_str().replace(&ttl, &format!("\"ttl_ms\":{ttl_ms}"));
        assert_ne!(value, entry.value.as_str());
        Put::new(Json::parse(value).unwrap())
    };
    let max = Request::TTL_MAX.as_millis();
    store.put(key("page:7"), longer(max + 1)).await.unwrap();
    let other = page(&locks_on(store.clone()));
    let refused = other.list().await.unwrap_err();
    assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
    assert!(refused.to_string().contains("86400001 ms"), "{refused}");
    store.put(key("page:7"), longer(max)).await.unwrap();
    assert_eq!(other.list().await.unwrap().holders.len(), 1);
    drop(guard);
}

async fn a_foreign_value_at_the_root_is_left_alone(place: Place) {
    let locks = locks(&place).await;
    let root = locks.root(key("page:8")).unwrap();
    for value in ["7", r#"{"keyward":"records"}"#, r#"{"next_token":1}"#] {
        let put = Put::new(Json::parse(value).unwrap());
        locks.store().put(key("page:8"), put).await.unwrap();
        let refused =
            root.acquire(&[path("a")], Mode::Exclusive, &Request::default()).await.unwrap_err();
        assert!(matches!(refused, Error::ForeignValue { .. }), "{refused}");
        let there = locks.store().get(&key("page:8")).await.unwrap().unwrap();
        assert_eq!(there.value.as_str(), value);
    }
    let newer = Put::new(Json::parse(r#"{"keyward":"locks","format":2}"#).unwrap());
    locks.store().put(key("page:8"), newer).await.unwrap();
    assert_eq!(root.list().await.unwrap_err().code(), Code::Corrupt);
    assert_eq!(locks.root(key("lock:x")).unwrap_err().code(), Code::Invalid);
}

async fn a_catalog_that_was_deleted_gives_no_token_twice_while_a_lock_is_held(place: Place) {
    let locks = locks(&place).await;
    let held = take(&page(&locks), "a").await;
    locks.store().delete(key("page:7")).await.unwrap();
    let next = take(&page(&locks), "a").await;
    assert!(next.token() > held.token());
    next.release().await.unwrap();
    drop(held);
}
