//! The meaning of a value: what two JSON texts have in common that differ in the order of members, in white space and
//! in escapes. A value store may parse what it is given (Forge does), and then shows such a text. Numbers are compared
//! by their digits: `1.0` is not `1`.

use std::borrow::Cow;
use std::ops::Range;

/// Deeper values count as they are written.
const DEPTH_MAX: usize = 128;

/// A text that is the same for all texts of one meaning. What is no JSON comes back as it is.
pub(crate) fn canonical(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().any(|byte| matches!(byte, b'{' | b'\\' | b' ' | b'\t' | b'\n' | b'\r')) {
        return Cow::Borrowed(text);
    }
    let mut reader = Reader { text, at: 0, out: Vec::with_capacity(text.len()) };
    match reader.value(0) {
        Some(()) if reader.is_at_end() => Cow::Owned(reader.out),
        _ => Cow::Borrowed(text),
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    out: Vec<u8>,
}

impl Reader<'_> {
    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.get(self.at..)?;
        self.at += rest.iter().position(|byte| !b" \t\n\r".contains(byte))?;
        self.text.get(self.at).copied()
    }

    /// Copies the next byte, if it is this one.
    fn take(&mut self, byte: u8) -> Option<()> {
        let is_it = self.peek()? == byte;
        is_it.then(|| {
            self.at += 1;
            self.out.push(byte);
        })
    }

    fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            _ if depth > DEPTH_MAX => None,
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string(),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.take(b'{')?;
        let start = self.out.len();
        // Where name and value of each member are in the output.
        let mut members: Vec<(Range<usize>, Range<usize>)> = Vec::new();
        while self.peek()? != b'}' {
            if !members.is_empty() {
                self.take(b',')?;
            }
            self.peek()?;
            let name = self.out.len();
            self.string()?;
            let value = self.out.len();
            self.take(b':')?;
            self.value(depth + 1)?;
            members.push((name..value, value..self.out.len()));
        }
        let name = |member: &(Range<usize>, Range<usize>)| self.out.get(member.0.clone());
        if !members.is_sorted_by_key(name) {
            members.sort_by(|one, other| name(one).cmp(&name(other)));
            let mut sorted = Vec::with_capacity(self.out.len() - start);
            for (name, value) in members {
                if !sorted.is_empty() {
                    sorted.push(b',');
                }
                sorted.extend_from_slice(self.out.get(name)?);
                sorted.extend_from_slice(self.out.get(value)?);
            }
            self.out.truncate(start);
            self.out.append(&mut sorted);
        }
        self.take(b'}')
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.take(b'[')?;
        let mut is_first = true;
        while self.peek()? != b']' {
            if !is_first {
                self.take(b',')?;
            }
            self.value(depth + 1)?;
            is_first = false;
        }
        self.take(b']')
    }

    /// A string, written as `serde_json` does.
    fn string(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let (mut end, mut is_escaped, mut has_escapes) = (1, false, false);
        if rest.first() != Some(&b'"') {
            return None;
        }
        loop {
            let byte = *rest.get(end)?;
            end += 1;
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => (is_escaped, has_escapes) = (true, true),
                b'"' => break,
                _ => {}
            }
        }
        let token = rest.get(..end)?;
        self.at += end;
        // A lone surrogate has no other text.
        let read = has_escapes.then(|| serde_json::from_slice::<String>(token).ok()).flatten();
        match read.and_then(|text| serde_json::to_vec(&text).ok()) {
            Some(written) => self.out.extend_from_slice(&written),
            None => self.out.extend_from_slice(token),
        }
        Some(())
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let end = rest.iter().position(|byte| b",]}: \t\n\r\"[{".contains(byte));
        let word = rest.get(..end.unwrap_or(rest.len()))?;
        self.at += word.len();
        self.out.extend_from_slice(word);
        (!word.is_empty()).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_same(one: &str, other: &str) -> bool {
        canonical(one.as_bytes()) == canonical(other.as_bytes())
    }

    #[test]
    fn order_white_space_and_escapes_do_not_change_the_meaning() {
        for (one, other) in [
            (r#"{"a":1,"b":[{"d":1,"c":2}]}"#, r#"{ "b" : [ {"c":2, "d":1} ], "a":1 }"#),
            (r#"{"title":"\ud559\u0041","n":{}}"#, r#"{"n":{},"title":"학A"}"#),
            (r#"["a\/b"]"#, r#"["a/b"]"#),
            (
                r#"{"b":1,"ab":{"z":[],"y":null},"a":"}\""}"#,
                r#"{"a":"}\"","ab":{"y":null,"z":[]},"b":1}"#,
            ),
            ("7", "7"),
        ] {
            assert!(is_same(one, other), "{one} {other}");
        }
        assert_eq!(*canonical(br#"{"b":1,"a":2}"#), *br#"{"a":2,"b":1}"#);
    }

    #[test]
    fn everything_else_does() {
        for (one, other) in [
            (r#"{"a":1}"#, r#"{"a":1.0}"#),
            (r#"{"a":1}"#, r#"{"a":"1"}"#),
            ("[1,2]", "[2,1]"),
            (r#"{"a":{"b":1},"c":2}"#, r#"{"a":{"b":1,"c":2}}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
            (r#""a b""#, r#""ab""#),
        ] {
            assert!(!is_same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn what_is_no_json_or_too_deep_is_its_own_meaning() {
        let deep = format!("{}{{\"b\":1,\"a\":2}}{}", "[".repeat(200), "]".repeat(200));
        for text in ["{", r#"{"a"}"#, "[1,,2] ", r#"{"a":1} x"#, "\\", "", " ", &deep] {
            assert_eq!(*canonical(text.as_bytes()), *text.as_bytes(), "{text}");
        }
    }
}
