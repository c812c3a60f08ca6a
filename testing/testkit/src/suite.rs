//! The list of behaviours, written once: what is added here is asked of every engine.
//!
//! The functions are public only through this list, so that the compiler warns of one that is not
//! in it.

#![allow(missing_docs, reason = "a behaviour's name is its sentence")]

/// Makes one test of each behaviour, in a module of the given name.
///
/// The second argument is an expression that makes a new [`Place`](crate::Place); each test
/// evaluates it anew.
#[macro_export]
macro_rules! conformance {
    ($module:ident, $place:expr) => {
        mod $module {
            #[allow(unused_imports, reason = "the place may be named by a full path")]
            use super::*;

            fn new_place() -> impl $crate::Place {
                $place
            }

            $crate::behaviours!(tests);
        }
    };
}

/// Hands the list of behaviours to one of the forms of `expand_behaviours`.
#[doc(hidden)]
#[macro_export]
macro_rules! behaviours {
    ($form:ident) => {
        $crate::expand_behaviours! { $form
            round_trip {
                values_come_back_byte_for_byte,
                null_is_a_value_and_not_absence,
                numbers_keep_their_digits,
                metadata_comes_back_beside_the_value,
                a_put_replaces_value_metadata_and_expiry_wholly,
                a_deleted_key_is_absent_and_deleting_again_changes_nothing,
                a_key_its_children_and_its_neighbours_live_apart,
                odd_keys_come_back_as_they_are,
                one_commit_may_put_and_delete,
            }
            reads {
                many_keys_come_back_in_the_order_asked_for,
                reading_no_keys_gives_nothing,
                more_keys_than_one_read_takes_come_back_all_the_same,
                reads_are_as_late_as_declared_and_no_later,
            }
            order {
                scans_follow_the_order_of_segments,
                characters_order_by_code_point,
                ranges_hold_exactly_their_keys,
                a_range_without_keys_gives_an_empty_end,
                scans_carry_whole_entries_or_only_keys,
                scanning_down_is_the_reverse_or_refused,
            }
            paging {
                pages_have_no_gap_and_no_repeat_at_any_size,
                the_page_that_ends_a_range_has_no_next,
                paging_goes_on_where_the_last_row_was_deleted,
                rows_that_stay_appear_once_while_others_come_and_go,
                a_limit_of_zero_is_refused,
                a_limit_above_the_engines_is_lowered_to_it,
            }
            listing {
                a_listing_without_depth_gives_every_key,
                a_key_and_the_prefix_of_its_name_are_both_listed,
                listings_by_level_agree_with_a_naive_listing,
                a_large_subtree_is_listed_as_one_prefix,
                listings_that_make_no_sense_are_refused,
            }
            commits {
                a_commit_of_several_keys_is_applied_whole,
                a_failed_check_among_several_leaves_nothing,
                a_number_that_cannot_be_added_to_leaves_nothing,
                an_empty_commit_is_refused,
                a_key_written_twice_is_refused,
                a_key_checked_twice_is_refused,
                a_deleted_key_may_be_put_again_at_once,
            }
            checks {
                absent_holds_only_while_there_is_no_entry,
                a_version_holds_only_until_the_next_write,
                a_version_is_that_of_its_key_alone,
                a_version_taken_through_text_still_holds,
                a_foreign_version_never_holds,
                a_swap_succeeds_once_for_each_version,
                exactly_the_failed_checks_are_named,
                a_check_may_guard_a_write_elsewhere,
            }
            numbers {
                adding_counts_from_zero_in_both_directions,
                adding_keeps_metadata_and_expiry,
                adding_to_what_is_no_whole_number_is_refused,
                a_sum_beyond_64_bits_is_refused,
                adding_to_an_expired_number_starts_from_zero,
                an_addition_may_be_checked_and_joined_with_other_writes,
            }
            versions {
                every_put_gives_a_new_version,
                versions_do_not_come_back_after_delete_and_re_create,
                versions_do_not_come_back_after_expiry_and_re_create,
                the_outcome_tells_the_versions_that_reads_show,
                all_entries_a_commit_writes_have_one_version,
                revisions_grow_with_every_commit_that_changes_something,
            }
            expiry {
                an_entry_is_absent_exactly_from_its_end_on,
                pages_skip_expired_rows_without_losing_others,
                an_expired_key_counts_as_absent_in_checks,
                putting_again_sets_a_new_end_or_none,
                an_end_given_as_a_moment_is_kept,
                an_end_that_has_passed_is_no_entry_at_all,
                an_end_beyond_the_calendar_never_comes,
                a_time_to_live_of_zero_or_below_the_least_is_refused,
                a_part_of_a_moment_counts_as_a_whole_one,
            }
            reclaiming {
                the_space_of_expired_entries_is_given_back,
                an_entry_written_again_outlives_its_first_end,
                watchers_are_told_once_what_has_expired,
                what_has_expired_is_never_told_as_deleted,
            }
            watching {
                a_watch_begins_with_the_revision_it_begins_after,
                each_commit_is_told_with_its_keys_and_kinds,
                only_what_lies_in_the_range_is_told,
                commits_elsewhere_move_the_point_to_resume_from,
                what_changes_nothing_is_not_told,
                watchers_do_not_disturb_each_other,
                a_watcher_that_waits_is_woken,
            }
            live {
                what_changes_after_a_watch_began_is_told,
                a_watch_resumes_while_the_store_is_open,
                what_is_not_listed_when_a_watch_began_is_told,
            }
            resuming {
                resuming_gives_exactly_the_later_commits,
                a_resumed_watch_goes_on_with_what_comes,
                long_histories_are_told_without_a_gap,
                a_revision_still_to_come_is_too_old,
                history_that_is_gone_is_told_as_too_old,
                a_watcher_that_falls_behind_is_told_so,
                a_slow_watcher_does_not_hold_up_writers,
            }
            limits {
                the_longest_key_works_everywhere,
                a_longer_key_is_refused,
                a_range_may_be_longer_than_any_key,
                the_largest_value_works_and_a_larger_is_refused,
                values_of_every_size_around_a_page_come_back,
                the_largest_metadata_works_and_larger_is_refused,
                metadata_that_is_no_object_is_refused,
                the_most_keys_in_a_commit_work_and_more_are_refused,
                the_largest_commit_works_and_a_larger_is_refused,
            }
            racing {
                of_sixteen_racing_swaps_exactly_one_wins,
                of_sixteen_racing_creates_exactly_one_wins,
                concurrent_additions_sum_exactly,
                concurrent_swaps_lose_no_increment,
                a_reader_never_sees_half_a_commit,
                a_watcher_sees_every_commit_of_many_writers_once_in_order,
            }
            reopening {
                reopening_keeps_everything,
                versions_do_not_come_back_after_reopening,
                entries_end_on_time_across_reopening,
                a_watch_resumes_across_reopening,
                an_empty_store_reopens_empty,
            }
            stats {
                entries_are_counted,
                revisions_are_told_by_engines_that_keep_a_history,
                the_capabilities_agree_with_each_other,
            }
            model {
                random_operations_agree_with_a_simple_map,
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! expand_behaviours {
    (tests $($noun:ident { $($behaviour:ident,)* })*) => {
        $(
            mod $noun {
                $(
                    #[test]
                    fn $behaviour() {
                        let test = $crate::Test {
                            package: env!("CARGO_PKG_NAME"),
                            path: concat!(module_path!(), "::", stringify!($behaviour)),
                        };
                        $crate::run(test, super::new_place, $crate::suite::$noun::$behaviour);
                    }
                )*
            }
        )*
    };
    (exports $($noun:ident { $($behaviour:ident,)* })*) => {
        $(
            pub mod $noun {
                $(pub use $crate::behaviours::$noun::$behaviour;)*
            }
        )*
    };
}

behaviours!(exports);
