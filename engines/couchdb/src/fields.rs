//! The fields of a document of another program, beside what CouchDB itself adds.

use std::fmt;

use keyward_engine::{Document, Error, ErrorKind, Json, Result};
use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// Files that a document carries. Left out of a write, CouchDB deletes them; so they stay among the fields.
const ATTACHMENTS: &str = "_attachments";

/// The members of an object in their order, each with its JSON text.
pub(crate) fn members(object: &str) -> serde_json::Result<Vec<(String, &str)>> {
    struct Members;

    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de str)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                members.push((name, value.get()));
            }
            Ok(members)
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(object);
    deserializer.deserialize_map(Members)
}

/// An object of members.
pub(crate) fn object<'m>(members: impl IntoIterator<Item = (&'m str, &'m str)>) -> String {
    let mut object = String::from("{");
    for (name, json) in members {
        if object.len() > 1 {
            object.push(',');
        }
        object.push_str(&serde_json::Value::from(name).to_string());
        object.push(':');
        object.push_str(json);
    }
    object.push('}');
    object
}

/// Reads a document.
pub(crate) fn document(id: &str, text: &str) -> Result<Document> {
    let corrupt = |reason: String| {
        let message = format!("the CouchDB document {id:?} cannot be read: {reason}");
        Error::new(ErrorKind::Corrupt, message)
    };
    let members = members(text).map_err(|error| corrupt(error.to_string()))?;
    let rev = members.iter().find(|(name, _)| name == "_rev").map(|(_, json)| *json);
    let rev: Option<String> = rev.and_then(|json| serde_json::from_str(json).ok());
    let rev = rev.ok_or_else(|| corrupt("it has no _rev".to_owned()))?;
    let is_field = |name: &str| !name.starts_with('_') || name == ATTACHMENTS;
    let fields = members.iter().filter(|(name, _)| is_field(name));
    let fields = object(fields.map(|(name, json)| (name.as_str(), *json)));
    // Without the spaces. Another program may nest deeper than Keyward lets anybody write.
    let fields = Json::parse(fields.clone()).unwrap_or_else(|_| Json::from_stored(fields));
    Ok(Document { id: id.to_owned(), fields, revision: rev.into() })
}

/// The document to send: the fields, and the revision that they replace.
pub(crate) fn to_send(fields: &Json, replaced: Option<&str>) -> Result<String> {
    let invalid = |message: String| Error::new(ErrorKind::Invalid, message);
    let members = members(fields.as_str())
        .map_err(|error| invalid(format!("the fields of a document must be an object: {error}")))?;
    let reserved = members.iter().find(|(name, _)| name.starts_with('_') && name != ATTACHMENTS);
    if let Some((name, _)) = reserved {
        return Err(invalid(format!(
            "the field {name:?} cannot be stored: CouchDB keeps names that begin with _ for itself"
        )));
    }
    let rev = replaced.map(|rev| serde_json::Value::from(rev).to_string());
    let rev = rev.as_deref().map(|rev| ("_rev", rev));
    let fields = members.iter().map(|(name, json)| (name.as_str(), *json));
    Ok(object(rev.into_iter().chain(fields)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_in_their_order_without_what_couchdb_adds() {
        let text = r#"{"_id":"a","_rev":"1-x","z":1.10,"a":{"_id":2,"é\"":[ 1, 2 ]},"_attachments":{"f":{"stub":true}},"_conflicts":["1-y"]}"#;
        let read = document("a", text).unwrap();
        assert_eq!(&*read.revision, "1-x");
        let fields = r#"{"z":1.10,"a":{"_id":2,"é\"":[1,2]},"_attachments":{"f":{"stub":true}}}"#;
        assert_eq!(read.fields.as_str(), fields);
        let sent = to_send(&read.fields, Some("1-x")).unwrap();
        assert_eq!(sent, format!(r#"{{"_rev":"1-x",{}"#, &fields[1..]));
        assert_eq!(to_send(&Json::parse("{}").unwrap(), None).unwrap(), "{}");
    }

    #[test]
    fn a_document_that_nests_deeper_than_keyward_writes_is_read() {
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        let read = document("a", &format!(r#"{{"_rev":"1-x","value":{deep}}}"#)).unwrap();
        assert_eq!(read.fields.as_str(), format!(r#"{{"value":{deep}}}"#));
    }

    #[test]
    fn what_is_no_document_is_refused() {
        for text in ["[]", "{", r#"{"_id":"a"}"#, r#"{"_rev":1}"#] {
            assert_eq!(document("a", text).unwrap_err().kind(), ErrorKind::Corrupt, "{text}");
        }
        for fields in ["[]", "1", r#"{"_x":1}"#, r#"{"_id":"a"}"#, r#"{"_deleted":true}"#] {
            let fields = Json::parse(fields).unwrap();
            assert_eq!(to_send(&fields, None).unwrap_err().kind(), ErrorKind::Invalid, "{fields}");
        }
    }
}
