//! Commands on the stores of a server that runs elsewhere.

use std::process::Command;

use serde_json::Value;

use crate::sandbox::{Ran, Running, Sandbox, is_absent};

const SCHEMA: &str = r#"
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
key = "notes:{id}"
ownership = "shared"
[spaces.notes.value]
type = "object"
required = ["title"]
properties.title = { type = "string" }
"#;
const INDEX: &str = "\n[spaces.notes.indexes.by_title]\nfield = \"title\"\n";

/// A server in one directory, and somebody in another.
struct Far {
    there: Sandbox,
    here: Sandbox,
    url: String,
    start_token: Option<String>,
    server: Option<Running>,
}

impl Far {
    fn new() -> Self {
        Self::serving(Sandbox::new())
    }

    fn with_schema() -> Self {
        let there = Sandbox::new();
        there.write("keyward.schema.toml", SCHEMA);
        Self::serving(there)
    }

    fn serving(there: Sandbox) -> Self {
        let (here, url) = (Sandbox::new(), String::new());
        let mut far = Self { there, here, url, start_token: None, server: None };
        far.start("127.0.0.1:0");
        far
    }

    fn start(&mut self, listen: &str) {
        let server = self.there.start(&["serve", "--listen", listen, "--json"]);
        let started: Value = serde_json::from_str(&server.next_line()).unwrap();
        self.url = started["url"].as_str().unwrap().to_owned();
        self.start_token = started["start_token"].as_str().map(str::to_owned);
        self.server = Some(server);
    }

    fn line<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        [&["--server", &self.url], arguments].concat()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.here.command(&self.line(arguments))
    }

    fn with_key(&self, key: &str, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).env("KEYWARD_KEY", key))
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        self.here.ok(&self.line(arguments))
    }

    #[track_caller]
    fn fails(&self, code: i32, arguments: &[&str]) -> String {
        self.here.fails(code, &self.line(arguments))
    }
}

#[test]
fn keys_of_keyward_and_of_indexes_are_hidden_through_a_server_too() {
    let far = Far::with_schema();
    far.there.ok(&["record", "put", "users", "user=ada", r#"{"email":"a@example.org"}"#]);
    assert_eq!(far.ok(&["ls", "--text"]), "user:ada:profile\n");
    assert_eq!(far.ok(&["scan", "--json"]).lines().count(), 1);
    assert_eq!(far.ok(&["ls", "--depth", "1", "--all"]), "index:\nsystem:\nuser:\n");
    assert!(far.ok(&["ls", "system:", "--text"]).starts_with("system:"));
    assert!(far.ok(&["ls", "index:", "--text"]).starts_with("index:users_by_email:"));
}

#[test]
fn entries_are_those_of_the_server() {
    let far = Far::new();
    far.ok(&["put", "user:7:name", "\"Ada\""]);
    far.ok(&["put", "user:7:n", "1.50000000000000000000000001", "--if-absent"]);
    assert_eq!(far.ok(&["get", "user:7:name"]), "\"Ada\"\n");
    assert_eq!(far.there.ok(&["get", "user:7:n"]), "1.50000000000000000000000001\n");
    far.fails(3, &["put", "user:7:n", "2", "--if-absent"]);
    assert_eq!(far.ok(&["ls", "user", "--text"]), "user:7:n\nuser:7:name\n");
    assert_eq!(far.ok(&["scan", "user", "--json"]).lines().count(), 2);
    assert_eq!(far.ok(&["-s", "main", "get", "user:7:name"]), "\"Ada\"\n");
    let stats: Value = serde_json::from_str(&far.ok(&["stats", "--json"])).unwrap();
    assert_eq!((&stats["engine"], &stats["tier"]), (&"keyward+http".into(), &"atomic".into()));
    far.ok(&["del", "user:7:n"]);
    far.there.fails(1, &["get", "user:7:n"]);
    far.fails(1, &["get", "user:7:n"]);
    assert!(is_absent(&far.here.path("data")), "nothing is made here");
    // What is there is told as it changes.
    let watch = far.here.start(&far.line(&["watch", "user", "--text"]));
    assert!(watch.next_note().starts_with("watching for changes below user:"));
    far.there.ok(&["put", "user:8:name", "\"Lin\""]);
    assert!(watch.next_line().ends_with("put      user:8:name"));
    watch.interrupt();
    assert_eq!(watch.ended(), Some(0));
}

#[test]
fn records_need_no_schema_here() {
    let mut far = Far::with_schema();
    let ada = r#"{"email":"Ada@example.org"}"#;
    far.ok(&["record", "put", "users", ada, "--as", "ada"]);
    let clash = far.fails(3, &["record", "put", "users", ada, "--as", "eve"]);
    assert!(clash.contains("users_by_email"), "{clash}");
    let found =
        far.ok(&["record", "query", "users", "users_by_email", "--equal", "ada@example.org"]);
    assert!(found.contains("user:ada:profile"), "{found}");
    assert!(far.ok(&["record", "list", "users"]).contains("user:ada:profile"));
    let wrong = far.fails(2, &["record", "put", "notes", "id=n1", "{}"]);
    assert!(wrong.contains("title"), "{wrong}");
    far.ok(&["record", "put", "notes", "id=n1", r#"{"title":"Keys"}"#]);
    assert!(far.ok(&["schema", "docs"]).contains("users_by_email"));
    assert!(far.ok(&["schema", "check"]).contains("is good: 1 store, 2 spaces"));
    far.ok(&["doctor"]);
    // Another schema of the server's, and what it takes to come there.
    let address = far.url.strip_prefix("http://").unwrap().to_owned();
    let server = far.server.take().unwrap();
    server.terminate();
    assert_eq!(server.ended(), Some(0));
    far.there.write("keyward.schema.toml", &format!("{SCHEMA}{INDEX}"));
    far.start(&address);
    far.ok(&["migrate", "--yes"]);
    let found = far.ok(&["record", "query", "notes", "by_title", "--prefix", "K"]);
    assert!(found.contains("notes:n1"), "{found}");
    far.ok(&["doctor"]);
    far.there.ok(&["doctor"]);
}

#[test]
fn locks_queues_jobs_and_caches_are_shared_with_those_who_are_there() {
    let far = Far::new();
    let holder = far.here.start(&far.line(&["lock", "acquire", "page:7", "--json"]));
    holder.next_line();
    far.there.fails(12, &["lock", "exec", "page:7", "--no-wait", "--", "true"]);
    holder.interrupt();
    holder.ended();
    let script = "echo token $KEYWARD_LOCK_TOKEN";
    let told = far.ok(&["lock", "exec", "page:7", "--", "sh", "-c", script]);
    assert!(told.starts_with("token ") && told.trim().len() > "token ".len(), "{told}");

    far.there.ok(&["job", "submit", "q", r#"{"n":1.50}"#, "--id", "j1"]);
    let exec = "cat > in; echo 42";
    let worker = far.here.start(&far.line(&["worker", "--queue", "q", "--exec", exec, "--json"]));
    assert!(worker.next_line().contains("\"j1\""));
    assert_eq!(far.here.read("in"), "{\"n\":1.50}\n");
    // The worker tells of a message before its end is known to all.
    let watched = far.ok(&["job", "watch", "j1", "--text"]);
    assert_eq!(watched.lines().last(), Some("result 42"), "{watched}");
    assert_eq!(far.ok(&["job", "status", "j1"]), "result 42\n");
    // One that waits is woken.
    far.there.ok(&["queue", "push", "q", "2", "--id", "m"]);
    assert!(worker.next_line().contains("\"m\""));
    worker.terminate();
    assert_eq!(worker.ended(), Some(0));
    far.ok(&["queue", "push", "other", "1"]);
    assert!(far.there.ok(&["queue", "list", "other", "--json"]).contains("\"payload\":1"));
    assert_eq!(far.ok(&["dead-letter", "list", "q", "--json"]), "");
    far.ok(&["cache", "run", "answer", "--", "echo", "41"]);
    assert_eq!(far.there.ok(&["cache", "get", "answer"]), "41\n");
}

#[test]
fn what_is_exported_there_is_imported_anywhere() {
    let far = Far::new();
    let line = |n: u32| format!("{{\"key\":\"k:{n:04}\",\"value\":{n}}}\n");
    let lines: String = (0..2_500).map(line).collect();
    far.here.run_with(&far.line(&["import"]), lines.clone()).ok();
    assert_eq!(far.ok(&["export"]), lines);
    far.here.ok(&["put", "only-here", "1"]);
    far.ok(&["copy", "main", "embedded:./copy", "--verify"]);
    assert_eq!(far.here.ok(&["-s", "embedded:./copy", "export", "k"]), lines);
    far.ok(&["copy", "embedded:./data", "main"]);
    assert_eq!(far.there.ok(&["get", "only-here"]), "1\n");
}

#[test]
fn keys_are_made_and_asked_for_and_never_shown_again() {
    let far = Far::new();
    // The first one is made by whoever saw the server start.
    let create = ["key", "create", "laptop", "--scope", "admin:*"];
    let told = far.fails(11, &create);
    assert!(told.contains("start token"), "{told}");
    let token = far.start_token.clone().unwrap();
    let admin = far.with_key(&token, &create).ok();
    let admin = admin.trim();
    assert!(admin.starts_with("kw_"), "{admin}");
    let none = far.fails(11, &["put", "k", "1"]);
    assert!(none.contains("asks for an API key") && none.contains("KEYWARD_KEY"), "{none}");
    far.fails(11, &["key", "list"]);
    far.fails(11, &["record", "list", "users"]);

    let wrong = format!("{}0", &admin[..admin.len() - 1]);
    let wrong = if wrong == admin { format!("{}1", &admin[..admin.len() - 1]) } else { wrong };
    for line in [&["get", "k"][..], &["key", "list"], &["audit", "export"], &["get", "k", "--json"]]
    {
        let told = far.with_key(&wrong, line).fails(11);
        assert!(told.contains("wrong, has ended or was revoked"), "{told}");
        assert!(!told.contains(&wrong), "the key is shown");
    }
    far.with_key(admin, &["put", "k", "1"]).ok();
    let file = far.here.write_secret("key", &format!("{admin}\n"), 0o644);
    let told = far.fails(7, &["--key-file", file.to_str().unwrap(), "get", "k"]);
    assert!(told.contains("mode 0644") && told.contains("chmod 600"), "{told}");
    assert!(!told.contains(admin), "the key is shown");
    let file = far.here.write_secret("key", &format!("{admin}\n"), 0o600);
    assert_eq!(far.ok(&["--key-file", file.to_str().unwrap(), "get", "k"]), "1\n");

    let reader = far.with_key(admin, &["key", "create", "reader", "--scope", "read:*"]).ok();
    let reader = reader.trim();
    assert_eq!(far.with_key(reader, &["get", "k"]).ok(), "1\n");
    let refused = far.with_key(reader, &["put", "k", "2"]).fails(11);
    assert!(refused.contains("may not write store/main"), "{refused}");
    far.with_key(reader, &["key", "create", "mine", "--scope", "admin:*"]).fails(11);
    far.with_key(reader, &["lock", "exec", "r", "--", "true"]).fails(11);

    let listed = far.with_key(admin, &["key", "list", "--text"]).ok();
    assert!(listed.contains("laptop  admin:*") && listed.contains("reader  read:*"), "{listed}");
    assert!(!listed.contains(admin) && !listed.contains(reader));
    let id = reader.split('_').nth(1).unwrap();
    assert!(far.with_key(admin, &["key", "revoke", id]).ok().contains("(reader)"));
    far.with_key(reader, &["get", "k"]).fails(11);
    assert!(far.with_key(admin, &["key", "revoke", "none"]).fails(1).contains("no API key"));
    far.with_key(admin, &["key", "revoke", "../stores"]).fails(1);
    let acts = far.with_key(admin, &["audit", "export"]).ok();
    assert!(acts.contains("\"keys\":[\"k\"]"), "{acts}");
    assert!(!acts.contains(admin) && !acts.contains(reader));
}

#[test]
fn what_cannot_be_done_from_afar_says_where_it_can() {
    let far = Far::new();
    for line in [&["backup", "f"][..], &["restore", "f"], &["compact"], &["serve"]] {
        let told = far.fails(4, line);
        assert!(told.contains("through http://127.0.0.1:"), "{told}");
        assert!(told.contains("hint: ") && told.contains("KEYWARD_SERVER"), "{told}");
    }
    let both = far.fails(2, &["-s", "embedded:./data", "ls"]);
    assert!(both.contains("name of one of its stores"), "{both}");
    let missing = far.fails(7, &["-s", "nothing", "ls"]);
    assert!(missing.contains("no store called"), "{missing}");
    let nobody = far.here.fails(5, &["--server", "http://127.0.0.1:1", "ls"]);
    assert!(nobody.contains("cannot reach http://127.0.0.1:1"), "{nobody}");
    let secret = far.here.fails(2, &["--server", "http://kw_1_hidden@127.0.0.1:1", "ls"]);
    assert!(secret.contains("KEYWARD_KEY") && !secret.contains("hidden"), "{secret}");
    far.here.fails(2, &["--server", "127.0.0.1:1", "ls"]);
    // A store that is named by its URL is meant, whatever the environment says.
    let mut named = far.here.command(&["-s", "embedded:./data", "put", "k", "1"]);
    Ran::of(named.env("KEYWARD_SERVER", &far.url)).ok();
    far.fails(1, &["get", "k"]);
    assert_eq!(far.here.ok(&["get", "k"]), "1\n");
}

#[test]
fn nobody_gets_past_the_rules_from_afar() {
    let far = Far::with_schema();
    far.ok(&["record", "put", "users", r#"{"email":"ada@example.org"}"#, "--as", "ada"]);
    far.ok(&["lock", "exec", "page", "--", "true"]);
    let before = far.ok(&["export"]);
    let line = "{\"key\":\"notes:n1\",\"value\":5}\n";
    let url = format!("{}/app", far.url.replace("http", "keyward+http"));
    let reserved = |ran: Ran| {
        let told: Value = serde_json::from_str(&ran.fails(11)).unwrap();
        assert_eq!(told["error"]["code"], "reserved", "{told}");
    };
    let commands = [
        &["put", "user:ada:profile", "5"][..],
        // No index, so that only the schema tells of it.
        &["put", "notes:n1", "5"],
        &["put", "system:catalog", "{}"],
        &["put", "agents:ada:default:k", "5"],
        &["put", "page", "5"],
        &["del", "user:ada:profile"],
        &["del", "--prefix", "user", "--yes"],
    ];
    for command in commands {
        let command = [command, &["--json"]].concat();
        reserved(far.here.run(&far.line(&command)));
        reserved(far.here.run(&[&["-s", &url], &command[..]].concat()));
    }
    reserved(far.here.run_with(&far.line(&["import", "--json"]), line));
    assert_eq!(far.ok(&["export"]), before);
    far.ok(&["put", "user:ada:name", "1"]);

    // A key that may not run the store is refused by the server, with --raw too.
    let token = far.start_token.clone().unwrap();
    let admin = far.with_key(&token, &["key", "create", "laptop", "--scope", "admin:*"]).ok();
    let writer = far.with_key(admin.trim(), &["key", "create", "app", "--scope", "write:*"]).ok();
    for command in commands {
        reserved(far.with_key(writer.trim(), &[command, &["--json"]].concat()));
    }
    let put = ["put", "notes:n1", "5"];
    far.with_key(writer.trim(), &[&put[..], &["--raw"]].concat()).fails_after(11);
    reserved(far.with_key(admin.trim(), &[&put[..], &["--json"]].concat()));
    far.with_key(admin.trim(), &[&put[..], &["--raw"]].concat()).ok();
}
