//! Lock catalogs: bookkeeping under a key of the caller's, known by its value.

use keyward_engine::Json;
use serde::Deserialize;

/// What a catalog contains, so that other values need not be parsed.
const NAME: &str = "\"keyward\"";

/// The members that tell a catalog from other values. The lock service knows it by the same two.
#[derive(Deserialize)]
struct Tagged {
    #[serde(rename = "keyward")]
    _tag: Tag,
    #[serde(rename = "format")]
    _format: u32,
}

#[derive(Deserialize)]
enum Tag {
    #[serde(rename = "locks")]
    Locks,
}

/// Whether a value is the catalog of a lock root: an object with `"keyward": "locks"` and a `format`.
pub(crate) fn is_catalog(value: &Json) -> bool {
    value.is_object()
        && value.as_str().contains(NAME)
        && serde_json::from_slice::<Tagged>(value.as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_is_known_by_its_tag_and_format() {
        let is = |text: &str| is_catalog(&Json::parse(text.to_owned()).unwrap());
        assert!(is(
            r#"{"keyward":"locks","format":1,"next_token":1,"mark":0,"holders":[],"waiters":[]}"#
        ));
        for other in [
            r#"{"keyward":"queue","format":1}"#,
            r#"{"keyward":"locks"}"#,
            r#"{"locks":[]}"#,
            r#"{"note":{"keyward":"locks","format":1}}"#,
            r#"["keyward","locks"]"#,
        ] {
            assert!(!is(other), "{other}");
        }
    }
}
