//! JSON lines in pieces that fit one commit each.

use std::collections::HashSet;
use std::io::{BufRead, Read};
use std::mem;

use keyward::{Clock, Code, Json, Key, Limits, Put};

use crate::failure::{Failure, Result};
use crate::line::{self, Line};

/// Entries that one commit takes at most.
const ENTRIES_MAX: usize = 1_000;
/// Bytes that one commit takes at most, unless a single entry is larger.
const BYTES_MAX: usize = 1 << 20;

/// Entries to be committed together, and how much input they come from.
#[derive(Debug, Default)]
pub struct Batch {
    /// What to store, in the order of the lines; no key twice.
    pub entries: Vec<Numbered>,
    /// Lines left out, since their entries had ended.
    pub expired: u64,
    /// Bytes read, including those of lines left out.
    pub read: u64,
}

/// An entry and the line it came from.
#[derive(Debug, Clone)]
pub struct Numbered {
    /// The line's number, from one.
    pub line: u64,
    pub key: Key,
    pub put: Put,
}

/// How large batches are.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    entries_max: usize,
    bytes_max: usize,
    line_bytes_max: usize,
}

impl Size {
    /// Batches for a store.
    pub fn fitting(limits: &Limits) -> Self {
        // A line may hold white space and escapes that the store does not count.
        let entry_bytes_max =
            limits.value_bytes_max + limits.metadata_bytes_max + 6 * limits.key_bytes_max;
        Self {
            entries_max: limits.commit_keys_max.min(ENTRIES_MAX),
            bytes_max: limits.commit_bytes_max.min(BYTES_MAX),
            line_bytes_max: entry_bytes_max.saturating_mul(2),
        }
    }
}

/// Reads lines to the end, and hands over batches; stops early when one is refused by giving
/// `false`. What stands before a line that is no entry is handed over first, then the line is
/// told as a failure.
pub fn read(
    mut input: impl BufRead,
    size: Size,
    clock: &impl Clock,
    mut take: impl FnMut(Batch) -> bool,
) -> Result {
    let mut filling = Filling::default();
    let mut text = Vec::new();
    for number in 1.. {
        text.clear();
        let line = match read_line(&mut input, size.line_bytes_max, &mut text) {
            Ok(None) => break,
            Ok(Some(read)) => {
                filling.batch.read += read;
                match text.trim_ascii() {
                    [] => continue,
                    text => line::read(text).map_err(|error| Failure::invalid(error.to_string())),
                }
            }
            Err(failure) => Err(failure),
        };
        let line = match line {
            Ok(line) => line,
            Err(failure) => {
                take(filling.batch);
                return Err(failure.at(format_args!("line {number}")));
            }
        };
        if line.is_expired(clock.now()) {
            filling.batch.expired += 1;
            continue;
        }
        if filling.is_full_for(&line, size) && !take(filling.empty()) {
            return Ok(());
        }
        filling.add(number, line);
    }
    take(filling.batch);
    Ok(())
}

/// A batch that still grows.
#[derive(Default)]
struct Filling {
    batch: Batch,
    keys: HashSet<Key>,
    bytes: usize,
}

impl Filling {
    fn is_full_for(&self, line: &Line, size: Size) -> bool {
        let entries = self.batch.entries.len();
        entries > 0
            && (entries >= size.entries_max
                || self.bytes + bytes(line) > size.bytes_max
                // One commit writes a key once; the later line must win, as if it came alone.
                || self.keys.contains(&line.key))
    }

    fn add(&mut self, number: u64, line: Line) {
        self.bytes += bytes(&line);
        self.keys.insert(line.key.clone());
        self.batch.entries.push(Numbered { line: number, key: line.key, put: line.put });
    }

    fn empty(&mut self) -> Batch {
        mem::take(self).batch
    }
}

/// What a line counts in a commit. The key counts twice, for a check that may go with it.
fn bytes(line: &Line) -> usize {
    let metadata = line.put.metadata.as_ref().map_or(0, Json::len);
    2 * line.key.as_bytes().len() + line.put.value.len() + metadata
}

/// Reads one line; gives the bytes taken from the input, or nothing at its end.
pub fn read_line(
    input: &mut impl BufRead,
    bytes_max: usize,
    text: &mut Vec<u8>,
) -> Result<Option<u64>> {
    let read = input
        .take(bytes_max as u64 + 1)
        .read_until(b'\n', text)
        .map_err(|error| Failure::file("cannot read the input", &error))?;
    if read > bytes_max {
        let message = format!("longer than {bytes_max} bytes, so no entry of this store fits it");
        return Err(Failure::new(Code::LimitExceeded, message));
    }
    Ok((read > 0).then_some(read as u64))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::exit::Exit;

    #[derive(Debug)]
    struct At(Timestamp);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            self.0
        }
    }

    const SIZE: Size = Size { entries_max: 3, bytes_max: 100, line_bytes_max: 200 };

    /// The lines of each batch, and what the reading came to.
    fn batches(input: &str, size: Size) -> (Vec<Vec<u64>>, Result) {
        let clock = At("2026-01-01T00:00:00Z".parse().unwrap());
        let mut batches = Vec::new();
        let result = read(input.as_bytes(), size, &clock, |batch| {
            batches.push(batch.entries.iter().map(|entry| entry.line).collect());
            true
        });
        (batches, result)
    }

    fn lines(keys: &[&str]) -> String {
        let line = |key: &&str| format!("{{\"key\":\"{key}\",\"value\":1}}\n");
        keys.iter().map(line).collect()
    }

    #[test]
    fn a_batch_has_no_more_entries_than_a_commit_takes() {
        let (found, result) = batches(&lines(&["a", "b", "c", "d"]), SIZE);
        assert_eq!(found, [vec![1, 2, 3], vec![4]]);
        assert!(result.is_ok());
        let one = Size { entries_max: 1, ..SIZE };
        assert_eq!(batches(&lines(&["a", "b"]), one).0, [[1], [2]]);
    }

    #[test]
    fn a_batch_has_no_more_bytes_than_a_commit_takes_unless_one_entry_has() {
        let line =
            |key: &str, n| format!("{{\"key\":\"{key}\",\"value\":\"{}\"}}\n", "x".repeat(n));
        let input = line("a", 40) + &line("b", 40) + &line("c", 40) + &line("d", 150);
        assert_eq!(batches(&input, SIZE).0, [vec![1, 2], vec![3], vec![4]]);
    }

    #[test]
    fn a_key_that_comes_again_begins_a_new_batch() {
        assert_eq!(batches(&lines(&["a", "b", "a"]), SIZE).0, [vec![1, 2], vec![3]]);
    }

    #[test]
    fn empty_lines_are_counted_and_passed_over() {
        let input = format!("\n{}\r\n  \n{}", lines(&["a"]), lines(&["b"]).trim_end());
        assert_eq!(batches(&input, SIZE).0, [[2, 5]]);
        assert_eq!(batches("", SIZE).0, [Vec::<u64>::new()]);
    }

    #[test]
    fn what_stands_before_a_bad_line_is_handed_over() {
        let input = lines(&["a", "b", "a%"]);
        let (found, result) = batches(&input, SIZE);
        assert_eq!(found, [[1, 2]]);
        let mut told = Vec::new();
        result.unwrap_err().tell(&mut told, false).unwrap();
        let told = String::from_utf8(told).unwrap();
        assert!(told.starts_with("error: line 3: the key \"a%\", character 2"), "{told}");
    }

    #[test]
    fn a_line_too_long_for_any_entry_is_not_read_to_its_end() {
        let input = lines(&["a"]) + &"x".repeat(1_000);
        let (found, result) = batches(&input, SIZE);
        assert_eq!(found, [[1]]);
        assert_eq!(result.unwrap_err().code(), Exit::Unable.code());
    }

    #[test]
    fn entries_that_have_ended_are_left_out_and_counted() {
        let line = |key, year| {
            format!("{{\"key\":\"{key}\",\"value\":1,\"expires\":\"{year}-01-01T00:00:00Z\"}}\n")
        };
        let input = line("a", 2025) + &line("b", 2026) + &line("c", 2027);
        let clock = At("2026-01-01T00:00:00Z".parse().unwrap());
        let mut expired = 0;
        let mut kept = Vec::new();
        let read = read(input.as_bytes(), SIZE, &clock, |batch| {
            expired += batch.expired;
            kept.extend(batch.entries.iter().map(|entry| entry.line));
            true
        });
        assert!(read.is_ok());
        assert_eq!((expired, kept), (2, vec![3]));
    }
}
