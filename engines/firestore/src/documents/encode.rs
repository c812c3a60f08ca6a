//! JSON as Firestore's values: exactly, or not at all.

use std::borrow::Cow;

use keyward_engine::{Error, ErrorKind, Json, Result};
use serde_json::value::RawValue;

use super::ID;
use super::members::{elements, is_number, members, quote, text};

/// How deep maps and arrays may nest.
const DEPTH_MAX: usize = 20;
/// The longest name of a field.
const NAME_BYTES_MAX: usize = 1_500;
/// The longest text or other value of a field.
const TEXT_BYTES_MAX: usize = (1 << 20) - 89;
/// What a document's size has besides its name and its fields.
pub(super) const MORE_BYTES: usize = 32;

/// The member by which Firestore's own JSON tells a vector from a map.
pub(super) const VECTOR_TYPE: &str = "__type__";

/// Fields in Firestore's JSON, and their size as Firestore counts it.
pub(super) struct Encoded {
    text: String,
    pub bytes: usize,
}

impl Encoded {
    pub fn raw(self) -> Result<Box<RawValue>> {
        RawValue::from_string(self.text).map_err(|error| {
            Error::new(ErrorKind::Internal, format!("fields cannot be written: {error}"))
        })
    }
}

/// The fields of a new document, with the one that has its id.
pub(super) fn document(id: &str, fields: &Json) -> Result<Encoded> {
    let mut encoder = Encoder::new();
    encoder.open();
    let mut quoted = String::new();
    quote(id, &mut quoted);
    encoder.member(ID, &quoted)?;
    for (name, json) in members(fields.as_str()).map_err(no_object)? {
        if name != ID {
            encoder.member(&name, json)?;
        }
    }
    Ok(encoder.close())
}

pub(super) fn no_object(error: serde_json::Error) -> Error {
    invalid(format!("a document must be a JSON object: {error}"))
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

/// Writes a tree of fields.
pub(super) struct Encoder {
    out: String,
    bytes: usize,
    /// The names on the way to what is written now.
    path: Vec<String>,
    depth: usize,
    /// Whether a member of the map that is written now stands before the next one.
    follows: bool,
}

impl Encoder {
    pub fn new() -> Self {
        Self { out: String::new(), bytes: 0, path: Vec::new(), depth: 0, follows: false }
    }

    /// Begins the fields.
    pub fn open(&mut self) {
        self.out.push('{');
        self.follows = false;
    }

    /// Ends them.
    pub fn close(mut self) -> Encoded {
        self.out.push('}');
        Encoded { text: self.out, bytes: self.bytes }
    }

    /// Writes a field of the map that was begun last.
    pub fn member(&mut self, name: &str, json: &str) -> Result<()> {
        self.begin(name)?;
        self.value(json)?;
        self.end();
        Ok(())
    }

    /// Begins a field that is a map, of which only some fields follow.
    pub fn open_map(&mut self, name: &str) -> Result<()> {
        self.begin(name)?;
        self.nest()?;
        self.out.push_str(r#"{"mapValue":{"fields":{"#);
        self.follows = false;
        Ok(())
    }

    pub fn close_map(&mut self) {
        self.out.push_str("}}}");
        self.depth -= 1;
        self.end();
    }

    fn begin(&mut self, name: &str) -> Result<()> {
        self.path.push(name.to_owned());
        let is_reserved = name.len() >= 4 && name.starts_with("__") && name.ends_with("__");
        if name.is_empty() || is_reserved || name.len() > NAME_BYTES_MAX {
            return Err(self.refused(match name {
                "" => "an empty name, which Firestore refuses",
                _ if is_reserved => {
                    "a name that begins and ends with __, which Firestore keeps for itself"
                }
                _ => "a name that is longer than 1500 bytes, the longest that Firestore takes",
            }));
        }
        if std::mem::replace(&mut self.follows, true) {
            self.out.push(',');
        }
        quote(name, &mut self.out);
        self.out.push(':');
        self.bytes += name.len() + 1;
        Ok(())
    }

    fn end(&mut self) {
        self.path.pop();
        self.follows = true;
    }

    fn nest(&mut self) -> Result<()> {
        self.depth += 1;
        match self.depth > DEPTH_MAX {
            true => Err(self.refused(
                "arrays and objects nested deeper than 20, the deepest that Firestore takes",
            )),
            false => Ok(()),
        }
    }

    fn value(&mut self, json: &str) -> Result<()> {
        match json.as_bytes().first() {
            Some(b'{') => {
                self.nest()?;
                let members = members(json).map_err(|error| self.garbled(&error))?;
                if let Some(numbers) = vector(&members) {
                    self.vector(&numbers)?;
                    self.depth -= 1;
                    return Ok(());
                }
                self.out.push_str(r#"{"mapValue":{"fields":{"#);
                self.follows = false;
                for (name, json) in members {
                    self.member(&name, json)?;
                }
                self.out.push_str("}}}");
                self.depth -= 1;
            }
            Some(b'[') => {
                self.nest()?;
                self.out.push_str(r#"{"arrayValue":{"values":["#);
                for (n, json) in
                    elements(json).map_err(|error| self.garbled(&error))?.into_iter().enumerate()
                {
                    if n > 0 {
                        self.out.push(',');
                    }
                    self.path.push(n.to_string());
                    if json.starts_with('[') {
                        return Err(
                            self.refused("an array directly in an array, which Firestore refuses")
                        );
                    }
                    self.value(json)?;
                    self.path.pop();
                }
                self.out.push_str("]}}");
                self.depth -= 1;
            }
            Some(b'"') => {
                let text = text(json).map_err(|_| {
                    self.refused(
                        "a text with half of a surrogate pair, which no database of Unicode holds",
                    )
                })?;
                if text.len() > TEXT_BYTES_MAX {
                    let message = format!(
                        "{} has {} bytes of text; Firestore takes {TEXT_BYTES_MAX}",
                        self.place(),
                        text.len()
                    );
                    return Err(Error::new(ErrorKind::LimitExceeded, message));
                }
                self.bytes += text.len() + 1;
                self.out.push_str(r#"{"stringValue":"#);
                self.out.push_str(json);
                self.out.push('}');
            }
            Some(b't' | b'f') => {
                self.bytes += 1;
                self.out.push_str(r#"{"booleanValue":"#);
                self.out.push_str(json);
                self.out.push('}');
            }
            Some(b'n') => {
                self.bytes += 1;
                self.out.push_str(r#"{"nullValue":null}"#);
            }
            _ => self.number(json)?,
        }
        Ok(())
    }

    /// Writes a vector as it is shown: a map of a name that Firestore keeps for itself, and doubles.
    fn vector(&mut self, numbers: &[&str]) -> Result<()> {
        self.out.push_str(r#"{"mapValue":{"fields":{"__type__":{"stringValue":"__vector__"},"#);
        self.out.push_str(r#""value":{"arrayValue":{"values":["#);
        for (n, json) in numbers.iter().enumerate() {
            if n > 0 {
                self.out.push(',');
            }
            match json.contains(['.', 'e', 'E']) {
                true => self.number(json)?,
                false => self.number(&format!("{json}.0"))?,
            }
        }
        self.out.push_str("]}}}}}");
        Ok(())
    }

    fn number(&mut self, json: &str) -> Result<()> {
        self.bytes += 8;
        if !json.contains(['.', 'e', 'E']) {
            let integer: i64 = json.parse().map_err(|_| {
                self.refused(&format!("the integer {json}; Firestore holds integers of 64 bits"))
            })?;
            self.out.push_str(&format!(r#"{{"integerValue":"{integer}"}}"#));
            return Ok(());
        }
        let double = json.parse::<f64>().ok().filter(|double| double.is_finite());
        let exact = double.filter(|double| digits(&format!("{double:?}")) == digits(json));
        let double = exact.ok_or_else(|| {
            self.refused(&format!(
                "the number {json}, which no double holds exactly; Firestore would round it"
            ))
        })?;
        self.out.push_str(&format!(r#"{{"doubleValue":{double:?}}}"#));
        Ok(())
    }

    fn garbled(&self, error: &serde_json::Error) -> Error {
        invalid(format!("{} is not JSON: {error}", self.place()))
    }

    fn refused(&self, what: &str) -> Error {
        invalid(format!("{} has {what}", self.place()))
    }

    fn place(&self) -> String {
        let place: String = self.path.join(".").chars().take(200).collect();
        format!("the field {place:?}")
    }
}

/// The numbers of an object that is shown as vectors are; none if it is not.
fn vector<'j>(members: &[(Cow<'_, str>, &'j str)]) -> Option<Vec<&'j str>> {
    let get = |name: &str| members.iter().find(|(it, _)| it == name).map(|(_, json)| *json);
    let is_vector = members.len() == 2 && get(VECTOR_TYPE) == Some(r#""__vector__""#);
    let numbers = elements(get("value").filter(|_| is_vector)?).ok()?;
    numbers.iter().all(|json| is_number(json)).then_some(numbers)
}

/// A number's sign, its digits from the first that is not zero to the last, and the power of ten that they stand for.
fn digits(number: &str) -> Option<(bool, String, i64)> {
    let (is_negative, plain) =
        number.strip_prefix('-').map_or((false, number), |plain| (true, plain));
    let (decimal, power) = match plain.split_once(['e', 'E']) {
        Some((decimal, power)) => (decimal, power.parse::<i64>().ok()?),
        None => (plain, 0),
    };
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some((false, String::new(), 0));
    }
    let zeros = all.len() - all.trim_end_matches('0').len();
    let power = power.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    Some((is_negative, significant.to_owned(), power.checked_add(i64::try_from(zeros).ok()?)?))
}

/// About how large JSON is in Firestore, also where it stands for a type that JSON does not have.
pub(super) fn size(json: &str) -> usize {
    match json.as_bytes().first() {
        Some(b'{') => {
            let members = members(json).unwrap_or_default();
            members.iter().map(|(name, json)| name.len() + 1 + size(json)).sum()
        }
        Some(b'[') => elements(json).unwrap_or_default().into_iter().map(size).sum(),
        Some(b'"') => text(json).map_or(json.len(), |text| text.len() + 1),
        Some(b't' | b'f' | b'n') => 1,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: &str) -> Result<(String, usize)> {
        let fields = Json::parse(format!(r#"{{"v":{value}}}"#)).unwrap();
        let encoded = document("i", &fields)?;
        let text = encoded.text.strip_prefix(r#"{"_id":{"stringValue":"i"},"v":"#).unwrap();
        Ok((text.strip_suffix('}').unwrap().to_owned(), encoded.bytes))
    }

    #[test]
    fn each_kind_of_json_has_its_type() {
        for (json, expected) in [
            ("null", r#"{"nullValue":null}"#),
            ("true", r#"{"booleanValue":true}"#),
            ("-9223372036854775808", r#"{"integerValue":"-9223372036854775808"}"#),
            ("9223372036854775807", r#"{"integerValue":"9223372036854775807"}"#),
            ("1.10", r#"{"doubleValue":1.1}"#),
            ("1e2", r#"{"doubleValue":100.0}"#),
            ("-0.0", r#"{"doubleValue":-0.0}"#),
            ("5e-324", r#"{"doubleValue":5e-324}"#),
            ("1.7976931348623157e308", r#"{"doubleValue":1.7976931348623157e308}"#),
            (r#""caf\u00e9""#, r#"{"stringValue":"caf\u00e9"}"#),
            ("[]", r#"{"arrayValue":{"values":[]}}"#),
            ("{}", r#"{"mapValue":{"fields":{}}}"#),
            (
                r#"{"__type__":"__vector__","value":[0.5,-1]}"#,
                r#"{"mapValue":{"fields":{"__type__":{"stringValue":"__vector__"},"value":{"arrayValue":{"values":[{"doubleValue":0.5},{"doubleValue":-1.0}]}}}}}"#,
            ),
            (
                r#"[1,{"a":[true],"b":"x"}]"#,
                r#"{"arrayValue":{"values":[{"integerValue":"1"},{"mapValue":{"fields":{"a":{"arrayValue":{"values":[{"booleanValue":true}]}},"b":{"stringValue":"x"}}}}]}}"#,
            ),
        ] {
            assert_eq!(encoded(json).unwrap().0, expected, "{json}");
        }
    }

    #[test]
    fn sizes_are_counted_as_firestore_documents_them() {
        // The example of Firestore's page on sizes: 71 bytes of fields.
        let example = r#"{"type":"Personal","done":false,"priority":1,"description":"Learn Cloud Firestore"}"#;
        let id = "_id".len() + 1 + "my_task_id".len() + 1;
        let fields = document("my_task_id", &Json::parse(example).unwrap()).unwrap();
        assert_eq!(fields.bytes, 71 + id);
        assert_eq!(size(example), 71);
    }

    #[test]
    fn what_cannot_be_held_exactly_is_refused_and_named() {
        let deep = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        assert!(encoded(&deep(20)).is_ok());
        let (too_deep, long) = (deep(21), format!(r#"{{"{}":1}}"#, "x".repeat(1_501)));
        for (json, says) in [
            ("9223372036854775808", "9223372036854775808; Firestore holds integers of 64 bits"),
            ("0.1234567890123456789", "0.1234567890123456789, which no double holds exactly"),
            ("9007199254740993.0", "no double"),
            ("1e400", "no double"),
            ("1e-400", "no double"),
            ("[[1]]", r#"the field "v.0" has an array directly in an array"#),
            (r#"{"a":[1,{"b":[[]]}]}"#, r#""v.a.1.b.0""#),
            (r#"{"":1}"#, "an empty name"),
            (r#"{"__type__":"__vector__","value":["x"]}"#, r#"the field "v.__type__" has a name"#),
            (r#"{"__a__":1}"#, r#"the field "v.__a__" has a name that begins and ends with __"#),
            (too_deep.as_str(), "deeper than 20"),
            (long.as_str(), "longer than 1500 bytes"),
        ] {
            let error = encoded(json).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{json}");
            assert!(error.message().contains(says), "{json}: {error}");
        }
        let half = Json::from_stored(r#"{"v":"\ud800"}"#);
        assert!(document("i", &half).err().unwrap().message().contains("surrogate"));
        let text = format!("\"{}\"", "x".repeat(TEXT_BYTES_MAX + 1));
        assert_eq!(encoded(&text).unwrap_err().kind(), ErrorKind::LimitExceeded);
    }
}
