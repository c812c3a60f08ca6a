//! What attackers throw.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::victim::{EMAIL, GUESS, INDEXES, NAME, SPACES};

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
    "user",
    "notes",
    "posts",
    "n0",
    "p0",
    "index",
    "by_title",
    "system",
    "history",
    "catalog",
    "idempotency",
    "{user}",
    "$keyward",
    "é",
    "e\u{301}",
    "\u{202e}",
    "\u{feff}",
    "\u{10ffff}",
    "0",
    "-1",
    "null",
    "?",
    "#",
    "&",
];

pub fn text(rng: &mut Rng) -> String {
    let mut text = String::new();
    for _ in 0..=rng.usize(..2) {
        match rng.u8(..10) {
            0 => text.push(rng.char('\0'..='\u{ff}')),
            1 => text.push(rng.char(..)),
            _ => text.push_str(PIECES[rng.usize(..PIECES.len())]),
        }
    }
    text
}

/// The text of a key of a space that looks as its records' keys do.
fn shaped(space: &str, owner: &str, id: &str) -> String {
    match space {
        "people" => format!("user:{owner}"),
        "staff" => format!("shared:staff:{id}"),
        "wards" => format!("shared:wards:{owner}:{id}"),
        space => format!("user:{owner}:{space}:{id}"),
    }
}

/// The text of a key: one of the victim's, one made to look like it, one of the system's, nonsense.
pub fn key(rng: &mut Rng, attacker: &str, space: &str) -> String {
    let owner = match rng.u8(..6) {
        0 | 1 => attacker.to_owned(),
        2 => text(rng),
        _ => NAME.to_owned(),
    };
    let ids = match space {
        "notes" => ["n0", "n1", "mine"],
        "posts" => ["p0", "d0", "mine"],
        "places" => ["l0", "l1", "mine"],
        "staff" => ["s0", "s1", "mine"],
        "payslips" => ["y0", "y1", "mine"],
        "wards" => ["w0", "w1", "mine"],
        _ => ["g0", "g1", "mine"],
    };
    let id = ids[rng.usize(..3)];
    let other = SPACES[rng.usize(..SPACES.len())];
    match rng.u8(..12) {
        0 => shaped(other, &owner, id),
        1 => format!("{}:{}", shaped(space, &owner, id), text(rng)),
        2 => format!("index:{}:{owner}:{}", INDEXES[rng.usize(..INDEXES.len())], text(rng)),
        3 => format!("system:history:{space}:{}", shaped(space, &owner, id)),
        4 => text(rng),
        _ => shaped(space, &owner, id),
    }
}

/// A prefix below which the attacker may list something: their own keys, or what is shared.
pub fn listed(rng: &mut Rng, attacker: &str) -> String {
    let prefixes = [
        "shared:".to_owned(),
        "shared:staff:".to_owned(),
        "shared:wards:".to_owned(),
        format!("shared:wards:{NAME}:"),
        format!("user:{attacker}:"),
        format!("user:{attacker}:payslips:"),
        format!("user:{NAME}:"),
        text(rng),
    ];
    prefixes[rng.usize(..prefixes.len())].clone()
}

/// An index, mostly of the space.
pub fn index(rng: &mut Rng, space: &str) -> &'static str {
    match (rng.u8(..4), space) {
        (0, _) => INDEXES[rng.usize(..INDEXES.len())],
        (1, "notes") => "by_tag",
        (_, "notes") => "by_title",
        (_, "people") => "email",
        (1, "posts") => "posts_by_tag",
        (_, "posts") => "recent",
        (_, "places") => "geo",
        (_, "staff") => "staff_by_name",
        _ => "slug",
    }
}

/// A text as one segment of a path, or a value in a query; now and then left as it is.
pub fn escaped(rng: &mut Rng, text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
    let loose = rng.u8(..10) == 0;
    let mut escaped = String::new();
    for byte in text.bytes() {
        match plain(byte) || (loose && byte == b'%') {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02x}")),
        }
    }
    escaped
}

pub fn values(rng: &mut Rng, space: &str) -> Value {
    let mut values = Map::new();
    if rng.bool() {
        let owner = if rng.bool() { NAME.to_owned() } else { text(rng) };
        values.insert("user".into(), owner.into());
    }
    if rng.u8(..4) > 0 {
        let variable = match (rng.u8(..6), space) {
            (0, _) => "x",
            (_, "notes") => "note",
            (_, "posts") => "post",
            (_, "places") => "place",
            (_, "staff") => "person",
            (_, "payslips") => "slip",
            (_, "wards") => "ward",
            _ => "page",
        };
        let id = if rng.bool() { "mine".to_owned() } else { text(rng) };
        values.insert(variable.into(), id.into());
    }
    Value::Object(values)
}

pub fn value(rng: &mut Rng) -> Value {
    match rng.u8(..6) {
        0 => Value::Null,
        1 => rng.i64(..).into(),
        2 => true.into(),
        _ => text(rng).into(),
    }
}

pub fn record(rng: &mut Rng) -> Value {
    let members = [
        ("title", value(rng)),
        ("slug", value(rng)),
        ("email", if rng.bool() { EMAIL.into() } else { value(rng) }),
        ("text", value(rng)),
        ("tags", json!([value(rng), "a"])),
        ("lat", json!(52.52)),
        ("lon", json!(13.4)),
    ];
    let kept = members.into_iter().filter(|_| rng.u8(..3) > 0);
    Value::Object(kept.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A filter that asks about what is not shared.
pub fn filter(rng: &mut Rng) -> Value {
    let fields = ["draft", "title", "name", "text", "email", "$keyward", "by"];
    let field = fields[rng.usize(..fields.len())];
    match ["prefix", "contains", "gte", "ne", "eq", "exists"][rng.usize(..6)] {
        "exists" => json!({ field: { "exists": true } }),
        test => json!({ field: { test: GUESS } }),
    }
}

/// A cursor that was changed somewhere.
pub fn bent(rng: &mut Rng, cursor: &str) -> String {
    let mut bytes = cursor.as_bytes().to_vec();
    match rng.u8(..4) {
        0 => bytes.truncate(rng.usize(..=bytes.len())),
        1 => bytes.extend_from_slice(b"AAAA"),
        _ => {
            if let Some(byte) = rng.choice(&mut bytes) {
                *byte = b'A' + (*byte % 26);
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}
