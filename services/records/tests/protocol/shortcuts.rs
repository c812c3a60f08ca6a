//! Rules that look simpler or cheaper. Each fails, the checker finds out, and the number of steps of
//! the shortest failure is the one that the decision record tells.

use crate::config::Config;
use crate::property::{NOT_LOST, NOT_MISSING, ONE_HOLDER, SCRUBBED, TRUE_ANSWERS};
use crate::protocol::Phase::{Announce, Clean, Commit, Look, Prepare, Touch};
use crate::protocol::{ANNOUNCING, Intent, Protocol, REVOKING, Revoke, Unanswered};
use crate::script::Op::{Delete, Put};
use crate::verdict::{quiet, reader, refuted, sweeper, unclaimed, writer};

/// Delete the old entry, write the record, add the new entry.
const OLD_ENTRY_FIRST: Protocol = Protocol {
    phases: &[Clean, Commit, Touch],
    intent: Intent::Never,
    sweeper_revokes: Revoke::Never,
    guarded: false,
    ..REVOKING
};

/// Write the new entry, write the record, delete the old entry, all of them checked.
const ENTRIES_FIRST: Protocol = Protocol {
    phases: &[Prepare, Commit, Clean],
    intent: Intent::Never,
    sweeper_revokes: Revoke::Never,
    ..REVOKING
};

#[test]
fn deleting_the_old_entry_first_hides_a_record_that_nobody_has_changed_yet() {
    let roles = vec![writer(0, &[Put(1)])];
    let config = Config { protocol: OLD_ENTRY_FIRST, roles, ..quiet() };
    assert_eq!(refuted(NOT_MISSING, &config), 2);
}

#[test]
fn deleting_the_old_entry_first_loses_it_when_the_writer_dies() {
    let roles = vec![writer(0, &[Put(1)])];
    let config = Config { protocol: OLD_ENTRY_FIRST, roles, crashes: 1, ..quiet() };
    assert_eq!(refuted(NOT_LOST, &config), 3);
}

#[test]
fn deleting_the_old_entry_first_without_a_check_loses_it_with_nobody_dying() {
    let roles = vec![writer(0, &[Put(1)]), writer(0, &[Put(2)])];
    let protocol = Protocol { checked: false, ..OLD_ENTRY_FIRST };
    assert_eq!(refuted(NOT_LOST, &Config { protocol, roles, ..quiet() }), 6);
}

#[test]
fn writing_the_record_first_loses_the_entry_when_the_writer_dies() {
    let protocol = Protocol { phases: &[Commit, Touch], intent: Intent::Never, ..REVOKING };
    let roles = vec![writer(0, &[Put(1)])];
    assert_eq!(refuted(NOT_LOST, &Config { protocol, roles, crashes: 1, ..quiet() }), 3);
}

#[test]
fn writing_entries_first_loses_one_to_a_sweeper() {
    let roles = vec![writer(0, &[Put(1)]), sweeper(1)];
    let config = Config { protocol: ENTRIES_FIRST, roles, ..quiet() };
    assert_eq!(refuted(NOT_MISSING, &config), 7);
}

#[test]
fn a_sweeper_that_does_not_revoke_the_record_loses_an_entry() {
    let protocol = Protocol { sweeper_revokes: Revoke::Never, ..REVOKING };
    let roles = vec![writer(0, &[Put(1)]), sweeper(1)];
    assert_eq!(refuted(NOT_MISSING, &Config { protocol, roles, ..quiet() }), 7);
}

#[test]
fn a_sweeper_that_does_not_look_at_intents_loses_an_entry() {
    let protocol = Protocol { sweeper_revokes: Revoke::Never, ..ANNOUNCING };
    let roles = vec![writer(0, &[Put(1)]), sweeper(1)];
    assert_eq!(refuted(NOT_MISSING, &Config { protocol, roles, ..quiet() }), 8);
}

#[test]
fn creating_without_a_marker_loses_an_entry_because_absent_is_no_version() {
    let protocol = Protocol { intent: Intent::Never, ..REVOKING };
    let roles = vec![writer(0, &[Put(1)]), sweeper(1)];
    let config = Config { protocol, roles, records: [None; 3], ..quiet() };
    assert_eq!(refuted(NOT_MISSING, &config), 6);
}

#[test]
fn creating_without_a_marker_gives_a_unique_value_two_holders() {
    let protocol = Protocol { intent: Intent::Never, ..REVOKING };
    let roles = vec![writer(0, &[Put(0)]), writer(1, &[Put(0)])];
    assert_eq!(refuted(ONE_HOLDER, &Config { protocol, roles, ..unclaimed() }), 9);
}

#[test]
fn an_entry_that_is_there_already_must_be_written_again() {
    let protocol = Protocol { bump: false, ..REVOKING };
    let roles = vec![writer(0, &[Put(1)]), sweeper(1)];
    let config = Config { protocol, roles, orphans: &[(0, 1)], ..quiet() };
    assert_eq!(refuted(NOT_MISSING, &config), 8);
}

#[test]
fn a_unique_entry_that_is_mine_already_must_be_written_again() {
    let protocol = Protocol { bump: false, ..REVOKING };
    let roles = vec![writer(0, &[Put(0)]), writer(1, &[Put(0)])];
    let config = Config { protocol, roles, orphans: &[(0, 0)], ..unclaimed() };
    assert_eq!(refuted(ONE_HOLDER, &config), 10);
}

#[test]
fn an_entry_must_be_deleted_only_at_the_version_that_was_read() {
    let protocol = Protocol { guarded: false, ..REVOKING };
    let roles = vec![writer(0, &[Put(1)]), sweeper(1)];
    let config = Config { protocol, roles, orphans: &[(0, 1)], ..quiet() };
    assert_eq!(refuted(NOT_MISSING, &config), 8);
}

#[test]
fn a_sweeper_must_read_the_entry_before_the_record() {
    let protocol = Protocol { entry_first: false, ..REVOKING };
    let roles = vec![writer(0, &[Put(0)]), sweeper(1)];
    let config = Config { protocol, roles, records: [None; 3], ..quiet() };
    assert_eq!(refuted(NOT_MISSING, &config), 7);
}

#[test]
fn a_writer_must_read_the_versions_of_old_entries_before_it_commits() {
    let protocol = Protocol { phases: &[Announce, Touch, Commit, Look, Clean], ..REVOKING };
    let roles = vec![writer(0, &[Put(1)]), writer(0, &[Put(0)])];
    assert_eq!(refuted(NOT_MISSING, &Config { protocol, roles, ..quiet() }), 8);
}

#[test]
fn a_rival_that_does_not_revoke_the_claimant_gives_a_unique_value_two_holders() {
    let protocol = Protocol { rival_revokes: Revoke::Never, ..REVOKING };
    let roles = vec![writer(0, &[Put(0)]), writer(1, &[Put(0)])];
    assert_eq!(refuted(ONE_HOLDER, &Config { protocol, roles, ..unclaimed() }), 11);
}

#[test]
fn a_commit_with_no_answer_that_is_tried_again_is_done_twice() {
    let protocol = Protocol { unanswered: Unanswered::TryAgain, ..REVOKING };
    let roles = vec![writer(0, &[Put(1)])];
    assert_eq!(refuted(TRUE_ANSWERS, &Config { protocol, roles, losses: 1, ..quiet() }), 7);
}

#[test]
fn a_delete_with_no_answer_that_is_tried_again_says_that_nothing_was_there() {
    let protocol = Protocol { unanswered: Unanswered::TryAgain, ..REVOKING };
    let roles = vec![writer(0, &[Delete])];
    assert_eq!(refuted(TRUE_ANSWERS, &Config { protocol, roles, losses: 1, ..quiet() }), 5);
}

#[test]
fn a_query_that_trusts_the_entries_gives_a_row_that_does_not_match() {
    let protocol = Protocol { recheck: false, ..REVOKING };
    let roles = vec![writer(0, &[Put(1)]), reader(1)];
    assert_eq!(refuted(TRUE_ANSWERS, &Config { protocol, roles, ..quiet() }), 4);
}

#[test]
fn a_claimant_that_died_blocks_a_value_for_ever_where_nobody_takes_over() {
    let protocol = Protocol { takes_over: false, ..REVOKING };
    let roles = vec![writer(0, &[Put(0)]), writer(1, &[Put(0)])];
    assert_eq!(refuted(TRUE_ANSWERS, &Config { protocol, roles, ..unclaimed() }), 7);
}

#[test]
fn a_scrub_that_walks_only_the_index_leaves_markers() {
    let roles = vec![writer(0, &[Put(0)])];
    let config = Config { roles, crashes: 1, clears_records: false, ..unclaimed() };
    assert_eq!(refuted(SCRUBBED, &config), 3);
}
