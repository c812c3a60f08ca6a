//! Reading a range page by page.

use std::time::Duration;

use keyward_engine::{Commit, ErrorKind, Order, Scan};
use keyward_key::{Key, KeyRange, Prefix};
use tokio::sync::watch;

use super::{key, put};
use crate::subject::Subject;

fn orders(subject: &Subject) -> &'static [Order] {
    if subject.is_ordered() { &[Order::Ascending, Order::Descending] } else { &[Order::Ascending] }
}

async fn keys_by_pages(subject: &Subject, order: Order, limit: usize) -> Vec<Key> {
    let under = KeyRange::under(&Prefix::parse("page").unwrap());
    let scan = Scan::new(under).order(order).limit(limit);
    let rows = subject.rows(scan).await;
    rows.into_iter().map(|row| row.key).collect()
}

pub async fn pages_have_no_gap_and_no_repeat_at_any_size(subject: Subject) {
    let mut keys: Vec<Key> = (0..23).map(|n| key(&format!("page:{}:{n:02}", n % 3))).collect();
    keys.sort();
    let around = ["pag", "page", "page-", "pagf"].map(key);
    let all = keys.iter().chain(&around);
    subject.fill(all.map(|key| (key.clone(), put("1")))).await;

    for &order in orders(&subject) {
        for limit in 1..=7 {
            let mut found = keys_by_pages(&subject, order, limit).await;
            if order == Order::Descending {
                found.reverse();
            }
            if !subject.is_ordered() {
                found.sort();
            }
            assert_eq!(found, keys, "{order:?} by {limit}");
        }
    }
}

pub async fn the_page_that_ends_a_range_has_no_next(subject: Subject) {
    let keys: Vec<Key> = (0..4).map(|n| key(&format!("page:{n}"))).collect();
    subject.fill(keys.iter().map(|key| (key.clone(), put("1")))).await;
    for &order in orders(&subject) {
        for limit in 1..=6 {
            // A page may be short or empty, but going on must come to an end.
            let mut scan = Scan::new(KeyRange::all()).order(order).limit(limit);
            let mut pages = 0;
            while let Some(next) = subject.store.scan(&scan).await.unwrap().next {
                scan.after = Some(next);
                pages += 1;
                assert!(pages < 100, "{order:?} by {limit} does not end");
            }
        }
    }
}

pub async fn paging_goes_on_where_the_last_row_was_deleted(subject: Subject) {
    let keys: Vec<Key> = (0..9).map(|n| key(&format!("page:{n}"))).collect();
    for &order in orders(&subject) {
        subject.fill(keys.iter().map(|key| (key.clone(), put("1")))).await;
        let mut found = Vec::new();
        let mut scan = Scan::new(KeyRange::all()).order(order).limit(2);
        loop {
            let page = subject.store.scan(&scan).await.unwrap();
            for row in page.rows {
                subject.delete(&row.key).await;
                found.push(row.key);
            }
            let Some(next) = page.next else { break };
            scan.after = Some(next);
        }
        found.sort();
        assert_eq!(found, keys, "{order:?}");
    }
}

pub async fn rows_that_stay_appear_once_while_others_come_and_go(subject: Subject) {
    const STAYING: usize = 40;
    let staying: Vec<Key> = (0..STAYING).map(|n| key(&format!("page:{n:03}"))).collect();
    subject.fill(staying.iter().map(|key| (key.clone(), put("1")))).await;

    let written = watch::Sender::new(0);
    let mut commits = written.subscribe();
    let writers: Vec<_> = (0..3)
        .map(|seed| {
            let (store, clock) = (subject.store.clone(), subject.clock.clone());
            let (staying, written) = (staying.clone(), written.clone());
            tokio::spawn(async move {
                let mut rng = fastrand::Rng::with_seed(seed);
                loop {
                    let visitor = staying[rng.usize(..STAYING)].child("visitor");
                    let commit = if rng.bool() {
                        Commit::new().put(visitor, put("2"))
                    } else {
                        Commit::new().delete(visitor)
                    };
                    assert!(store.commit(commit).await.unwrap().is_applied());
                    // Late readers see others' writes only when time passes.
                    clock.advance(Duration::from_millis(10));
                    written.send_modify(|commits| *commits += 1);
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();

    for &order in orders(&subject) {
        for limit in [1, 2, 5, 7] {
            let mut found = Vec::new();
            let mut scan = Scan::new(KeyRange::all()).order(order).limit(limit);
            loop {
                // Between any two pages something was written.
                commits.changed().await.unwrap();
                let page = subject.store.scan(&scan).await.unwrap();
                found.extend(page.rows.into_iter().map(|row| row.key));
                let Some(next) = page.next else { break };
                scan.after = Some(next);
            }
            let in_order = |a: &Key, b: &Key| match order {
                Order::Ascending => a < b,
                Order::Descending => a > b,
            };
            assert!(
                !subject.is_ordered() || found.is_sorted_by(in_order),
                "{order:?} by {limit}: out of order, or twice: {found:?}"
            );
            found.retain(|key| key.depth() == 2);
            found.sort();
            assert_eq!(found, staying, "{order:?} by {limit}");
        }
    }
    for writer in writers {
        assert!(!writer.is_finished(), "a writer failed");
        writer.abort();
    }
}

pub async fn a_limit_of_zero_is_refused(subject: Subject) {
    let scan = Scan::new(KeyRange::all()).limit(0);
    let refused = subject.store.scan(&scan).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
}

pub async fn a_limit_above_the_engines_is_lowered_to_it(subject: Subject) {
    let most = subject.limits().scan_rows_max;
    let keys = (0..=most).map(|n| key(&format!("page:{n:07}")));
    subject.fill(keys.map(|key| (key, put("1")))).await;

    let all = Scan::new(KeyRange::all()).limit(usize::MAX).keys_only();
    let page = subject.store.scan(&all).await.unwrap();
    assert!(page.rows.len() <= most);
    assert!(page.next.is_some(), "one row is left");
    assert_eq!(subject.rows(all).await.len(), most + 1);
}
