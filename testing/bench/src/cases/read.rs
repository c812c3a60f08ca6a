//! Reads of a data set that lies in memory.

use std::hint::black_box;
use std::time::Instant;

use keyward_engine::{Cursor, Scan, Store};
use keyward_key::{Key, KeyRange};
use tokio::runtime::{Handle, Runtime};

use crate::Result;
use crate::bench::{Bench, Dataset, inline};
use crate::measure::{Side, alternate, per_second};
use crate::records::{self, TEN_THOUSAND, random_keys};
use crate::report::{Goal, Row, grouped};
use crate::served::Served;

const GOAL: Goal = Goal::AtLeast(0.8);
/// Gets in a slice: a few milliseconds.
pub(super) const GETS: usize = 4_000;
/// A hop takes as long as tens of gets.
const HOPS: usize = 200;
const PAGES: usize = 100;
const PAGE_ROWS: usize = Served::PAGE_ROWS;

pub fn get(bench: &mut Bench) -> Result<Vec<Row>> {
    at_each_size(bench, "get", |bench, data| {
        let runtime = inline()?;
        let comparison = alternate(bench.settings.read_rounds, |side, round| {
            let keys = random_keys(GETS, data.records, round)?;
            let start = Instant::now();
            match side {
                Side::Measured => runtime.block_on(get_each(&data.store, &keys))?,
                Side::Reference => get_each_raw(data, &keys)?,
            }
            Ok(per_second(GETS, start))
        })?;
        Ok(Row {
            case: "get".to_owned(),
            compares: format!("Store / raw heed, {} records", grouped(data.records as f64)),
            comparison,
            unit: "gets/s",
            goal: Some(GOAL),
        })
    })
}

pub fn get_hop(bench: &mut Bench) -> Result<Vec<Row>> {
    let data = bench.dataset(bench.settings.records)?;
    let runtime = inline()?;
    let comparison = alternate(bench.settings.read_rounds, |side, round| {
        let keys = random_keys(HOPS, data.records, round)?;
        let start = Instant::now();
        match side {
            Side::Measured => hop_each(&runtime, &data.store, &keys)?,
            Side::Reference => get_each_raw(&data, &keys)?,
        }
        Ok(per_second(HOPS, start))
    })?;
    Ok(vec![Row {
        case: "get_hop".to_owned(),
        compares: format!(
            "Store behind spawn_blocking / raw heed, {} records",
            grouped(data.records as f64)
        ),
        comparison,
        unit: "gets/s",
        goal: None,
    }])
}

pub fn scan100(bench: &mut Bench) -> Result<Vec<Row>> {
    at_each_size(bench, "scan100", |bench, data| {
        let runtime = inline()?;
        let range = records::range();
        let comparison = alternate(bench.settings.read_rounds, |side, round| {
            // From a key that has a whole page after it.
            let keys = random_keys(PAGES, data.records - PAGE_ROWS as u64, round)?;
            let scans: Vec<Scan> = keys
                .iter()
                .map(|key| {
                    Scan::new(range.clone()).limit(PAGE_ROWS).after(Some(Cursor::after_key(key)))
                })
                .collect();
            let ranges: Vec<KeyRange> = scans.iter().map(Scan::remaining).collect();
            let start = Instant::now();
            match side {
                Side::Measured => runtime.block_on(scan_each(&data.store, &scans))?,
                Side::Reference => page_each_raw(data, &ranges)?,
            }
            Ok(per_second(PAGES, start))
        })?;
        Ok(Row {
            case: "scan100".to_owned(),
            compares: format!("Store / raw heed, {} records", grouped(data.records as f64)),
            comparison,
            unit: "pages/s",
            goal: Some(GOAL),
        })
    })
}

/// Measures with the large data set and, for information, with the small one.
fn at_each_size(
    bench: &mut Bench,
    name: &str,
    measure: impl Fn(&Bench, &Dataset) -> Result<Row>,
) -> Result<Vec<Row>> {
    let large = bench.dataset(bench.settings.records)?;
    let mut rows = vec![measure(bench, &large)?];
    if large.records > TEN_THOUSAND {
        let small = bench.dataset(TEN_THOUSAND)?;
        rows.push(Row {
            case: format!("{name}_{TEN_THOUSAND}"),
            goal: None,
            ..measure(bench, &small)?
        });
    }
    Ok(rows)
}

pub(super) async fn get_each(store: &Store, keys: &[Key]) -> Result<()> {
    for key in keys {
        let entry = store.get(key).await?;
        found(entry.is_some())?;
        black_box(entry);
    }
    Ok(())
}

pub(super) fn get_each_raw(data: &Dataset, keys: &[Key]) -> Result<()> {
    for key in keys {
        let value = data.raw.get(key.as_bytes())?;
        found(value.is_some())?;
        black_box(value);
    }
    Ok(())
}

async fn scan_each(store: &Store, scans: &[Scan]) -> Result<()> {
    for scan in scans {
        let page = store.scan(scan).await?;
        whole(page.rows.len())?;
        black_box(page);
    }
    Ok(())
}

fn page_each_raw(data: &Dataset, ranges: &[KeyRange]) -> Result<()> {
    for range in ranges {
        let rows = data.raw.page(range, PAGE_ROWS)?;
        whole(rows.len())?;
        black_box(rows);
    }
    Ok(())
}

/// What every get would cost if reads were sent to threads that may block.
fn hop_each(runtime: &Runtime, store: &Store, keys: &[Key]) -> Result<()> {
    runtime.block_on(async {
        for key in keys {
            let (store, key) = (store.clone(), key.clone());
            let handle = Handle::current();
            let read = move || handle.block_on(store.get(&key));
            let entry = tokio::task::spawn_blocking(read).await??;
            found(entry.is_some())?;
            black_box(entry);
        }
        Ok(())
    })
}

pub(super) fn found(is_there: bool) -> Result<()> {
    if is_there { Ok(()) } else { Err("a record that was loaded is not there".into()) }
}

pub(super) fn whole(rows: usize) -> Result<()> {
    if rows == PAGE_ROWS { Ok(()) } else { Err(format!("a page has {rows} rows").into()) }
}
