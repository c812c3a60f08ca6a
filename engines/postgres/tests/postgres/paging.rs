//! Pages of large values.

use keyward_engine::{Json, Order, Put, Scan};
use keyward_key::{Key, KeyRange};

use crate::server::{Fresh, key, runtime};

#[test]
fn a_page_of_large_values_ends_early_and_loses_nothing() {
    const ROWS: usize = 40;
    const BYTES: usize = 1 << 20;
    runtime().block_on(async {
        let fresh = Fresh::new();
        let store = fresh.store().await;
        let keys: Vec<Key> = (0..ROWS).map(|n| key(&format!("large:{n:02}"))).collect();
        // Random, or the database would make it small.
        let mut rng = fastrand::Rng::with_seed(7);
        let text: String = (0..BYTES).map(|_| rng.alphanumeric()).collect();
        let value = Put::new(Json::from_value(&text).unwrap());
        for key in &keys {
            store.put(key.clone(), value.clone()).await.unwrap();
        }
        // The first page cannot know how large the rows are.
        for order in [Order::Ascending, Order::Descending, Order::Ascending] {
            let mut scan = Scan::new(KeyRange::all()).limit(1_000).order(order);
            let mut found = Vec::new();
            loop {
                let page = store.scan(&scan).await.unwrap();
                assert!(page.rows.len() <= 17, "a page of {} MiB", page.rows.len());
                found.extend(page.rows.into_iter().map(|row| row.key));
                let Some(next) = page.next else { break };
                scan.after = Some(next);
            }
            if order == Order::Descending {
                found.reverse();
            }
            assert_eq!(found, keys);
        }
    });
}
