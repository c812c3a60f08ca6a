//! Stores in DynamoDB, by URL.

use serde_json::{Value, json};

use crate::database::{
    ID, address, ask, first_steps, in_place, is_sound, live_watch, name, through_the_doors,
};
use crate::sandbox::Sandbox;

/// A table on the test server that no other test uses. It may not exist.
pub struct Table {
    endpoint: String,
    name: String,
}

impl Table {
    pub fn new() -> Self {
        Self { endpoint: address("KEYWARD_TEST_DYNAMODB"), name: name() }
    }

    fn url(&self) -> String {
        format!("dynamodb://eu-west-1/{}?endpoint={}", self.name, self.endpoint)
    }

    /// Of agent data in place.
    pub fn document_url(&self) -> String {
        format!("{}&layout=document", self.url())
    }

    /// An item as it is stored; null if there is none.
    pub fn item(&self, id: &str) -> Value {
        let key =
            json!({"TableName": self.name, "Key": {"_id": {"S": id}}, "ConsistentRead": true});
        let (status, told) = self.ask("GetItem", &key);
        assert_eq!(status, 200, "{id}: {told}");
        told["Item"].clone()
    }

    /// Stores a document as an item.
    fn load(&self, document: &Value) {
        let item = json!({"TableName": self.name, "Item": attributes(document)});
        assert_eq!(self.ask("PutItem", &item).0, 200);
    }

    /// A request of a plain client. DynamoDB Local looks at the shape of the signature only.
    fn ask(&self, operation: &str, body: &Value) -> (u16, Value) {
        let host = self.endpoint.trim_start_matches("http://").trim_end_matches('/');
        let headers = format!(
            "X-Amz-Target: DynamoDB_20120810.{operation}\r\nX-Amz-Date: 20260101T000000Z\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/eu-west-1/dynamodb/aws4_request, \
             SignedHeaders=host;x-amz-date, Signature=00\r\n"
        );
        let (status, body) = ask(host, "POST /", &headers, &body.to_string());
        (status, serde_json::from_str(&body).unwrap())
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.ask("DeleteTable", &json!({"TableName": self.name}));
    }
}

/// With credentials in the environment of every command.
pub fn sandbox() -> Sandbox {
    Sandbox::new().with("AWS_ACCESS_KEY_ID", "test").with("AWS_SECRET_ACCESS_KEY", "test")
}

/// JSON as DynamoDB writes it.
fn attribute(value: &Value) -> Value {
    match value {
        Value::Null => json!({"NULL": true}),
        Value::Bool(it) => json!({"BOOL": it}),
        Value::Number(it) => json!({"N": it.to_string()}),
        Value::String(it) => json!({"S": it}),
        Value::Array(all) => json!({"L": all.iter().map(attribute).collect::<Vec<_>>()}),
        Value::Object(_) => json!({"M": attributes(value)}),
    }
}

fn attributes(object: &Value) -> Value {
    let members = object.as_object().unwrap().iter();
    members
        .map(|(name, value)| (name.clone(), attribute(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn plain(attribute: &Value) -> Value {
    let (kind, value) = attribute.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "NULL" => Value::Null,
        "N" => serde_json::from_str(value.as_str().unwrap()).unwrap(),
        "L" => value.as_array().unwrap().iter().map(plain).collect(),
        "M" => plain_object(value),
        _ => value.clone(),
    }
}

pub fn plain_object(attributes: &Value) -> Value {
    let members = attributes.as_object().unwrap().iter();
    members
        .map(|(name, value)| (name.clone(), plain(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn a_store_is_used_by_its_url() {
    let (kw, table) = (sandbox(), Table::new());
    let url = table.url();
    kw.fails(1, &["-s", &url, "get", "user:7"]);
    // A table costs something, so none is made by a mistyped name.
    let told = kw.fails(7, &["-s", &url, "put", "user:7", "1"]);
    assert!(told.contains("create=true"), "{told}");
    let url = format!("{url}&create=true");
    first_steps(&kw, &url);
    is_sound(&kw, &url, "atomic");
}

#[test]
fn changes_are_told_directly_and_through_a_server() {
    let (kw, table) = (sandbox(), Table::new());
    live_watch(&kw, &format!("{}&create=true", table.url()));
}

#[test]
fn agent_data_is_used_in_place() {
    let (kw, table) = (sandbox(), Table::new());
    let url = table.document_url();
    let plan = kw.json(&["-s", &url, "agent", "prepare", "--plan", "--json"]);
    assert_eq!(plan["outcome"], "planned", "{plan}");
    let done = kw.json(&["-s", &url, "agent", "prepare", "--apply", "--json"]);
    assert_eq!(done["outcome"], "prepared", "{done}");
    let mut document: Value = serde_json::from_str(crate::database::DOCUMENT).unwrap();
    document["_id"] = ID.into();
    table.load(&document);
    in_place(&kw, &url, || plain_object(&table.item(ID)));
}

#[test]
fn example_documents_are_the_same_for_a_plain_client_over_http_and_over_mcp() {
    let (kw, table) = (sandbox(), Table::new());
    let url = table.document_url();
    kw.ok(&["-s", &url, "agent", "prepare", "--apply"]);
    let load = |document: &Value| table.load(document);
    through_the_doors(&kw, &url, load, |id| {
        let item = table.item(id);
        let document = plain_object(&item);
        // Every attribute has the type that a plain client gives it.
        assert_eq!(item, attributes(&document), "{id}");
        document
    });
}
