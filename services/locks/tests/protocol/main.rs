//! Grant, renewal, takeover and fence as a model, checked in every reachable state.
//!
//! The model knows nothing of the crate: it is the specification that the code follows. A call is
//! sent in one step and lands in a later one, with any amount of time and anything else in between,
//! so that every process may be as slow as it likes at every point. `docs/locks.md` says the same in
//! words.
//!
//! - [`rules`]: the protocol, as data, with the shortcuts that one might take.
//! - [`model`]: two processes, the store and the time, one step at a time.

mod model;
mod rules;

use stateright::{Checker, HasDiscoveries, Model};

use model::World;
use rules::{Rules, Shortcut, Tier};

/// What is said of writes.
const WRITES: [&str; 2] = ["no write lands after one of a later lock", "no update is lost"];

const TIERS: [Tier; 2] = [Tier::Atomic, Tier::Recoverable];

/// What fails first.
#[allow(clippy::print_stderr, reason = "shows how much was looked at")]
fn found(rules: Rules, breaks: u8) -> Vec<&'static str> {
    let world = World { rules, breaks };
    let checker = world.checker().threads(2).finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().join();
    eprintln!("{rules:?}, breaks {breaks}: {} states", checker.unique_state_count());
    checker.discoveries().into_keys().filter(|name| !name.starts_with("can ")).collect()
}

#[test]
fn locks_exclude_and_late_writes_are_refused_in_every_reachable_state() {
    for tier in TIERS {
        for breaks in [0, 1] {
            let world = World { rules: Rules::of(tier), breaks };
            let checker = world.checker().threads(2).spawn_bfs().join();
            checker.assert_properties();
        }
    }
}

#[test]
fn without_the_fence_writes_are_not_safe() {
    for tier in TIERS {
        let found = found(Rules::of(tier).with(Shortcut::NoFence), 1);
        assert!(found.iter().any(|name| WRITES.contains(name)), "{tier:?} {found:?}");
    }
}

#[test]
fn where_a_takeover_does_not_wait_for_the_lease_two_believe_to_hold() {
    for tier in TIERS {
        let found = found(Rules::of(tier).with(Shortcut::NoPatience), 0);
        assert!(found.contains(&"nobody else believes to hold"), "{tier:?} {found:?}");
    }
}

#[test]
fn where_reading_comes_before_touching_updates_are_not_safe() {
    let found = found(Rules::of(Tier::Recoverable).with(Shortcut::ReadFirst), 1);
    assert!(found.iter().any(|name| WRITES.contains(name)), "{found:?}");
}
