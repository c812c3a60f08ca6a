//! The LMDB environment of a store and its tables.

use std::fs::File;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, WithTls};
use keyward_engine::{Durability, Error, ErrorKind, Result};
use keyward_key::KeyRange;

use crate::Options;
use crate::directory::data_file;
use crate::error::{at, corrupt, from_lmdb, misplaced};
use crate::pages::{self, Meta, PageFile};
use crate::record::{self, Record};

pub(crate) type Table = Database<'static, Bytes, Bytes>;

/// The version of the format on disk that this build writes.
const FORMAT: &[u8] = b"1";

/// How often a read transaction is begun to find its meta page before a later one replaces it.
const PINS_MAX: u32 = 1_000;

/// A store's tables.
#[derive(Clone, Copy)]
pub(crate) struct Tables {
    /// Encoded key → record.
    pub(crate) entries: Table,
    /// Revision → what the commit changed.
    pub(crate) log: Table,
    /// End ‖ encoded key → nothing. May hold ends of entries that were since written again.
    pub(crate) ends: Table,
}

/// An open LMDB environment.
pub(crate) struct Environment {
    pub(crate) env: Env,
    pub(crate) tables: Tables,
}

impl Environment {
    /// Makes a new environment with empty tables in a directory that nobody else knows of.
    pub(crate) fn create(directory: &Path, options: &Options) -> Result<()> {
        let env = open_env(directory, options)?;
        let create = || {
            let txn = env.write_txn()?;
            env.create_databases_and_commit(txn, |opener, txn| {
                for name in ["entries", "log", "ends"] {
                    opener.create_database::<Bytes, Bytes>(txn, Some(name))?;
                }
                let meta = opener.create_database::<Bytes, Bytes>(txn, Some("meta"))?;
                meta.put(txn, b"format", FORMAT)?;
                Ok::<_, heed::Error>(CommitOrAbort::<(), ()>::Commit(()))
            })
        };
        create().map_err(|error| from_lmdb("cannot create the store", error))?;
        env.prepare_for_closing().wait();
        Ok(())
    }

    /// Opens the environment of a store; `alone` says that no other process has it open. Refuses a
    /// file that is found damaged, before LMDB follows what it says.
    pub(crate) fn open(directory: &Path, options: &Options, alone: bool) -> Result<Self> {
        let data = data_file(directory);
        let (file, newest) = PageFile::open(&data)?;
        if alone {
            pages::check_opening(&file, &newest)?;
            lengthen(&data, &file, &newest)?;
        }
        let env = open_env(directory, options)?;
        if !alone {
            pinned(&env, pages::check_opening)?;
        }
        let opened = Self { tables: open_tables(&env)?, env };
        let cleared = opened.env.clear_stale_readers();
        cleared.map_err(|error| from_lmdb("cannot open the store", error))?;
        Ok(opened)
    }

    /// Reads everything in a range once, and checks it as far as the format allows.
    pub(crate) fn verify(&self, range: &KeyRange) -> Result<()> {
        pinned(&self.env, |file, meta| pages::check(file, meta, range))
    }

    /// How many entries have ended by a time and still occupy space.
    pub(crate) fn expired(&self, now_ms: i64) -> Result<u64> {
        let failed = |error| from_lmdb("cannot count what has expired", error);
        let txn = self.read()?;
        let mut expired = 0;
        for end in self.tables.ends.iter(&txn).map_err(failed)? {
            let (end, _) = end.map_err(failed)?;
            let (expires, key) = record::split_end(end)?;
            if expires > now_ms {
                break;
            }
            // The entry may have been written again since, with another end or none.
            let entry = self.tables.entries.get(&txn, key).map_err(failed)?;
            let record = entry.and_then(|bytes| Record::read_of(key, bytes).ok());
            expired += u64::from(record.is_some_and(|it| it.expires == Some(expires)));
        }
        Ok(expired)
    }

    /// Begins a short read. If dead processes have filled the table of readers, it is cleared once.
    pub(crate) fn read(&self) -> Result<RoTxn<'_, WithTls>> {
        read(&self.env)
    }

    /// Closes the environment and waits until it is closed.
    pub(crate) fn close(self) {
        self.env.prepare_for_closing().wait();
    }
}

#[allow(unsafe_code)]
fn open_env(directory: &Path, options: &Options) -> Result<Env> {
    let mut open = EnvOpenOptions::new();
    open.map_size(options.map_bytes).max_dbs(8).max_readers(2_000);
    if options.durability == Durability::Relaxed {
        // SAFETY: this flag only leaves out the sync of the page that names the newest transaction;
        // the pages it refers to are still synced first, so the file stays whole.
        unsafe { open.flags(EnvFlags::NO_META_SYNC) };
    }
    // SAFETY: the mapped file must not change except through LMDB. It lies in a directory that only
    // this engine writes to, on a local file system, open once in this process (`registry`), and is
    // replaced by rename, never written in place, only while nobody has it open.
    let opened = unsafe { open.open(directory) };
    opened.map_err(|error| {
        from_lmdb(&format!("cannot open {}", data_file(directory).display()), error)
    })
}

fn read(env: &Env) -> Result<RoTxn<'_, WithTls>> {
    let error = match env.read_txn() {
        Ok(txn) => return Ok(txn),
        Err(error) => error,
    };
    let cleared = match error {
        heed::Error::Mdb(heed::MdbError::ReadersFull) => env.clear_stale_readers(),
        error => Err(error),
    };
    cleared.and_then(|_| env.read_txn()).map_err(|error| from_lmdb("cannot read", error))
}

/// Checks a snapshot that writers leave alone, while others write. Damage counts if it is found
/// twice: nobody is told to restore a backup because of a read that met a write.
fn pinned(env: &Env, check: impl Fn(&PageFile, &Meta) -> Result<()>) -> Result<()> {
    match pinned_once(env, &check) {
        Err(error) if error.kind() == ErrorKind::Corrupt => pinned_once(env, &check),
        checked => checked,
    }
}

fn pinned_once(env: &Env, check: impl Fn(&PageFile, &Meta) -> Result<()>) -> Result<()> {
    let path = data_file(env.path());
    for _ in 0..PINS_MAX {
        // As long as it lives, the pages of its snapshot are not written to. Its meta page may be.
        let txn = read(env)?;
        let (file, _) = PageFile::open(&path)?;
        if let Some(meta) = file.meta_of(txn.id() as u64)? {
            return check(&file, &meta);
        }
    }
    Err(corrupt(format!("{} is damaged: no meta page is of the last transaction", path.display())))
}

/// Lengthens a data file that is shorter than its own account of pages, after a check has found that
/// all of the missing ones are free: LMDB does not write pages at the end that were free again before
/// the commit. Reading a mapped page beyond the end would end the process.
fn lengthen(data: &Path, file: &PageFile, newest: &Meta) -> Result<()> {
    let expected = file.expected_length(newest);
    if file.length() >= expected {
        return Ok(());
    }
    let opened = File::options().write(true).open(data);
    opened.and_then(|file| file.set_len(expected)).map_err(at("cannot lengthen", data))
}

fn open_tables(env: &Env) -> Result<Tables> {
    let open = || {
        let txn = env.read_txn()?;
        env.open_databases_and_commit(txn, |opener, txn| {
            let open = |name| opener.open_database::<Bytes, Bytes>(txn, Some(name));
            let format = match open("meta")? {
                Some(meta) => meta.get(txn, b"format")?.map(<[u8]>::to_vec),
                None => None,
            };
            let tables = (open("entries")?, open("log")?, open("ends")?);
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit((Kept(format), tables)))
        })
    };
    let opened = open().map_err(|error| from_lmdb("cannot open the store", error))?;
    let CommitOrAbort::Commit((format, tables)) = opened else {
        return Err(Error::new(ErrorKind::Internal, "opening the tables was given up"));
    };
    match format {
        Some(format) if format == FORMAT => {}
        Some(format) => {
            return Err(misplaced(format!(
                "the store has format {}, and this version of Keyward reads format {}: use the \
                 version that wrote it, or export with that one and import with this",
                String::from_utf8_lossy(&format),
                String::from_utf8_lossy(FORMAT)
            )));
        }
        None => {
            return Err(corrupt("the data file is an LMDB file, but not a Keyward store"));
        }
    }
    match tables {
        (Some(entries), Some(log), Some(ends)) => Ok(Tables { entries, log, ends }),
        _ => Err(corrupt("a table is missing in the data file")),
    }
}

/// A value handed out of a transaction that opens tables.
struct Kept<T>(T);

impl<T> heed::OnCommit for Kept<T> {
    type Committed = T;

    fn on_commit(self, _: &heed::CommitToken) -> T {
        self.0
    }
}
