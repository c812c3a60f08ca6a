//! Writing many records into an empty store.

use std::time::{Duration, Instant};

use crate::Result;
use crate::bench::{Bench, inline, put_all};
use crate::measure::{Side, alternate};
use crate::records::{Record, records};
use crate::reference::RawHeed;
use crate::report::{Goal, Row, grouped};

const COMMIT_PUTS: usize = 1_000;
/// Commits in one slice: long enough to even out syncs, short enough to share the machine's moods.
const SLICE_COMMITS: usize = 5;

pub fn load(bench: &mut Bench) -> Result<Vec<Row>> {
    let numbers: Vec<u64> = (0..bench.settings.load_records).collect();
    let mut shuffled = numbers.clone();
    fastrand::Rng::with_seed(1).shuffle(&mut shuffled);

    let sorted = in_order(bench, "sorted", &numbers)?;
    let random = in_order(bench, "random", &shuffled)?;
    let (mut worse, better) = if sorted.comparison.ratio < random.comparison.ratio {
        (sorted, random)
    } else {
        (random, sorted)
    };
    worse.case = "load".to_owned();
    worse.goal = Some(Goal::AtLeast(0.7));
    Ok(vec![worse, better])
}

/// Loads a store and a raw one side by side, a few commits at a time, so that both are always about
/// the same size.
fn in_order(bench: &mut Bench, order: &str, numbers: &[u64]) -> Result<Row> {
    let store = bench.store()?;
    let raw = bench.scratch();
    std::fs::create_dir(&raw)?;
    let mut raw = RawHeed::open(&raw)?;
    let runtime = inline()?;

    let slices: Vec<&[u64]> = numbers.chunks(COMMIT_PUTS * SLICE_COMMITS).collect();
    let comparison = alternate(slices.len() - 1, |side, round| {
        let records = records(slices[round].iter().copied())?;
        let time = timed(|| {
            records.chunks(COMMIT_PUTS).try_for_each(|commit: &[Record]| match side {
                Side::Measured => runtime.block_on(put_all(&store, commit)),
                Side::Reference => raw.put_all(commit),
            })
        })?;
        Ok(records.len() as f64 / time.as_secs_f64())
    })?;
    Ok(Row {
        case: format!("load_{order}"),
        compares: format!(
            "Store / raw heed, {} records in {order} order",
            grouped(numbers.len() as f64)
        ),
        comparison,
        unit: "puts/s",
        goal: None,
    })
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}
