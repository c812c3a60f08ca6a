//! Conditions on fields, for what no index can tell.

use std::cmp::Ordering;

use keyward_engine::Json;
use keyward_schema::FieldPath;
use serde_json::Value;

use crate::field::{elements, find};
use crate::moment::moment;
use crate::{Error, Result};

/// Conditions that all must hold.
///
/// As JSON, an object of fields: `{"state":"open","votes":{"gte":3},"tags":{"contains":"rust"}}`.
/// The comparisons are `eq`, `ne`, `lt`, `lte`, `gt`, `gte`, `in`, `exists`, `contains` (an array
/// has the element, or a text the part) and `prefix`. Numbers and texts are compared with their own
/// kind only.
///
/// A condition whose value is a [time](crate::moment()) compares moments, whatever fractions and offsets they are
/// written with; a text that is no time is neither before, nor after, nor equal to one. Any other text is compared
/// byte by byte, also with texts that happen to be times.
///
/// ```
/// use keyward_engine::Json;
/// use keyward_records::Filter;
///
/// let filter = Filter::parse(r#"{"state":"open","votes":{"gte":3}}"#)?;
/// assert!(filter.holds(&Json::parse(r#"{"state":"open","votes":7}"#)?));
/// assert!(!filter.holds(&Json::parse(r#"{"state":"open","votes":"7"}"#)?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq)]
struct Condition {
    field: FieldPath,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    Equal(Value),
    NotEqual(Value),
    Compared(Comparison, Value),
    In(Vec<Value>),
    Exists(bool),
    Contains(Value),
    Prefix(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
}

impl Comparison {
    fn accepts(self, order: Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}

/// How many conditions a filter may have, and how many values one of them.
const CONDITIONS_MAX: usize = 64;
const VALUES_MAX: usize = 1_000;

impl Filter {
    /// Reads a filter from its JSON form.
    pub fn parse(json: &str) -> Result<Self> {
        let json = Json::parse(json.to_owned()).map_err(|e| Error::BadQuery(e.to_string()))?;
        let Ok(Value::Object(fields)) = serde_json::from_slice(json.as_bytes()) else {
            return bad("a filter is a JSON object of fields, as in {\"state\":\"open\"}");
        };
        let mut filter = Self::default();
        for (field, wanted) in fields {
            let path: FieldPath =
                field.parse().map_err(|error| Error::BadQuery(format!("{error}")))?;
            match wanted {
                Value::Object(tests) if !tests.is_empty() => {
                    for (name, value) in tests {
                        let test = Test::named(&name, value)?;
                        filter.conditions.push(Condition { field: path.clone(), test });
                    }
                }
                value => {
                    filter.conditions.push(Condition { field: path, test: Test::Equal(value) });
                }
            }
        }
        if filter.conditions.len() > CONDITIONS_MAX {
            return bad(&format!("a filter has at most {CONDITIONS_MAX} conditions"));
        }
        Ok(filter)
    }

    /// The same with one more field that must have a value.
    #[must_use]
    pub fn equal(mut self, field: FieldPath, value: impl Into<Value>) -> Self {
        self.conditions.push(Condition { field, test: Test::Equal(value.into()) });
        self
    }

    /// Whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The fields that are looked at, each as often as there are conditions on it.
    pub fn fields(&self) -> impl Iterator<Item = &FieldPath> {
        self.conditions.iter().map(|condition| &condition.field)
    }

    /// Whether all conditions hold for a value.
    pub fn holds(&self, value: &Json) -> bool {
        self.conditions.iter().all(|condition| {
            let text = find(value.as_bytes(), &condition.field);
            condition.test.holds(text.and_then(|text| std::str::from_utf8(text).ok()))
        })
    }

    /// What a field is tested for.
    pub(super) fn tests(&self, field: &FieldPath) -> impl Iterator<Item = &Test> {
        let of_field = self.conditions.iter().filter(move |condition| condition.field == *field);
        of_field.map(|condition| &condition.test)
    }

    /// What tells this filter from others.
    pub(crate) fn fingerprint(&self) -> String {
        format!("{:?}", self.conditions)
    }
}

fn bad<T>(message: &str) -> Result<T> {
    Err(Error::BadQuery(message.to_owned()))
}

impl Test {
    fn named(name: &str, value: Value) -> Result<Self> {
        Ok(match (name, value) {
            ("eq", value) => Self::Equal(value),
            ("ne", value) => Self::NotEqual(value),
            ("lt", value) => Self::Compared(Comparison::Less, value),
            ("lte", value) => Self::Compared(Comparison::AtMost, value),
            ("gt", value) => Self::Compared(Comparison::More, value),
            ("gte", value) => Self::Compared(Comparison::AtLeast, value),
            ("in", Value::Array(values)) if values.len() <= VALUES_MAX => Self::In(values),
            ("in", _) => {
                return bad(&format!("\"in\" takes an array of at most {VALUES_MAX} values"));
            }
            ("exists", Value::Bool(there)) => Self::Exists(there),
            ("exists", _) => return bad("\"exists\" takes true or false"),
            ("contains", value) => Self::Contains(value),
            ("prefix", Value::String(prefix)) => Self::Prefix(prefix),
            ("prefix", _) => return bad("\"prefix\" takes text"),
            (other, _) => {
                return bad(&format!(
                    "there is no comparison {other:?}; there are eq, ne, lt, lte, gt, gte, in, \
                     exists, contains and prefix"
                ));
            }
        })
    }

    fn holds(&self, text: Option<&str>) -> bool {
        let parsed = || -> Option<Value> { serde_json::from_str(text?).ok() };
        match self {
            Self::Exists(there) => text.is_some() == *there,
            Self::Equal(wanted) => parsed().is_some_and(|value| same(&value, wanted)),
            Self::NotEqual(unwanted) => !parsed().is_some_and(|value| same(&value, unwanted)),
            Self::Compared(comparison, limit) => parsed()
                .and_then(|value| compare(&value, limit))
                .is_some_and(|order| comparison.accepts(order)),
            Self::In(wanted) => {
                parsed().is_some_and(|value| wanted.iter().any(|one| same(&value, one)))
            }
            Self::Contains(wanted) => match (text.and_then(elements), parsed(), wanted) {
                (Some(elements), _, wanted) => elements.iter().any(|element| {
                    serde_json::from_str(element).is_ok_and(|value: Value| same(&value, wanted))
                }),
                (None, Some(Value::String(text)), Value::String(part)) => text.contains(part),
                _ => false,
            },
            Self::Prefix(prefix) => {
                matches!(parsed(), Some(Value::String(text)) if text.starts_with(prefix))
            }
        }
    }
}

/// Equal, where 1 and 1.0 are the same number.
fn same(one: &Value, other: &Value) -> bool {
    one == other || compare(one, other) == Some(Ordering::Equal)
}

/// The order of a number, text or truth value and the limit it is compared with; `None` for anything else.
fn compare(one: &Value, limit: &Value) -> Option<Ordering> {
    match (one, limit) {
        (Value::Number(a), Value::Number(b)) => {
            let whole = |n: &serde_json::Number| {
                n.as_i64().map(i128::from).or_else(|| n.as_u64().map(i128::from))
            };
            match (whole(a), whole(b)) {
                (Some(a), Some(b)) => Some(a.cmp(&b)),
                _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
            }
        }
        // The limit decides: a time has an order among times, which is that of an index of times, and any other
        // text one among all texts, which is that of an index of texts.
        (Value::String(a), Value::String(b)) => match moment(b) {
            Some(b) => Some(moment(a)?.cmp(&b)),
            None => Some(a.cmp(b)),
        },
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_compared_as_moments() {
        let value =
            Json::parse(r#"{"at":"2026-01-05T09:00:00.5+01:00","day":"2026-01-05"}"#).unwrap();
        let holds = |filter: &str| Filter::parse(filter).unwrap().holds(&value);
        for yes in [
            r#"{"at":"2026-01-05T08:00:00.500Z"}"#,
            r#"{"at":{"gte":"2026-01-05T08:00:00Z"}}"#,
            r#"{"at":{"lt":"2026-01-05T08:00:01Z","gt":"2026-01-05T08:00:00.499999Z"}}"#,
            r#"{"at":{"in":["2026-01-05T08:00:00.5Z"]}}"#,
            r#"{"at":{"ne":"2026-01-05T09:00:00.5Z"}}"#,
            r#"{"at":{"prefix":"2026-01-05T09"}}"#,
            r#"{"day":{"lt":"2026-01-06","gte":"2026-01-05"}}"#,
        ] {
            assert!(holds(yes), "{yes}");
        }
        assert!(!holds(r#"{"at":{"gte":"2026-01-05T08:30:00Z"}}"#));
    }

    #[test]
    fn times_without_an_offset_are_in_utc_and_a_date_is_its_midnight() {
        let value = r#"{"civil":"2026-01-05T08:00","day":"2026-01-05","late":"2026-01-04T23:30:00-05:00",
            "text":"2026-01-05, noon","number":"20260105"}"#;
        let value = Json::parse(value).unwrap();
        let holds = |filter: &str| Filter::parse(filter).unwrap().holds(&value);
        for yes in [
            r#"{"civil":"2026-01-05T08:00:00Z"}"#,
            r#"{"civil":"2026-01-05 09:00:00+01:00"}"#,
            r#"{"civil":{"gt":"2026-01-05T08:30:00+01:00","lt":"2026-01-05T08:00:00.001"}}"#,
            r#"{"civil":{"gte":"2026-01-05","lt":"2026-01-06"}}"#,
            r#"{"day":"2026-01-05T00:00:00Z"}"#,
            r#"{"day":{"lt":"2026-01-05T00:00:01"}}"#,
            // As text it is before that day.
            r#"{"late":{"gt":"2026-01-05"}}"#,
            // No time is before or after a text that is none.
            r#"{"text":{"ne":"2026-01-05"}}"#,
            r#"{"text":{"gt":"2026-01-05,"}}"#,
            r#"{"number":{"gt":"2026","lt":"2027"}}"#,
            r#"{"day":{"gt":"2026-01"}}"#,
        ] {
            assert!(holds(yes), "{yes}");
        }
        for no in [
            r#"{"text":{"gt":"2026-01-05"}}"#,
            r#"{"text":{"lte":"2026-01-05"}}"#,
            r#"{"text":"2026-01-05"}"#,
            r#"{"number":"2026-01-05"}"#,
        ] {
            assert!(!holds(no), "{no}");
        }
    }

    #[test]
    fn each_comparison_does_what_it_says() {
        let value = r#"{"n":5,"big":18446744073709551615,"t":"caf\u00e9","a":["x",1],"z":null,"o":{"p":true}}"#;
        let value = Json::parse(value).unwrap();
        let holds = |filter: &str| Filter::parse(filter).unwrap().holds(&value);
        for yes in [
            r#"{}"#,
            r#"{"n":5}"#,
            r#"{"n":5.0}"#,
            r#"{"n":{"gt":4,"lte":5}}"#,
            r#"{"big":{"gt":18446744073709551614}}"#,
            r#"{"t":"café"}"#,
            r#"{"t":{"prefix":"ca","gte":"b"}}"#,
            r#"{"t":{"contains":"af"}}"#,
            r#"{"a":{"contains":"x"}}"#,
            r#"{"a":{"contains":1.0}}"#,
            r#"{"z":null}"#,
            r#"{"z":{"exists":true}}"#,
            r#"{"y":{"exists":false}}"#,
            r#"{"y":{"ne":1}}"#,
            r#"{"o.p":true}"#,
            r#"{"n":{"in":[1,5]}}"#,
        ] {
            assert!(holds(yes), "{yes}");
        }
        for no in [
            r#"{"n":"5"}"#,
            r#"{"n":{"gt":5}}"#,
            r#"{"n":{"gt":"4"}}"#,
            r#"{"y":1}"#,
            r#"{"z":{"exists":false}}"#,
            r#"{"a":{"contains":"y"}}"#,
            r#"{"n":{"prefix":"5"}}"#,
            r#"{"n":{"in":[]}}"#,
            r#"{"n":5,"t":"x"}"#,
        ] {
            assert!(!holds(no), "{no}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for filter in [
            "",
            "[]",
            "1",
            r#"{"a":{"near":1}}"#,
            r#"{"a":{"in":1}}"#,
            r#"{"":1}"#,
            r#"{"a":1,"a":2}"#,
        ] {
            assert!(Filter::parse(filter).is_err(), "{filter}");
        }
    }

    #[test]
    fn filters_that_differ_have_other_fingerprints() {
        let print = |filter: &str| Filter::parse(filter).unwrap().fingerprint();
        let filters = [
            r#"{"a":1}"#,
            r#"{"a":{"lt":1}}"#,
            r#"{"a":{"lte":1}}"#,
            r#"{"a":{"ne":1}}"#,
            r#"{"a":{"in":[1]}}"#,
            r#"{"a":{"contains":1}}"#,
        ];
        for (n, one) in filters.iter().enumerate() {
            for other in &filters[n + 1..] {
                assert_ne!(print(one), print(other));
            }
        }
    }
}
