use std::collections::HashSet;
use std::fmt;

use bytes::Bytes;
use jiter::{Jiter, Peek};
use serde::Serialize;

/// JSON text, valid and without white space between its tokens.
///
/// Validated once, when it is made: UTF-8, grammar, nesting at most [`Json::DEPTH_MAX`], no name
/// twice in one object. Digits, escapes and the order of names stay as they were written, so a
/// number of forty digits comes back with forty digits. Reading it back parses nothing.
///
/// ```
/// use keyward_engine::Json;
///
/// let json = Json::parse(r#"{ "n": 12345678901234567890123, "t": "a b" }"#)?;
/// assert_eq!(json.as_str(), r#"{"n":12345678901234567890123,"t":"a b"}"#);
/// assert!(Json::parse(r#"{"a":1,"a":2}"#).is_err());
/// # Ok::<(), keyward_engine::JsonError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Bytes);

/// A text that is not JSON, or not JSON that can be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not storable as JSON: {message} at byte {offset}")]
pub struct JsonError {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes from the start.
    pub offset: usize,
}

impl Json {
    /// How deep arrays and objects may nest.
    pub const DEPTH_MAX: usize = 64;

    /// Validates JSON text.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, JsonError> {
        let text = text.into();
        if let Err(error) = std::str::from_utf8(&text) {
            return Err(JsonError {
                message: "invalid UTF-8".to_owned(),
                offset: error.valid_up_to(),
            });
        }
        Validator { jiter: Jiter::new(&text) }.document()?;
        Ok(Self(compact(text)))
    }

    /// Takes text that was validated before it was stored: for engines reading back.
    pub fn from_stored(text: impl Into<Bytes>) -> Self {
        Self(text.into())
    }

    /// The JSON of a value that can be serialized.
    pub fn from_value<T: Serialize + ?Sized>(value: &T) -> Result<Self, JsonError> {
        let text = serde_json::to_vec(value)
            .map_err(|error| JsonError { message: error.to_string(), offset: 0 })?;
        Self::parse(text)
    }

    /// The JSON of a whole number.
    pub fn from_integer(number: i64) -> Self {
        Self(number.to_string().into())
    }

    /// The number, if this is a whole number that fits.
    pub fn as_integer(&self) -> Option<i64> {
        self.as_str().parse().ok()
    }

    /// What adding to a stored number gives: the rule of [`Write::Add`](crate::Write::Add), for
    /// engines. An absent number counts as zero.
    pub fn sum(old: Option<&Self>, amount: i64) -> Result<i64, &'static str> {
        let old = match old {
            None => 0,
            Some(old) => old.as_integer().ok_or("it does not hold a whole number of 64 bits")?,
        };
        old.checked_add(amount).ok_or("the sum does not fit 64 bits")
    }

    /// Whether this is an object.
    pub fn is_object(&self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// The text as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text as bytes, shared rather than copied.
    pub fn to_bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// The text. A damaged store may hold bytes that are not UTF-8; they show as an empty text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The size of the text in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the text is empty, which valid JSON never is.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({self})")
    }
}

struct Validator<'j> {
    jiter: Jiter<'j>,
}

impl Validator<'_> {
    fn document(&mut self) -> Result<(), JsonError> {
        let peek = self.jiter.peek().map_err(|error| grammar(&error))?;
        self.value(peek, 0)?;
        self.jiter.finish().map_err(|error| grammar(&error))
    }

    fn value(&mut self, peek: Peek, depth: usize) -> Result<(), JsonError> {
        match peek {
            Peek::Array | Peek::Object if depth == Json::DEPTH_MAX => {
                Err(self.error(format!("nested deeper than {}", Json::DEPTH_MAX)))
            }
            Peek::Array => self.array(depth + 1),
            Peek::Object => self.object(depth + 1),
            Peek::String => self.jiter.known_str().map(drop).map_err(|error| grammar(&error)),
            Peek::True | Peek::False => {
                self.jiter.known_bool(peek).map(drop).map_err(|error| grammar(&error))
            }
            Peek::Null => self.jiter.known_null().map_err(|error| grammar(&error)),
            // Only the grammar is checked: a number may have any size and any number of digits.
            _ => self.jiter.known_number_bytes(peek).map(drop).map_err(|error| grammar(&error)),
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), JsonError> {
        let mut next = self.jiter.known_array().map_err(|error| grammar(&error))?;
        while let Some(peek) = next {
            self.value(peek, depth)?;
            next = self.jiter.array_step().map_err(|error| grammar(&error))?;
        }
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), JsonError> {
        let mut names = Names::default();
        let mut next = own(self.jiter.known_object())?;
        while let Some(name) = next {
            if let Err(name) = names.add(name) {
                return Err(self.error(format!("the name {name:?} stands twice in one object")));
            }
            let peek = self.jiter.peek().map_err(|error| grammar(&error))?;
            self.value(peek, depth)?;
            next = own(self.jiter.next_key())?;
        }
        Ok(())
    }

    fn error(&self, message: String) -> JsonError {
        JsonError { message, offset: self.jiter.current_index() }
    }
}

fn own(name: Result<Option<&str>, jiter::JiterError>) -> Result<Option<String>, JsonError> {
    name.map(|name| name.map(str::to_owned)).map_err(|error| grammar(&error))
}

fn grammar(error: &jiter::JiterError) -> JsonError {
    JsonError { message: error.error_type.to_string(), offset: error.index }
}

/// The names of one object: few are compared one by one, many are hashed.
#[derive(Default)]
struct Names {
    few: Vec<String>,
    many: HashSet<String>,
}

impl Names {
    const FEW: usize = 16;

    fn add(&mut self, name: String) -> Result<(), String> {
        if self.few.contains(&name) || self.many.contains(&name) {
            return Err(name);
        }
        if self.few.len() < Self::FEW {
            self.few.push(name);
        } else {
            self.many.insert(name);
        }
        Ok(())
    }
}

/// Drops white space between tokens, copying only when there is some.
fn compact(text: Bytes) -> Bytes {
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    if !text.iter().any(|&byte| is_space(byte)) {
        return text;
    }
    let mut kept = Vec::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    for &byte in &text {
        if in_string {
            (in_string, escaped) = match byte {
                _ if escaped => (true, false),
                b'\\' => (true, true),
                b'"' => (false, false),
                _ => (true, false),
            };
        } else if is_space(byte) {
            continue;
        } else {
            in_string = byte == b'"';
        }
        kept.push(byte);
    }
    if kept.len() == text.len() { text } else { kept.into() }
}
