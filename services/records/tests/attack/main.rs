//! One user against another: whatever ids, keys, cursors, prefixes, filters and index values are
//! thrown at the records, nothing of the other user's is seen or changed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod ammunition;
mod attempt;
mod victim;

use fastrand::Rng;
use keyward_testkit::{Replay, Test, deep, seeds};

use attempt::Attacker;
use victim::Victim;

/// Each seed is one attacker with this many attempts: a million in all in a deep run.
const ATTEMPTS: usize = 1_000;
const USUAL_ATTACKERS: u64 = 40;
const DEEP_ATTACKERS: u64 = 1_000;

#[tokio::test]
async fn nothing_of_another_user_is_seen_or_changed() {
    let path = "attack::nothing_of_another_user_is_seen_or_changed";
    let mut refused = 0;
    let mut answered = 0;
    for seed in seeds(USUAL_ATTACKERS, DEEP_ATTACKERS) {
        let mut replay = Replay::new(Test { package: "keyward-records", path }, seed);
        let mut rng = Rng::with_seed(seed);
        let victim = Victim::new().await;
        let before = victim.everything().await;
        let mut attacker = Attacker::new(&victim, &mut rng).await;
        for _ in 0..ATTEMPTS {
            let (told, was_refused) = attacker.attempt(&mut rng, &mut replay).await;
            assert!(!told.contains(victim::SECRET), "the attacker was told: {told}");
            if was_refused {
                refused += 1;
            } else {
                answered += 1;
            }
        }
        victim.check(&before).await;
        victim.still_finds_everything().await;
    }
    // An attacker to whom everything is refused, or nothing, would prove little.
    assert!(refused > answered / 100 && answered > refused / 100, "{refused} {answered}");
    if deep() {
        assert!(refused + answered >= 1_000_000);
    }
}
