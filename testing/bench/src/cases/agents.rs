//! The agent data store against itself without counting, and against the keys below it.

use std::hint::black_box;
use std::time::Instant;

use fastrand::Rng;
use keyward::agents::{Actor, Agents, Namespace, Options, Set};
use keyward_engine::{Cursor, Json, Scan, Store, SystemClock};
use keyward_key::{KeyRange, Prefix};
use tokio::runtime::Runtime;

use super::read::GETS;
use crate::Result;
use crate::bench::{Bench, inline};
use crate::measure::{Side, alternate, per_second};
use crate::report::{Goal, Row, grouped};

const ENTRIES: u64 = 10_000;
const PAGE: usize = 1_000;

/// Gets by an agent, which are counted, while what is counted is written in the background, against gets
/// by nobody in particular, which are not.
pub fn get(bench: &mut Bench) -> Result<Vec<Row>> {
    let store = bench.store()?;
    let runtime = Runtime::new()?;
    let agents = Agents::alone(store, Options::default(), SystemClock)?;
    runtime.block_on(fill(&agents, ENTRIES))?;
    let counted = namespace(&agents, Actor::agent("reader"))?;
    let uncounted = namespace(&agents, Actor::nobody())?;
    let flushing = runtime.spawn({
        let agents = agents.clone();
        async move { agents.keep_flushing(std::future::pending()).await }
    });
    let inline = inline()?;
    let comparison = alternate(bench.settings.read_rounds, |side, round| {
        let mut rng = Rng::with_seed(round as u64);
        let keys: Vec<String> = (0..GETS).map(|_| key(rng.u64(..ENTRIES))).collect();
        let namespace = match side {
            Side::Measured => &counted,
            Side::Reference => &uncounted,
        };
        let start = Instant::now();
        inline.block_on(async {
            for key in &keys {
                black_box(namespace.get(key).await?);
            }
            Ok::<_, keyward::agents::Error>(())
        })?;
        Ok(per_second(GETS, start))
    })?;
    flushing.abort();
    runtime.block_on(agents.close())?;
    Ok(vec![Row {
        case: "agent_get".to_owned(),
        compares: format!("counted / not counted, {} entries", grouped(ENTRIES as f64)),
        comparison,
        unit: "gets/s",
        goal: Some(Goal::AtLeast(0.9)),
    }])
}

/// All keys of a namespace in pages, against scans of the same keys.
pub fn list(bench: &mut Bench) -> Result<Vec<Row>> {
    let entries = bench.settings.records;
    let store = bench.store()?;
    let runtime = Runtime::new()?;
    let agents = Agents::alone(store.clone(), Options::default(), SystemClock)?;
    runtime.block_on(fill(&agents, entries))?;
    let namespace = namespace(&agents, Actor::nobody())?;
    let inline = inline()?;
    let comparison = alternate(bench.settings.commit_rounds, |side, _| {
        let start = Instant::now();
        let found = match side {
            Side::Measured => inline.block_on(list_all(&namespace))?,
            Side::Reference => inline.block_on(scan_all(&store))?,
        };
        if found as u64 != entries {
            return Err(format!("{found} keys of {entries}").into());
        }
        Ok(per_second(found, start))
    })?;
    Ok(vec![Row {
        case: "agent_list".to_owned(),
        compares: format!("list_keys / scans, {} keys in pages", grouped(entries as f64)),
        comparison,
        unit: "keys/s",
        goal: None,
    }])
}

async fn list_all(namespace: &Namespace) -> Result<usize> {
    let (mut found, mut after) = (0, None);
    loop {
        let page = namespace.list_keys("", after, PAGE).await?;
        found += page.keys.len();
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}

async fn scan_all(store: &Store) -> Result<usize> {
    let range = KeyRange::under(&Prefix::from_segments(["agents", "ada", "files"]));
    let (mut found, mut after) = (0, None::<Cursor>);
    loop {
        let scan = Scan::new(range.clone()).limit(PAGE).after(after).keys_only();
        let page = store.scan(&scan).await?;
        found += page.rows.len();
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}

fn namespace(agents: &Agents, actor: Actor) -> Result<Namespace> {
    Ok(agents.user("ada", actor).use_namespace("files")?)
}

fn key(n: u64) -> String {
    format!("src/{n:08}.rs")
}

async fn fill(agents: &Agents, entries: u64) -> Result<()> {
    let namespace = namespace(agents, Actor::nobody())?;
    let metadata = Json::parse(r#"{"source":"indexer","version":"1.0"}"#)?;
    let numbers: Vec<u64> = (0..entries).collect();
    for some in numbers.chunks(Namespace::TOGETHER_MAX) {
        let mut sets = Vec::with_capacity(some.len());
        for n in some {
            let value = format!(r#"{{"lines":{n},"language":"rust","functions":["main","run"]}}"#);
            sets.push((key(*n), Set::new(Json::parse(value)?).metadata(metadata.clone())));
        }
        namespace.set_many(sets).await?;
    }
    Ok(())
}
