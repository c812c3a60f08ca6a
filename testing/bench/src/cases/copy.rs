//! Whole stores copied from one engine to another.

use std::fs;
use std::time::Instant;

use keyward::migrate::Copy;
use keyward_engine::Store;
use tokio::runtime::Runtime;

use crate::Result;
use crate::bench::Bench;
use crate::database::Database;
use crate::measure::{Side, alternate};
use crate::records::records;
use crate::reference::{RawHeed, Rows, copy_out};
use crate::report::{Goal, Row, grouped};

const GOAL: Goal = Goal::AtLeast(0.5);
/// Records in a transaction of the reference: as many as the store would take in a commit. A copy
/// makes smaller ones, of which several share a sync.
const COMMIT_PUTS: usize = 10_000;

pub fn to_postgres(bench: &mut Bench) -> Result<Vec<Row>> {
    let count = bench.settings.load_records;
    let source = bench.dataset(count)?;
    let database = Database::create()?;
    let target = database.store()?;
    let rows = Rows::of(database.store_number()?, &records(0..count)?);
    let comparison = alternate(bench.settings.copy_rounds, |side, _| {
        // Each side finds the same tables, empty, and no work left over from the other.
        database.run("TRUNCATE keyward.entries, keyward.log")?;
        database.run("CHECKPOINT")?;
        let start = Instant::now();
        let copied = match side {
            Side::Measured => copy(&database.runtime, &source.store, &target)?,
            Side::Reference => database.runtime.block_on(rows.copy_in(&database.client))?,
        };
        rate(copied, count, start)
    })?;
    Ok(vec![Row {
        case: "copy_pg".to_owned(),
        compares: format!(
            "Copy from an embedded store / COPY FROM, {} records",
            grouped(count as f64)
        ),
        comparison,
        unit: "entries/s",
        goal: Some(GOAL),
    }])
}

pub fn from_postgres(bench: &mut Bench) -> Result<Vec<Row>> {
    let count = bench.settings.load_records;
    let database = Database::create()?;
    let source = database.store()?;
    let number = database.store_number()?;
    let rows = Rows::of(number, &records(0..count)?);
    database.runtime.block_on(rows.copy_in(&database.client))?;
    for left in ["VACUUM ANALYZE", "CHECKPOINT"] {
        database.run(left)?;
    }
    let comparison = alternate(bench.settings.copy_rounds, |side, _| {
        let directory = bench.scratch();
        let rate = match side {
            Side::Measured => {
                let target = bench.store_at(&directory)?;
                let start = Instant::now();
                let copied = copy(&database.runtime, &source, &target)?;
                rate(copied, count, start)?
            }
            Side::Reference => {
                fs::create_dir(&directory)?;
                let mut raw = RawHeed::open(&directory)?;
                let start = Instant::now();
                let reading = copy_out(&database.client, number, &mut raw, COMMIT_PUTS);
                rate(database.runtime.block_on(reading)?, count, start)?
            }
        };
        fs::remove_dir_all(directory)?;
        Ok(rate)
    })?;
    Ok(vec![Row {
        case: "copy_pg_back".to_owned(),
        compares: format!(
            "Copy into an embedded store / COPY TO and raw heed, {} records",
            grouped(count as f64)
        ),
        comparison,
        unit: "entries/s",
        goal: Some(GOAL),
    }])
}

fn copy(runtime: &Runtime, source: &Store, target: &Store) -> Result<u64> {
    let copy = Copy::new(source.clone(), target.clone());
    Ok(runtime.block_on(copy.run(|_| ()))?.added)
}

fn rate(copied: u64, expected: u64, start: Instant) -> Result<f64> {
    let seconds = start.elapsed().as_secs_f64();
    if copied == expected {
        Ok(copied as f64 / seconds)
    } else {
        Err(format!("{copied} of {expected} records were copied").into())
    }
}
