//! Who meets whom: each situation is checked in every reachable state, for the protocol of this
//! project and, in the deep run or where it matters most, for the one in which writers always
//! announce themselves.

use crate::config::Config;
use crate::model::State;
use crate::protocol::{ANNOUNCING, Protocol, REVOKING, Schema, Unanswered};
use crate::script::Op::{self, Delete, Put};
use crate::store::{ENTRIES, RECORDS};
use crate::verdict::{deep, holds, quiet, reader, sweeper, unclaimed, writer};

/// Several entries for one value: changing from one set to another keeps some.
const SEVERAL: Schema = Schema { unique: 0, values: &[0b011, 0b110, 0b100] };
/// A unique entry and a plain one for the same value.
const MIXED: Schema = Schema { unique: 0b001, values: &[0b011, 0b100] };
/// Two unique entries for the same value.
const TWO_UNIQUE: Schema = Schema { unique: 0b011, values: &[0b011] };

fn check(name: &str, config: Config) {
    if deep() {
        announced(name, config.clone());
    }
    holds(name, Config { protocol: REVOKING, ..config });
}

fn announced(name: &str, config: Config) {
    holds(&format!("{name}, always announced"), Config { protocol: ANNOUNCING, ..config });
}

fn has_orphan(state: &State) -> bool {
    let orphaned = |slot: &u8| {
        let entry = Schema::entry(*slot);
        state.store.owner(*slot).is_some_and(|owner| !state.store.holds(owner, entry))
    };
    (0..(RECORDS * ENTRIES) as u8).any(|slot| orphaned(&slot))
}

fn is_marker(state: &State, record: usize) -> bool {
    state.store.records[record].is_some_and(|record| record.value.is_none())
}

fn orphan_at_rest(state: &State) -> bool {
    state.is_at_rest() && has_orphan(state)
}

/// From 0 to 1 and back.
const THERE_AND_BACK: &[Op] = &[Put(1), Put(0)];

fn two_writers() -> Config {
    let ops = THERE_AND_BACK;
    Config {
        roles: vec![writer(0, ops), writer(0, ops), sweeper(1), sweeper(1)],
        crashes: 1,
        goal: orphan_at_rest,
        ..quiet()
    }
}

fn three_rivals() -> Config {
    Config {
        roles: vec![writer(0, &[Put(0)]), writer(1, &[Put(0)]), writer(2, &[Put(0)])],
        crashes: 2,
        // Both that died had left a marker.
        goal: |state| {
            let dead = state.crashed() == 2 && is_marker(state, 0) && is_marker(state, 1);
            dead && state.store.holds(2, 0)
        },
        ..unclaimed()
    }
}

#[test]
fn two_writers_change_a_record_twice_each_while_two_sweeps_run() {
    check("two writers, two operations, two sweeps", two_writers());
    if deep() {
        let ops = THERE_AND_BACK;
        let roles = vec![writer(0, ops), writer(0, ops), sweeper(2), sweeper(2)];
        let sweeps = Config { roles, crashes: 2, ..two_writers() };
        check("two writers, two operations, four sweeps", sweeps);
        let roles = vec![writer(0, ops), writer(0, ops), writer(0, ops), sweeper(1), sweeper(1)];
        let writers = Config { roles, crashes: 1, ..two_writers() };
        check("three writers, two operations, two sweeps", writers);
    }
}

#[test]
fn writers_that_always_announce_themselves_are_right_too() {
    announced("two writers, two operations, two sweeps", two_writers());
    announced("three rivals", three_rivals());
}

#[test]
fn a_record_goes_from_a_to_b_to_a_while_another_writer_keeps_its_entry() {
    let base = Config {
        roles: vec![writer(0, &[Put(1), Put(0), Put(1)]), writer(0, &[Put(2)]), sweeper(1)],
        crashes: 1,
        goal: orphan_at_rest,
        ..quiet()
    };
    check("A to B to A to B", base.clone());
    if deep() {
        let ops = &[Put(1), Put(0), Put(1)];
        let roles = vec![writer(0, ops), writer(0, &[Put(2), Put(1)]), sweeper(2), sweeper(1)];
        check("A to B to A to B, three sweeps", Config { roles, crashes: 2, ..base });
    }
}

#[test]
fn a_record_is_made_by_two_writers_at_once() {
    let base = Config {
        records: [None; RECORDS],
        roles: vec![writer(0, &[Put(0), Put(1)]), writer(0, &[Put(1), Put(0)]), sweeper(2)],
        crashes: 1,
        // One died after it had left a marker.
        goal: |state| state.crashed() == 1 && is_marker(state, 0),
        ..quiet()
    };
    check("two creators", base.clone());
    if deep() {
        let ops = &[Put(0), Put(1)];
        let roles = vec![writer(0, ops), writer(0, ops), writer(0, ops), sweeper(2)];
        check("three creators", Config { roles, crashes: 2, ..base });
    }
}

#[test]
fn a_record_is_deleted_and_made_again_while_sweepers_run() {
    let base = Config {
        roles: vec![
            writer(0, &[Delete, Put(0)]),
            writer(0, &[Put(1), Delete]),
            sweeper(1),
            sweeper(1),
        ],
        crashes: 1,
        goal: |state| orphan_at_rest(state) && state.store.records[0].is_none(),
        ..quiet()
    };
    check("deleted and made again", base.clone());
    if deep() {
        let roles = vec![
            writer(0, &[Delete, Put(0), Delete]),
            writer(0, &[Put(1), Delete, Put(0)]),
            sweeper(2),
            sweeper(1),
        ];
        check("deleted and made again, three times", Config { roles, crashes: 2, ..base });
    }
}

#[test]
fn a_value_with_several_entries_changes_some_of_them_in_any_order() {
    let base = Config {
        schema: SEVERAL,
        roles: vec![writer(0, &[Put(1)]), writer(0, &[Put(2), Put(0)]), sweeper(1)],
        crashes: 1,
        goal: orphan_at_rest,
        ..quiet()
    };
    check("several entries", base.clone());
    if deep() {
        let roles = vec![
            writer(0, &[Put(1), Put(0)]),
            writer(0, &[Put(2), Delete, Put(0)]),
            sweeper(1),
            sweeper(1),
        ];
        check("several entries, two sweepers", Config { roles, ..base });
    }
}

#[test]
fn three_records_race_for_one_value_and_the_third_takes_over_from_two_that_died() {
    check("three rivals", three_rivals());
    if deep() {
        let mut roles = three_rivals().roles;
        roles.push(sweeper(2));
        check("three rivals and two sweeps", Config { roles, alone: false, ..three_rivals() });
    }
}

#[test]
fn a_unique_value_that_its_holder_gave_up_can_be_taken_and_taken_back() {
    let base = Config {
        records: [Some(0), None, None],
        roles: vec![writer(0, &[Put(1), Put(0)]), writer(1, &[Put(0), Delete]), sweeper(1)],
        crashes: 1,
        goal: |state| state.is_at_rest() && state.store.holds(0, 1) && state.store.holds(1, 0),
        ..unclaimed()
    };
    check("given up and taken", base.clone());
    let roles = vec![writer(0, &[Delete, Put(0)]), writer(1, &[Put(0), Put(1)]), sweeper(1)];
    let taken = |state: &State| state.is_at_rest() && state.store.holds(1, 0);
    check("deleted and taken", Config { roles, goal: taken, ..base.clone() });
    if deep() {
        let roles = vec![
            writer(0, &[Put(1), Put(0)]),
            writer(0, &[Put(0), Delete]),
            writer(1, &[Put(0), Put(1)]),
            sweeper(1),
        ];
        check("two writers of the holder and a rival", Config { roles, goal: taken, ..base });
    }
}

#[test]
fn a_clash_in_one_index_leaves_the_others_right() {
    let base = Config {
        schema: MIXED,
        roles: vec![writer(0, &[Put(0)]), writer(1, &[Put(0), Put(1)]), sweeper(1)],
        crashes: 1,
        goal: orphan_at_rest,
        ..unclaimed()
    };
    check("unique and plain", base.clone());
    let roles = vec![writer(0, &[Put(0)]), writer(1, &[Put(0)]), sweeper(1)];
    let goal =
        |state: &State| state.crashed() == 1 && is_marker(state, 0) && state.store.holds(1, 0);
    check("two unique entries", Config { schema: TWO_UNIQUE, roles, goal, ..base });
}

#[test]
fn a_write_without_an_answer_may_be_applied_now_or_later_or_never() {
    let base = Config {
        roles: vec![writer(0, &[Put(1), Put(0)]), writer(0, &[Put(1)]), sweeper(1)],
        losses: 1,
        crashes: 1,
        goal: orphan_at_rest,
        ..quiet()
    };
    check("lost answers", base.clone());
    let unique = Config {
        roles: vec![writer(0, &[Put(0)]), writer(1, &[Put(0)]), sweeper(1)],
        losses: 1,
        crashes: 1,
        goal: |state| state.is_at_rest() && state.losses == 0 && state.store.holds(1, 0),
        ..unclaimed()
    };
    check("lost answers, unique", unique.clone());
    let roles = vec![writer(0, &[Put(1), Delete]), writer(0, &[Put(0)]), sweeper(1)];
    let records = [None; RECORDS];
    check("lost answers, made and deleted", Config { records, roles, ..base.clone() });
    if deep() {
        check("two lost answers", Config { losses: 2, ..base });
        check("two lost answers, unique", Config { losses: 2, ..unique });
    }
}

#[test]
fn a_writer_that_gives_up_when_it_gets_no_answer_needs_no_write_ids() {
    let protocol = Protocol { unanswered: Unanswered::GiveUp, ..REVOKING };
    let roles = vec![writer(0, &[Put(1), Delete]), writer(0, &[Put(1), Put(0)]), sweeper(1)];
    let plain = Config { protocol, roles, losses: 2, goal: orphan_at_rest, ..quiet() };
    holds("lost answers, given up", plain);
    let roles = vec![writer(0, &[Put(0)]), writer(1, &[Put(0)]), writer(2, &[Put(0)])];
    let goal = |state: &State| state.losses == 0 && is_marker(state, 0) && state.store.holds(2, 0);
    let unique = Config { protocol, roles, losses: 2, crashes: 1, goal, ..unclaimed() };
    holds("lost answers, given up, unique", unique);
}

#[test]
fn a_query_misses_no_record_that_matched_all_the_time_and_gives_none_that_does_not() {
    let base = Config {
        records: [Some(0), Some(1), None],
        roles: vec![writer(0, &[Put(1)]), writer(1, &[Put(0)]), sweeper(1), reader(0), reader(1)],
        crashes: 1,
        ..quiet()
    };
    check("queries", base.clone());
    let unique = Config {
        records: [Some(0), None, None],
        roles: vec![writer(0, &[Put(1)]), writer(1, &[Put(0)]), sweeper(1), reader(0)],
        crashes: 1,
        ..unclaimed()
    };
    check("queries, unique", unique);
    if deep() {
        let roles = vec![
            writer(0, &[Put(1), Delete]),
            writer(1, &[Put(0), Put(1)]),
            sweeper(1),
            reader(0),
            reader(1),
        ];
        check("queries while records go", Config { roles, ..base });
    }
}

#[test]
fn a_record_may_expire_at_any_time() {
    let base = Config {
        roles: vec![writer(0, &[Put(1)]), writer(0, &[Put(1), Put(0)]), sweeper(1)],
        expiries: 1,
        crashes: 1,
        goal: |state| orphan_at_rest(state) && state.store.records[0].is_none(),
        ..quiet()
    };
    check("expiry", base.clone());
    if deep() {
        check("expiry and lost answers", Config { expiries: 2, losses: 1, ..base });
    }
}

#[test]
fn a_store_that_somebody_damaged_is_mended_while_a_writer_works() {
    let base = Config {
        damaged: &[(0, 0)],
        orphans: &[(0, 1), (1, 0)],
        restores: true,
        roles: vec![writer(0, &[Put(1), Put(0)]), sweeper(2)],
        crashes: 1,
        goal: |state| state.is_at_rest() && !has_orphan(state),
        ..quiet()
    };
    check("damage", base.clone());
    if deep() {
        let roles = vec![writer(0, &[Put(1), Put(0)]), sweeper(2), sweeper(2)];
        check("damage, two sweepers", Config { roles, ..base });
    }
}
