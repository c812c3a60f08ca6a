//! Metadata as Workers KV keeps it: an object that is read and written again on its way, so that its text may change.

use jiff::Timestamp;
use keyward_engine::Json;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The only member of metadata that says more than an object can.
const OURS: &str = "keyward";
/// The member that says that a value is text without the quotes of JSON. It stands last, and is shown and taken here
/// only: the value itself tells.
const TEXT: &str = r#""keyward:text":true}"#;
/// As many digits as a number has that any program writes again as it was.
const DIGITS_MAX: usize = 15;

/// What belongs beside a value.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Beside {
    pub metadata: Option<Json>,
    /// The entry's end, if the pair's own expiration is later.
    pub ends: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapped {
    keyward: Ours,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ours {
    /// The exact text of the metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<String>,
    /// The end, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends: Option<i64>,
}

impl Beside {
    /// The metadata to put: the object itself wherever that keeps all.
    pub fn to_stored(&self) -> Option<String> {
        let metadata = self.metadata.as_ref().map(Json::as_str);
        match (metadata, self.ends) {
            (None, None) => None,
            (Some(text), None) if is_plain(text) => Some(text.to_owned()),
            (metadata, ends) => {
                let metadata = metadata.map(str::to_owned);
                let ours = Ours { metadata, ends: ends.map(Timestamp::as_second) };
                // Two optional fields of text and number are always JSON.
                serde_json::to_string(&Wrapped { keyward: ours }).ok()
            }
        }
    }

    /// Reads stored metadata. What is no object is another program's, and not shown.
    pub fn read(stored: Option<&RawValue>) -> Self {
        let parsed = stored.and_then(|stored| Json::parse(stored.get().to_owned()).ok());
        let Some(json) = parsed.filter(Json::is_object) else { return Self::default() };
        if let Ok(Wrapped { keyward: ours }) = serde_json::from_slice(json.as_bytes()) {
            let metadata = ours.metadata.map(Json::parse);
            let ends = ours.ends.map(Timestamp::from_second);
            if let (Ok(metadata), Ok(ends)) = (metadata.transpose(), ends.transpose()) {
                return Self { metadata, ends };
            }
        }
        let text = Token::all(json.as_str()).map(|token| token.written_again()).collect::<String>();
        Self { metadata: Some(Json::from_stored(text)), ends: None }
    }
}

/// Metadata of a value that is text without quotes, as it is shown.
pub(crate) fn of_text(metadata: Option<Json>) -> Json {
    let start = match metadata.as_ref().map_or("{}", Json::as_str) {
        "{}" => "{".to_owned(),
        object => format!("{},", object.strip_suffix('}').unwrap_or(object)),
    };
    Json::from_stored(format!("{start}{TEXT}"))
}

/// What is left of metadata that asks for text without quotes; `None` if it does not.
pub(crate) fn asking_for_text(metadata: Option<&Json>) -> Option<Option<Json>> {
    let start = metadata?.as_str().strip_suffix(TEXT)?;
    match start.strip_suffix(',') {
        None => (start == "{").then_some(None),
        Some(members) => Some(Some(Json::from_stored(format!("{members}}}")))),
    }
}

/// Whether every program that reads and writes this object gives the same text.
fn is_plain(text: &str) -> bool {
    let is_ours = text.starts_with(&format!("{{\"{OURS}\":"));
    !is_ours && Token::all(text).all(|token| token.is_plain())
}

/// A part of JSON text without white space.
enum Token<'t> {
    /// With its quotes.
    Text {
        raw: &'t str,
        is_name: bool,
    },
    Number(&'t str),
    Other(&'t str),
}

impl<'t> Token<'t> {
    fn all(text: &'t str) -> impl Iterator<Item = Self> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let bytes = rest.as_bytes();
            let length = match bytes.first()? {
                b'"' => end_of_string(bytes),
                b'-' | b'0'..=b'9' => {
                    bytes.iter().position(|byte| b",]}".contains(byte)).unwrap_or(bytes.len())
                }
                _ => 1,
            };
            let (token, after) = rest.split_at(length);
            rest = after;
            Some(match bytes[0] {
                b'"' => Self::Text { raw: token, is_name: after.starts_with(':') },
                b'-' | b'0'..=b'9' => Self::Number(token),
                _ => Self::Other(token),
            })
        })
    }

    fn is_plain(&self) -> bool {
        match self {
            Self::Text { raw, is_name } => {
                // Names that are numbers change places.
                let is_number = raw[1..raw.len() - 1].bytes().all(|byte| byte.is_ascii_digit());
                written_again(raw).as_deref() == Some(raw) && !(*is_name && is_number)
            }
            Self::Number(number) => is_plain_number(number),
            Self::Other(_) => true,
        }
    }

    /// With escapes only where they must be: other programs escape more.
    fn written_again(&self) -> String {
        match self {
            Self::Text { raw, .. } => written_again(raw).unwrap_or_else(|| (*raw).to_owned()),
            Self::Number(text) | Self::Other(text) => (*text).to_owned(),
        }
    }
}

fn end_of_string(bytes: &[u8]) -> usize {
    let mut is_escaped = false;
    for (at, byte) in bytes.iter().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    bytes.len()
}

fn written_again(raw: &str) -> Option<String> {
    let text: String = serde_json::from_str(raw).ok()?;
    serde_json::to_string(&text).ok()
}

/// A number that has one text only: few digits, none of them needless, no exponent.
fn is_plain_number(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "1"));
    let is_small = digits.len() <= DIGITS_MAX && number != "-0";
    let is_decimal = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    // Below a millionth, numbers are written with an exponent.
    let is_tiny = whole == "0" && part.starts_with("00000");
    is_small && is_decimal && !part.ends_with('0') && !is_tiny
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(text: &str) -> String {
        let metadata = Some(Json::parse(text.to_owned()).unwrap());
        Beside { metadata, ends: None }.to_stored().unwrap()
    }

    fn read(text: &str) -> Beside {
        Beside::read(Some(&RawValue::from_string(text.to_owned()).unwrap()))
    }

    #[test]
    fn ordinary_metadata_is_the_object_itself() {
        for text in [
            "{}",
            r#"{"source":"git","n":12,"x":-0.25,"zero":0}"#,
            r#"{"학":"é","deep":{"a":[1,{"b":null}],"t":true}}"#,
            r#"{"quote":"\" \\ \n","one":"1"}"#,
        ] {
            assert_eq!(stored(text), text);
            assert_eq!(read(text).metadata.unwrap().as_str(), text);
        }
    }

    #[test]
    fn what_would_change_on_its_way_is_kept_as_text() {
        for text in [
            r#"{"size":1.50}"#,
            r#"{"n":1e5}"#,
            r#"{"n":-0}"#,
            r#"{"n":9007199254740993}"#,
            r#"{"n":0.0000001}"#,
            r#"{"b":1,"7":2}"#,
            r#"{"slash":"\/"}"#,
            r#"{"e":"\u00e9"}"#,
            r#"{"keyward":{"ends":1}}"#,
            r#"{"keyward":{}}"#,
        ] {
            let stored = stored(text);
            assert!(stored.starts_with(r#"{"keyward":{"metadata":"#), "{stored}");
            assert_eq!(read(&stored).metadata.unwrap().as_str(), text);
        }
    }

    #[test]
    fn the_form_of_a_text_is_shown_beside_other_metadata() {
        for (stored, shown) in [
            (None, r#"{"keyward:text":true}"#),
            (Some(r#"{"by":"worker"}"#), r#"{"by":"worker","keyward:text":true}"#),
        ] {
            let stored = stored.map(Json::from_stored);
            let json = of_text(stored.clone());
            assert_eq!(json.as_str(), shown);
            assert_eq!(asking_for_text(Some(&json)), Some(stored));
        }
        for other in [r#"{"keyward:text":false}"#, r#"{"a":{"keyward:text":true}}"#, r#"{"x":1}"#] {
            assert_eq!(asking_for_text(Some(&Json::from_stored(other))), None, "{other}");
        }
        assert_eq!(asking_for_text(None), None);
    }

    #[test]
    fn an_end_is_kept_with_metadata_and_without() {
        let ends = Some(Timestamp::from_second(1_767_225_660).unwrap());
        for metadata in [None, Some(Json::from_stored(r#"{"a":1}"#))] {
            let beside = Beside { metadata, ends };
            assert_eq!(read(&beside.to_stored().unwrap()), beside);
        }
        assert_eq!(Beside::default().to_stored(), None);
    }

    #[test]
    fn metadata_of_other_programs_is_read_as_far_as_it_is_an_object() {
        assert_eq!(
            read(r#"{ "a": "\u003cb\u003e \u00e9" }"#).metadata.unwrap().as_str(),
            r#"{"a":"<b> é"}"#
        );
        assert_eq!(
            read(r#"{"keyward":"ours?"}"#).metadata.unwrap().as_str(),
            r#"{"keyward":"ours?"}"#
        );
        for text in ["null", "1", "\"text\"", "[1]"] {
            assert_eq!(read(text), Beside::default());
        }
        assert_eq!(Beside::read(None), Beside::default());
    }
}
