//! The behaviours every engine must show.

use std::sync::Arc;

use keyward_dynamodb::DynamoDb;
use keyward_engine::{BoxFuture, Engine};
use keyward_testkit::{Place, TestClock, conformance};
use tokio::sync::OnceCell;

use crate::server::Fresh;

struct InTable {
    fresh: OnceCell<Fresh>,
    segments: usize,
}

impl InTable {
    fn new(segments: usize) -> Self {
        Self { fresh: OnceCell::new(), segments }
    }
}

impl Place for InTable {
    fn open(&self, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            let fresh = self.fresh.get_or_init(Fresh::store_table).await;
            let mut options = fresh.options();
            options.partition_segments = Some(self.segments);
            Arc::new(DynamoDb::open_with(options, clock).await.unwrap()) as Arc<dyn Engine>
        })
    }
}

conformance!(dynamodb, InTable::new(1));

/// What depends on where keys lie, with another layout.
mod two_segments {
    use keyward_testkit::{Test, run, suite};

    use super::InTable;

    fn test(path: &'static str) -> Test {
        Test { package: env!("CARGO_PKG_NAME"), path }
    }

    #[test]
    fn ranges_hold_exactly_their_keys() {
        let test = test("conformance::two_segments::ranges_hold_exactly_their_keys");
        run(test, || InTable::new(2), suite::order::ranges_hold_exactly_their_keys);
    }

    #[test]
    fn pages_have_no_gap_and_no_repeat_at_any_size() {
        let test = test("conformance::two_segments::pages_have_no_gap_and_no_repeat_at_any_size");
        run(test, || InTable::new(2), suite::paging::pages_have_no_gap_and_no_repeat_at_any_size);
    }

    #[test]
    fn the_longest_key_works_everywhere() {
        let test = test("conformance::two_segments::the_longest_key_works_everywhere");
        run(test, || InTable::new(2), suite::limits::the_longest_key_works_everywhere);
    }

    #[test]
    fn random_operations_agree_with_a_simple_map() {
        let test = test("conformance::two_segments::random_operations_agree_with_a_simple_map");
        run(test, || InTable::new(2), suite::model::random_operations_agree_with_a_simple_map);
    }
}
