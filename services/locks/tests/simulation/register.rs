//! Who believes to hold what.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use keyward_locks::{Guard, LockPath};
use tokio::time::Instant;

/// The guards of all processes of a run.
#[derive(Clone, Default)]
pub struct Register(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    held: Vec<Held>,
    broken: BTreeSet<u64>,
    /// When breaks were acknowledged.
    broken_at: BTreeMap<u64, Instant>,
}

struct Held {
    guard: Rc<Guard>,
    /// The token of the guard that it was taken under, or its own.
    family: u64,
}

impl Register {
    /// Enters a guard. Nobody else may believe to hold anything that it excludes: a lock passes on
    /// only after its holder has stopped counting on it, unless a person breaks it.
    pub fn enter(&self, guard: Guard, under: Option<&Guard>) -> Rc<Guard> {
        self.check_told();
        let mut state = self.0.borrow_mut();
        let family = under.map_or(guard.token(), Guard::token);
        let counts = |guard: &Guard| guard.is_held() && !state.broken.contains(&guard.token());
        for held in state.held.iter().filter(|held| held.family != family) {
            let other = &held.guard;
            let both = counts(other) && counts(&guard);
            assert!(!(both && exclude(other, &guard)), "two holders: {other:?} and {guard:?}");
        }
        let guard = Rc::new(guard);
        state.held.push(Held { guard: guard.clone(), family });
        guard
    }

    /// Strikes a guard out.
    pub fn strike(&self, guard: Rc<Guard>) -> Guard {
        self.check_told();
        self.0.borrow_mut().held.retain(|held| !Rc::ptr_eq(&held.guard, &guard));
        Rc::into_inner(guard).expect("nobody else has it")
    }

    /// Takes note that somebody is about to break a lock.
    pub fn breaks(&self, token: u64) {
        self.0.borrow_mut().broken.insert(token);
    }

    /// Takes note that a lock was broken.
    pub fn broke(&self, token: u64) {
        self.0.borrow_mut().broken_at.insert(token, Instant::now());
    }

    /// A holder whose lock was broken knows it within its lease.
    fn check_told(&self) {
        let state = self.0.borrow();
        for Held { guard, .. } in &state.held {
            let broken = state.broken_at.get(&guard.token());
            let late = broken.is_some_and(|at| at.elapsed() > guard.ttl());
            assert!(!(late && guard.is_held()), "{guard:?} was never told that it is broken");
        }
    }
}

fn exclude(one: &Guard, other: &Guard) -> bool {
    let overlaps = |path: &LockPath| other.paths().iter().any(|other| path.overlaps(other));
    one.mode().excludes(other.mode()) && one.paths().iter().any(overlaps)
}
