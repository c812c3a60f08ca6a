//! That the ledger would notice what must not happen: else the ordeal proves nothing.

use std::collections::BTreeSet;

use keyward_engine::{Commit, Store};

use super::ledger::{
    Contents, Deed, Fate, Ledger, Told, account, contents, fate_of_outcome, mark, register, side,
};
use crate::server::{Fresh, key, put, runtime};

/// Some commits of every kind, all of them entered.
async fn commits(store: &Store) -> Vec<(String, Deed, Fate)> {
    let mut made = Vec::new();
    let mut before = None;
    for n in 0..14 {
        let deed = match n % 7 {
            0 => Deed::Note,
            1 => Deed::Claim { slot: 1 },
            2 => Deed::Swap { register: 0, before: before.clone() },
            3 => Deed::Add { number: 0, amount: 5 },
            4 => Deed::Move { from: 0, to: 1, amount: 3 },
            5 => Deed::Turn { side: n / 7 },
            _ => Deed::Fill { board: 0 },
        };
        let name = format!("0-0-{n}");
        let outcome = store.commit(deed.commit(&name, "")).await.unwrap();
        if n % 7 == 2 {
            before = Some((name.clone(), outcome.versions().unwrap()[0].clone().unwrap()));
        }
        made.push((name, deed, fate_of_outcome(&outcome)));
    }
    made
}

fn ledger(deeds: &[(String, Deed, Fate)]) -> Ledger {
    let mut ledger = Ledger::default();
    for (name, deed, fate) in deeds {
        ledger.enter(name.clone(), deed.clone(), *fate);
    }
    ledger
}

/// What a watcher of these commits is told.
fn told(deeds: &[(String, Deed, Fate)]) -> Told {
    let written = |name: &str, deed: &Deed| {
        let commit = deed.commit(name, "");
        commit.writes.iter().map(|write| write.key().to_string()).collect::<BTreeSet<_>>()
    };
    let told = deeds.iter().filter_map(|(name, deed, fate)| match fate {
        Fate::Made(revision) => Some((*revision, written(name, deed))),
        _ => None,
    });
    told.collect()
}

fn noticed(ledger: &Ledger, contents: &Contents, says: &str) {
    let said = ledger.check(contents).unwrap_err();
    assert!(said.contains(says), "{said}");
}

#[test]
fn an_answer_that_is_untrue_is_noticed() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let store = fresh.store().await;
        let deeds = commits(&store).await;
        let contents = contents(&store).await.unwrap();
        let good = ledger(&deeds);
        good.check(&contents).unwrap();
        assert_eq!(good.count(|fate| fate == Fate::Conflicted), 1, "the second claim");

        // Whatever was answered in truth, another answer is not.
        for (at, (_, _, fate)) in deeds.iter().enumerate() {
            for untrue in [Fate::Made(1), Fate::Conflicted, Fate::NotDone] {
                if *fate == Fate::Conflicted && matches!(untrue, Fate::NotDone) {
                    continue;
                }
                let mut deeds = deeds.clone();
                if deeds[at].2 != untrue {
                    deeds[at].2 = untrue;
                    assert!(ledger(&deeds).check(&contents).is_err(), "{at} {untrue:?}");
                }
            }
            // But nobody knowing is true of either.
            let mut deeds = deeds.clone();
            deeds[at].2 = Fate::Unknown;
            let mut ledger = ledger(&deeds);
            let made = usize::from(*fate != Fate::Conflicted);
            assert_eq!(ledger.settle(&contents), made);
            ledger.check(&contents).unwrap();
        }
    });
}

#[test]
fn a_store_that_holds_half_twice_or_too_little_is_noticed() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let store = fresh.store().await;
        let deeds = commits(&store).await;
        let (ledger, good) = (ledger(&deeds), contents(&store).await.unwrap());
        let without = |gone: &str| {
            let mut contents = good.clone();
            contents.remove(gone).unwrap();
            contents
        };
        noticed(&ledger, &without(&mark("0-0-0").to_string()), "its mark has None");
        noticed(&ledger, &without("slot:1"), "slot 1 is held by None");
        noticed(&ledger, &without(&register(0).to_string()), "register 0 holds None");
        noticed(&ledger, &without("number:0"), "number:0 is None");
        noticed(&ledger, &without(&side(1).to_string()), "the sides are");
        noticed(&ledger, &without("board:0:17"), "board 0 holds");
        // An addition that was done twice; a move of which one half was.
        assert!(store.commit(Commit::new().add(key("number:0"), 5)).await.unwrap().is_applied());
        noticed(&ledger, &contents(&store).await.unwrap(), "number:0 is Some(15)");
        assert!(store.commit(Commit::new().add(key("number:0"), -5)).await.unwrap().is_applied());
        assert!(store.commit(Commit::new().add(account(0), 3)).await.unwrap().is_applied());
        noticed(&ledger, &contents(&store).await.unwrap(), "account:0 is");
        assert!(store.commit(Commit::new().add(account(0), -3)).await.unwrap().is_applied());
        // A mark that nobody made, or made again.
        store.put(mark("stranger"), put("1")).await.unwrap();
        noticed(&ledger, &contents(&store).await.unwrap(), "marks of");
        store.delete(mark("stranger")).await.unwrap();
        store.put(mark("0-0-0"), put("1")).await.unwrap();
        noticed(&ledger, &contents(&store).await.unwrap(), "0-0-0");
    });
}

#[test]
fn a_feed_that_skips_repeats_or_invents_is_noticed() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let deeds = commits(&fresh.store().await).await;
        let (ledger, good) = (ledger(&deeds), told(&deeds));
        ledger.check_told(&good).unwrap();
        for at in 0..good.len() {
            let mut skipped = good.clone();
            skipped.remove(at);
            ledger.check_told(&skipped).unwrap_err();
            let mut repeated = good.clone();
            repeated.insert(at, good[at].clone());
            ledger.check_told(&repeated).unwrap_err();
            let mut partial = good.clone();
            partial[at].1.pop_first();
            ledger.check_told(&partial).unwrap_err();
        }
        let mut invented = good.clone();
        invented.push((good.last().unwrap().0 + 1, BTreeSet::new()));
        ledger.check_told(&invented).unwrap_err();
    });
}
