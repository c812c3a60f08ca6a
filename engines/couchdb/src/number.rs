//! Numbers as CouchDB keeps them.
//!
//! It reads whole numbers without an exponent as they are, however long, and all others as a double of 64 bits, which it
//! writes with the fewest digits that read back as the same double. So `1.50` comes back as `1.5`, which is the same
//! number; `0.1234567890123456789` comes back as another one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// A number by its digits, from the first that is not zero to the last, and the power of ten that they are multiplied
/// with.
#[derive(Debug, PartialEq, Eq)]
struct Decimal<'t> {
    is_negative: bool,
    digits: Cow<'t, str>,
    power: i64,
}

/// Reads a number of JSON; `None` if its power of ten is beyond all bounds.
fn decimal(text: &str) -> Option<Decimal<'_>> {
    let plain = text.strip_prefix('-').unwrap_or(text);
    let (decimal, power) = match plain.split_once(['e', 'E']) {
        Some((decimal, power)) => (decimal, power.parse::<i64>().ok()?),
        None => (plain, 0),
    };
    let (digits, fraction) = match decimal.split_once('.') {
        Some((whole, fraction)) => (Cow::Owned(format!("{whole}{fraction}")), fraction.len()),
        None => (Cow::Borrowed(decimal), 0),
    };
    let power = power.checked_sub(i64::try_from(fraction).ok()?)?;
    let significant = digits.trim_start_matches('0');
    let shortest = significant.trim_end_matches('0');
    if shortest.is_empty() {
        return Some(Decimal { is_negative: false, digits: Cow::Borrowed(""), power: 0 });
    }
    let zeros = i64::try_from(significant.len() - shortest.len()).ok()?;
    let power = power.checked_add(zeros)?;
    let is_negative = plain.len() < text.len();
    Some(Decimal { is_negative, digits: Cow::Owned(shortest.to_owned()), power })
}

fn is_exact(text: &str) -> bool {
    if !text.contains(['.', 'e', 'E']) {
        return true;
    }
    let Ok(double) = text.parse::<f64>() else { return false };
    let shortest = format!("{double:e}");
    double.is_finite() && decimal(text).is_some_and(|exact| decimal(&shortest) == Some(exact))
}

/// The first number of a JSON text that CouchDB would change.
pub(crate) fn inexact(json: &str) -> Option<&str> {
    let mut rest = json;
    while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = &rest[start..];
        if let Some(text) = rest.strip_prefix('"') {
            rest = after_string(text);
            continue;
        }
        let end = rest.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c)));
        let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
        if !is_exact(number) {
            return Some(number);
        }
        rest = after;
    }
    None
}

/// What follows a string whose opening quote is gone.
fn after_string(text: &str) -> &str {
    let mut is_escaped = false;
    let end = text.find(|c: char| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    end.map_or("", |end| &text[end + 1..])
}

/// Whether two JSON texts mean the same.
pub(crate) fn means_the_same(one: &str, other: &str) -> bool {
    match (one.as_bytes().first(), other.as_bytes().first()) {
        (Some(b'{'), Some(b'{')) => match (members(one), members(other)) {
            (Some(one), Some(other)) => {
                let mut pairs = one.iter().zip(&other);
                one.len() == other.len()
                    && pairs.all(|((a, x), (b, y))| a == b && means_the_same(x.get(), y.get()))
            }
            _ => false,
        },
        (Some(b'['), Some(b'[')) => match (elements(one), elements(other)) {
            (Some(one), Some(other)) => {
                let mut pairs = one.iter().zip(&other);
                one.len() == other.len() && pairs.all(|(x, y)| means_the_same(x.get(), y.get()))
            }
            _ => false,
        },
        (Some(b'"'), Some(b'"')) => {
            let text = |json| serde_json::from_str::<String>(json).ok();
            text(one).is_some_and(|one| text(other) == Some(one))
        }
        (Some(b'-' | b'0'..=b'9'), Some(b'-' | b'0'..=b'9')) => {
            decimal(one).is_some_and(|one| decimal(other) == Some(one))
        }
        _ => one == other,
    }
}

fn members(json: &str) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(json).ok()
}

fn elements(json: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_come_back_as_the_same_are_exact() {
        for exact in [
            "0",
            "-0",
            "0.0",
            "-0.0",
            "1.50",
            "0.1",
            "1e2",
            "1E+2",
            "100.00e-2",
            "1e22",
            "1e23",
            "5e-324",
            "1.7976931348623157e308",
            "0.30000000000000004",
            "9007199254740993",
            "123456789012345678901234567890123456789012345678901234567890",
            "9007199254740992.0",
            "1e308",
        ] {
            assert_eq!(inexact(exact), None, "{exact}");
        }
    }

    #[test]
    fn numbers_that_would_be_rounded_are_named() {
        for rounded in [
            "0.1234567890123456789",
            "9007199254740993.0",
            "9007199254740993e0",
            "1e400",
            "-1e400",
            "1e-400",
            "1e99999999999999999999",
            "1e-99999999999999999999",
            "3.141592653589793238",
        ] {
            assert_eq!(inexact(rounded), Some(rounded));
            let nested = format!(r#"{{"a 1e400 \" 1e400":[1,"1e400\\",{{"b":{rounded}}}],"c":2}}"#);
            assert_eq!(inexact(&nested), Some(rounded), "{nested}");
        }
        assert_eq!(inexact(r#"{"a":"\\\"1e400","b":"é 0.1234567890123456789"}"#), None);
    }

    #[test]
    fn what_means_the_same_is_the_same() {
        for (one, other) in [
            ("1.50", "1.5"),
            ("100", "1e2"),
            ("-0", "0.0"),
            (r#""caf\u00e9""#, "\"café\""),
            (r#"{"a":1,"b":[2.0,null]}"#, r#"{"b":[2,null],"a":1.0}"#),
            ("[]", "[]"),
            ("true", "true"),
        ] {
            assert!(means_the_same(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("1", "-1"),
            ("1", "10"),
            ("1", "\"1\""),
            ("[1]", "[1,1]"),
            (r#"{"a":1}"#, r#"{"b":1}"#),
            (r#"{"a":1}"#, r#"{"a":1,"b":1}"#),
            ("null", "false"),
            ("\"a\"", "\"b\""),
            ("[1]", "[2]"),
            ("12345678901234567890123456789012345678", "12345678901234567890123456789012345679"),
        ] {
            assert!(!means_the_same(one, other), "{one} {other}");
        }
    }
}
