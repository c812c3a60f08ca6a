//! The records every case reads and writes: notes of users, a hundred to a user.

use keyward_engine::Json;
use keyward_key::{Key, KeyRange, Prefix};

use crate::Result;

/// The size of the small data set.
pub const TEN_THOUSAND: u64 = 10_000;
/// The size of the large data set, unless another one is asked for.
pub const MILLION: u64 = 1_000_000;
/// The numbers in keys have a fixed width, so that the order of records is the order of keys.
pub const MAX: u64 = 1_000_000_000;

const NOTES_PER_USER: u64 = 100;
const WORDS: [&str; 16] = [
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty",
    "knoll", "ledge", "marsh", "north", "ocean", "pearl",
];

/// A record as a caller has it in hand before it writes it.
#[derive(Debug, Clone)]
pub struct Record {
    /// The key.
    pub key: Key,
    /// The value: about 150 bytes of JSON.
    pub value: Json,
}

/// The records of some numbers, ready to be written.
pub fn records(numbers: impl IntoIterator<Item = u64>) -> Result<Vec<Record>> {
    numbers
        .into_iter()
        .map(|number| Ok(Record { key: key(number)?, value: value(number)? }))
        .collect()
}

/// The key of a record. Keys are in the order of the numbers.
pub fn key(number: u64) -> Result<Key> {
    let user = format!("{:08}", number / NOTES_PER_USER);
    let note = format!("n{:02}", number % NOTES_PER_USER);
    Ok(Key::from_segments(["user", &user, "notes", &note])?)
}

/// The range that holds every record.
pub fn range() -> KeyRange {
    KeyRange::under(&Prefix::from_segments(["user"]))
}

/// The value of a record.
pub fn value(number: u64) -> Result<Json> {
    let mut random = fastrand::Rng::with_seed(number);
    let mut words = |count: usize| -> String {
        let some: Vec<_> = (0..count).map(|_| WORDS[random.usize(..WORDS.len())]).collect();
        some.join(" ")
    };
    let (title, text, tag) = (words(2), words(11), words(1));
    let json = format!(
        r#"{{"title":"{title}","text":"{text}","at":"2026-01-01T00:00:00Z","n":{number},"tag":"{tag}"}}"#
    );
    Ok(Json::parse(json)?)
}

/// Keys of records chosen at random, the same ones for the same seed.
pub fn random_keys(count: usize, records: u64, seed: usize) -> Result<Vec<Key>> {
    let mut random = fastrand::Rng::with_seed(seed as u64);
    (0..count).map(|_| key(random.u64(..records))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_their_numbers() {
        let numbers = [0, 1, 99, 100, 101, 9_999, 10_000, 999_999, MAX - 1];
        let keys: Vec<Key> = numbers.map(|number| key(number).unwrap()).to_vec();
        assert!(keys.is_sorted());
        assert!(keys.iter().all(|key| range().contains(key)));
    }

    #[test]
    fn values_are_json_of_about_150_bytes() {
        for number in [0, 7, 123_456, 999_999] {
            let length = value(number).unwrap().len();
            assert!((140..=160).contains(&length), "{length}");
        }
    }

    #[test]
    fn the_same_seed_chooses_the_same_keys() {
        let keys = |seed| random_keys(10, MILLION, seed).unwrap();
        assert_eq!(keys(1), keys(1));
        assert_ne!(keys(1), keys(2));
    }
}
