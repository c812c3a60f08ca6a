//! Stores in Firestore, by URL.

use std::io::Write;

use serde_json::{Value, json};

use crate::database::{
    DOCUMENT, ID, address, ask, first_steps, in_place, is_sound, name, through_the_doors,
};
use crate::sandbox::Sandbox;

/// A collection in the emulator that no other test uses.
struct Collection {
    emulator: String,
    name: String,
}

impl Collection {
    /// Nothing where Google's emulator is not installed, which no registry has.
    fn new() -> Option<Self> {
        let emulator = address("KEYWARD_TEST_FIRESTORE");
        if emulator == "absent" {
            let _ = writeln!(
                std::io::stderr(),
                "NOT TESTED: Firestore, since Google's emulator is not installed here"
            );
            return None;
        }
        Some(Self { emulator, name: name() })
    }

    fn url(&self) -> String {
        format!("firestore://keyward-cli/(default)/{}?emulator={}", self.name, self.emulator)
    }

    /// A request of a plain client.
    fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let root = "/v1/projects/keyward-cli/databases/(default)/documents";
        let head = format!("{method} {root}/{}{path}", self.name);
        let (status, body) =
            ask(&self.emulator, &head, "Authorization: Bearer owner\r\n", &body.to_string());
        (status, serde_json::from_str(&body).unwrap())
    }
}

/// JSON as Firestore writes it.
fn value(json: &Value) -> Value {
    match json {
        Value::Null => json!({"nullValue": null}),
        Value::Bool(it) => json!({"booleanValue": it}),
        Value::Number(it) if it.is_i64() => json!({"integerValue": it.to_string()}),
        Value::Number(it) => json!({"doubleValue": it}),
        Value::String(it) => json!({"stringValue": it}),
        Value::Array(all) => {
            json!({"arrayValue": {"values": all.iter().map(value).collect::<Vec<_>>()}})
        }
        Value::Object(_) => json!({"mapValue": {"fields": fields(json)}}),
    }
}

fn fields(object: &Value) -> Value {
    let members = object.as_object().unwrap().iter();
    members.map(|(name, it)| (name.clone(), value(it))).collect::<serde_json::Map<_, _>>().into()
}

/// A value as Firestore gives it, with the empty arrays and maps that it leaves out.
fn explicit(value: &Value) -> Value {
    if let Some(array) = value.get("arrayValue") {
        let values = array["values"].as_array().into_iter().flatten().map(explicit);
        return json!({"arrayValue": {"values": values.collect::<Vec<_>>()}});
    }
    let Some(map) = value.get("mapValue") else { return value.clone() };
    let fields = map["fields"].as_object().into_iter().flatten();
    let fields = fields.map(|(name, value)| (name.clone(), explicit(value)));
    json!({"mapValue": {"fields": fields.collect::<serde_json::Map<_, _>>()}})
}

fn plain(value: &Value) -> Value {
    let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "integerValue" => serde_json::from_str(value.as_str().unwrap()).unwrap(),
        "arrayValue" => value["values"].as_array().into_iter().flatten().map(plain).collect(),
        "mapValue" => plain_object(&value["fields"]),
        _ => value.clone(),
    }
}

fn plain_object(fields: &Value) -> Value {
    let members = fields.as_object().into_iter().flatten();
    members
        .map(|(name, value)| (name.clone(), plain(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn a_store_is_used_by_its_url() {
    let Some(collection) = Collection::new() else { return };
    let (kw, url) = (Sandbox::new(), collection.url());
    first_steps(&kw, &url);
    is_sound(&kw, &url, "atomic");
}

#[test]
fn agent_data_is_used_in_place() {
    let Some(collection) = Collection::new() else { return };
    let kw = Sandbox::new();
    let url = format!("{}&layout=document", collection.url());
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let body = json!({"fields": fields(&document)});
    assert_eq!(collection.ask("POST", &format!("?documentId={ID}"), &body).0, 200);
    // The emulator answers queries without their index.
    kw.ok(&["-s", &url, "agent", "prepare", "--apply"]);
    in_place(&kw, &url, || {
        plain_object(&collection.ask("GET", &format!("/{ID}"), &Value::Null).1["fields"])
    });
}

#[test]
fn example_documents_are_the_same_for_a_plain_client_over_http_and_over_mcp() {
    let Some(collection) = Collection::new() else { return };
    let kw = Sandbox::new();
    let url = format!("{}&layout=document", collection.url());
    let load = |document: &Value| {
        let path = format!("?documentId={}", document["_id"].as_str().unwrap());
        assert_eq!(collection.ask("POST", &path, &json!({"fields": fields(document)})).0, 200);
    };
    through_the_doors(&kw, &url, load, |id| {
        let (status, told) = collection.ask("GET", &format!("/{id}"), &Value::Null);
        assert_eq!(status, 200, "{id}: {told}");
        let document = plain_object(&told["fields"]);
        // Every field has the type that a plain client gives it.
        assert_eq!(explicit(&json!({"mapValue": told}))["mapValue"]["fields"], fields(&document));
        document
    });
}
