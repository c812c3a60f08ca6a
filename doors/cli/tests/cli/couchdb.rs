//! Stores in CouchDB, by URL.

use serde_json::{Value, json};

use crate::database::{
    DOCUMENT, ID, address, ask, first_steps, in_place, is_sound, live_watch, name,
    through_the_doors,
};
use crate::sandbox::Sandbox;

/// A database on the test server that no other test uses. It may not exist.
struct Database {
    /// `USER:PASSWORD@HOST:PORT`, escaped as in a URL.
    server: String,
    name: String,
}

impl Database {
    fn new() -> Self {
        let server = address("KEYWARD_TEST_COUCHDB");
        let server = server.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Self { server, name: name() }
    }

    fn url(&self) -> String {
        format!("couchdb://{}/{}", self.server, self.name)
    }

    /// A request of a plain client.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let host = self.server.rsplit('@').next().unwrap();
        // The test server's only account.
        let login = "Authorization: Basic a2V5d2FyZDpwQHNzL3dvcmQ=\r\n";
        let (status, body) = ask(host, &format!("{method} /{}{path}", self.name), login, body);
        (status, serde_json::from_str(&body).unwrap())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.ask("DELETE", "", "");
    }
}

#[test]
fn a_store_is_used_by_its_url() {
    let (kw, database) = (Sandbox::new(), Database::new());
    let url = database.url();
    let missing = kw.fails(1, &["-s", &url, "get", "user:7"]);
    assert!(
        missing.contains("there is no store at couchdb://") && !missing.contains("word"),
        "{missing}"
    );
    first_steps(&kw, &url);
    is_sound(&kw, &url, "recoverable");
}

#[test]
fn changes_are_told_directly_and_through_a_server() {
    let (kw, database) = (Sandbox::new(), Database::new());
    live_watch(&kw, &database.url());
}

#[test]
fn conflicts_of_replication_are_findings_of_the_doctor() {
    let (kw, database) = (Sandbox::new(), Database::new());
    let url = database.url();
    kw.ok(&["-s", &url, "put", "user:7", "1"]);
    let (_, rows) = database.ask("GET", "/_all_docs?include_docs=true", "");
    let rows = rows["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["doc"]["value"] == "1").unwrap();
    // As replication does: another revision, beside the one that is there.
    let mut document = row["doc"].clone();
    document["_rev"] = "1-00000000000000000000000000000000".into();
    document["value"] = "2".into();
    let body = json!({"docs": [document], "new_edits": false}).to_string();
    assert_eq!(database.ask("POST", "/_bulk_docs", &body).0, 201);
    let told = kw.run(&["-s", &url, "doctor"]).ended(10);
    assert!(told.starts_with("damaged couchdb: replication left 1 document"), "{told}");
    assert!(told.contains("1 findings"), "{told}");
    let json = kw.run(&["-s", &url, "doctor", "--json"]).ended(10);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["found"][0]["code"], &json["left"]), (&"damaged".into(), &1.into()));
}

#[test]
fn agent_data_is_used_in_place() {
    let (kw, database) = (Sandbox::new(), Database::new());
    assert_eq!(database.ask("PUT", "", "").0, 201);
    let url = format!("{}?layout=document", database.url());
    // What another program wrote.
    assert_eq!(database.ask("PUT", &format!("/{ID}"), DOCUMENT).0, 201);
    let keys = ["-s", &url, "agent", "keys", "--user", "user_123"];
    let told = kw.fails(7, &keys);
    assert!(told.contains("run keyward agent prepare"), "{told}");
    let unsaid = kw.fails(2, &["-s", &url, "agent", "prepare"]);
    assert!(unsaid.contains("--plan") && unsaid.contains("--apply"), "{unsaid}");
    let plan = kw.json(&["-s", &url, "agent", "prepare", "--plan", "--json"]);
    assert_eq!(plan["outcome"], "planned");
    assert!(!plan["steps"].as_array().unwrap().is_empty(), "{plan}");
    assert!(!plan.to_string().contains("word"), "no password is shown: {plan}");
    kw.fails(7, &keys);
    let done = kw.json(&["-s", &url, "agent", "prepare", "--apply", "--json"]);
    assert_eq!((&done["outcome"], &done["steps"]), (&"prepared".into(), &plan["steps"]));
    in_place(&kw, &url, || database.ask("GET", &format!("/{ID}"), "").1);
}

#[test]
fn documents_that_are_left_out_are_told() {
    let (kw, database) = (Sandbox::new(), Database::new());
    assert_eq!(database.ask("PUT", "", "").0, 201);
    let url = format!("{}?layout=document", database.url());
    kw.ok(&["-s", &url, "agent", "prepare", "--apply"]);
    kw.ok(&["-s", &url, "agent", "set", "k", "1"]);
    let wrong = r#"{"userId":"local","namespace":"default","key":"k","value":2}"#;
    assert_eq!(database.ask("PUT", "/by-hand", wrong).0, 201);
    let agent = |arguments: &[&str]| kw.run(&[&["-s", &url, "agent"], arguments].concat());
    let keys = kw.command(&["-s", &url, "agent", "keys"]).output().unwrap();
    assert_eq!((&keys.stdout[..], keys.status.code()), (&b"k\n"[..], Some(0)));
    let note = String::from_utf8(keys.stderr).unwrap();
    assert!(note.contains("1 document was skipped") && note.contains("\"by-hand\""), "{note}");
    let stats = kw.json(&["-s", &url, "agent", "stats", "--json"]);
    assert_eq!((&stats["recordCount"], &stats["skipped"]), (&json!(1), &json!(1)));
    assert_eq!(stats["lastSkipped"], "by-hand");
    assert!(agent(&["export"]).ended(10).contains("\"k\""), "the rest is exported");
    let told = agent(&["export", "-o", "all.jsonl"]).fails(10);
    assert!(told.contains("incomplete") && told.contains("--allow-skipped"), "{told}");
    assert!(!kw.path("all.jsonl").exists());
    agent(&["export", "-o", "all.jsonl", "--allow-skipped"]).ended(0);
    assert!(kw.path("all.jsonl").exists());
    let plan =
        kw.json(&["-s", &url, "agent", "copy", "--to", "embedded:./copy", "--plan", "--json"]);
    assert_eq!((&plan["added"], &plan["skipped"]), (&json!(1), &json!(1)));
    let copy = ["copy", "--to", "embedded:./copy", "--apply"];
    assert!(agent(&copy).ended(10).starts_with("copied 1 entry"));
    let again = agent(&[&copy[..], &["--allow-skipped"]].concat()).ended(0);
    assert!(again.contains("1 equal already"), "{again}");
}

#[test]
fn example_documents_are_the_same_for_a_plain_client_over_http_and_over_mcp() {
    let (kw, database) = (Sandbox::new(), Database::new());
    assert_eq!(database.ask("PUT", "", "").0, 201);
    let url = format!("{}?layout=document", database.url());
    let load = |document: &Value| {
        let path = format!("/{}", document["_id"].as_str().unwrap());
        assert_eq!(database.ask("PUT", &path, &document.to_string()).0, 201);
    };
    through_the_doors(&kw, &url, load, |id| {
        let (status, mut document) = database.ask("GET", &format!("/{id}"), "");
        assert_eq!(status, 200, "{id}: {document}");
        assert!(document.as_object_mut().unwrap().remove("_rev").is_some());
        document
    });
}

#[test]
fn entries_are_copied_from_couchdb_to_dynamodb_with_their_ids() {
    use crate::dynamodb::{self, Table, plain_object};

    let (kw, database, table) = (dynamodb::sandbox(), Database::new(), Table::new());
    assert_eq!(database.ask("PUT", "", "").0, 201);
    let (from, to) = (format!("{}?layout=document", database.url()), table.document_url());
    for url in [&from, &to] {
        kw.ok(&["-s", url, "agent", "prepare", "--apply"]);
    }
    let mut document: Value = serde_json::from_str(DOCUMENT).unwrap();
    assert_eq!(database.ask("PUT", &format!("/{ID}"), DOCUMENT).0, 201);
    // A number that CouchDB holds, and DynamoDB does not.
    let mut large = document.clone();
    (large["key"], large["value"]) = ("z".into(), 1e300.into());
    let id = "user_123:default:eg==";
    assert_eq!(database.ask("PUT", &format!("/{id}"), &large.to_string()).0, 201);

    let copy = ["-s", &from, "agent", "copy", "--to", &to, "--user", "user_123"];
    let planned = kw.json(&[&copy[..], &["--plan", "--json"]].concat());
    assert_eq!((&planned["added"], &planned["refused"]), (&json!(1), &json!(1)), "{planned}");
    assert_eq!(planned["refusals"][0]["_id"], id);
    assert!(planned["refusals"][0]["reason"].as_str().unwrap().contains("the number"), "{planned}");
    assert_eq!(table.item(ID), Value::Null);
    // The copy says the same, and what stands before it is copied.
    let told = kw.run(&[&copy[..], &["--apply"]].concat()).fails(2);
    assert!(told.contains("\"z\"") && told.contains("1e300"), "{told}");
    document["_id"] = ID.into();
    assert_eq!(plain_object(&table.item(ID)), document);
    assert_eq!(table.item(id), Value::Null);
    let again = kw.json(&[&copy[..], &["--plan", "--json"]].concat());
    assert_eq!((&again["added"], &again["equal"]), (&json!(0), &json!(1)), "{again}");
}
