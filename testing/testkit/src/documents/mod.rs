//! What an adapter of [`Documents`] must show, an in-memory reference, and injected faults.

#![allow(missing_docs, reason = "a behaviour's name is its sentence")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod behaviours;
mod database;
mod faulty;
mod meaning;
mod memory;

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{BoxFuture, Documents};

use crate::Test;
use crate::run::in_time;

use database::Database;

pub use faulty::{DocumentCall, FaultyDocuments};
pub use meaning::Meaning;
pub use memory::{DocumentCalls, MemoryDocuments};

/// A place where one database of documents lives, for one test. This is what an adapter's test file
/// implements for [`document_conformance!`](crate::document_conformance).
///
/// A new place is empty and nobody else uses it. Dropping it removes what was there.
pub trait DocumentsPlace: Send + Sync + 'static {
    /// Opens the database as another client would. Its indexes are created only by
    /// [`Documents::prepare`].
    fn open(&self) -> BoxFuture<'_, Arc<dyn Documents>>;

    /// Lets time pass for lists that are late.
    fn pass(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// Runs one behaviour on a new place: what [`document_conformance!`](crate::document_conformance)
/// expands to.
#[doc(hidden)]
pub fn run<P: DocumentsPlace, F: Future<Output = ()>>(
    test: Test,
    new_place: impl FnOnce() -> P,
    behaviour: impl FnOnce(Database) -> F,
) {
    in_time(async {
        let database = Database::open(test, Box::new(new_place())).await;
        behaviour(database).await;
    });
}

/// Makes one test of each thing an adapter of [`Documents`](keyward_engine::Documents) must show, in a
/// module of the given name.
///
/// The second argument is an expression that makes a new
/// [`DocumentsPlace`](crate::DocumentsPlace); each test evaluates it anew.
///
/// ```
/// use std::sync::Arc;
///
/// use keyward_engine::{BoxFuture, Documents};
/// use keyward_testkit::{DocumentsPlace, MemoryDocuments};
///
/// struct InMemory(MemoryDocuments);
///
/// impl DocumentsPlace for InMemory {
///     fn open(&self) -> BoxFuture<'_, Arc<dyn Documents>> {
///         let documents = self.0.clone();
///         Box::pin(async { Arc::new(documents) as Arc<dyn Documents> })
///     }
/// }
///
/// keyward_testkit::document_conformance!(documents, InMemory(MemoryDocuments::new()));
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! document_conformance {
    ($module:ident, $place:expr) => {
        mod $module {
            #[allow(unused_imports, reason = "the place may be named by a full path")]
            use super::*;

            fn new_place() -> impl $crate::DocumentsPlace {
                $place
            }

            $crate::document_behaviours!(tests);
        }
    };
}

/// Hands the list of behaviours to one of the forms of `expand_document_behaviours`.
#[doc(hidden)]
#[macro_export]
macro_rules! document_behaviours {
    ($form:ident) => {
        $crate::expand_document_behaviours! { $form
            reading {
                documents_come_back_in_the_order_asked_for,
                a_document_that_is_not_there_is_none,
                reading_no_documents_gives_nothing,
                strange_ids_name_one_document_each,
            }
            swapping {
                a_document_is_created_only_where_there_is_none,
                a_document_is_replaced_only_as_it_was_read,
                a_document_is_deleted_only_as_it_was_read,
                a_deleted_document_is_absent_and_can_be_created_again,
                a_document_of_an_earlier_life_replaces_and_deletes_nothing,
                the_revision_of_a_put_is_good_for_the_next_swap,
                a_swap_that_changes_nothing_is_applied,
                a_put_replaces_all_fields,
            }
            racing {
                of_sixteen_racing_creates_exactly_one_wins,
                of_sixteen_racing_replacements_exactly_one_wins,
                of_racing_replacements_and_deletes_exactly_one_wins,
                racing_increments_lose_none,
            }
            values {
                plain_values_come_back_exactly,
                fields_of_other_programs_come_back_exactly,
                numbers_come_back_exactly_or_are_refused,
                odd_values_come_back_exactly_or_are_refused,
                a_replacement_that_is_refused_changes_nothing,
            }
            limits {
                the_largest_document_works_and_a_much_larger_one_is_refused,
                the_longest_id_works_and_a_longer_one_is_refused,
                the_most_ids_of_one_read_come_back,
            }
            lists {
                a_list_has_all_groups_of_its_owner_and_nothing_else,
                a_list_of_a_group_has_that_group_alone,
                owners_that_look_alike_are_apart,
                thousands_of_documents_are_listed_over_pages_once_each,
                lists_carry_documents_only_if_asked_for,
                a_list_follows_creates_and_deletes,
                documents_without_owner_or_group_are_in_no_list,
                an_owner_without_documents_has_an_empty_list,
            }
            preparing {
                a_dry_run_says_what_is_missing_and_creates_nothing,
                preparing_again_changes_nothing,
                documents_that_were_there_before_are_listed,
            }
            model {
                random_swaps_agree_with_a_simple_map,
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! expand_document_behaviours {
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
                        $crate::documents::run(
                            test,
                            super::new_place,
                            $crate::documents::$noun::$behaviour,
                        );
                    }
                )*
            }
        )*
    };
    (exports $($noun:ident { $($behaviour:ident,)* })*) => {
        $(
            pub mod $noun {
                $(pub use super::behaviours::$noun::$behaviour;)*
            }
        )*
    };
}

document_behaviours!(exports);
