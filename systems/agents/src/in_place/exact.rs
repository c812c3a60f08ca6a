//! What the databases hold exactly. Their adapters refuse the rest when it is written; by these rules a plan says so
//! before anything is sent.

use keyward_engine::{Capabilities, Error, ErrorKind, Json, Result};
use keyward_records::field::{elements, members};

use super::place::Address;
use super::{id_bytes_max, swapping};
use crate::decimal::Decimal;
use crate::document::Document;

/// Refuses a document that the database of a store with `layout=document` would refuse.
pub(crate) fn admit(document: &Document, capabilities: &Capabilities) -> Result<()> {
    let address = Address {
        user: document.id.user.clone(),
        namespace: document.id.namespace.clone(),
        key: document.id.key.clone(),
    };
    address.admit_write()?;
    let (id, id_bytes_max) = (address.id(), id_bytes_max(&capabilities.limits));
    if id.len() > id_bytes_max {
        return Err(swapping::long_id(&id, id_bytes_max));
    }
    if let Some(problem) = id_problem(capabilities.engine, &id) {
        let message = format!("the document id {id:?} {problem}");
        return Err(Error::new(ErrorKind::Invalid, message)
            .advise("Use another user id or namespace, or another database."));
    }
    let metadata = document.metadata.as_ref();
    let bytes = document.value.len() + metadata.map_or(0, Json::len);
    let bytes_max = capabilities.limits.value_bytes_max;
    if bytes > bytes_max {
        let message = format!("the entry is {bytes} bytes large; the database takes {bytes_max}");
        return Err(Error::new(ErrorKind::LimitExceeded, message));
    }
    let Some(rules) = Rules::of(capabilities.engine) else { return Ok(()) };
    for (field, json) in [("value", Some(&document.value)), ("metadata", metadata)] {
        let json = json.map_or("null", Json::as_str);
        rules.check(json, 0, false).map_err(|what| {
            let engine = capabilities.engine;
            let message =
                format!("{engine} cannot hold the field {field:?} exactly: it has {what}");
            Error::new(ErrorKind::Invalid, message)
        })?;
    }
    Ok(())
}

/// Why a database takes no document with this id, if it does not. Ids of the layout are never empty, `.` or `..`, and never
/// end with `__`: base64 does only after a byte that UTF-8 does not have.
fn id_problem(engine: &str, id: &str) -> Option<&'static str> {
    match engine {
        "couchdb" if id.starts_with('_') => {
            Some("begins with _, which CouchDB keeps for its own documents")
        }
        "firestore" if id.contains('/') => Some("has a slash, which Firestore refuses in ids"),
        _ => None,
    }
}

/// What a database holds.
struct Rules {
    holds_number: fn(&str) -> bool,
    /// How deep arrays and objects nest.
    depth_max: usize,
    arrays_in_arrays: bool,
    holds_name: fn(&str) -> bool,
}

impl Rules {
    fn of(engine: &str) -> Option<Self> {
        match engine {
            "couchdb" => Some(Self {
                holds_number: |text| is_plain(text) || is_double(text),
                depth_max: usize::MAX,
                arrays_in_arrays: true,
                holds_name: |_| true,
            }),
            "dynamodb" => Some(Self {
                holds_number: is_dynamodb_number,
                depth_max: 31,
                arrays_in_arrays: true,
                holds_name: |name| !name.is_empty(),
            }),
            "firestore" => Some(Self {
                holds_number: |text| match is_plain(text) {
                    true => text.parse::<i64>().is_ok(),
                    false => is_double(text),
                },
                depth_max: 20,
                arrays_in_arrays: false,
                holds_name: |name| {
                    let is_reserved =
                        name.len() >= 4 && name.starts_with("__") && name.ends_with("__");
                    !name.is_empty() && !is_reserved && name.len() <= 1_500
                },
            }),
            _ => None,
        }
    }

    /// What in JSON text the database does not hold.
    fn check(&self, json: &str, depth: usize, in_array: bool) -> Result<(), String> {
        let begins = json.as_bytes().first();
        if matches!(begins, Some(b'{' | b'[')) && depth >= self.depth_max {
            return Err(format!("a nesting of more than {} levels", self.depth_max));
        }
        match begins {
            Some(b'{') => {
                for (name, json) in members(json).unwrap_or_default() {
                    if !(self.holds_name)(&name) {
                        return Err(format!("the name {name:?}"));
                    }
                    self.check(json, depth + 1, false)?;
                }
            }
            Some(b'[') if in_array && !self.arrays_in_arrays => {
                return Err("an array in an array".to_owned());
            }
            Some(b'[') => {
                for json in elements(json).unwrap_or_default() {
                    self.check(json, depth + 1, true)?;
                }
            }
            Some(b'-' | b'0'..=b'9') if !(self.holds_number)(json) => {
                let shown: String = json.chars().take(60).collect();
                return Err(format!("the number {shown}"));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Whether a number is written without a fraction or an exponent.
fn is_plain(text: &str) -> bool {
    !text.contains(['.', 'e', 'E'])
}

/// Whether a double of 64 bits is exactly this number.
fn is_double(text: &str) -> bool {
    let double = text.parse::<f64>().ok().filter(|double| double.is_finite());
    let shortest = double.and_then(|double| Decimal::parse(&format!("{double:e}")));
    shortest.is_some() && shortest == Decimal::parse(text)
}

/// Whether a number has at most 38 digits, and is zero or between 1e-130 and 9.99e125.
fn is_dynamodb_number(text: &str) -> bool {
    let Some(Decimal { digits, power, .. }) = Decimal::parse(text) else { return false };
    let Ok(count) = i64::try_from(digits.len()) else { return false };
    let magnitude = power.saturating_add(count - 1);
    count == 0 || count <= 38 && (-130..=125).contains(&magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_database_refuses_other_ids() {
        for (id, couchdb, dynamodb, firestore) in [
            ("u:n:aw==", true, true, true),
            ("u:files:a/b:aw==", true, true, false),
            ("_u:n:aw==", false, true, true),
            ("__u:n:aw==", false, true, true),
        ] {
            for (engine, takes) in
                [("couchdb", couchdb), ("dynamodb", dynamodb), ("firestore", firestore)]
            {
                assert_eq!(id_problem(engine, id).is_none(), takes, "{engine}: {id}");
            }
        }
    }

    #[test]
    fn each_database_has_its_own_bounds() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let objects = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        let digits = "123456789012345678901234567890123456789";
        for (json, couchdb, dynamodb, firestore) in [
            ("1.50", true, true, true),
            ("9223372036854775807", true, true, true),
            ("9223372036854775808", true, true, false),
            (&digits[1..], true, true, false),
            (digits, true, false, false),
            ("0.1234567890123456789", false, true, false),
            ("1e309", false, false, false),
            ("1e125", true, true, true),
            ("1e126", true, false, true),
            ("0e5", true, true, true),
            ("[[1]]", true, true, false),
            (r#"[{"a":[1]}]"#, true, true, true),
            (r#"{"":1}"#, true, false, false),
            (r#"{"__a__":1}"#, true, true, false),
            (&objects(20), true, true, true),
            (&objects(21), true, true, false),
            (&nested(31), true, true, false),
            (&nested(32), true, false, false),
            (r#"{"text":"1e309","list":[null,true,"__a__"]}"#, true, true, true),
        ] {
            for (engine, holds) in
                [("couchdb", couchdb), ("dynamodb", dynamodb), ("firestore", firestore)]
            {
                let checked = Rules::of(engine).unwrap().check(json, 0, false);
                assert_eq!(checked.is_ok(), holds, "{engine}: {json}: {checked:?}");
            }
        }
    }
}
