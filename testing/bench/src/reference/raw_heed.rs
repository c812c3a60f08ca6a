use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvOpenOptions, PutFlags};
use keyward_key::KeyRange;

use super::{HEADER_BYTES, push_change, write_entry};
use crate::Result;
use crate::records::Record;

/// The file in a store's directory that LMDB maps.
pub const DATA_FILE: &str = "data.mdb";
/// How much address space each side reserves: less than the engine's default, so that a case can
/// have a hundred stores open.
pub const MAP_BYTES: usize = 64 << 30;

type Table = Database<'static, Bytes, Bytes>;

/// LMDB through heed, with the embedded engine's tables and settings and no more.
pub struct RawHeed {
    env: Env,
    entries: Table,
    log: Table,
    revision: u64,
}

impl RawHeed {
    /// Opens the file in a directory, or makes a new one.
    #[allow(unsafe_code, reason = "heed cannot know who else changes the file it maps")]
    pub fn open(directory: &Path) -> Result<Self> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES).max_dbs(8).max_readers(2_000);
        // SAFETY: the mapped file must not change except through LMDB, and not be opened twice. It
        // lies in a directory made for this run, under a name that is given out once.
        let env = unsafe { options.open(directory)? };
        let txn = env.write_txn()?;
        let tables = env.create_databases_and_commit(txn, |opener, txn| {
            let entries = opener.create_database(txn, Some("entries"))?;
            let log = opener.create_database(txn, Some("log"))?;
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit((entries, log)))
        })?;
        let CommitOrAbort::Commit((entries, log)) = tables else {
            return Err("opening the tables was given up".into());
        };
        Ok(Self { env, entries, log, revision: 0 })
    }

    /// A copy of the value of a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let txn = self.env.read_txn()?;
        let found = self.entries.get(&txn, key)?;
        Ok(found.map(|entry| entry[HEADER_BYTES..].to_vec()))
    }

    /// Copies of the first keys and values of a range.
    pub fn page(&self, range: &KeyRange, limit: usize) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let txn = self.env.read_txn()?;
        let mut rows = Vec::with_capacity(limit);
        for row in self.entries.range(&txn, range)?.take(limit) {
            let (key, entry) = row?;
            rows.push((key.to_vec(), entry[HEADER_BYTES..].to_vec()));
        }
        Ok(rows)
    }

    /// Writes records in one durable transaction, with one row of the log for all of them.
    pub fn put_all(&mut self, records: &[Record]) -> Result<()> {
        let mut txn = self.env.write_txn()?;
        self.revision += 1;
        let mut changes = Vec::new();
        for record in records {
            let (key, size) = (record.key.as_bytes(), HEADER_BYTES + record.value.len());
            self.entries.put_reserved(&mut txn, key, size, |space| {
                write_entry(space, self.revision, record)
            })?;
            push_change(&mut changes, record);
        }
        let revision = self.revision.to_be_bytes();
        self.log.put_with_flags(&mut txn, PutFlags::APPEND, &revision, &changes)?;
        Ok(txn.commit()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Bench, Settings, inline, put_all};
    use crate::records::{TEN_THOUSAND, records};

    #[test]
    fn the_reference_holds_byte_for_byte_what_the_store_holds() {
        let directory = tempfile::tempdir().unwrap();
        let mut bench = Bench::new(Settings::quick(TEN_THOUSAND), directory.path());
        let (ours, raw) = (directory.path().join("1"), directory.path().join("raw"));
        std::fs::create_dir(&raw).unwrap();
        let (store, mut raw) = (bench.store().unwrap(), RawHeed::open(&raw).unwrap());
        for commit in [3, 1, 2].map(|start| records(start..start + 10).unwrap()) {
            inline().unwrap().block_on(put_all(&store, &commit)).unwrap();
            raw.put_all(&commit).unwrap();
        }
        drop(store);
        let ours = RawHeed::open(&ours).unwrap();
        assert_eq!(rows(&ours.env, ours.entries), rows(&raw.env, raw.entries));
        assert_eq!(rows(&ours.env, ours.log), rows(&raw.env, raw.log));
    }

    fn rows(env: &Env, table: Table) -> Vec<(Vec<u8>, Vec<u8>)> {
        let txn = env.read_txn().unwrap();
        let rows = table.iter(&txn).unwrap().map(|row| row.unwrap());
        let rows: Vec<_> = rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        assert!(!rows.is_empty());
        rows
    }
}
