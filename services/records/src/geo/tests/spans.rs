use std::collections::BTreeSet;

use proptest::prelude::*;

use super::cases;
use crate::geo::spans::{Span, Spans};

fn any_spans() -> impl Strategy<Value = Vec<Span>> {
    let span = (0..60_u64, 0..6_u64).prop_map(|(first, more)| Span { first, last: first + more });
    prop::collection::vec(span, 0..10)
}

fn cells(spans: &[Span]) -> BTreeSet<u64> {
    spans.iter().flat_map(|span| span.first..=span.last).collect()
}

fn are_in_order(spans: &Spans) -> bool {
    spans.as_slice().windows(2).all(|pair| pair[0].last + 1 < pair[1].first)
}

proptest! {
    #![proptest_config(cases(5_000))]

    #[test]
    fn spans_are_the_set_of_their_cells(a in any_spans(), b in any_spans()) {
        let (set_a, set_b) = (Spans::new(a.clone()), Spans::new(b.clone()));
        prop_assert!(are_in_order(&set_a));
        prop_assert_eq!(cells(set_a.as_slice()), cells(&a));

        let union = set_a.union(&set_b);
        prop_assert!(are_in_order(&union));
        prop_assert_eq!(cells(union.as_slice()), &cells(&a) | &cells(&b));

        let without = set_a.without(&set_b);
        prop_assert!(are_in_order(&without));
        prop_assert_eq!(cells(without.as_slice()), &cells(&a) - &cells(&b));
    }

    #[test]
    fn no_set_of_so_few_spans_is_smaller(spans in any_spans(), spans_max in 1..6_usize) {
        let set = Spans::new(spans);
        let within = set.clone().within(spans_max);
        prop_assert!(within.as_slice().len() <= spans_max);
        prop_assert!(are_in_order(&within));
        let (before, after) = (cells(set.as_slice()), cells(within.as_slice()));
        prop_assert!(after.is_superset(&before));

        // Every choice of gaps to close.
        let gaps: Vec<u64> =
            set.as_slice().windows(2).map(|pair| pair[1].first - pair[0].last - 1).collect();
        let fewest = (0_u32..1 << gaps.len())
            .filter(|closed| gaps.len() + 1 - closed.count_ones() as usize <= spans_max)
            .map(|closed| {
                let widths = gaps.iter().enumerate();
                widths.filter(|(at, _)| closed >> at & 1 == 1).map(|(_, width)| width).sum()
            })
            .min()
            .unwrap_or(0);
        prop_assert_eq!((after.len() - before.len()) as u64, fewest);
    }
}
