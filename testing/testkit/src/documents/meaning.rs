//! What JSON means, however it is written.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::value::RawValue;

/// What JSON text means: two texts are equal if they differ only in escapes, in the order of names, or
/// in how their numbers are written. Databases of documents keep this, and not the text.
///
/// ```
/// use keyward_testkit::Meaning;
///
/// assert_eq!(Meaning::of(r#"{"a":1.50,"b":"é"}"#), Meaning::of(r#"{"b":"\u00e9","a":15e-1}"#));
/// assert_ne!(Meaning::of("1"), Meaning::of(r#""1""#));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// `null`, `true` or `false`.
    Word(String),
    /// A number of any size.
    Number(Decimal),
    /// A text.
    Text(String),
    /// An array.
    Array(Vec<Meaning>),
    /// An object.
    Object(BTreeMap<String, Meaning>),
}

/// An exact decimal number: digits without zeros at either end, times a power of ten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    /// Below zero.
    pub negative: bool,
    /// The digits; empty for zero.
    pub digits: String,
    /// The power of ten that the digits are multiplied with.
    pub power: i64,
}

impl Meaning {
    /// The meaning of valid JSON. Panics on anything else.
    pub fn of(json: &str) -> Self {
        match json.as_bytes().first() {
            Some(b'{') => {
                let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(json).unwrap();
                let read = |(name, value): (String, Box<RawValue>)| (name, Self::of(value.get()));
                Self::Object(members.into_iter().map(read).collect())
            }
            Some(b'[') => {
                let elements: Vec<Box<RawValue>> = serde_json::from_str(json).unwrap();
                Self::Array(elements.iter().map(|element| Self::of(element.get())).collect())
            }
            Some(b'"') => Self::Text(serde_json::from_str(json).unwrap()),
            Some(b'-' | b'0'..=b'9') => Self::Number(Decimal::of(json)),
            _ => Self::Word(json.to_owned()),
        }
    }

    /// A member of an object.
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.get(name),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// JSON of this meaning: names in order, numbers in their shortest form.
    pub fn to_json(&self) -> String {
        let mut json = String::new();
        self.write(&mut json);
        json
    }

    fn write(&self, json: &mut String) {
        match self {
            Self::Word(word) => json.push_str(word),
            Self::Number(number) => number.write(json),
            Self::Text(text) => json.push_str(&serde_json::to_string(text).unwrap()),
            Self::Array(elements) => {
                json.push('[');
                for (n, element) in elements.iter().enumerate() {
                    json.push_str(if n > 0 { "," } else { "" });
                    element.write(json);
                }
                json.push(']');
            }
            Self::Object(members) => {
                json.push('{');
                for (n, (name, value)) in members.iter().enumerate() {
                    json.push_str(if n > 0 { "," } else { "" });
                    json.push_str(&serde_json::to_string(name).unwrap());
                    json.push(':');
                    value.write(json);
                }
                json.push('}');
            }
        }
    }
}

impl Decimal {
    fn of(text: &str) -> Self {
        let (negative, plain) = text.strip_prefix('-').map_or((false, text), |it| (true, it));
        let (decimal, power) = plain.split_once(['e', 'E']).unwrap_or((plain, "0"));
        let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let shortest = digits.trim_end_matches('0');
        if shortest.is_empty() {
            return Self { negative: false, digits: String::new(), power: 0 };
        }
        let power: i64 = power.parse().unwrap();
        let power = power - fraction.len() as i64 + (digits.len() - shortest.len()) as i64;
        Self { negative, digits: shortest.to_owned(), power }
    }

    fn write(&self, json: &mut String) {
        const ZEROS_MAX: i64 = 40;
        let Self { negative, digits, power } = self;
        json.push_str(if *negative { "-" } else { "" });
        match *power {
            _ if digits.is_empty() => json.push('0'),
            0..=ZEROS_MAX => {
                json.push_str(digits);
                json.push_str(&"0".repeat(usize::try_from(*power).unwrap_or_default()));
            }
            _ => write!(json, "{digits}e{power}").unwrap(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_of_a_meaning_means_the_same() {
        for (json, shortest) in [
            (r#"{"b":[1.50,-0,0.001],"a":{"":null}}"#, r#"{"a":{"":null},"b":[15e-1,0,1e-3]}"#),
            ("-120E2", "-12000"),
            ("1e300", "1e300"),
            ("12345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
            (r#""caf\u00e9 \"x\"""#, r#""café \"x\"""#),
            ("[true,[],{}]", "[true,[],{}]"),
        ] {
            let meaning = Meaning::of(json);
            assert_eq!(meaning.to_json(), shortest);
            assert_eq!(Meaning::of(&meaning.to_json()), meaning, "{json}");
        }
    }
}
