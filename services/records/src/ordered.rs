//! Field values as key segments whose text order is the order of the values.

use std::borrow::Cow;

use keyward_key::SegmentType;
use keyward_schema::ValueKind;

use crate::moment::moment;

/// The segment for a value given as JSON text; `None` for null. The error says what the value would
/// have to be.
pub(crate) fn segment(kind: ValueKind, json: &[u8]) -> Result<Option<Cow<'_, str>>, &'static str> {
    if json == b"null" {
        return Ok(None);
    }
    let segment = match kind {
        ValueKind::Text => text(json)?,
        ValueKind::Folded => Cow::Owned(folded(&text(json)?)),
        ValueKind::Integer => Cow::Owned(integer(whole(json)?)),
        ValueKind::Number => Cow::Owned(number(double(json)?)),
        ValueKind::Time => Cow::Owned(time(json)?),
        ValueKind::Bool => match json {
            b"true" => Cow::Borrowed("true"),
            b"false" => Cow::Borrowed("false"),
            _ => return Err("it must be true or false"),
        },
    };
    Ok(Some(segment))
}

fn text(json: &[u8]) -> Result<Cow<'_, str>, &'static str> {
    const WRONG: &str = "it must be text";
    // Without escapes, the text is what stands between the quotes.
    if let [b'"', inner @ .., b'"'] = json
        && !inner.contains(&b'\\')
    {
        return std::str::from_utf8(inner).map(Cow::Borrowed).map_err(|_| WRONG);
    }
    serde_json::from_slice(json).map(Cow::Owned).map_err(|_| WRONG)
}

/// A text in lower case, letter by letter: what a text starts with is folded as in the whole text.
/// `str::to_lowercase` would write a sigma otherwise where the text ends.
pub(crate) fn folded(text: &str) -> String {
    let lower = text.chars().flat_map(char::to_lowercase);
    lower.map(|letter| if letter == 'ς' { 'σ' } else { letter }).collect()
}

fn whole(json: &[u8]) -> Result<i64, &'static str> {
    const WRONG: &str = "it must be a whole number of 64 bits";
    let text = std::str::from_utf8(json).map_err(|_| WRONG)?;
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    // 1.0 and 1e3 are whole numbers too, as far as a double tells them apart from their neighbours.
    let double = double(json).map_err(|_| WRONG)?;
    let exact = double.fract() == 0.0 && double.abs() < 2f64.powi(53);
    if exact { Ok(double as i64) } else { Err(WRONG) }
}

fn double(json: &[u8]) -> Result<f64, &'static str> {
    const WRONG: &str = "it must be a number that a double can hold";
    if !json.first().is_some_and(|first| first.is_ascii_digit() || *first == b'-') {
        return Err(WRONG);
    }
    let text = std::str::from_utf8(json).map_err(|_| WRONG)?;
    text.parse::<f64>().ok().filter(|double| double.is_finite()).ok_or(WRONG)
}

fn time(json: &[u8]) -> Result<String, &'static str> {
    const WRONG: &str = "it must be a time such as 2026-01-31T09:30:00Z, in the years 0000 to 9999";
    let at = moment(&text(json).map_err(|_| WRONG)?).ok_or(WRONG)?;
    SegmentType::write_time(at).map_err(|_| WRONG)
}

/// Nineteen digits; below zero, a minus (which sorts before digits) and the distance from the lowest.
fn integer(number: i64) -> String {
    const LOWEST: u64 = i64::MIN.unsigned_abs();
    match u64::try_from(number) {
        Ok(number) => format!("{number:019}"),
        Err(_) => format!("-{:019}", LOWEST - number.unsigned_abs()),
    }
}

/// The bits of the double, turned so that their order is the order of the numbers.
fn number(double: f64) -> String {
    // There is one zero.
    let double = if double == 0.0 { 0.0 } else { double };
    let bits = double.to_bits();
    let sign = 1 << 63;
    let turned = if bits & sign == 0 { bits | sign } else { !bits };
    format!("{turned:016x}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(kind: ValueKind, json: &str) -> String {
        segment(kind, json.as_bytes()).unwrap().unwrap().into_owned()
    }

    #[test]
    fn values_of_the_wrong_kind_are_refused() {
        for (kind, json) in [
            (ValueKind::Text, "1"),
            (ValueKind::Text, "true"),
            (ValueKind::Text, "[]"),
            (ValueKind::Integer, "\"1\""),
            (ValueKind::Integer, "1.5"),
            (ValueKind::Integer, "9223372036854775808"),
            (ValueKind::Integer, "1e300"),
            (ValueKind::Number, "1e999"),
            (ValueKind::Number, "\"NaN\""),
            (ValueKind::Time, "\"yesterday\""),
            (ValueKind::Time, "17"),
            (ValueKind::Bool, "0"),
        ] {
            assert!(segment(kind, json.as_bytes()).is_err(), "{kind:?} {json}");
        }
        assert_eq!(segment(ValueKind::Text, b"null"), Ok(None));
    }

    #[test]
    fn what_is_equal_has_one_segment() {
        assert_eq!(of(ValueKind::Text, r#""caf\u00e9""#), "café");
        assert_eq!(of(ValueKind::Folded, r#""ADA@Example.org""#), "ada@example.org");
        assert_eq!(of(ValueKind::Folded, r#""ΟΔΟΣ""#), of(ValueKind::Folded, r#""οδος""#));
        assert_eq!(of(ValueKind::Integer, "1e3"), of(ValueKind::Integer, "1000"));
        assert_eq!(of(ValueKind::Number, "-0.0"), of(ValueKind::Number, "0"));
        let zoned = of(ValueKind::Time, r#""2026-01-01T01:00:00+01:00""#);
        assert_eq!(zoned, of(ValueKind::Time, r#""2026-01-01T00:00:00Z""#));
        let civil = of(ValueKind::Time, r#""2026-01-01T00:00""#);
        assert_eq!((&civil, &of(ValueKind::Time, r#""2026-01-01""#)), (&zoned, &zoned));
        assert_eq!(zoned, "20260101T000000.000000000Z");
        assert_eq!(of(ValueKind::Time, r#""9999-12-31""#), "99991231T000000.000000000Z");
        assert_eq!(of(ValueKind::Integer, "42"), "0000000000000000042");
    }

    proptest! {
        #[test]
        fn whole_numbers_keep_their_order(a: i64, b: i64) {
            let segments = [a, b].map(|n| of(ValueKind::Integer, &n.to_string()));
            prop_assert_eq!(segments[0].cmp(&segments[1]), a.cmp(&b));
        }

        #[test]
        fn numbers_keep_their_order(a in -1e300f64..1e300, b in -1.0f64..1.0) {
            let segments = [a, b].map(|n| of(ValueKind::Number, &format!("{n:e}")));
            prop_assert_eq!(segments[0].cmp(&segments[1]), a.partial_cmp(&b).unwrap());
        }

        #[test]
        fn what_folded_text_starts_with_is_folded_alike(
            start in "[a-zA-ZΣσςİßΑα' .]{0,6}",
            rest in "[a-zA-ZΣσςİßΑα' .]{0,6}",
        ) {
            let whole = folded(&[start.as_str(), &rest].concat());
            prop_assert!(whole.starts_with(&folded(&start)));
        }

        #[test]
        fn text_is_its_own_segment(text: String) {
            let json = serde_json::Value::from(text.clone()).to_string();
            prop_assert_eq!(of(ValueKind::Text, &json), text);
        }
    }
}
