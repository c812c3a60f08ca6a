//! The records in a database, for both sides of a case.

use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;

use keyward_engine::Store;
use keyward_postgres::{Options, statements};

use crate::Result;
use crate::bench::fill;
use crate::database::Database;
use crate::records;
use crate::reference::{Pgbench, filled_in};

/// Chooses a record. The one before each number keeps the zeros that it begins with.
const CHOICE: &str = r"\set n random(0, :choices - 1)
\set user 100000000 + :n / 100
\set note 100 + :n % 100";
/// The record's key. pgbench itself can only make numbers.
const KEY: &str = r"'\x7573657200'::bytea || substr(:user::bytea, 2)
    || '\x006e6f746573006e'::bytea || substr(:note::bytea, 2)";

/// The records in a database of their own: a store, and what pgbench asks instead.
pub struct Served {
    /// The database.
    pub database: Database,
    /// The store.
    pub store: Store,
    /// Which records are chosen from: those that have a whole page after them.
    pub choices: u64,
    number: i32,
}

impl Served {
    /// Rows of a page.
    pub const PAGE_ROWS: usize = 100;

    /// Loads the records with the numbers below `records`.
    pub fn load(records: u64) -> Result<Self> {
        let database = Database::create()?;
        let store = database.store()?;
        fill(&database.runtime, &store, records)?;
        // What the load left to do would be done in the middle of some round.
        for left in ["VACUUM ANALYZE", "CHECKPOINT"] {
            database.run(left)?;
        }
        let number = database.store_number()?;
        let choices = records - Self::PAGE_ROWS as u64;
        let served = Self { database, store, choices, number };
        served.compare_keys()?;
        Ok(served)
    }

    /// The engine's get of a record.
    pub fn gets(&self, file: PathBuf) -> Result<Pgbench> {
        self.pgbench(&filled_in(statements::GET, &[":store", KEY]), file)
    }

    /// The engine's page from a record on.
    pub fn pages(&self, file: PathBuf) -> Result<Pgbench> {
        let range = records::range();
        let Bound::Excluded(end) = range.end_bound() else {
            return Err("the range of the records has no end".into());
        };
        let statement = filled_in(statements::PAGE, &[":store", KEY, ":end", ":rows"]);
        let pgbench = self.pgbench(&statement, file)?;
        Ok(pgbench.with("end", &bytea(end)).with("rows", &Self::PAGE_ROWS.to_string()))
    }

    /// The engine's commit of a put to a record, with always the same value.
    pub fn commits(&self, file: PathBuf) -> Result<Pgbench> {
        const NONE: &str = ":none";
        let key = format!("ARRAY[{KEY}]");
        let values = [":store", &key, ":value", NONE, NONE, NONE];
        let value = bytea(records::value(0)?.as_bytes());
        let pgbench = self.pgbench(&filled_in(statements::PUT, &values), file)?;
        Ok(pgbench.with("value", &format!(r#"{{"\{value}"}}"#)).with("none", "{}"))
    }

    /// A statement sent over connections that are set up as the engine sets up its own.
    fn pgbench(&self, statement: &str, file: PathBuf) -> Result<Pgbench> {
        let session = statements::session(&Options::default());
        let script =
            format!("\\if :fresh\n{session}\n\\set fresh 0\n\\endif\n{CHOICE}\n{statement};\n");
        let pgbench = Pgbench::new(&self.database.address, &script, file)?;
        Ok(pgbench
            .with("fresh", "1")
            .with("choices", &self.choices.to_string())
            .with("store", &self.number.to_string()))
    }

    /// Makes sure that both sides ask for the same keys.
    fn compare_keys(&self) -> Result<()> {
        for number in [0, 7, 1_234, self.choices - 1] {
            let (user, note) = (100_000_000 + number / 100, 100 + number % 100);
            let key = KEY.replace(":user", &format!("'{user}'"));
            let select = format!("SELECT {}", key.replace(":note", &format!("'{note}'")));
            let row = self.database.client.query_one(&select, &[]);
            let made: Vec<u8> = self.database.runtime.block_on(row)?.try_get(0)?;
            if made != records::key(number)?.as_bytes() {
                return Err(format!("pgbench would have another key for record {number}").into());
            }
        }
        Ok(())
    }
}

/// Bytes as PostgreSQL reads them.
fn bytea(bytes: &[u8]) -> String {
    bytes.iter().fold(r"\x".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}
