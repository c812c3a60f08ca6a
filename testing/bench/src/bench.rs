//! What cases share: how long to measure, where, and the data sets that are loaded once.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use keyward_embedded::{Embedded, Options};
use keyward_engine::{Commit, Durability, Put, Scan, Store};
use tokio::runtime::{self, Runtime};

use crate::cases::Loaded;
use crate::records::{self, MILLION, Record};
use crate::reference::RawHeed;
use crate::report::grouped;
use crate::served::Served;
use crate::server::Server;
use crate::{Result, reference};

/// How long to measure.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The size of the large data set.
    pub records: u64,
    /// The size up to which the growth of a get has a goal.
    pub growth_records: u64,
    /// The records a bulk load writes.
    pub load_records: u64,
    /// Rounds of reads. Many short ones: a slice of a few milliseconds is often not interrupted at
    /// all, and the median forgets those that were.
    pub read_rounds: usize,
    /// Rounds of durable commits.
    pub commit_rounds: usize,
    /// How long clients commit in a slice.
    pub commit_time: Duration,
    /// Rounds with a server.
    pub server_rounds: usize,
    /// How long a slice with a server is, in whole seconds, as pgbench wants it.
    pub server_seconds: u64,
    /// With how many clients at once a server is called.
    pub server_clients: &'static [usize],
    /// Rounds of copying a whole store.
    pub copy_rounds: usize,
}

impl Settings {
    /// For numbers to write down.
    pub fn full(records: u64) -> Self {
        Self {
            records,
            growth_records: MILLION,
            load_records: records,
            read_rounds: 401,
            commit_rounds: 31,
            commit_time: Duration::from_millis(400),
            server_rounds: 9,
            server_seconds: 1,
            server_clients: &[1, 8, 16],
            copy_rounds: 5,
        }
    }

    /// For a look in between.
    pub fn quick(records: u64) -> Self {
        Self {
            records,
            growth_records: MILLION,
            load_records: records.min(100_000),
            read_rounds: 101,
            commit_rounds: 11,
            commit_time: Duration::from_millis(250),
            server_rounds: 3,
            server_seconds: 1,
            server_clients: &[1, 8, 16],
            copy_rounds: 5,
        }
    }
}

/// A run of benchmarks.
pub struct Bench {
    /// How long to measure.
    pub settings: Settings,
    directory: PathBuf,
    scratches: usize,
    datasets: BTreeMap<u64, Rc<Dataset>>,
    served: Option<Rc<Served>>,
    loaded: BTreeMap<Server, Rc<Loaded>>,
}

/// The same records in a store and, byte for byte the same file, in raw heed.
pub struct Dataset {
    /// How many there are.
    pub records: u64,
    /// The store.
    pub store: Store,
    /// The reference.
    pub raw: RawHeed,
    /// Where the reference has its file.
    directory: PathBuf,
}

impl Bench {
    /// A run with its data in a directory.
    pub fn new(settings: Settings, directory: &Path) -> Self {
        Self {
            settings,
            directory: directory.to_owned(),
            scratches: 0,
            datasets: BTreeMap::new(),
            served: None,
            loaded: BTreeMap::new(),
        }
    }

    /// Tells whoever watches the run what is being done.
    pub fn say(&self, what: &str) -> io::Result<()> {
        writeln!(io::stderr().lock(), "{what}")
    }

    /// A path of its own for a case's data; nothing is there yet.
    pub fn scratch(&mut self) -> PathBuf {
        self.scratches += 1;
        self.directory.join(self.scratches.to_string())
    }

    /// A new, empty store as a caller would open it.
    pub fn store(&mut self) -> Result<Store> {
        let directory = self.scratch();
        self.store_at(&directory)
    }

    /// The same in a directory of the case's choice.
    pub fn store_at(&self, directory: &Path) -> Result<Store> {
        open(directory, Durability::Synced)
    }

    /// The records with the numbers below `records`, loaded on first use and then shared.
    pub fn dataset(&mut self, records: u64) -> Result<Rc<Dataset>> {
        if let Some(dataset) = self.datasets.get(&records) {
            return Ok(dataset.clone());
        }
        self.say(&format!("  loading {} records", grouped(records as f64)))?;
        let dataset = Rc::new(self.load(records)?);
        self.datasets.insert(records, dataset.clone());
        Ok(dataset)
    }

    /// The large data set in a database, loaded on first use and then shared.
    pub fn served(&mut self) -> Result<Rc<Served>> {
        if let Some(served) = &self.served {
            return Ok(served.clone());
        }
        let records = self.settings.records;
        self.say(&format!("  loading {} records into PostgreSQL", grouped(records as f64)))?;
        let served = Rc::new(Served::load(records)?);
        self.served = Some(served.clone());
        Ok(served)
    }

    /// The records in the database of a server, loaded by its adapter on first use and then shared.
    pub fn loaded(&mut self, server: Server) -> Result<Rc<Loaded>> {
        if let Some(loaded) = self.loaded.get(&server) {
            return Ok(loaded.clone());
        }
        let records = grouped(Loaded::RECORDS as f64);
        self.say(&format!("  loading {records} records into {}", server.name()))?;
        let loaded = Rc::new(Loaded::load(server)?);
        self.loaded.insert(server, loaded.clone());
        Ok(loaded)
    }

    fn load(&mut self, records: u64) -> Result<Dataset> {
        let runtime = inline()?;
        let loaded = self.scratch();
        fill(&runtime, &open(&loaded, Durability::Relaxed)?, records)?;
        // Closed and copied: both sides read the same bytes on the same pages, and the system
        // caches both files in the same way, which depends on how they were written.
        let (ours, raw) = (self.copy_of(&loaded)?, self.copy_of(&loaded)?);
        fs::remove_dir_all(&loaded)?;

        let dataset = Dataset {
            records,
            store: open(&ours, Durability::Synced)?,
            raw: RawHeed::open(&raw)?,
            directory: raw,
        };
        dataset.touch_every_page(&runtime)?;
        Ok(dataset)
    }

    /// So many stores, each with the records of a data set.
    pub fn stores_like(&mut self, dataset: &Dataset, count: usize) -> Result<Vec<Store>> {
        (0..count).map(|_| open(&self.copy_of(&dataset.directory)?, Durability::Synced)).collect()
    }

    fn copy_of(&mut self, directory: &Path) -> Result<PathBuf> {
        let copy = self.scratch();
        fs::create_dir(&copy)?;
        fs::copy(directory.join(reference::DATA_FILE), copy.join(reference::DATA_FILE))?;
        Ok(copy)
    }
}

impl Dataset {
    /// Reads everything once on both sides, so that no slice pays for the first sight of a page,
    /// and checks that both sides hold the same.
    fn touch_every_page(&self, runtime: &Runtime) -> Result<()> {
        const ROWS: usize = 1_000;
        let mut scan = Scan::new(records::range()).limit(ROWS);
        let mut seen = 0;
        loop {
            let raw = self.raw.page(&scan.remaining(), ROWS)?;
            let ours = runtime.block_on(self.store.scan(&scan))?;
            let keys = ours.rows.iter().map(|row| row.key.as_bytes());
            if !keys.eq(raw.iter().map(|(key, _)| &key[..])) {
                return Err("the store and its copy do not hold the same keys".into());
            }
            seen += ours.rows.len() as u64;
            scan.after = ours.next;
            if scan.after.is_none() {
                break;
            }
        }
        if seen == self.records {
            Ok(())
        } else {
            Err(format!("{seen} of {} records were found", self.records).into())
        }
    }
}

/// Opens or creates a store in a directory.
pub fn open(directory: &Path, durability: Durability) -> Result<Store> {
    let options = Options { durability, map_bytes: reference::MAP_BYTES, ..Options::default() };
    Ok(Store::new(Embedded::open(directory, options)?))
}

/// Puts the records with the numbers below `records` into a store, in as large steps as it takes.
pub fn fill(runtime: &Runtime, store: &Store, records: u64) -> Result<()> {
    let step = store.limits().commit_keys_max as u64;
    for start in (0..records).step_by(store.limits().commit_keys_max) {
        let some = records::records(start..records.min(start + step))?;
        runtime.block_on(put_all(store, &some))?;
    }
    Ok(())
}

/// Puts records in one commit.
pub async fn put_all(store: &Store, records: &[Record]) -> Result<()> {
    let mut commit = Commit::new();
    for record in records {
        commit = commit.put(record.key.clone(), Put::new(record.value.clone()));
    }
    if store.commit(commit).await?.is_applied() {
        Ok(())
    } else {
        Err("a commit without checks was refused by one".into())
    }
}

/// A runtime on the calling thread.
pub fn inline() -> Result<Runtime> {
    Ok(runtime::Builder::new_current_thread().build()?)
}
