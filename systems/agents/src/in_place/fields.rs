//! The fields of a document: what they say about an entry, and how an entry is written into them.

use std::borrow::Cow;

use keyward_engine::{Document, Json};
use keyward_records::field::{members, object, quoted};

use super::place::Address;
use crate::access::AccessRow;
use crate::entry::{Body, CREATED_AT, CREATED_BY_AGENT, METADATA, UPDATED_AT, VALUE, born};

const USER_ID: &str = "userId";
const NAMESPACE: &str = "namespace";
const KEY: &str = "key";
const ACCESS_COUNT: &str = "accessCount";
const LAST_ACCESSED_BY: &str = "lastAccessedByAgent";
const LAST_ACCESSED_AT: &str = "lastAccessedAt";

/// The time of an entry whose document has none.
const NO_TIME: &str = "\"1970-01-01T00:00:00Z\"";

/// The fields of a document, in their order, each as JSON text.
#[derive(Debug, Clone)]
pub(super) struct Fields<'d>(Vec<(Cow<'d, str>, Cow<'d, str>)>);

impl<'d> Fields<'d> {
    /// The fields of the document of an entry; `None` if the document is not that entry's.
    pub fn of(document: &'d Document, address: &Address) -> Option<Self> {
        let all = members(document.fields.as_str())?;
        let all = all.into_iter().map(|(name, json)| (name, Cow::Borrowed(json)));
        let fields = Self(all.collect());
        // A number or a truth value is no id, however it would be written as text.
        let is = |name: &str, text: &str| {
            let json = fields.raw(name).filter(|json| json.starts_with('"'));
            let plain = json.and_then(|json| serde_json::from_str::<String>(json).ok());
            plain.is_some_and(|it| it == text)
        };
        let belongs = is(USER_ID, &address.user)
            && is(NAMESPACE, &address.namespace)
            && is(KEY, &address.key);
        belongs.then_some(fields)
    }

    /// Those of a document that is about to be made.
    pub fn new(address: &Address) -> Self {
        let mut fields = Self(Vec::new());
        let named =
            [(USER_ID, &address.user), (NAMESPACE, &address.namespace), (KEY, &address.key)];
        for (name, text) in named {
            fields.set(name, quoted(text));
        }
        fields
    }

    /// The entry, as a record holds it.
    ///
    /// The original program's documents are read generously: a missing value is null, as programs leave null out;
    /// a missing time is the other one; a time or agent that is no text is its JSON as text. Metadata that is
    /// no object is not shown.
    pub fn body(&self) -> Json {
        let (created_at, updated_at) = (self.text(CREATED_AT), self.text(UPDATED_AT));
        let created = created_at.as_deref().or(updated_at.as_deref()).unwrap_or(NO_TIME);
        let created_by_agent = self.text(CREATED_BY_AGENT);
        let body = Body {
            created_by_agent: created_by_agent.as_deref(),
            created_at: created,
            updated_at: updated_at.as_deref().unwrap_or(created),
            metadata: self.raw(METADATA).filter(|json| json.starts_with('{')),
            value: self.raw(VALUE).unwrap_or("null"),
        };
        body.write()
    }

    /// Who accessed the entry. Every entry has such a row, if only one that says nobody did.
    pub fn row(&self) -> AccessRow {
        AccessRow {
            count: self.raw(ACCESS_COUNT).map_or(0, count),
            agent: self.plain(LAST_ACCESSED_BY),
            at: self.plain(LAST_ACCESSED_AT),
            born: born(&self.body()).to_owned(),
            ..AccessRow::default()
        }
    }

    /// Writes an entry into the fields. Who accessed it stays, and so does every field that is none of an entry's.
    pub fn set_body(&mut self, body: &Body<'_>) {
        let is_new = self.raw(CREATED_AT).is_none() && self.raw(ACCESS_COUNT).is_none();
        self.set(VALUE, body.value.to_owned());
        match body.metadata {
            Some(metadata) => self.set(METADATA, metadata.to_owned()),
            None => self.remove_if(METADATA, |json| json.starts_with('{')),
        }
        match body.created_by_agent {
            Some(agent) => self.set(CREATED_BY_AGENT, agent.to_owned()),
            None => self.remove_if(CREATED_BY_AGENT, |json| json != "null"),
        }
        if is_new {
            // The original adds to it, and may take for granted that it is there.
            self.set(ACCESS_COUNT, "0".to_owned());
        }
        self.set(CREATED_AT, body.created_at.to_owned());
        self.set(UPDATED_AT, body.updated_at.to_owned());
    }

    /// Writes who accessed the entry into the fields, and leaves all others as they are.
    pub fn set_row(&mut self, row: &AccessRow) {
        for (name, text) in [(LAST_ACCESSED_BY, &row.agent), (LAST_ACCESSED_AT, &row.at)] {
            match text {
                Some(text) if self.plain(name).as_ref() != Some(text) => {
                    self.set(name, quoted(text));
                }
                Some(_) => {}
                None => self.remove_if(name, |_| true),
            }
        }
        if self.raw(ACCESS_COUNT).map_or(0, count) != row.count {
            self.set(ACCESS_COUNT, row.count.to_string());
        }
    }

    /// The fields as one object.
    pub fn to_json(&self) -> Json {
        let all = self.0.iter().map(|(name, json)| (name.as_ref(), json.as_ref()));
        Json::from_stored(object(all))
    }

    fn raw(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(it, _)| it == name).map(|(_, json)| json.as_ref())
    }

    /// The JSON text of a text: null counts as missing, and anything else becomes its own JSON as text.
    fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        match self.raw(name)? {
            "null" => None,
            text if text.starts_with('"') => Some(Cow::Borrowed(text)),
            other => Some(Cow::Owned(quoted(other))),
        }
    }

    fn plain(&self, name: &str) -> Option<String> {
        serde_json::from_str(&self.text(name)?).ok()
    }

    fn set(&mut self, name: &str, json: String) {
        match self.0.iter_mut().find(|(it, _)| it == name) {
            Some((_, old)) => *old = Cow::Owned(json),
            None => self.0.push((Cow::Owned(name.to_owned()), Cow::Owned(json))),
        }
    }

    fn remove_if(&mut self, name: &str, which: impl Fn(&str) -> bool) {
        self.0.retain(|(it, json)| it != name || !which(json));
    }
}

/// A number of accesses, also where it is written as a fraction or as text. What is no number is zero.
fn count(json: &str) -> u64 {
    let plain = json.trim_matches('"');
    let rounded = || plain.parse::<f64>().ok().filter(|number| *number > 0.0);
    // The conversion stops at the largest number.
    plain.parse().ok().or_else(|| rounded().map(|number| number as u64)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(fields: &str) -> Document {
        let fields = Json::parse(fields.to_owned()).unwrap();
        Document { id: "u:n:aw==".to_owned(), fields, revision: "1".into() }
    }

    fn address() -> Address {
        let owned = |text: &str| text.to_owned();
        Address { user: owned("u"), namespace: owned("n"), key: owned("k") }
    }

    #[test]
    fn odd_documents_are_read_as_far_as_their_meaning_is_clear() {
        let read = |rest: &str| {
            let document =
                document(&format!(r#"{{"userId":"u","namespace":"n","key":"k"{rest}}}"#));
            let fields = Fields::of(&document, &address()).unwrap();
            (fields.body().to_string(), fields.row().count)
        };
        for (rest, body, count) in [
            (
                "",
                r#"{"createdAt":"1970-01-01T00:00:00Z","updatedAt":"1970-01-01T00:00:00Z","value":null}"#,
                0,
            ),
            (
                r#","value":1,"metadata":null,"createdByAgent":null,"createdAt":"2026-02-05T10:00:00","accessCount":5.0"#,
                r#"{"createdAt":"2026-02-05T10:00:00","updatedAt":"2026-02-05T10:00:00","value":1}"#,
                5,
            ),
            (
                r#","value":1,"metadata":[1],"createdByAgent":7,"updatedAt":1738749600,"accessCount":"12""#,
                r#"{"createdByAgent":"7","createdAt":"1738749600","updatedAt":"1738749600","value":1}"#,
                12,
            ),
            (
                r#","value":1,"createdAt":"c","updatedAt":"u","accessCount":-3"#,
                r#"{"createdAt":"c","updatedAt":"u","value":1}"#,
                0,
            ),
        ] {
            assert_eq!(read(rest), (body.to_owned(), count), "{rest}");
        }
    }

    #[test]
    fn a_document_of_somebody_else_is_no_entry() {
        for fields in [
            r#"{}"#,
            r#"{"userId":"u","namespace":"n"}"#,
            r#"{"userId":"u","namespace":"n","key":"other"}"#,
            r#"{"userId":"u","namespace":null,"key":"k"}"#,
            r#"{"userId":"u:n","namespace":"n","key":"k"}"#,
        ] {
            assert!(Fields::of(&document(fields), &address()).is_none(), "{fields}");
        }
        let named = |user: &str, namespace: &str, key: &str| Address {
            user: user.to_owned(),
            namespace: namespace.to_owned(),
            key: key.to_owned(),
        };
        for (fields, address) in [
            (r#"{"userId":7,"namespace":"n","key":"k"}"#, named("7", "n", "k")),
            (r#"{"userId":"u","namespace":true,"key":"k"}"#, named("u", "true", "k")),
            (r#"{"userId":"u","namespace":"n","key":[1]}"#, named("u", "n", "[1]")),
        ] {
            assert!(Fields::of(&document(fields), &address).is_none(), "{fields}");
        }
    }

    #[test]
    fn fields_of_others_survive_and_keep_their_places() {
        let before = document(
            r#"{"tenant":{"x":[1.10]},"userId":"u","namespace":"n","key":"k","value":1,"metadata":"odd","createdByAgent":null,"accessCount":3,"createdAt":"c","updatedAt":"u","schema":2}"#,
        );
        let mut fields = Fields::of(&before, &address()).unwrap();
        let (created_at, updated_at) = ("\"c\"", "\"v\"");
        let (created_by_agent, metadata, value) = (None, None, "[2]");
        let body = Body { created_by_agent, created_at, updated_at, metadata, value };
        fields.set_body(&body);
        assert_eq!(
            fields.to_json().as_str(),
            r#"{"tenant":{"x":[1.10]},"userId":"u","namespace":"n","key":"k","value":[2],"metadata":"odd","createdByAgent":null,"accessCount":3,"createdAt":"c","updatedAt":"v","schema":2}"#
        );
        fields.set_row(&AccessRow { agent: Some("a".to_owned()), count: 4, ..fields.row() });
        let text = fields.to_json().to_string();
        assert!(text.ends_with(r#""accessCount":4,"createdAt":"c","updatedAt":"v","schema":2,"lastAccessedByAgent":"a"}"#));
        fields.set_row(&AccessRow { agent: None, count: 0, ..fields.row() });
        assert!(!fields.to_json().as_str().contains("lastAccessed"));
    }
}
