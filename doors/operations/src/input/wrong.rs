//! Errors of requests, in plain words.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

/// An error of a request: what is wrong, and what would be right.
#[derive(Debug)]
pub struct Wrong {
    pub(super) message: String,
    /// Whether the message says which field it is about.
    named: bool,
}

impl Wrong {
    pub(super) fn said(message: String) -> Self {
        Self { message, named: false }
    }

    pub(super) fn named(message: String) -> Self {
        Self { message, named: true }
    }

    pub(super) fn of(self, field: &str) -> Self {
        match self.named {
            true => self,
            false => Self::named(format!("{field} {}", self.message)),
        }
    }

    /// What a JSON library says, in plain words.
    pub(super) fn of_json(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or_default();
        let kinds = ["invalid type: ", "invalid value: "];
        let told = kinds.into_iter().find_map(|kind| {
            let (found, expected) = text.strip_prefix(kind)?.rsplit_once(", expected ")?;
            Some(format!("must be {}, not {}", plain(expected), found.replace('`', "")))
        });
        let quoted = |text: &str| text.replace('`', "\"");
        Self::said(told.unwrap_or_else(|| match text.strip_prefix("missing field ") {
            Some(field) => format!("lacks the member {}", quoted(field)),
            None if text.starts_with("unknown ") => format!("has an {}", quoted(text)),
            None => text.to_owned(),
        }))
    }
}

/// What is expected, in plain words.
fn plain(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" | "isize" => "a whole number",
        "nonzero" | "a nonzero usize" | "a nonzero u64" | "a nonzero u32" => "at least 1",
        "f32" | "f64" => "a number",
        "bool" | "a boolean" => "true or false",
        "a string" | "string" | "str" => "a text",
        "a sequence" | "sequence" => "a list",
        "a map" | "map" => "an object",
        other => other,
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::said(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        Self::said(format!("must be {}, not {}", plain(&expected), shown(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::said(format!("must be one of {}, not {variant:?}", expected.join(", ")))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let known = expected.join(", ");
        Self::named(format!("there is no parameter called {field:?}; the parameters are: {known}"))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::named(format!("{field} is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::named(format!("{field} is given twice"))
    }
}

fn shown(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(text) => format!("{text:?}"),
        Unexpected::Bool(flag) => flag.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        other => other.to_string(),
    }
}
