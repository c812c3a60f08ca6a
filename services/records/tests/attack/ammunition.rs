//! What attackers throw.

use fastrand::Rng;
use keyward_key::{Bindings, Key};
use keyward_records::Filter;
use serde_json::Value;

use crate::victim::{EMAIL, GUESS, INDEXES, NAME, SPACES};

/// Texts that have broken things before.
const PIECES: &[&str] = &[
    NAME,
    EMAIL,
    GUESS,
    "",
    ":",
    "%",
    "%3A",
    "%00",
    "\0",
    "\u{1}",
    "\u{1}\u{1}",
    "*",
    "/",
    "..",
    "../ada",
    "ada:",
    ":ada",
    "ada:notes",
    "ada%3Anotes",
    "ad",
    "adaa",
    "ADA",
    "ada ",
    "a",
    "b",
    "user",
    "notes",
    "posts",
    "n0",
    "p0",
    "l0",
    "g0",
    "index",
    "by_title",
    "by_tag",
    "email",
    "system",
    "history",
    "catalog",
    "cursor-secret",
    "metadata",
    "job",
    "lock",
    "queue",
    "dead-letter",
    "{user}",
    "$keyward",
    "é",
    "e\u{301}",
    "\u{202e}",
    "\u{feff}",
    "\u{10ffff}",
    "~",
    "0",
    "-1",
    "null",
];

pub fn text(rng: &mut Rng) -> String {
    let mut text = String::new();
    for _ in 0..=rng.usize(..3) {
        match rng.u8(..10) {
            0 => text.push(rng.char('\0'..='\u{ff}')),
            1 => text.push(rng.char(..)),
            _ => text.push_str(PIECES[rng.usize(..PIECES.len())]),
        }
        if rng.bool() {
            break;
        }
    }
    text
}

/// An id for the attacker: close to the victim's, but another one.
pub fn attacker(rng: &mut Rng) -> String {
    loop {
        let id = if rng.bool() { "mallory".to_owned() } else { text(rng) };
        if id != NAME && !id.is_empty() {
            return id;
        }
    }
}

/// A key: one of the victim's, one made to look like it, one of the system's, or nonsense.
pub fn key(rng: &mut Rng, attacker: &str) -> Key {
    let owner = match rng.u8(..4) {
        0 => attacker.to_owned(),
        1 => text(rng),
        _ => NAME.to_owned(),
    };
    let kind = SPACES[rng.usize(..SPACES.len())];
    let id = ["n0", "n1", "p0", "p1", "d0", "l0", "g0"][rng.usize(..7)];
    let segments: Vec<String> = match rng.u8(..8) {
        0 => vec!["user".into(), owner],
        1 => vec!["user".into(), owner, kind.into(), id.into(), text(rng)],
        2 => vec!["index".into(), INDEXES[rng.usize(..INDEXES.len())].into(), owner, text(rng)],
        3 => vec![
            "system".into(),
            "history".into(),
            kind.into(),
            "user".into(),
            owner,
            kind.into(),
            id.into(),
        ],
        4 => vec!["system".into(), text(rng)],
        5 => (0..=rng.usize(..6)).map(|_| text(rng)).collect(),
        6 => {
            return Key::parse(&format!("user:{owner}:{kind}:{id}"))
                .unwrap_or_else(|_| Key::parse("user:ada").unwrap());
        }
        _ => vec!["user".into(), owner, kind.into(), id.into()],
    };
    Key::from_segments(&segments).unwrap_or_else(|_| Key::parse("user:ada:notes:n0").unwrap())
}

pub fn bindings(rng: &mut Rng) -> Bindings {
    let mut values = Bindings::new();
    if rng.bool() {
        let owner = if rng.bool() { NAME.to_owned() } else { text(rng) };
        values = values.with("user", owner);
    }
    if rng.bool() {
        let variable = ["note", "post", "place", "page", "user", "x"][rng.usize(..6)];
        values = values.with(variable, text(rng));
    }
    values
}

pub fn value(rng: &mut Rng) -> Value {
    match rng.u8(..6) {
        0 => Value::Null,
        1 => rng.i64(..).into(),
        2 => true.into(),
        _ => text(rng).into(),
    }
}

pub fn record(rng: &mut Rng) -> String {
    let members = [
        ("title", value(rng)),
        ("slug", value(rng)),
        ("email", if rng.bool() { EMAIL.into() } else { value(rng) }),
        ("text", value(rng)),
        ("tags", Value::Array(vec![value(rng), "a".into()])),
        ("lat", Value::from(52.52)),
        ("lon", Value::from(13.4)),
    ];
    let object: serde_json::Map<String, Value> = members
        .into_iter()
        .filter(|_| rng.u8(..3) > 0)
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    Value::Object(object).to_string()
}

/// A filter that asks about what is not shared, or is nonsense.
pub fn filter(rng: &mut Rng) -> Filter {
    let fields = ["draft", "title", "name", "text", "email", "$keyward", "by"];
    let field = fields[rng.usize(..fields.len())];
    let test = ["prefix", "contains", "gte", "ne", "eq", "exists"][rng.usize(..6)];
    let wanted = match test {
        "exists" => Value::from(true),
        _ => Value::from(GUESS),
    };
    let text = serde_json::json!({ field: { test: wanted } }).to_string();
    Filter::parse(&text).unwrap()
}

/// A cursor that was changed somewhere.
pub fn bent(rng: &mut Rng, cursor: &str) -> String {
    let mut bytes = cursor.as_bytes().to_vec();
    if bytes.is_empty() {
        return String::new();
    }
    match rng.u8(..4) {
        0 => bytes.truncate(rng.usize(..bytes.len())),
        1 => bytes.extend_from_slice(b"AAAA"),
        _ => {
            let at = rng.usize(..bytes.len());
            bytes[at] = rng.choice(*b"ABCDwxyz0189-_").unwrap_or(b'A');
        }
    }
    String::from_utf8(bytes).unwrap()
}
