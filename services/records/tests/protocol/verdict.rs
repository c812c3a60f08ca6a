//! Runs the checker, and tells what it found.

use std::fmt::Write as _;

use stateright::{Checker, HasDiscoveries, Model, Path};

use crate::config::{Config, Role};
use crate::model::{Action, State};
use crate::property::GOAL;
use crate::protocol::{REVOKING, Schema};
use crate::script::{Op, Script};
use crate::store::RECORDS;

/// Steps of a counterexample at most.
const STEPS_MAX: usize = 40;

/// Whether to check the larger situations.
pub fn deep() -> bool {
    std::env::var_os("KEYWARD_DEEP").is_some_and(|deep| deep == "1")
}

/// One index, plain. Values 0 and 2 have the same entry, so that going from one to the other changes
/// no entry; value 1 has another.
pub const PLAIN: Schema = Schema { unique: 0, values: &[0b001, 0b010, 0b001] };
/// One index, unique.
pub const UNIQUE: Schema = Schema { unique: 0b011, values: &[0b001, 0b010] };

/// One record with value 0, nobody who does anything, and nothing that goes wrong.
pub fn quiet() -> Config {
    Config {
        schema: PLAIN,
        protocol: REVOKING,
        records: [Some(0), None, None],
        orphans: &[],
        damaged: &[],
        roles: Vec::new(),
        crashes: 0,
        losses: 0,
        expiries: 0,
        clears_records: true,
        restores: false,
        alone: true,
        goal: State::is_at_rest,
    }
}

/// No record at all, and a unique index.
pub fn unclaimed() -> Config {
    Config { schema: UNIQUE, records: [None; RECORDS], ..quiet() }
}

pub fn writer(record: u8, ops: &'static [Op]) -> Role {
    Role::Writer(Script { record, ops })
}

pub fn sweeper(sweeps: u8) -> Role {
    Role::Sweeper { sweeps }
}

pub fn reader(entry: u8) -> Role {
    Role::Reader { entry }
}

/// Looks at every reachable state, and fails if a property does not hold in one of them, or if the
/// situation that it is about never comes up.
pub fn holds(name: &str, config: Config) {
    let checker =
        config.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let mut discoveries = checker.discoveries();
    let goal = discoveries.remove(GOAL);
    let states = checker.unique_state_count();
    say(&format!("{name}: {states} states, {} steps between them", checker.state_count() - 1));
    if let Some((property, path)) = discoveries.into_iter().next() {
        panic!("{name}: not so: {property}\n{}", story(checker.model(), path));
    }
    assert!(goal.is_some(), "{name}: {GOAL}: never");
}

/// Looks for the shortest way to a state in which a property does not hold, and gives its number of
/// steps.
pub fn refuted(property: &'static str, config: &Config) -> usize {
    // The checker keeps the last discovery of a search and not the first, so the search is made
    // deeper by one step at a time.
    for steps in 0..=STEPS_MAX {
        let checker = config
            .clone()
            .checker()
            .target_max_depth(steps + 2)
            .finish_when(HasDiscoveries::AllOf([property].into()))
            .spawn_bfs()
            .join();
        if let Some(path) = checker.discovery(property) {
            say(&format!("{steps} steps until not so: {property}\n{}", story(config, path)));
            return steps;
        }
    }
    panic!("nothing found in {STEPS_MAX} steps against: {property}");
}

fn story(config: &Config, path: Path<State, Action>) -> String {
    let mut story = String::new();
    for (state, action) in path.into_vec() {
        let Some(action) = action else { continue };
        let line = match action {
            Action::Step { process, choice } | Action::Lose { process, choice } => {
                let number = usize::from(process);
                let call = state.call(config, number, choice);
                let lost = if action == (Action::Step { process, choice }) { "" } else { ", lost" };
                let role = match config.roles[number] {
                    Role::Writer(Script { record, .. }) => format!("writer {process} of {record}"),
                    Role::Sweeper { .. } => format!("sweeper {process}"),
                    Role::Reader { .. } => format!("reader {process}"),
                };
                format!("{role}: {call:?}{lost}")
            }
            other => format!("{other:?}"),
        };
        _ = writeln!(story, "  {line}");
    }
    story
}

#[allow(clippy::print_stderr, reason = "says how much was tried")]
pub fn say(line: &str) {
    eprintln!("{line}");
}
