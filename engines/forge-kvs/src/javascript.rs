//! JSON text as JavaScript writes it. A Forge app, and the store's own client, read every value as JavaScript values
//! and write it with `JSON.stringify`: this is the text that comes out of that.

use std::fmt::Write;

/// How the names of an object are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// As JavaScript does: those that look like indexes of an array first, the others as they stand.
    Insertion,
    /// By the alphabet, so that two texts of one value are the same whatever the order of their names.
    Sorted,
}

/// What JavaScript makes of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub text: String,
    /// Whether the text holds the same value: no number lost digits, no text is broken. Numbers that would lose
    /// digits stand in the text as they were.
    pub is_exact: bool,
    /// How deep arrays and objects nest.
    pub depth: usize,
}

/// Deeper than any store lets values nest. What nests deeper stays as it is.
const DEPTH_MAX: usize = 200;

/// What JavaScript makes of a text that is valid JSON.
pub(crate) fn written(json: &str, names: Names) -> Written {
    let depth = depth(json);
    if depth > DEPTH_MAX {
        return Written { text: json.to_owned(), is_exact: false, depth };
    }
    let mut writer = Writer { rest: json, names, is_exact: true };
    let text = writer.value();
    // Of a text that is no JSON, nothing is promised but that it is not taken for exact.
    let is_exact = writer.is_exact && writer.rest.trim_ascii().is_empty();
    Written { text, is_exact, depth }
}

/// The text in a JSON string, if that is what the JSON is.
pub(crate) fn string(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

/// The JSON string that holds a text, as JavaScript writes it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
        let (plain, escaped) = rest.split_at(at);
        quoted.push_str(plain);
        match escaped.as_bytes()[0] {
            8 => quoted.push_str("\\b"),
            12 => quoted.push_str("\\f"),
            b'\n' => quoted.push_str("\\n"),
            b'\r' => quoted.push_str("\\r"),
            b'\t' => quoted.push_str("\\t"),
            byte @ (b'"' | b'\\') => quoted.extend(['\\', char::from(byte)]),
            byte => {
                // Writing to a String cannot fail.
                let _ = write!(quoted, "\\u{byte:04x}");
            }
        }
        rest = &escaped[1..];
    }
    quoted.push_str(rest);
    quoted.push('"');
    quoted
}

struct Writer<'j> {
    rest: &'j str,
    names: Names,
    is_exact: bool,
}

impl<'j> Writer<'j> {
    fn value(&mut self) -> String {
        self.rest = self.rest.trim_ascii_start();
        match self.rest.as_bytes().first() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.string(),
            _ => self.word(),
        }
    }

    fn object(&mut self) -> String {
        self.skip(1);
        let mut members: Vec<(String, String)> = Vec::new();
        while !self.ends_with(b'}') {
            let name = self.string();
            // The colon.
            self.rest = self.rest.trim_ascii_start();
            self.skip(1);
            let value = self.value();
            members.push((name, value));
        }
        match self.names {
            Names::Insertion => members.sort_by_key(|(name, _)| index(name).unwrap_or(u32::MAX)),
            Names::Sorted => members.sort(),
        }
        let members: Vec<String> =
            members.into_iter().map(|(name, value)| format!("{name}:{value}")).collect();
        format!("{{{}}}", members.join(","))
    }

    fn array(&mut self) -> String {
        self.skip(1);
        let mut items = Vec::new();
        while !self.ends_with(b']') {
            items.push(self.value());
        }
        format!("[{}]", items.join(","))
    }

    /// Whether an array or object ends here. Takes the end, or the comma before what follows.
    fn ends_with(&mut self, end: u8) -> bool {
        self.rest = self.rest.trim_ascii_start();
        match self.rest.as_bytes().first() {
            Some(&byte) if byte == end => {
                self.skip(1);
                true
            }
            Some(b',') => {
                self.skip(1);
                self.rest = self.rest.trim_ascii_start();
                false
            }
            Some(_) => false,
            None => {
                self.is_exact = false;
                true
            }
        }
    }

    fn string(&mut self) -> String {
        let bytes = self.rest.as_bytes();
        let mut end = 1;
        while bytes.get(end).is_some_and(|&byte| byte != b'"') {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let json = self.take(end + 1);
        if !json.contains('\\') {
            return json.to_owned();
        }
        match string(json) {
            Some(text) => quoted(&text),
            // Half of a character: JavaScript keeps it, other languages do not.
            None => {
                self.is_exact = false;
                json.to_owned()
            }
        }
    }

    /// A number, or `true`, `false`, `null`.
    fn word(&mut self) -> String {
        let ends = |c: char| c == ',' || c == ']' || c == '}' || c.is_ascii_whitespace();
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        if end == 0 {
            self.is_exact = false;
            self.skip(1);
            return String::new();
        }
        let word = self.take(end);
        if word.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            match number(word) {
                Some(number) => return number,
                None => self.is_exact = false,
            }
        }
        word.to_owned()
    }

    fn skip(&mut self, bytes: usize) {
        self.take(bytes);
    }

    fn take(&mut self, bytes: usize) -> &'j str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }
}

/// How deep the arrays and objects of a text nest.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The index that a name of an object is, as JavaScript sees it. The name stands in its quotes.
fn index(quoted: &str) -> Option<u32> {
    let name = quoted.get(1..quoted.len().checked_sub(1)?)?;
    let index: u32 = name.parse().ok()?;
    (index < u32::MAX && index.to_string() == name).then_some(index)
}

/// How JavaScript writes a number, if it is the same number.
fn number(text: &str) -> Option<String> {
    let number: f64 = text.parse().ok()?;
    // There is no infinity in JSON, and JavaScript writes a negative zero without its sign.
    if !number.is_finite() || (number == 0.0 && number.is_sign_negative()) {
        return None;
    }
    // The fewest digits that mean this number, in both languages.
    let shortest = format!("{number:e}");
    if decimal(&shortest)? != decimal(text)? {
        return None;
    }
    let (mantissa, exponent) = shortest.split_once('e')?;
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let length = i32::try_from(digits.len()).ok()?;
    // Where the point is: so many digits stand before it.
    let point = exponent.parse::<i32>().ok()? + 1;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or_default());
    let split = |at: i32| digits.split_at(usize::try_from(at).unwrap_or_default());
    let written = if length <= point && point <= 21 {
        format!("{digits}{}", zeros(point - length))
    } else if 0 < point && point <= 21 {
        let (whole, part) = split(point);
        format!("{whole}.{part}")
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (first, others) = split(1);
        let dot = if others.is_empty() { "" } else { "." };
        let plus = if point > 0 { "+" } else { "" };
        format!("{first}{dot}{others}e{plus}{}", point - 1)
    };
    Some(format!("{sign}{written}"))
}

/// A number in decimal, whatever way it is written: its sign, its digits without zeros around them, and the exponent
/// of the last of them.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    let trimmed = digits.trim_end_matches('0');
    let exponent = exponent.parse::<i64>().ok()?;
    let exponent = exponent + (digits.len() - trimmed.len()) as i64 - part.len() as i64;
    let significant = trimmed.trim_start_matches('0');
    let exponent = if significant.is_empty() { 0 } else { exponent };
    Some((is_negative, significant.to_owned(), exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(json: &str) -> Written {
        written(json, Names::Insertion)
    }

    #[test]
    fn texts_that_javascript_writes_stay_as_they_are() {
        for text in [
            "null",
            "true",
            "0",
            "-1",
            "0.1",
            "1e+21",
            "1.5e-7",
            "0.000001",
            "123456789012345680000",
            "9007199254740992",
            "5e-324",
            "1.7976931348623157e+308",
            r#""""#,
            r#""학칙 é / \u0000\u001f \b\f\n\r\t \" \\ 😀""#,
            "{}",
            "[]",
            r#"[[],{},"",0,null]"#,
            r#"{"1":0,"2":0,"b":1,"a":{"c":[1,2,{"d":null}]},"01":0}"#,
            r#"{"":0,"__proto__":1}"#,
        ] {
            let written = plain(text);
            assert_eq!((written.text.as_str(), written.is_exact), (text, true));
        }
    }

    #[test]
    fn texts_of_the_same_value_are_written_as_javascript_does() {
        for (text, expected) in [
            ("1.0", "1"),
            ("1.10", "1.1"),
            ("1E+5", "100000"),
            ("100e-2", "1"),
            ("1e21", "1e+21"),
            ("0.0000001", "1e-7"),
            ("-0.50e0", "-0.5"),
            ("0e9", "0"),
            (r#""\/\u00e9\ud83d\ude00""#, r#""/é😀""#),
            (r#"{ "b" : 1 , "10" : [ 2 , 3 ] , "9" : {} }"#, r#"{"9":{},"10":[2,3],"b":1}"#),
        ] {
            let written = plain(text);
            assert_eq!((written.text.as_str(), written.is_exact), (expected, true), "{text}");
        }
    }

    #[test]
    fn numbers_that_a_double_cannot_hold_keep_their_digits_and_are_told() {
        for text in [
            "12345678901234567890123456789012345678901234567890",
            "9007199254740993",
            "1e400",
            "-0",
            "-0.0",
            "1e-400",
            "0.1000000000000000055511151231257827021181583404541015625",
        ] {
            let written = plain(text);
            assert_eq!((written.text.as_str(), written.is_exact), (text, false));
        }
        assert!(!plain(r#"["\ud800"]"#).is_exact, "half of a character");
    }

    #[test]
    fn names_that_are_sorted_make_one_text_of_one_value() {
        let one = written(r#"{"b":{"y":1,"x":2},"a":[{"d":1,"c":2}]}"#, Names::Sorted);
        let other = written(r#"{"a":[{"c":2,"d":1.0}],"b":{"x":2,"y":1}}"#, Names::Sorted);
        assert_eq!(one.text, other.text);
        assert_eq!((one.depth, plain("[[],[[]]]").depth, plain("7").depth), (3, 3, 0));
    }

    #[test]
    fn what_nests_deeper_than_any_store_lets_it_stays_as_it_is() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let written = plain(&deep);
        assert!(written.text == deep && !written.is_exact);
        assert_eq!(plain(r#"["[[[\"[[["]"#).depth, 1);
    }

    #[test]
    fn what_is_no_json_is_not_exact_and_never_panics() {
        for text in ["", "[", "{", "[1", "{\"a", "{\"a\"", "]", "\"", "\"\\", "1 2", "{,}", "학"] {
            assert!(!plain(text).is_exact || plain(text).text == text, "{text}");
        }
    }

    #[test]
    fn random_doubles_come_back() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..10_000 {
            let number = f64::from_bits(rng.u64(..));
            if !number.is_finite() || number == 0.0 {
                continue;
            }
            let written = plain(&format!("{number:e}"));
            assert!(written.is_exact, "{number:e}");
            assert_eq!(written.text.parse::<f64>().unwrap().to_bits(), number.to_bits());
            assert_eq!(plain(&written.text).text, written.text);
        }
    }
}
