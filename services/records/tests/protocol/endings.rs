//! Whether everybody gets to an end whatever the order of steps.

use std::collections::HashMap;

use stateright::Model;

use crate::config::Config;
use crate::model::State;
use crate::script::Op::{Delete, Put};
use crate::store::RECORDS;
use crate::verdict::{quiet, say, sweeper, unclaimed, writer};

/// Whether some order of steps goes on for ever: a cycle among the reachable states.
fn can_go_on_for_ever(config: &Config) -> bool {
    let successors = |state: &State| {
        let mut actions = Vec::new();
        config.actions(state, &mut actions);
        actions
            .into_iter()
            .filter_map(|action| config.next_state(state, action))
            .collect::<Vec<_>>()
    };
    // True while a state is on the way from the start to where the search is.
    let mut open: HashMap<State, bool> = HashMap::new();
    let mut way: Vec<(State, Vec<State>)> = Vec::new();
    for start in config.init_states() {
        open.insert(start.clone(), true);
        let next = successors(&start);
        way.push((start, next));
    }
    while let Some((state, next)) = way.last_mut() {
        match next.pop() {
            Some(next) => match open.get(&next) {
                Some(true) => return true,
                Some(false) => {}
                None => {
                    open.insert(next.clone(), true);
                    let after = successors(&next);
                    way.push((next, after));
                }
            },
            None => {
                open.insert(state.clone(), false);
                way.pop();
            }
        }
    }
    say(&format!("no cycle among {} states", open.len()));
    false
}

#[test]
fn writers_of_plain_indexes_come_to_an_end_whatever_the_order_of_steps() {
    let roles = vec![writer(0, &[Put(1), Put(0)]), writer(0, &[Put(1), Put(0)]), sweeper(2)];
    assert!(!can_go_on_for_ever(&Config { roles, crashes: 1, ..quiet() }));
    let roles = vec![writer(0, &[Delete, Put(0)]), writer(0, &[Put(1), Delete]), sweeper(1)];
    assert!(!can_go_on_for_ever(&Config { roles, records: [None; RECORDS], losses: 1, ..quiet() }));
}

#[test]
fn a_record_that_takes_over_from_dead_or_former_holders_comes_to_an_end() {
    let roles = vec![writer(0, &[Put(1), Delete]), writer(1, &[Put(0)]), sweeper(1)];
    let config = Config { roles, records: [Some(0), None, None], crashes: 1, ..unclaimed() };
    assert!(!can_go_on_for_ever(&config));
}

#[test]
fn two_living_rivals_can_revoke_each_other_for_ever_so_they_must_back_off() {
    let roles = vec![writer(0, &[Put(0)]), writer(1, &[Put(0)])];
    assert!(can_go_on_for_ever(&Config { roles, ..unclaimed() }));
}
