//! How the cost of a point get grows with the number of records.
//!
//! In a loop that does nothing else, ten thousand records stay in the processor's caches and a
//! million do not, so most of the plain growth is that of the processor, not of the store. Two more
//! rows tell them apart: raw heed's own growth, and the growth when both sides spread their gets over
//! the same amount of memory, which must reach the goal too.

use std::hint::black_box;
use std::time::Instant;

use keyward_engine::{Scan, Store};
use keyward_key::Key;
use tokio::runtime::Runtime;

use super::read::{GETS, found, get_each, get_each_raw};
use crate::Result;
use crate::bench::{Bench, Dataset, inline};
use crate::measure::{Comparison, Side, alternate, nanoseconds_each};
use crate::records::{self, TEN_THOUSAND, random_keys};
use crate::report::{Goal, Row, grouped};

pub fn get_growth(bench: &mut Bench) -> Result<Vec<Row>> {
    let runtime = inline()?;
    let small = bench.dataset(TEN_THOUSAND)?;
    let large = bench.dataset(bench.settings.growth_records)?;
    let through_store =
        |data: &Dataset, keys: &[Key]| runtime.block_on(get_each(&data.store, keys));

    let mut rows = vec![
        Row {
            goal: Some(Goal::AtMost(1.5)),
            ..row("get_growth", "Store", &large, between(bench, &large, &small, through_store)?)
        },
        row("get_growth_heed", "raw heed", &large, between(bench, &large, &small, get_each_raw)?),
        spread_out(bench, &runtime, &large, &small)?,
    ];
    if bench.settings.records > large.records {
        let largest = bench.dataset(bench.settings.records)?;
        let name = format!("get_growth_{}", largest.records);
        let growth = between(bench, &largest, &small, through_store)?;
        rows.push(row(&name, "Store", &largest, growth));
    }
    Ok(rows)
}

fn between(
    bench: &Bench,
    large: &Dataset,
    small: &Dataset,
    get_each: impl Fn(&Dataset, &[Key]) -> Result<()>,
) -> Result<Comparison> {
    alternate(bench.settings.read_rounds, |side, round| {
        let data = match side {
            Side::Measured => large,
            Side::Reference => small,
        };
        let keys = random_keys(GETS, data.records, round)?;
        let start = Instant::now();
        get_each(data, &keys)?;
        Ok(nanoseconds_each(GETS, start))
    })
}

/// One large store against as many small ones as hold the same number of records.
fn spread_out(
    bench: &mut Bench,
    runtime: &Runtime,
    large: &Dataset,
    small: &Dataset,
) -> Result<Row> {
    let count = (large.records / small.records) as usize;
    let stores = bench.stores_like(small, count)?;
    for store in &stores {
        runtime.block_on(read_all(store))?;
    }
    let comparison = alternate(bench.settings.read_rounds, |side, round| {
        let stores = match side {
            Side::Measured => std::slice::from_ref(&large.store),
            Side::Reference => &stores[..],
        };
        let keys = random_keys(GETS, large.records / stores.len() as u64, round)?;
        let mut random = fastrand::Rng::with_seed(round as u64);
        let places: Vec<(&Store, Key)> =
            keys.into_iter().map(|key| (&stores[random.usize(..stores.len())], key)).collect();
        let start = Instant::now();
        runtime.block_on(get_from_each(&places))?;
        Ok(nanoseconds_each(GETS, start))
    })?;
    Ok(Row {
        goal: Some(Goal::AtMost(1.5)),
        compares: format!(
            "one Store with {} records / {count} with {} each",
            grouped(large.records as f64),
            grouped(small.records as f64)
        ),
        ..row("get_growth_same_memory", "Store", large, comparison)
    })
}

async fn get_from_each(places: &[(&Store, Key)]) -> Result<()> {
    for (store, key) in places {
        let entry = store.get(key).await?;
        found(entry.is_some())?;
        black_box(entry);
    }
    Ok(())
}

async fn read_all(store: &Store) -> Result<()> {
    let mut scan = Scan::new(records::range()).limit(1_000);
    loop {
        scan.after = black_box(store.scan(&scan).await?).next;
        if scan.after.is_none() {
            return Ok(());
        }
    }
}

fn row(case: &str, what: &str, large: &Dataset, comparison: Comparison) -> Row {
    Row {
        case: case.to_owned(),
        compares: format!(
            "{what} with {} records / with {}",
            grouped(large.records as f64),
            grouped(TEN_THOUSAND as f64)
        ),
        comparison,
        unit: "ns/get",
        goal: None,
    }
}
