//! What an engine must show when the network to its database fails.
//!
//! The rule under all of it: an engine never says what is not so. A commit that is called applied is
//! there; one that failed as `Unavailable` is not; if the engine cannot know, it says
//! `OutcomeUnknown`.

#![allow(missing_docs, reason = "a behaviour's name is its sentence")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod network;
mod outages;
mod random;
mod reads;
mod trial;
mod writes;

use std::net::SocketAddr;
use std::sync::Arc;

use keyward_engine::{BoxFuture, Engine};

use crate::run::in_time;
use crate::{Test, TestClock};

use network::Network;

/// A place where one store lives, for one test, in a database that speaks plain HTTP. This is what an
/// adapter's test file implements for [`network_faults!`](crate::network_faults).
///
/// A new place is empty and nobody else uses it. Dropping it removes what was there.
pub trait NetworkPlace: Send + Sync + 'static {
    /// The database's address.
    fn upstream(&self) -> SocketAddr;

    /// Opens the store by way of an address: a proxy's, or that of the database itself for a second
    /// engine that sees what is really there. Both are open at once.
    ///
    /// Open it with an answer timeout of 1 s and a retry budget of about 2 s: some behaviours wait
    /// for the one or use up the other.
    fn open(&self, through: SocketAddr, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>>;
}

/// Runs one behaviour on a new place: what [`network_faults!`](crate::network_faults) expands to.
#[doc(hidden)]
pub fn run<P: NetworkPlace, F: Future<Output = ()>>(
    test: Test,
    new_place: impl FnOnce() -> P,
    behaviour: impl FnOnce(Network) -> F,
) {
    in_time(async {
        let network = Network::open(test, Box::new(new_place())).await;
        behaviour(network).await;
    });
}

/// Makes one test of each thing an engine must show when the network to its database fails, in a
/// module of the given name.
///
/// The second argument is an expression that makes a new [`NetworkPlace`]; each test evaluates it
/// anew.
#[macro_export]
macro_rules! network_faults {
    ($module:ident, $place:expr) => {
        mod $module {
            #[allow(unused_imports, reason = "the place may be named by a full path")]
            use super::*;

            fn new_place() -> impl $crate::NetworkPlace {
                $place
            }

            $crate::network_behaviours!(tests);
        }
    };
}

/// Hands the list of behaviours to one of the forms of `expand_network_behaviours`.
#[doc(hidden)]
#[macro_export]
macro_rules! network_behaviours {
    ($form:ident) => {
        $crate::expand_network_behaviours! { $form
            writes {
                the_outcome_of_a_commit_cut_before_it_arrives_is_true,
                the_outcome_of_a_commit_cut_after_it_was_done_is_true,
                the_outcome_of_a_commit_whose_answer_is_cut_halfway_is_true,
                the_outcome_of_a_commit_that_a_gateway_loses_is_true,
                the_outcome_of_a_commit_that_is_told_to_slow_down_is_true,
                the_outcome_of_a_commit_that_meets_a_failing_server_is_true,
                the_outcome_of_a_commit_that_lands_late_is_true,
                a_create_whose_answer_is_lost_is_no_conflict,
                a_commit_that_conflicts_is_never_called_applied,
            }
            reads {
                reads_are_right_or_fail_under_every_fault,
            }
            outages {
                while_nothing_arrives_commits_and_reads_fail_honestly,
                while_no_answer_arrives_commits_and_reads_fail_honestly,
                while_the_server_is_overloaded_commits_and_reads_fail_honestly,
                work_goes_on_after_the_network_heals,
            }
            random {
                nothing_acknowledged_is_lost_under_random_faults,
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! expand_network_behaviours {
    (tests $($noun:ident { $($behaviour:ident,)* })*) => {
        $($(
            #[test]
            fn $behaviour() {
                let test = $crate::Test {
                    package: env!("CARGO_PKG_NAME"),
                    path: concat!(module_path!(), "::", stringify!($behaviour)),
                };
                $crate::faulty_network::run(
                    test,
                    new_place,
                    $crate::faulty_network::$behaviour,
                );
            }
        )*)*
    };
    (exports $($noun:ident { $($behaviour:ident,)* })*) => {
        $($(pub use $noun::$behaviour;)*)*
    };
}

network_behaviours!(exports);
