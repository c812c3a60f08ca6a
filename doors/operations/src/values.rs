//! The values of a key's variables, as a client gives them.

use std::collections::BTreeMap;

use keyward::{Bindings, Code, Pattern, Prefix, SegmentType, SegmentValue, Variable};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::problem::{Problem, Result};

/// The values of a key's variables by their names: texts, numbers, times as RFC 3339 text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Values(BTreeMap<String, Value>);

impl Values {
    /// What a pattern's keys are built from.
    pub fn bindings(&self, pattern: &Pattern) -> Result<Bindings> {
        let mut bound = Bindings::new();
        for (name, given) in &self.0 {
            let Some(variable) = pattern.variables().find(|variable| variable.name == *name) else {
                return Err(mismatch(pattern, format!("there is no variable called {name:?}")));
            };
            let text = match given {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) if variable.kind == SegmentType::U64 => {
                    Some(number.to_string())
                }
                _ => None,
            };
            let Some(value) = text.and_then(|text| read(variable, &text)) else {
                let detail = format!("{name} must be {}, not {given}", variable.kind);
                return Err(mismatch(pattern, detail));
            };
            bound = bound.with(name, value);
        }
        Ok(bound)
    }
}

/// The values of the leading variables that stand in a prefix of keys of a pattern.
pub fn leading(pattern: &Pattern, prefix: &Prefix) -> Result<Bindings> {
    let outside = || mismatch(pattern, format!("no key below {prefix} belongs to the space"));
    let given: Vec<String> = prefix.segments().map(|it| it.into_owned()).collect();
    let mut values = Bindings::new();
    let mut variables = pattern.variables();
    // How many segments of what is given have been read.
    let mut read_to = 0;
    loop {
        // What stands before the next variable.
        let known =
            pattern.prefix(&values).map_err(|error| mismatch(pattern, error.to_string()))?;
        if known.segments().zip(&given).any(|(known, given)| known != given.as_str()) {
            return Err(outside());
        }
        let Some(text) = given.get(read_to.max(known.depth())) else { return Ok(values) };
        let variable = variables.next().ok_or_else(outside)?;
        let value = read(variable, text).ok_or_else(outside)?;
        // As it stands in keys, and not otherwise.
        if variable.kind.write(&value).as_ref() != Ok(text) {
            return Err(outside());
        }
        values = values.with(&variable.name, value);
        read_to = known.depth() + 1;
    }
}

fn read(variable: &Variable, text: &str) -> Option<SegmentValue> {
    match variable.kind {
        SegmentType::Text => Some(SegmentValue::Text(text.to_owned())),
        SegmentType::U64 => text.parse().ok().map(SegmentValue::U64),
        SegmentType::Time => text.parse().ok().map(SegmentValue::Time),
    }
}

fn mismatch(pattern: &Pattern, detail: String) -> Problem {
    Problem::new(Code::KeyMismatch, detail)
        .hint(format!("The keys of this space have the form {pattern}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "log:{app}:at:{at:time}:{n:u64}";

    fn below(pattern: &str, prefix: &str) -> Option<Bindings> {
        let pattern = Pattern::parse(pattern).unwrap();
        leading(&pattern, &Prefix::parse(prefix).unwrap()).ok()
    }

    #[test]
    fn a_prefix_gives_the_leading_values() {
        let app = Bindings::new().with("app", "a:b");
        assert_eq!(below(LOG, ""), Some(Bindings::new()));
        assert_eq!(below(LOG, "log:"), Some(Bindings::new()));
        assert_eq!(below(LOG, "log:a%3Ab:"), Some(app.clone()));
        assert_eq!(below(LOG, "log:a%3Ab:at:"), Some(app));
        let at = below(LOG, "log:x:at:20260101T000000.000000000Z:").unwrap();
        assert_eq!(at.get("at").unwrap().to_string(), "2026-01-01T00:00:00Z");
        let person = below("user:{user}", "user:ada:");
        assert_eq!(person, Some(Bindings::new().with("user", "ada")));
        assert_eq!(below("user:{user}", "user:ada:more:"), None);
        let with_optional = below("{page}:policy:{source}[:{language}]", "p1:policy:s:").unwrap();
        assert_eq!((with_optional.text("page"), with_optional.len()), (Some("p1"), 2));
    }

    #[test]
    fn a_prefix_of_other_keys_is_refused() {
        for other in [
            "lag:",
            "log:x:on:",
            "log:x:at:2026-01-01T00%3A00%3A00Z:",
            "log:x:at:20260101T000000.000000000Z:7:",
            "log:x:at:20260101T000000.000000000Z:00000000000000000007:more:",
        ] {
            assert_eq!(below(LOG, other), None, "{other}");
        }
    }

    #[test]
    fn values_are_read_as_their_variable_says() {
        let pattern = Pattern::parse(LOG).unwrap();
        let read = |json: &str| serde_json::from_str::<Values>(json).unwrap().bindings(&pattern);
        let values = read(r#"{"app":"a:b","n":18446744073709551615,"at":"2026-01-01T00:00:00Z"}"#);
        assert_eq!(
            pattern.build(&values.unwrap()).unwrap().to_string(),
            "log:a%3Ab:at:20260101T000000.000000000Z:18446744073709551615"
        );
        for wrong in
            [r#"{"app":1}"#, r#"{"n":-1}"#, r#"{"n":1.5}"#, r#"{"at":"now"}"#, r#"{"x":""}"#]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
