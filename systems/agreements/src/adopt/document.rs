//! Documents of the app.

use keyward_cache::{Source, is_cached};
use keyward_engine::{Entry, Json, moment_text};
use keyward_extract::Language;

use super::object::Object;
use super::{Taken, What, time};
use crate::{Document, SourceId};

/// What a document of the app is taken over as. Its cache calls one good that is no older than the attachment: so it is
/// taken for made of the attachment as it was then.
pub(super) fn taken(
    source: &SourceId,
    language: Option<&str>,
    value: &Json,
    entry: Option<&Entry>,
) -> Taken {
    if entry.is_some_and(is_cached) {
        return Taken::Already;
    }
    converted(source, language, value).unwrap_or_else(Taken::Not)
}

fn converted(source: &SourceId, language: Option<&str>, value: &Json) -> Result<Taken, String> {
    let mut document = Object::read(value.as_str()).ok_or("it is no document: not an object")?;
    if document.get::<String>("content").is_none() {
        return Err("it is no document: it has no content".to_owned());
    }
    let created = document.raw("created").ok_or("it is no document: it has no time of creation")?;
    let created = time(created)
        .ok_or_else(|| format!("its time of creation, {}, cannot be read", created.get()))?;
    if let Some(named) = document.get::<String>("source").filter(|named| named != source.as_str()) {
        return Err(format!("it says that it is of {named}, and its key says {source}"));
    }
    let spoken = match language {
        Some(code) => Some(
            Language::parse(code).ok_or_else(|| format!("{code} is no language of ISO 639-1"))?,
        ),
        // An original whose language nobody could tell.
        None => document.get::<String>("language").and_then(|code| Language::parse(&code)),
    };
    if document.get::<bool>("original").is_none() {
        document.set("original", &language.is_none())?;
    }
    if document.get::<String>("title").is_none_or(|title| title.trim().is_empty()) {
        document.set("title", &source.as_str())?;
    }
    document.set("source", &source.as_str())?;
    if document.get::<Language>("language") != spoken || !document.has("language") {
        document.set("language", &spoken)?;
    }
    document.set("created", &moment_text(created))?;
    document.set("modified", &moment_text(created))?;
    let value = document.write()?;
    // Nothing is written that a workspace could not read.
    serde_json::from_str::<Document>(value.as_str()).map_err(|error| error.to_string())?;
    let put = keyward_cache::adopted(value, Source::Modified(created), created)
        .map_err(|error| error.to_string())?;
    Ok(Taken::As(What::Policy, put))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(language: Option<&str>, text: &str) -> Result<String, String> {
        let source = SourceId::new("att789").unwrap();
        match taken(&source, language, &Json::parse(text.to_owned()).unwrap(), None) {
            Taken::As(What::Policy, put) => Ok(put.value.to_string()),
            Taken::Not(reason) => Err(reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_document_keeps_everything_that_it_says() {
        let text = r##"{"original":true,"language":"it","source":"att789","created":"2025-09-01T10:00:00.123","title":"T","content":"# T","pages":1.50}"##;
        assert_eq!(
            put(None, text).unwrap(),
            r##"{"adopted":{"created":"2025-09-01T10:00:00.123"},"content":"# T","created":"2025-09-01T10:00:00.123000Z","language":"it","modified":"2025-09-01T10:00:00.123000Z","original":true,"pages":1.50,"source":"att789","title":"T"}"##
        );
        let bare = put(Some("en"), r#"{"created":1756720800000,"content":""}"#).unwrap();
        assert!(
            bare.contains(r#""language":"en""#) && bare.contains(r#""original":false"#),
            "{bare}"
        );
    }

    #[test]
    fn what_is_no_document_is_told() {
        for (text, told) in [
            ("[]", "not an object"),
            (r#"{"created":"2025-09-01T10:00:00Z"}"#, "no content"),
            (r#"{"content":""}"#, "no time"),
            (r#"{"content":"","created":"soon"}"#, "\"soon\""),
            (r#"{"content":"","created":1,"source":"other"}"#, "of other"),
        ] {
            let refused = put(None, text).unwrap_err();
            assert!(refused.contains(told), "{text}: {refused}");
        }
        assert!(
            put(Some("klingon"), r#"{"content":"","created":1}"#).unwrap_err().contains("klingon")
        );
    }
}
