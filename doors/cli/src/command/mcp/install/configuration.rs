//! One more server in a configuration, and nothing else changed.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde_json::Value;

use super::client::Entry;

/// What adding a server comes to.
#[derive(Debug, PartialEq, Eq)]
pub enum Added {
    /// The text with it.
    New(String),
    /// The text with it in the place of another of that name.
    Instead(String),
    /// It is there already.
    There,
}

/// Adds a server to the table of a configuration, which is there or not. Every other character stays.
/// The reason if that cannot be done, as the end of a sentence that begins with the file's name.
pub fn add(
    before: &str,
    table: &str,
    name: &str,
    entry: &Entry,
    comments: bool,
) -> Result<Added, String> {
    let before = if before.trim().is_empty() { "{}\n" } else { before };
    let root = parse(before, comments)?;
    let old = root.to_serde_value().ok_or("is not JSON")?;
    let all = root.object_value().ok_or("is JSON, but no object")?;
    let servers = all.object_value_or_create(table);
    let servers = servers.ok_or_else(|| format!("has a {table:?} that is no object"))?;
    let wanted = entry.to_value();
    let replaces = match servers.get(name) {
        Some(_) if old[table][name] == wanted => return Ok(Added::There),
        Some(there) => {
            there.set_value(input(entry));
            true
        }
        None => {
            servers.append(name, input(entry));
            false
        }
    };
    let text = root.to_string();
    let new = parse(&text, comments)?.to_serde_value().unwrap_or_default();
    match is_added(old, new, table, name, &wanted) {
        true if replaces => Ok(Added::Instead(text)),
        true => Ok(Added::New(text)),
        false => {
            Err("has members of the same name, and which of them counts is not sure".to_owned())
        }
    }
}

/// Whether a configuration is another one with this server, and nothing else.
fn is_added(mut old: Value, mut new: Value, table: &str, name: &str, wanted: &Value) -> bool {
    if new[table][name] != *wanted {
        return false;
    }
    for one in [&mut old, &mut new] {
        if let Some(servers) = one.get_mut(table).and_then(Value::as_object_mut) {
            servers.remove(name);
            if servers.is_empty() {
                one.as_object_mut().map(|all| all.remove(table));
            }
        }
    }
    old == new
}

fn parse(text: &str, comments: bool) -> Result<CstRootNode, String> {
    if !comments {
        // The other parser lets some comments pass, whatever its options say.
        let read = serde_json::from_str::<serde::de::IgnoredAny>(text);
        read.map_err(|error| format!("is not JSON: {error}"))?;
    }
    let options = ParseOptions {
        allow_comments: comments,
        allow_trailing_commas: comments,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    CstRootNode::parse(text, &options).map_err(|error| format!("is not JSON: {error}"))
}

fn input(entry: &Entry) -> CstInputValue {
    let members = entry.0.iter().map(|(name, value)| ((*name).to_owned(), written(value)));
    CstInputValue::Object(members.collect())
}

fn written(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(it) => CstInputValue::Bool(*it),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(all) => CstInputValue::Array(all.iter().map(written).collect()),
        Value::Object(all) => {
            let members = all.iter().map(|(name, value)| (name.clone(), written(value)));
            CstInputValue::Object(members.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(command: &str) -> Entry {
        Entry(vec![("command", json!(command)), ("args", json!(["mcp"]))])
    }

    fn added(before: &str, comments: bool) -> Result<Added, String> {
        add(before, "mcpServers", "keyward", &entry("/bin/keyward"), comments)
    }

    #[test]
    fn an_empty_file_is_begun() {
        let begun = "{\n  \"mcpServers\": {\n    \"keyward\": {\n      \"command\": \"/bin/keyward\",\n      \
                     \"args\": [\"mcp\"]\n    }\n  }\n}\n";
        for empty in ["", "\n", "{}\n"] {
            assert_eq!(added(empty, false), Ok(Added::New(begun.to_owned())));
        }
        assert_eq!(added(begun, false), Ok(Added::There));
    }

    #[test]
    fn every_other_character_stays() {
        let before = "{\"z\": {\"b\": 1.10,   \"a\": 2e400},\n\t\"mcpServers\": {\n\t\t\"other\": {\"env\": \
                      {\"TOKEN\": \"s\\u00e9cret\"}}\n\t},\n\t\"y\": []\n}";
        let Ok(Added::New(after)) = added(before, false) else { panic!("it was not added") };
        let at = after.find(",\n\t\t\"keyward\"").unwrap();
        let end = after[at..].find("\n\t},\n\t\"y\"").unwrap() + at;
        assert_eq!(format!("{}{}", &after[..at], &after[end..]), before);
    }

    #[test]
    fn comments_stay_where_they_are_allowed() {
        let before = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {}, // the first\n  },\n}\n";
        let Ok(Added::New(after)) = added(before, true) else { panic!("it was not added") };
        assert!(after.contains("// mine\n") && after.contains("// the first\n"), "{after}");
        assert!(added(before, false).unwrap_err().starts_with("is not JSON: "));
    }

    #[test]
    fn another_of_the_same_name_is_told() {
        let before = r#"{"mcpServers":{"keyward":{"command":"x"},"b":{"command":"y"}}}"#;
        let Ok(Added::Instead(after)) = added(before, false) else { panic!("it was not told") };
        assert!(after.contains(r#""b":{"command":"y"}"#) && !after.contains("\"x\""), "{after}");
    }

    #[test]
    fn what_cannot_be_added_to_is_refused() {
        for (before, reason) in [
            ("{\"a\": 1,}", "is not JSON"),
            ("{'a': 1}", "is not JSON"),
            ("{ // a comment\n}", "is not JSON"),
            ("{\"a\": 1} x", "is not JSON"),
            ("{\"a\"", "is not JSON"),
            ("[1]", "no object"),
            (r#"{"mcpServers": []}"#, "\"mcpServers\" that is no object"),
            (r#"{"mcpServers": {"a": {}}, "mcpServers": {"b": {}}}"#, "same name"),
        ] {
            let told = added(before, false).unwrap_err();
            assert!(told.contains(reason), "{before}: {told}");
        }
    }
}
