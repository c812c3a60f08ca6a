//! Documents from a file or a stream, in batches.

use std::io::{ErrorKind, Read};

use keyward::agents::{DocumentReader, Error, Incoming};

use crate::failure::{Failure, Result};

/// Documents that are handed over together at most.
const DOCUMENTS_MAX: usize = 500;
/// Bytes of documents that are handed over together at most, unless a single one has more.
const BYTES_MAX: usize = 4 << 20;
/// Bytes of the input that are read at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Documents that were read, and how much input they come from.
#[derive(Debug, Default)]
pub struct Batch {
    pub documents: Vec<Incoming>,
    /// Documents that were skipped since the last batch.
    pub skipped: usize,
    /// Bytes read from the input since the last batch.
    pub read: u64,
}

/// Reads documents to the end of the input, and hands them over in batches; stops early when `take` gives
/// `false`. Documents before a bad one are handed over first, then it is a failure.
pub fn read(
    mut input: impl Read,
    mut reader: DocumentReader,
    mut take: impl FnMut(Batch) -> bool,
) -> Result {
    let mut piece = vec![0; PIECE_BYTES];
    let (mut batch, mut bytes, mut skipped) = (Batch::default(), 0, 0);
    let ended = loop {
        let length = match input.read(&mut piece) {
            Ok(0) => break reader.finish().map_err(Failure::from),
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => break Err(Failure::file("cannot read the input", &error)),
        };
        let mut found = Vec::new();
        let pushed = reader.push(piece.get(..length).unwrap_or_default(), &mut found);
        batch.read += length as u64;
        batch.skipped += reader.skipped() - skipped;
        skipped = reader.skipped();
        for document in found {
            let full = batch.documents.len() >= DOCUMENTS_MAX
                || bytes > 0 && bytes + document.bytes > BYTES_MAX;
            if full {
                bytes = 0;
                if !take(std::mem::take(&mut batch)) {
                    return Ok(());
                }
            }
            bytes += document.bytes;
            batch.documents.push(document);
        }
        if let Err(error) = pushed {
            break Err(failure(error));
        }
    };
    // If nobody takes it, they know why.
    take(batch);
    ended
}

fn failure(error: Error) -> Failure {
    let hint = match &error {
        Error::OtherUser { user, .. } => Some(format!(
            "Pass --user {user} for that user's documents, or --all-users for those of all users."
        )),
        _ => None,
    };
    match hint {
        Some(hint) => Failure::from(error).hint(hint),
        None => error.into(),
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

    fn reader(bytes_max: usize) -> DocumentReader {
        DocumentReader::new(bytes_max).only_of("ada")
    }

    /// The keys of each batch, and what the reading came to.
    fn batches(input: &str, bytes_max: usize) -> (Vec<Vec<String>>, Result) {
        let mut batches = Vec::new();
        let result = read(input.as_bytes(), reader(bytes_max), |batch| {
            let keys = batch.documents.into_iter().map(|it| it.document.id.key);
            batches.push(keys.collect());
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
            (
                format!("{a}\nhello\n"),
                "document 2 (line 3) cannot be imported: expected a JSON object",
            ),
            (format!("[{a},7]"), "document 2 (line 2)"),
            (format!("{a}\n{other}"), "it belongs to user \"bob\", not \"ada\""),
            (format!("[{a},"), "document 2 (line 2) cannot be imported: the input ends"),
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
        let stopped = read(all.as_bytes(), reader(BYTES), |batch| {
            taken += batch.documents.len();
            false
        });
        assert!(stopped.is_ok());
        assert_eq!(taken, DOCUMENTS_MAX);
    }

    #[test]
    fn a_document_too_long_is_not_read_to_its_end() {
        let long = format!("{}\n{{\"a\":\"{}", document("a"), "x".repeat(100_000));
        let told = told(batches(&long, 20_000).1);
        assert!(told.contains("document 2 (line 3) must be at most 20000 bytes long"), "{told}");
    }
}
