//! What cases are compared with: the same keys and bytes as the store writes, its log of changes
//! included, with nothing of Keyward in between.

mod append_log;
mod bulk;
mod pgbench;
mod raw_heed;

use std::io::{self, Write};

pub use append_log::AppendLog;
pub use bulk::{Rows, copy_out};
pub use pgbench::{Pgbench, filled_in};
pub use raw_heed::{DATA_FILE, MAP_BYTES, RawHeed};

use crate::records::Record;

/// What stands before a value in the `entries` table: flags and version.
const HEADER_BYTES: usize = 1 + size_of::<u64>();

/// Writes a value as the `entries` table holds it.
fn write_entry(to: &mut impl Write, version: u64, record: &Record) -> io::Result<()> {
    to.write_all(&[0])?;
    to.write_all(&version.to_be_bytes())?;
    to.write_all(record.value.as_bytes())
}

/// Adds a put as a row of the `log` table holds it.
fn push_change(to: &mut Vec<u8>, record: &Record) {
    const PUT: u8 = 1;
    let key = record.key.as_bytes();
    to.push(PUT);
    to.extend_from_slice(&(key.len() as u16).to_be_bytes());
    to.extend_from_slice(key);
}
