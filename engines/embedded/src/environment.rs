//! The LMDB environment of a store and its tables.

use std::fs::File;
use std::path::{Path, PathBuf};

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, WithTls};
use keyward_engine::{Durability, Error, ErrorKind, Result};

use crate::Options;
use crate::directory::data_file;
use crate::error::{at, corrupt, from_lmdb, misplaced};
use crate::record::{self, Record};

pub(crate) type Table = Database<'static, Bytes, Bytes>;

/// The version of the format on disk that this build writes.
const FORMAT: &[u8] = b"1";

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

    /// Opens the environment of a store; `alone` says that no other process has it open.
    pub(crate) fn open(directory: &Path, options: &Options, alone: bool) -> Result<Self> {
        let env = open_env(directory, options)?;
        let short = if alone { Short::find(&env, directory)? } else { None };
        if let Some(short) = &short {
            short.lengthen()?;
        }
        let opened = open_tables(&env).and_then(|tables| {
            let opened = Self { env, tables };
            if short.is_some() {
                opened.check()?;
            }
            Ok(opened)
        });
        match (opened, short) {
            (Err(error), Some(short)) => Err(short.cut_off(error)),
            (opened, _) => {
                let opened = opened?;
                let cleared = opened.env.clear_stale_readers();
                cleared.map_err(|error| from_lmdb("cannot open the store", error))?;
                Ok(opened)
            }
        }
    }

    /// Reads everything once.
    pub(crate) fn check(&self) -> Result<()> {
        let failed = |error| from_lmdb("cannot read the store", error);
        let txn = self.read()?;
        for row in self.tables.entries.iter(&txn).map_err(failed)? {
            Record::read(row.map_err(failed)?.1)?;
        }
        for row in self.tables.log.iter(&txn).map_err(failed)? {
            record::changes(row.map_err(failed)?.1)?;
        }
        for row in self.tables.ends.iter(&txn).map_err(failed)? {
            record::split_end(row.map_err(failed)?.0)?;
        }
        Ok(())
    }

    /// Begins a short read. If dead processes have filled the table of readers, it is cleared once.
    pub(crate) fn read(&self) -> Result<RoTxn<'_, WithTls>> {
        let error = match self.env.read_txn() {
            Ok(txn) => return Ok(txn),
            Err(error) => error,
        };
        let cleared = match error {
            heed::Error::Mdb(heed::MdbError::ReadersFull) => self.env.clear_stale_readers(),
            error => Err(error),
        };
        cleared.and_then(|_| self.env.read_txn()).map_err(|error| from_lmdb("cannot read", error))
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

/// A data file that is shorter than its own account of pages.
///
/// LMDB leaves one behind when the last pages were free again before they were written; or the file
/// was cut off. Reading a mapped page beyond the end kills the process, so the file is lengthened,
/// and then everything is read once: what was cut off reads as zeros, which no table contains.
struct Short {
    file: PathBuf,
    found: u64,
    expected: u64,
}

impl Short {
    fn find(env: &Env, directory: &Path) -> Result<Option<Self>> {
        let page_size = u64::from(env.unnamed_database_stat().page_size);
        let expected = (env.info().last_page_number as u64 + 1) * page_size;
        let found = env.real_disk_size();
        let found = found.map_err(|error| from_lmdb("cannot read the store's size", error))?;
        let short = Self { file: data_file(directory), found, expected };
        Ok((found < expected).then_some(short))
    }

    fn lengthen(&self) -> Result<()> {
        self.set_len(self.expected)
    }

    /// Puts the file back to the length it had, and says what is wrong with it.
    fn cut_off(&self, error: Error) -> Error {
        let Self { file, found, expected } = self;
        // It is refused anyway; longer than it was, it is no worse.
        let _ = self.set_len(*found);
        corrupt(format!(
            "{} is {found} bytes long and should be {expected}: it was cut off",
            file.display()
        ))
        .caused_by(error)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        let file = File::options().write(true).open(&self.file);
        file.and_then(|file| file.set_len(length)).map_err(at("cannot lengthen", &self.file))
    }
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
