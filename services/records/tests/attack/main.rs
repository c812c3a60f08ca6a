//! One user against another: whatever ids, keys, cursors, prefixes, filters and index values are
//! thrown at the records, nothing of the other user's is seen or changed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod ammunition;
mod attempt;
mod victim;

use std::time::Duration;

use fastrand::Rng;
use keyward_stores::{Kind, Place, on_engines};
use keyward_testkit::{Replay, Test, deep, seeds};

use attempt::Attacker;
use victim::Victim;

/// Each seed is one attacker with this many attempts: a million in all in a deep run.
const ATTEMPTS: usize = 1_000;

on_engines!(
    memory: Memory,
    recoverable: Recoverable,
    advisory: Advisory,
    embedded: Embedded,
    postgres: Postgres,
    cloudflare_kv: CloudflareKv,
    couchdb: CouchDb,
    dynamodb: DynamoDb,
    firestore: Firestore,
    forge_kvs: ForgeKvs;
    nothing_of_another_user_is_seen_or_changed,
);

/// The test on an engine, and how many attackers it has, usually and in a deep run: fewer where
/// attempts take longer.
fn attackers(kind: Kind) -> (&'static str, u64, u64) {
    match kind {
        Kind::Memory => ("attack::memory::nothing_of_another_user_is_seen_or_changed", 40, 1_000),
        Kind::Recoverable => {
            ("attack::recoverable::nothing_of_another_user_is_seen_or_changed", 10, 200)
        }
        Kind::Advisory => ("attack::advisory::nothing_of_another_user_is_seen_or_changed", 10, 200),
        Kind::Embedded => ("attack::embedded::nothing_of_another_user_is_seen_or_changed", 3, 50),
        Kind::Postgres => ("attack::postgres::nothing_of_another_user_is_seen_or_changed", 3, 50),
        Kind::CloudflareKv => {
            ("attack::cloudflare_kv::nothing_of_another_user_is_seen_or_changed", 1, 20)
        }
        Kind::CouchDb => ("attack::couchdb::nothing_of_another_user_is_seen_or_changed", 1, 20),
        Kind::DynamoDb => ("attack::dynamodb::nothing_of_another_user_is_seen_or_changed", 1, 20),
        Kind::Firestore => ("attack::firestore::nothing_of_another_user_is_seen_or_changed", 1, 20),
        Kind::ForgeEntity => panic!("it lists what it has just written, which is late there"),
        Kind::ForgeKvs => ("attack::forge_kvs::nothing_of_another_user_is_seen_or_changed", 1, 20),
    }
}

async fn nothing_of_another_user_is_seen_or_changed(place: Place) {
    let kind = place.kind();
    let (path, usual, in_deep) = attackers(kind);
    let mut refused = 0;
    let mut answered = 0;
    for seed in seeds(usual, in_deep) {
        let mut replay = Replay::new(Test { package: "keyward-records", path }, seed);
        let mut rng = Rng::with_seed(seed);
        let place = Place::new(kind);
        let victim = Victim::new(&place).await;
        let before = victim.everything().await;
        let mut attacker = Attacker::new(&victim, &mut rng).await;
        for _ in 0..ATTEMPTS {
            // Catalogs get old, and late reads come to see what was written.
            place.clock().advance(Duration::from_millis(20));
            let (told, was_refused) = attacker.attempt(&mut rng, &mut replay).await;
            assert!(!told.contains(victim::SECRET), "the attacker was told: {told}");
            if was_refused {
                refused += 1;
            } else {
                answered += 1;
            }
        }
        victim.wait();
        victim.check(&before).await;
        victim.still_finds_everything().await;
    }
    // An attacker to whom everything is refused, or nothing, would prove little.
    assert!(refused > answered / 100 && answered > refused / 100, "{refused} {answered}");
    if deep() && kind == Kind::Memory {
        assert!(refused + answered >= 1_000_000);
    }
}
