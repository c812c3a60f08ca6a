//! The behaviours, one function each, in files by what they are about.
//!
//! A behaviour takes the engine under test and panics if it does not show it. Where the engine
//! lacks what a behaviour is about, the behaviour is that it refuses.

#![allow(missing_docs, reason = "a behaviour's name is its sentence")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

pub mod checks;
pub mod commits;
pub mod expiry;
pub mod limits;
pub mod listing;
pub mod live;
pub mod model;
pub mod numbers;
pub mod order;
pub mod paging;
pub mod racing;
pub mod reads;
pub mod reclaiming;
pub mod reopening;
pub mod resuming;
pub mod round_trip;
pub mod stats;
pub mod versions;
pub mod watching;

use keyward_engine::{Json, Put};
use keyward_key::Key;

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn put(text: &str) -> Put {
    Put::new(json(text))
}

/// Keys that are easily confused, cut short, ordered wrongly or refused by mistake.
fn odd_keys() -> Vec<Key> {
    let deep = vec!["d"; 60];
    let mut odd: Vec<&[&str]> = vec![
        // Empty segments.
        &["", ""],
        &["", "", ""],
        &["", "a"],
        &["a", ""],
        &["a", "", ""],
        &["a", "", "b"],
        // What the text form and the encoding use themselves.
        &[":"],
        &["a:b"],
        &["%"],
        &["%3A"],
        &["%00"],
        &["a", "%"],
        &["\0"],
        &["\u{1}"],
        &["\u{1}\u{1}"],
        &["\u{2}"],
        &["a\0"],
        &["a", "\0"],
        &["a\0b"],
        &["a\n", "\r\t"],
        &["\u{7f}", "\u{85}"],
        // Texts that look alike.
        &["é"],
        &["e\u{301}"],
        &["A"],
        &["a"],
        &["а"],
        &["ss"],
        &["ß"],
        &[" "],
        &["  "],
        &["a "],
        &["0"],
        &["00"],
        &["1"],
        &["10"],
        &["2"],
        // What other systems give a meaning.
        &["."],
        &[".."],
        &["a/b"],
        &["a\\b"],
        &["'"],
        &["\""],
        &["*"],
        &["?"],
        &["_"],
        &["__proto__"],
        &["null"],
        &["{}"],
        &["[a]"],
        &["$a"],
        &["lock"],
        &["index", "a"],
        // Far ends of Unicode.
        &["학칙", "2024"],
        &["\u{ffff}"],
        &["\u{10000}"],
        &["\u{10ffff}"],
        &["\u{feff}"],
        &["\u{202e}a"],
        &["👩‍👩‍👧"],
    ];
    odd.push(&deep);
    odd.into_iter().map(|segments| Key::from_segments(segments).unwrap()).collect()
}
