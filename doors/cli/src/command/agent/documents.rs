//! Documents from a stream: one after the other, or in an array.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use keyward::agents::Document;
use serde::Deserializer;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::failure::{Failure, Result};
use crate::line::not_an_entry;

/// Documents that are handed over together at most.
const DOCUMENTS_MAX: usize = 500;
/// Bytes of documents that are handed over together at most, unless a single one has more.
const BYTES_MAX: usize = 4 << 20;

/// Documents that were read, and how much input they come from.
#[derive(Debug, Default)]
pub struct Batch {
    pub documents: Vec<Document>,
    /// Bytes read from the input since the last batch.
    pub read: u64,
}

/// Reads documents of a user to the end of the input, each of at most `bytes_max`, and hands them over
/// in batches; stops early when one is refused by giving `false`. What stands before a text that is no
/// document of the user's is handed over first, then it is told as a failure.
pub fn read(
    input: impl Read,
    user: &str,
    bytes_max: usize,
    take: impl FnMut(Batch) -> bool,
) -> Result {
    let meter = Rc::new(Meter::default());
    let metered = Metered { input, meter: meter.clone(), bytes_max: bytes_max as u64 };
    let mut input = BufReader::new(metered);
    let mut filling =
        Filling { batch: Batch::default(), bytes: 0, number: 0, user, meter, take, failed: None };
    let ended = match first_byte(&mut input) {
        Ok(Some(b'[')) => {
            let mut reader = serde_json::Deserializer::from_reader(&mut input);
            let all = reader.deserialize_seq(Elements(&mut filling));
            all.and_then(|()| reader.end())
        }
        Ok(Some(_)) => each(&mut input, &mut filling),
        Ok(None) => Ok(()),
        Err(error) => Err(serde_json::Error::io(error)),
    };
    let number = filling.number + 1;
    let Filling { batch, mut take, meter, failed, .. } = filling;
    take(Batch { read: meter.read.take(), ..batch });
    match (failed, ended) {
        (Some(Stopped::Told(failure)), _) => Err(failure),
        (Some(Stopped::Refused), _) | (None, Ok(())) => Ok(()),
        (None, Err(error)) if error.is_io() => {
            Err(Failure::file("cannot read the input", &error.into()))
        }
        (None, Err(error)) => {
            let failure = Failure::invalid(not_an_entry(&error).to_string());
            Err(failure.at(format_args!("document {number}")))
        }
    }
}

/// The first byte that is no white space, without taking it.
fn first_byte(input: &mut impl BufRead) -> io::Result<Option<u8>> {
    loop {
        let buffer = input.fill_buf()?;
        let Some(first) = buffer.iter().position(|byte| !byte.is_ascii_whitespace()) else {
            if buffer.is_empty() {
                return Ok(None);
            }
            let blank = buffer.len();
            input.consume(blank);
            continue;
        };
        let byte = buffer[first];
        input.consume(first);
        return Ok(Some(byte));
    }
}

fn each<T: FnMut(Batch) -> bool>(
    input: &mut impl BufRead,
    filling: &mut Filling<'_, T>,
) -> serde_json::Result<()> {
    let reader = serde_json::Deserializer::from_reader(input);
    for document in reader.into_iter::<Box<RawValue>>() {
        if !filling.add(&document?) {
            break;
        }
    }
    Ok(())
}

/// Why reading stopped before the input's end.
enum Stopped {
    /// Nobody takes any more.
    Refused,
    /// A text is no document.
    Told(Failure),
}

/// A batch that still grows.
struct Filling<'u, T> {
    batch: Batch,
    bytes: usize,
    /// Documents read so far.
    number: usize,
    user: &'u str,
    meter: Rc<Meter>,
    take: T,
    failed: Option<Stopped>,
}

impl<T: FnMut(Batch) -> bool> Filling<'_, T> {
    /// Adds a document; says whether to go on.
    fn add(&mut self, text: &RawValue) -> bool {
        self.meter.since.set(0);
        let text = text.get();
        let full = self.batch.documents.len() >= DOCUMENTS_MAX
            || self.bytes > 0 && self.bytes + text.len() > BYTES_MAX;
        if full {
            let batch = std::mem::take(&mut self.batch);
            self.bytes = 0;
            if !(self.take)(Batch { read: self.meter.read.take(), ..batch }) {
                self.failed = Some(Stopped::Refused);
                return false;
            }
        }
        let number = self.number + 1;
        match Document::parse(text, number) {
            Ok(document) if document.id.user == self.user => {
                self.number = number;
                self.bytes += text.len();
                self.batch.documents.push(document);
                true
            }
            Ok(document) => {
                let (its, user) = (document.id.user, self.user);
                let message =
                    format!("document {number} is an entry of user {its:?}, not of {user:?}");
                let failure = Failure::invalid(message).hint(format!("Add --user {its}."));
                self.failed = Some(Stopped::Told(failure));
                false
            }
            Err(error) => {
                self.failed = Some(Stopped::Told(error.into()));
                false
            }
        }
    }
}

/// The elements of an array, taken one by one.
struct Elements<'f, 'u, T>(&'f mut Filling<'u, T>);

impl<'de, T: FnMut(Batch) -> bool> Visitor<'de> for Elements<'_, '_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of documents")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut elements: S) -> Result<(), S::Error> {
        while let Some(document) = elements.next_element::<Box<RawValue>>()? {
            if !self.0.add(&document) {
                // What stopped it is told from elsewhere; this only ends the reading.
                return Err(S::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

/// What was read: since the last document, and since the last batch.
#[derive(Default)]
struct Meter {
    since: Cell<u64>,
    read: Cell<u64>,
}

/// An input that ends with an error when a document in it is too long.
struct Metered<R> {
    input: R,
    meter: Rc<Meter>,
    bytes_max: u64,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.meter.since.get() > self.bytes_max {
            let message = format!("a document is longer than {} bytes", self.bytes_max);
            return Err(io::Error::other(message));
        }
        let read = self.input.read(buffer)?;
        self.meter.since.set(self.meter.since.get() + read as u64);
        self.meter.read.set(self.meter.read.get() + read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 1 << 20;

    fn document(key: &str) -> String {
        format!(
            "{{\"userId\":\"ada\",\"namespace\":\"n\",\"key\":\"{key}\",\n \"value\":1.00,\
             \"createdAt\":\"2026-02-05T10:00:00Z\",\"updatedAt\":\"2026-02-05T10:00:00Z\"}}"
        )
    }

    /// The keys of each batch, and what the reading came to.
    fn batches(input: &str, bytes_max: usize) -> (Vec<Vec<String>>, Result) {
        let mut batches = Vec::new();
        let result = read(input.as_bytes(), "ada", bytes_max, |batch| {
            batches.push(batch.documents.into_iter().map(|document| document.id.key).collect());
            true
        });
        (batches, result)
    }

    fn told(result: Result) -> String {
        let mut told = Vec::new();
        result.unwrap_err().tell(&mut told, false).unwrap();
        String::from_utf8(told).unwrap()
    }

    #[test]
    fn documents_stand_in_lines_or_in_an_array() {
        let [a, b] = ["a", "b"].map(document);
        for input in [format!("{a}\n{b}\n"), format!(" [{a},\n{b}]\n"), format!("{a}{b}")] {
            let (found, result) = batches(&input, BYTES);
            assert_eq!(found, [["a", "b"]], "{input}");
            assert!(result.is_ok());
        }
        for empty in ["", " \n", "[]"] {
            assert_eq!(batches(empty, BYTES).0, [Vec::<String>::new()]);
        }
    }

    #[test]
    fn what_stands_before_a_bad_document_is_handed_over() {
        let [a, b] = ["a", "b"].map(document);
        let other = b.replace("ada", "bob");
        for (input, says) in [
            (format!("{a}\nhello\n"), "document 2: expected value"),
            (format!("[{a},7]"), "document 2"),
            (format!("{a}\n{other}"), "document 2 is an entry of user \"bob\", not of \"ada\""),
            (format!("[{a},"), "document 2: EOF"),
        ] {
            let (found, result) = batches(&input, BYTES);
            assert_eq!(found, [["a"]], "{input}");
            let told = told(result);
            assert!(told.contains(says), "{told}");
        }
    }

    #[test]
    fn many_documents_come_in_batches_and_reading_stops_when_nobody_takes_them() {
        let all: String = (0..DOCUMENTS_MAX + 1).map(|n| document(&n.to_string())).collect();
        let (found, result) = batches(&all, BYTES);
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [DOCUMENTS_MAX, 1]);
        assert!(result.is_ok());
        let mut taken = 0;
        let stopped = read(all.as_bytes(), "ada", BYTES, |batch| {
            taken += batch.documents.len();
            false
        });
        assert!(stopped.is_ok());
        assert_eq!(taken, DOCUMENTS_MAX);
    }

    #[test]
    fn a_document_too_long_is_not_read_to_its_end() {
        let long = format!("{}\n\"{}", document("a"), "x".repeat(100_000));
        let told = told(batches(&long, 20_000).1);
        assert!(told.contains("longer than 20000 bytes"), "{told}");
    }
}
