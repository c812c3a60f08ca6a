//! Records with indexes against the same keys written and read by hand.

use std::time::{Duration, Instant};

use fastrand::Rng;
use keyward::records::geo::{Circle, Point};
use keyward::records::{
    Caller, CatalogedIndex, Draft, IndexState, Near, Operation, Query, Records, Space,
};
use keyward::schema::Schema;
use keyward_engine::{Commit, Json, Outcome, Put, Scan, Store, SystemClock};
use keyward_key::{Key, KeyRange, Prefix};
use tokio::runtime::Runtime;

use crate::Result;
use crate::bench::{Bench, inline};
use crate::measure::{Side, alternate, nanoseconds_each, per_second, rate};
use crate::report::{Goal, Row, grouped};

const SCHEMA: &str = r#"
[stores.app]

[spaces.tasks]
key = "user:{user}:tasks:{task}"
ownership = "user"
[spaces.tasks.indexes.by_title]
field = "title"
type = "text"
[spaces.tasks.indexes.by_state]
field = "state"
type = "text"

[spaces.places]
key = "place:{place}"
ownership = "shared"
[spaces.places.indexes.geo]
kind = "geohash"
lat = "lat"
lon = "lon"
precision = 7
"#;

const USER: &str = "ada";
const PAGE: usize = 100;
const PAGES: usize = 50;
/// How many records are loaded in one commit.
const LOADED_TOGETHER: usize = 2_000;
/// How many records an index takes in, or a copy carries over, in one commit.
const TOGETHER: usize = 500;
const NEARS: usize = 100;
/// What a search for the nearest may take.
const NEAR_TIME: Duration = Duration::from_millis(5);
const NEAREST: usize = 20;

/// A record with two index entries, by clients that wait until it is on disk.
pub fn write(bench: &mut Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (clients, name) in [(16, "record_write"), (1, "record_write, 1 client")] {
        let (by_record, by_hand) = (bench.store()?, bench.store()?);
        let tasks = space(&by_record, "tasks")?;
        let runtime = Runtime::new()?;
        // The first write puts the indexes into the catalog.
        runtime.block_on(put_task(&tasks, u64::MAX))?;
        let time = bench.settings.commit_time;
        let comparison = alternate(bench.settings.commit_rounds, |side, round| {
            let first = round as u64 * 1_000_000;
            match side {
                Side::Measured => {
                    let tasks = tasks.clone();
                    runtime.block_on(rate(clients, time, first, move |n| {
                        let tasks = tasks.clone();
                        async move { put_task(&tasks, n).await }
                    }))
                }
                Side::Reference => {
                    let store = by_hand.clone();
                    runtime.block_on(rate(clients, time, first, move |n| {
                        let store = store.clone();
                        async move { put_three(&store, n).await }
                    }))
                }
            }
        })?;
        rows.push(Row {
            case: name.to_owned(),
            compares: format!(
                "a record with two indexes / the same three keys, clients: {clients}"
            ),
            comparison,
            unit: "records/s",
            goal: (clients > 1).then_some(Goal::AtLeast(0.7)),
        });
    }
    Ok(rows)
}

/// Pages of an index against a scan of the entries and a read of the records.
pub fn page(bench: &mut Bench) -> Result<Vec<Row>> {
    let (store, tasks) = loaded_tasks(bench)?;
    let runtime = inline()?;
    let last = bench.settings.records - PAGE as u64;
    let comparison = alternate(bench.settings.read_rounds, |side, round| {
        let mut rng = Rng::with_seed(round as u64);
        let starts: Vec<String> = (0..PAGES).map(|_| title(rng.u64(..last))).collect();
        let start = Instant::now();
        runtime.block_on(async {
            for from in &starts {
                let rows = match side {
                    Side::Measured => page_by_query(&tasks, from).await?,
                    Side::Reference => page_by_hand(&store, from).await?,
                };
                if rows != PAGE {
                    return Err(format!("a page had {rows} rows").into());
                }
            }
            Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
        })?;
        Ok(per_second(PAGES, start))
    })?;
    Ok(vec![Row {
        case: "index_page".to_owned(),
        compares: format!(
            "an indexed page of {PAGE} / a scan and gets, {} records",
            grouped(bench.settings.records as f64)
        ),
        comparison,
        unit: "pages/s",
        goal: Some(Goal::AtLeast(0.7)),
    }])
}

/// Pages far down a paging against pages at its beginning.
pub fn paging(bench: &mut Bench) -> Result<Vec<Row>> {
    let (_, tasks) = loaded_tasks(bench)?;
    let runtime = inline()?;
    // Cursors at the beginning and near the end, as a caller gets them.
    let mut cursors = Vec::new();
    let mut query = Query::index("by_title").limit(1_000);
    loop {
        let answer = runtime.block_on(tasks.query(&query))?;
        let Some(next) = answer.next else { break };
        cursors.push(next.clone());
        query = query.after(Some(next));
    }
    let some = (cursors.len() / 4).clamp(1, PAGES);
    let (first, last) = (&cursors[..some], &cursors[cursors.len() - 1 - some..cursors.len() - 1]);
    let comparison = alternate(bench.settings.read_rounds, |side, _| {
        let cursors = match side {
            Side::Measured => last,
            Side::Reference => first,
        };
        let start = Instant::now();
        for cursor in cursors {
            let query = Query::index("by_title").limit(PAGE).after(Some(cursor.clone()));
            runtime.block_on(tasks.query(&query))?;
        }
        Ok(nanoseconds_each(cursors.len(), start))
    })?;
    Ok(vec![Row {
        case: "paging".to_owned(),
        compares: format!(
            "time of a page at the end / at the beginning, {} records",
            grouped(bench.settings.records as f64)
        ),
        comparison,
        unit: "ns/page",
        goal: Some(Goal::AtMost(1.2)),
    }])
}

/// The nearest of many places against the time it may take.
pub fn near(bench: &mut Bench) -> Result<Vec<Row>> {
    let store = bench.store()?;
    let places = space(&store, "places")?;
    let runtime = inline()?;
    bench.say(&format!("  loading {} places", grouped(bench.settings.records as f64)))?;
    let mut rng = Rng::with_seed(1);
    load(&runtime, &places, bench.settings.records, |n| {
        let (lat, lon) = (rng.f64() * 140.0 - 70.0, rng.f64() * 360.0 - 180.0);
        (format!("place:{n}"), format!(r#"{{"lat":{lat:.6},"lon":{lon:.6},"name":"{n}"}}"#))
    })?;
    let allowed = 1.0 / NEAR_TIME.as_secs_f64();
    let comparison = alternate(bench.settings.commit_rounds, |side, round| {
        if side == Side::Reference {
            return Ok(allowed);
        }
        let mut rng = Rng::with_seed(round as u64);
        let start = Instant::now();
        for _ in 0..NEARS {
            let centre = Point::new(rng.f64() * 140.0 - 70.0, rng.f64() * 360.0 - 180.0)?;
            let near = Near::new("geo", Circle::new(centre, 20_000_000.0)?).limit(NEAREST);
            let found = runtime.block_on(places.near(&near))?.found.len();
            if found != NEAREST {
                return Err(format!("{found} places were found").into());
            }
        }
        Ok(per_second(NEARS, start))
    })?;
    Ok(vec![Row {
        case: "near".to_owned(),
        compares: format!(
            "the {NEAREST} nearest of {} places, on one thread / one each {} ms",
            grouped(bench.settings.records as f64),
            NEAR_TIME.as_millis()
        ),
        comparison,
        unit: "searches/s",
        goal: Some(Goal::AtLeast(1.0)),
    }])
}

/// Adding an index to records that are there, against copying them to another store.
pub fn build(bench: &mut Bench) -> Result<Vec<Row>> {
    let (store, tasks) = loaded_tasks(bench)?;
    let runtime = Runtime::new()?;
    let records = records(&store)?;
    let count = bench.settings.records as f64;
    let comparison = alternate(bench.settings.copy_rounds, |side, _| match side {
        Side::Measured => {
            runtime.block_on(forget_index(&records, &tasks))?;
            let start = Instant::now();
            runtime.block_on(async {
                let mut position = None;
                loop {
                    let built = records.build_index("by_state", position, TOGETHER).await?;
                    match built.position {
                        Some(next) => position = Some(next),
                        None => break,
                    }
                }
                records.finish_index("by_state").await
            })?;
            Ok(count / start.elapsed().as_secs_f64())
        }
        Side::Reference => {
            let target = bench.store()?;
            let range = KeyRange::under(&Prefix::from_segments(["user", USER, "tasks"]));
            let start = Instant::now();
            runtime.block_on(copy_raw(&store, &target, range))?;
            Ok(count / start.elapsed().as_secs_f64())
        }
    })?;
    Ok(vec![Row {
        case: "index_build".to_owned(),
        compares: format!("adding an index / copying the records, {} records", grouped(count)),
        comparison,
        unit: "records/s",
        goal: Some(Goal::AtLeast(0.5)),
    }])
}

fn records(store: &Store) -> Result<Records> {
    let schema = Schema::parse(SCHEMA, "bench").map_err(|problems| problems.to_string())?;
    Ok(Records::open(store.clone(), schema.spaces, SystemClock)?)
}

fn space(store: &Store, name: &str) -> Result<Space> {
    Ok(records(store)?.space(name, &Caller::user(USER))?)
}

fn title(n: u64) -> String {
    format!("title {n:012}")
}

fn task(n: u64) -> (Key, String) {
    let key = Key::from_stored(format!("user\0{USER}\0tasks\0{n:012}"));
    let state = ["open", "blocked", "done"][(n % 3) as usize];
    let value = format!(
        r#"{{"title":"{}","state":"{state}","body":"{}"}}"#,
        title(n),
        "lorem ipsum dolor sit amet ".repeat(5)
    );
    (key, value)
}

async fn put_task(tasks: &Space, n: u64) -> Result<()> {
    let (key, value) = task(n);
    let _ = tasks.put(&key, Draft::new(Json::parse(value)?)).await?;
    Ok(())
}

/// What `put_task` writes, by somebody who knows that it is new.
async fn put_three(store: &Store, n: u64) -> Result<()> {
    let (key, value) = task(n);
    let entry =
        |index: &str, value: &str| Prefix::from_segments(["index", index, USER, value]).join(&key);
    let state = ["open", "blocked", "done"][(n % 3) as usize];
    let (by_title, by_state) = (entry("by_title", &title(n)), entry("by_state", state));
    let null = || Put::new(Json::from_stored("null"));
    let commit = Commit::new()
        .put(key, Put::new(Json::parse(value)?))
        .put(by_title, null())
        .put(by_state, null());
    applied(store.commit(commit).await?)
}

fn applied(outcome: Outcome) -> Result<()> {
    match outcome {
        Outcome::Applied { .. } => Ok(()),
        Outcome::Conflicted { .. } => Err("a commit without checks was refused by one".into()),
    }
}

/// A store with many tasks, and the tasks as their user reaches them.
fn loaded_tasks(bench: &mut Bench) -> Result<(Store, Space)> {
    let store = bench.store()?;
    let tasks = space(&store, "tasks")?;
    let runtime = inline()?;
    bench.say(&format!("  loading {} records", grouped(bench.settings.records as f64)))?;
    load(&runtime, &tasks, bench.settings.records, |n| {
        let (key, value) = task(n);
        (key.to_string(), value)
    })?;
    Ok((store, tasks))
}

fn load(
    runtime: &Runtime,
    space: &Space,
    records: u64,
    mut record: impl FnMut(u64) -> (String, String),
) -> Result<()> {
    let numbers: Vec<u64> = (0..records).collect();
    for some in numbers.chunks(LOADED_TOGETHER) {
        let mut operations = Vec::with_capacity(some.len());
        for &n in some {
            let (key, value) = record(n);
            operations.push(Operation::Put(Key::parse(&key)?, Draft::new(Json::parse(value)?)));
        }
        runtime.block_on(space.together(operations))?;
    }
    Ok(())
}

async fn page_by_query(tasks: &Space, from: &str) -> Result<usize> {
    let end = keyward::records::Bound { value: from.into(), inclusive: true };
    let span = keyward::records::Span::Between { from: Some(end), to: None };
    let query = Query::index("by_title").span(span).limit(PAGE);
    Ok(tasks.query(&query).await?.records.len())
}

async fn page_by_hand(store: &Store, from: &str) -> Result<usize> {
    let prefix = Prefix::from_segments(["index", "by_title", USER]);
    let range = KeyRange::between(&prefix, Some(from), None);
    let entries = store.scan(&Scan::new(range).limit(PAGE).keys_only()).await?;
    // Index, name, owner and title stand before the record's own key.
    let keys: Vec<Key> = entries.rows.iter().filter_map(|row| row.key.tail(4)).collect();
    let records = store.get_many(&keys).await?;
    Ok(records.iter().flatten().count())
}

/// Takes the index away, as if it had just been declared.
async fn forget_index(records: &Records, tasks: &Space) -> Result<()> {
    let index = tasks.declaration().index("by_state").cloned();
    let index = index.ok_or("the schema has no such index")?;
    let store = records.store();
    let range = KeyRange::under(&Prefix::from_segments(["index", "by_state"]));
    loop {
        let page = store.scan(&Scan::new(range.clone()).limit(5_000).keys_only()).await?;
        if page.rows.is_empty() {
            break;
        }
        let commit = page.rows.into_iter().fold(Commit::new(), |all, row| all.delete(row.key));
        applied(store.commit(commit).await?)?;
    }
    records
        .change_catalog(|content| {
            let state = IndexState::Building;
            let (space, definition) = ("tasks".to_owned(), index.clone());
            content.indexes.insert(index.name.clone(), CatalogedIndex { space, definition, state });
            Ok(())
        })
        .await?;
    Ok(())
}

async fn copy_raw(source: &Store, target: &Store, range: KeyRange) -> Result<()> {
    let mut scan = Scan::new(range).limit(TOGETHER);
    loop {
        let page = source.scan(&scan).await?;
        let commit = page.rows.into_iter().fold(Commit::new(), |commit, row| match row.entry {
            Some(entry) => commit.put(row.key, Put::new(entry.value)),
            None => commit,
        });
        if !commit.writes.is_empty() {
            applied(target.commit(commit).await?)?;
        }
        match page.next {
            Some(next) => scan.after = Some(next),
            None => return Ok(()),
        }
    }
}
