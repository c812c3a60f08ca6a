//! JSON for people: the same text, laid out on several lines.

/// Lays out valid, compact JSON with two spaces a level. Only white space is added: every digit and
/// escape stays as it is.
pub fn pretty(json: &[u8]) -> Vec<u8> {
    let mut laid_out = Vec::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut in_string = false;
    let mut escaped = false;
    let mut previous = 0;
    for &byte in json {
        if in_string {
            laid_out.push(byte);
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            previous = byte;
            continue;
        }
        match byte {
            b']' | b'}' => {
                depth -= 1;
                if !matches!(previous, b'[' | b'{') {
                    new_line(&mut laid_out, depth);
                }
            }
            _ if matches!(previous, b'[' | b'{') => new_line(&mut laid_out, depth),
            _ => {}
        }
        laid_out.push(byte);
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => depth += 1,
            b',' => new_line(&mut laid_out, depth),
            b':' => laid_out.push(b' '),
            _ => {}
        }
        previous = byte;
    }
    laid_out
}

fn new_line(text: &mut Vec<u8>, depth: usize) {
    text.push(b'\n');
    text.resize(text.len() + 2 * depth, b' ');
}

#[cfg(test)]
mod tests {
    use keyward::Json;

    use super::*;

    fn laid_out(json: &str) -> String {
        String::from_utf8(pretty(json.as_bytes())).unwrap()
    }

    #[test]
    fn levels_are_indented_and_empty_ones_stay_closed() {
        assert_eq!(
            laid_out(r#"{"a":[1,{"b":"x"}],"c":{},"d":[]}"#),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x\"\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}"
        );
        assert_eq!(laid_out("12"), "12");
    }

    #[test]
    fn nothing_but_white_space_is_added() {
        for json in [
            r#"{"n":12345678901234567890.000,"t":"a, b: [c] {d} \\\" \u00e9"}"#,
            r#"["\\",["\""],"[","{"]"#,
            r#""{""#,
        ] {
            assert_eq!(Json::parse(laid_out(json)).unwrap().as_str(), json);
        }
    }
}
