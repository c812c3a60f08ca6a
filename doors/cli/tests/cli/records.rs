//! record: get, put, create, merge, delete, history, restore.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// Spaces with owners and without, and with indexes.
pub const SCHEMA: &str = r#"
[stores.app]
url = "embedded:./data"

[spaces.users]
key = "user:{user}:profile"
ownership = "user"
[spaces.users.indexes.users_by_email]
field = "email"
type = "folded"
unique = true
scope = "shared"

[spaces.notes]
key = "user:{user}:notes:{note}"
ownership = "user"
value_bytes_max = "200 B"
history = 10
[spaces.notes.value]
type = "object"
required = ["title"]
properties.title = { type = "string" }
properties.votes = { type = "integer" }
[spaces.notes.indexes.notes_by_title]
field = "title"
[spaces.notes.indexes.notes_by_votes]
field = "votes"
type = "integer"

[spaces.templates]
key = "shared:templates:{template}"
ownership = "shared"
write_roles = ["editor"]

[spaces.places]
key = "shared:places:{place}"
ownership = "shared"
[spaces.places.indexes.places_near]
kind = "geohash"
lat = "lat"
lon = "lon"
precision = 7
"#;

/// A sandbox with the schema, in which nothing is stored yet.
pub fn declared() -> Sandbox {
    let kw = Sandbox::new();
    kw.write("keyward.schema.toml", SCHEMA);
    kw
}

impl Sandbox {
    /// What `keyward record …` prints.
    #[track_caller]
    pub fn record(&self, arguments: &[&str]) -> String {
        self.ok(&[&["record"], arguments].concat())
    }

    /// What `keyward record …` says when it is refused so: text and JSON say the same, and nothing
    /// in the store has changed.
    #[track_caller]
    pub fn refuses(&self, exit: i32, code: &str, arguments: &[&str]) -> String {
        let before = self.run(&["export"]);
        let before = (before.code() == Some(0)).then(|| before.ok());
        let arguments = [&["record"], arguments].concat();
        let told = self.fails(exit, &arguments);
        let body = self.fails(exit, &[&arguments[..], &["--json"]].concat());
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["error"]["code"], code, "{told}");
        let (first, hint) = told.split_once("\nhint: ").unwrap_or((told.trim_end(), ""));
        assert_eq!(first.strip_prefix("error: "), body["error"]["message"].as_str());
        assert_eq!(hint.trim_end(), body["error"]["hint"].as_str().unwrap_or_default());
        if let Some(before) = before {
            assert_eq!(self.ok(&["export"]), before);
        }
        told
    }
}

#[test]
fn a_record_is_put_got_and_deleted_in_its_owners_name() {
    let kw = declared();
    let put = ["put", "notes", "note=n1", r#"{"title": "Keys", "n": 1.00}"#, "--as", "ada"];
    let told = kw.record(&put);
    let version = told.strip_prefix("user:ada:notes:n1  version ").unwrap().trim_end();
    let get = ["get", "notes", "note=n1", "--as", "ada"];
    assert_eq!(kw.record(&get), "{\"title\":\"Keys\",\"n\":1.00}\n");
    // The operator says whose it is.
    assert_eq!(kw.record(&["get", "notes", "user=ada", "note=n1"]), kw.record(&get));
    let meta = kw.json(&[&["record"], &get[..], &["--json"]].concat());
    assert_eq!(meta["key"], "user:ada:notes:n1");
    assert_eq!(meta["version"], version);
    assert_eq!(meta["expires"], Value::Null);
    let replaced = kw.json(&[&["record"], &put[..], &["--json"]].concat());
    assert_eq!(replaced["outcome"], "replaced");

    let delete = ["delete", "notes", "note=n1", "--as", "ada"];
    assert_eq!(kw.record(&delete), "user:ada:notes:n1  deleted\n");
    assert_eq!(kw.record(&delete), "user:ada:notes:n1  was not there\n");
    let told = kw.refuses(1, "not-found", &get);
    assert_eq!(told, "error: user:ada:notes:n1 is not there\n");
}

#[test]
fn a_refused_change_leaves_no_store_behind() {
    let kw = declared();
    let long = format!(r#"{{"title":"{}"}}"#, "t".repeat(300));
    let good = r#"{"title":"x"}"#;
    for (exit, code, arguments) in [
        (2, "schema-mismatch", &["put", "notes", "note=n1", r#"{"title":7}"#, "--as", "ada"][..]),
        (4, "value-too-large", &["create", "notes", "note=n1", &long, "--as", "ada"]),
        (2, "schema-mismatch", &["merge", "notes", "note=n1", "{}", "--as", "ada"]),
        (
            3,
            "precondition-failed",
            &["put", "notes", "note=n1", good, "--as", "ada", "--if-match", "7"],
        ),
        (11, "forbidden", &["put", "notes", "user=bob", "note=n1", good, "--as", "ada"]),
        (7, "file", &["put", "notes", "note=n1", "@absent.json", "--as", "ada"]),
    ] {
        kw.refuses(exit, code, arguments);
        assert!(!kw.path("data").exists(), "{arguments:?}");
    }
    kw.record(&["put", "notes", "note=n1", good, "--as", "ada"]);
    assert!(kw.path("data").exists());
}

#[test]
fn values_come_from_arguments_files_and_standard_input() {
    let kw = declared();
    kw.write("note.json", "{ \"title\": \"file\" }\n");
    kw.record(&["put", "notes", "@note.json", "note=n1", "--as", "ada"]);
    assert_eq!(kw.record(&["get", "notes", "note=n1", "--as", "ada"]), "{\"title\":\"file\"}\n");
    let piped = ["record", "put", "notes", "note=n2", "-", "--as", "ada"];
    kw.run_with(&piped, "{\"title\":\"pipe\"}").ok();
    assert_eq!(kw.record(&["get", "notes", "note=n2", "--as", "ada"]), "{\"title\":\"pipe\"}\n");
    kw.refuses(7, "file", &["put", "notes", "note=n3", "@absent.json", "--as", "ada"]);
    // The same goes for put without a schema.
    kw.ok(&["put", "k", "@note.json"]);
    assert_eq!(kw.ok(&["get", "k"]), "{\"title\":\"file\"}\n");
}

#[test]
fn lifetimes_and_metadata_are_kept() {
    let kw = declared();
    let put =
        ["put", "templates", "template=t", "1", "--ttl", "1h", "--metadata", r#"{"by":"me"}"#];
    kw.record(&put);
    let get = ["record", "get", "templates", "template=t", "--meta"];
    let record = kw.json(&get);
    assert!(record["expires"].is_string(), "{record}");
    assert_eq!(record["metadata"], json!({"by": "me"}));
    kw.record(&["put", "templates", "template=t", "-5", "--no-ttl"]);
    assert_eq!(kw.json(&get)["expires"], Value::Null);
    assert_eq!(kw.json(&get)["value"], -5);
}

#[test]
fn what_makes_no_key_is_told_before_a_store_is_made() {
    let kw = declared();
    for (arguments, reason) in [
        (&["put", "notes", "{}"][..], "needs a value for {user}"),
        (&["put", "notes", "{}", "--as", "ada"], "needs a value for {note}"),
        (&["put", "notes", "nte=1", "{}", "--as", "ada"], "no variable called \"nte\""),
        (&["put", "notes", "note=1", "note=2", "{}", "--as", "ada"], "note is given twice"),
        (&["put", "notes", "note=1", "--as", "ada"], "no value was given"),
        (&["put", "notes", "note=1", "1", "2", "--as", "ada"], "1 and 2: one value is enough"),
        (&["put", "notes", "note=1", "Keys", "--as", "ada"], "the value Keys is not JSON"),
        (&["put", "nots", "note=1", "{}"], "no space called \"nots\""),
        (&["put", "notes", "note=1", "{}", "--role", "editor"], "--role"),
    ] {
        let told = kw.fails(2, &[&["record"], arguments].concat());
        assert!(told.contains(reason), "{told}");
        assert!(told.contains("\nhint: "), "{told}");
    }
    assert!(!kw.path("data").exists());
}

#[test]
fn looking_for_a_record_makes_no_store() {
    let kw = declared();
    let told = kw.fails(1, &["record", "get", "notes", "note=n1", "--as", "ada"]);
    assert!(told.contains("there is no store at embedded:"), "{told}");
    for command in [
        &["list", "notes"][..],
        &["query", "notes", "notes_by_title", "--as", "ada"],
        &["near", "places", "--lat", "1", "--lon", "1", "--radius", "1km"],
        &["history", "notes", "note=n1", "--as", "ada"],
    ] {
        assert_eq!(kw.record(command), "");
    }
    kw.record(&["delete", "notes", "note=n1", "--as", "ada"]);
    assert!(!kw.path("data").exists());
}

#[test]
fn conditions_are_told_with_the_current_version() {
    let kw = declared();
    let create = ["create", "notes", "note=n1", r#"{"title":"a"}"#, "--as", "ada"];
    let told = kw.record(&create);
    let version = told.trim_end().rsplit(' ').next().unwrap().to_owned();
    let told = kw.refuses(3, "exists", &create);
    let there = format!("error: user:ada:notes:n1 is there already, at version {version}\nhint: ");
    assert!(told.starts_with(&there), "{told}");
    for change in [
        &["put", "notes", "note=n1", r#"{"title":"b"}"#][..],
        &["merge", "notes", "note=n1", r#"{"title":"b"}"#],
        &["delete", "notes", "note=n1"],
    ] {
        let stale = [change, &["--as", "ada", "--if-match", "999"]].concat();
        let told = kw.refuses(3, "precondition-failed", &stale);
        assert!(told.contains(&format!("is at version {version}, not 999")), "{told}");
    }
    let put =
        ["put", "notes", "note=n1", r#"{"title":"b"}"#, "--as", "ada", "--if-match", &version];
    kw.record(&put);
}

#[test]
fn merging_follows_the_rules_asked_for() {
    let kw = declared();
    let name = ["users", "--as", "ada"];
    let merge = |json: &str, rules: &[&str]| {
        kw.record(&[&["merge"], &name[..], &[json], rules].concat());
        kw.record(&[&["get"], &name[..]].concat()).trim_end().to_owned()
    };
    assert_eq!(merge(r#"{"a":1,"t":["x"]}"#, &[]), r#"{"a":1,"t":["x"]}"#);
    assert_eq!(merge(r#"{"t":["x","y"]}"#, &["--arrays", "union"]), r#"{"a":1,"t":["x","y"]}"#);
    assert_eq!(merge(r#"{"t":["x"]}"#, &["--arrays", "append"]), r#"{"a":1,"t":["x","y","x"]}"#);
    assert_eq!(merge(r#"{"a":2,"t":[]}"#, &["--preserve", "a"]), r#"{"a":1,"t":[]}"#);
    assert_eq!(merge(r#"{"a":null}"#, &[]), r#"{"t":[]}"#);
}

#[test]
fn a_value_that_does_not_fit_is_refused_with_the_field() {
    let kw = declared();
    kw.record(&["put", "notes", "note=n1", r#"{"title":"a"}"#, "--as", "ada"]);
    let put = ["put", "notes", "note=n1", r#"{"title":7}"#, "--as", "ada"];
    let told = kw.refuses(2, "schema-mismatch", &put);
    assert!(told.contains("schema of the space notes: /title: "), "{told}");
    let long = format!(r#"{{"title":"{}"}}"#, "x".repeat(300));
    let told = kw.refuses(4, "value-too-large", &["put", "notes", "note=n1", &long, "--as", "ada"]);
    assert!(told.contains("the space notes takes at most 200"), "{told}");
}

#[test]
fn a_unique_value_has_one_holder_who_is_not_named_to_others() {
    let kw = declared();
    kw.record(&["create", "users", r#"{"email":"Ada@example.org"}"#, "--as", "ada"]);
    let clash = ["create", "users", r#"{"email":"ada@EXAMPLE.org"}"#];
    let told = kw.refuses(3, "unique-clash", &[&clash[..], &["--as", "eve"]].concat());
    assert!(told.contains("users_by_email already holds \"ada@example.org\"\n"), "{told}");
    assert!(!told.contains("user:ada"), "{told}");
    let told = kw.refuses(3, "unique-clash", &[&clash[..], &["user=eve"]].concat());
    assert!(told.contains("of the record user:ada:profile\n"), "{told}");
    // The address moves with a change.
    kw.record(&["merge", "users", r#"{"email":"ada@example.net"}"#, "--as", "ada"]);
    kw.record(&[&clash[..], &["--as", "eve"]].concat());
    let found =
        kw.record(&["query", "users", "users_by_email", "--equal", "ADA@example.org", "--text"]);
    assert_eq!(found, "user:eve:profile\t{\"email\":\"ada@EXAMPLE.org\"}\n");
}

#[test]
fn nobody_reaches_what_another_user_owns() {
    let kw = declared();
    kw.record(&["put", "notes", "note=n1", r#"{"title":"a"}"#, "--as", "ada"]);
    let told = kw.refuses(11, "forbidden", &["get", "notes", "user=ada", "note=n1", "--as", "bob"]);
    assert!(told.contains("these records belong to another user"), "{told}");
    for command in [
        &["put", "notes", "user=ada", "note=n1", r#"{"title":"b"}"#][..],
        &["merge", "notes", "user=ada", "note=n1", r#"{"title":"b"}"#],
        &["delete", "notes", "user=ada", "note=n1"],
        &["list", "notes", "user=ada"],
        &["query", "notes", "notes_by_title", "--owner", "ada"],
        &["history", "notes", "user=ada", "note=n1"],
        &["restore", "notes", "user=ada", "note=n1", "--to", "1"],
    ] {
        kw.refuses(11, "forbidden", &[command, &["--as", "bob"]].concat());
    }
    assert_eq!(kw.record(&["list", "notes", "--as", "bob"]), "");

    let write = ["put", "templates", "template=t", "1", "--as", "ada"];
    let told = kw.refuses(11, "forbidden", &write);
    assert!(told.contains("writing needs one of the roles editor"), "{told}");
    kw.record(&[&write[..], &["--role", "editor"]].concat());
}

#[test]
fn nobody_in_particular_reaches_what_is_shared_and_nothing_else() {
    let kw = declared();
    kw.record(&["put", "notes", "note=n1", r#"{"title":"a"}"#, "--as", "ada"]);
    kw.record(&["put", "places", "place=p", r#"{"lat":1,"lon":1}"#]);
    kw.record(&["put", "templates", "template=t", "1"]);
    for command in [
        &["get", "notes", "user=ada", "note=n1"][..],
        &["put", "notes", "user=ada", "note=n1", r#"{"title":"b"}"#],
        &["list", "notes"],
        &["list", "notes", "user=ada"],
        &["query", "notes", "notes_by_title"],
        &["query", "notes", "notes_by_title", "--owner", "ada"],
        &["history", "notes", "user=ada", "note=n1"],
        &["delete", "templates", "template=t"],
    ] {
        kw.refuses(11, "forbidden", &[command, &["--anonymous"]].concat());
    }
    assert_eq!(kw.record(&["get", "templates", "template=t", "--anonymous"]), "1\n");
    assert_eq!(kw.record(&["list", "places", "--anonymous"]), "shared:places:p\n");
    let near = ["near", "places", "--lat", "1", "--lon", "1", "--radius", "1km", "--anonymous"];
    assert_eq!(kw.record(&near).lines().count(), 1);
    let editor = ["delete", "templates", "template=t", "--anonymous", "--role", "editor"];
    kw.record(&editor);
    kw.fails(2, &["record", "list", "places", "--anonymous", "--as", "ada"]);
    kw.refuses(2, "invalid", &["list", "places", "--role", "editor"]);
}

#[test]
fn history_shows_who_did_what_and_restores_it() {
    let kw = declared();
    let note = ["notes", "note=n1", "--as", "ada"];
    kw.record(&[&["put"], &note[..], &[r#"{"title":"one"}"#, "--agent", "planner"]].concat());
    kw.record(&[&["merge"], &note[..], &[r#"{"title":"two"}"#]].concat());
    kw.record(&["delete", "notes", "user=ada", "note=n1"]);
    let history = [&["history"], &note[..]].concat();
    let lines: Vec<Value> =
        kw.record(&history).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let brief: Vec<Value> = lines
        .iter()
        .map(|l| json!([l["number"], l["user"], l["agent"], l["value"]["title"]]))
        .collect();
    assert_eq!(
        brief,
        [
            json!([3, null, null, null]),
            json!([2, "ada", null, "two"]),
            json!([1, "ada", "planner", "one"])
        ]
    );
    let told = kw.record(&[&history[..], &["--text", "--limit", "1", "--before", "2"]].concat());
    assert!(told.starts_with("1  put "), "{told}");
    assert!(told.ends_with("  ada through planner\t{\"title\":\"one\"}\n"), "{told}");

    kw.record(&[&["restore"], &note[..], &["--to", "1"]].concat());
    assert_eq!(kw.record(&[&["get"], &note[..]].concat()), "{\"title\":\"one\"}\n");
    let told = kw.refuses(2, "bad-change", &[&["restore"], &note[..], &["--to", "77"]].concat());
    assert!(told.contains("version 77 of user:ada:notes:n1 is not kept"), "{told}");
    kw.refuses(2, "bad-query", &["history", "users", "--as", "ada"]);
}
