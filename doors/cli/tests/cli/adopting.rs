//! Stores that other programs filled: agreements of a Forge app, an index of bare ids, a registry of a Worker.

use serde_json::{Value, json};

use crate::agreements::folder;
use crate::sandbox::Sandbox;

const SCHEMA: &str = r#"
[stores.app]
[spaces.users]
key = "user:{userId}"
ownership = "user"
[spaces.users.value]
type = "object"
[spaces.users.value.properties]
email = { type = "string" }
[spaces.users.indexes.email]
field = "email"
unique = true
scope = "shared"
"#;

fn import(kw: &Sandbox, entries: &[(&str, Value)]) {
    let line =
        |(key, value): &(&str, Value)| json!({ "key": key, "value": value }).to_string() + "\n";
    kw.run_with(&["import", "--raw"], entries.iter().map(line).collect::<String>()).ok();
}

#[test]
fn an_index_of_bare_ids_is_adopted_and_what_does_not_fit_is_named() {
    let kw = Sandbox::new();
    import(
        &kw,
        &[
            ("user:a1", json!({"email": "ada@example.org", "name": "Ada"})),
            ("user:b2", json!({"email": "bob@example.org"})),
            ("index:email:ada@example.org", json!("a1")),
            ("index:email:bob@example.org", json!("b2")),
            ("index:email:gone@example.org", json!("c3")),
        ],
    );
    kw.write("keyward.schema.toml", SCHEMA);
    let shown = kw.ok(&["migrate"]);
    let problem = "  index:email:gone@example.org: it names user:c3, and there is no such record\n";
    assert!(shown.starts_with("would adopt the index email of users: 2 records\n"), "{shown}");
    assert!(shown.contains(problem), "{shown}");
    let refused = kw.run(&["migrate", "--yes"]);
    let told = refused.ended(10);
    assert!(told.contains("failed: adopt the index email of users"), "{told}");
    assert_eq!(kw.ok(&["get", "index:email:ada@example.org"]), "\"a1\"\n");
    assert_eq!(kw.ok(&["get", "index:email:gone@example.org"]), "\"c3\"\n");

    kw.ok(&["migrate", "--yes", "--set-aside"]);
    assert_eq!(kw.ok(&["get", "system:set-aside:index:email:gone@example.org"]), "\"c3\"\n");
    assert_eq!(kw.ok(&["get", "index:email:ada@example.org"]), "\"user:a1\"\n");
    let found =
        kw.json(&["record", "query", "users", "email", "--equal", "bob@example.org", "--json"]);
    assert_eq!(found["key"], "user:b2");
    assert_eq!(kw.ok(&["migrate"]), "the stores have the indexes that the schema declares\n");
}

#[test]
fn agreements_of_an_app_are_shown_and_taken_over() {
    const ISSUE: &str = "f47ac10b-58cc-4372-a567-0e02b2c3d479";
    let kw = folder();
    let issue = format!("supply:issue:{ISSUE}");
    let entries = [
        (
            "supply:policy:terms.md",
            json!({
                "original": true, "language": "en", "source": "terms.md", "title": "Terms of payment",
                "created": "2099-01-02T10:00:00.000", "content": "# As the app had it\n",
            }),
        ),
        (
            issue.as_str(),
            json!({
                "id": ISSUE, "created": "2025-10-20T16:00:00", "severity": 2, "title": "Ten days or thirty?",
                "state": "open", "description": "They differ.", "annotations": "",
            }),
        ),
        ("supply", json!({ "version": 1, "locks": {} })),
        ("job:task1", json!(3)),
    ];
    import(&kw, &entries);
    let page = |more: &[&str]| -> String {
        let arguments = [&["page", "adopt"], more, &["--folder", "pages"]].concat();
        kw.ok(&arguments)
    };
    let what = "1 policy, 1 issue, 1 job, 1 lock catalog";
    assert_eq!(
        page(&["--plan"]),
        format!("would take over: {what}\nnothing was written; --apply does it\n")
    );
    assert_eq!(kw.ok(&["get", "job:task1"]), "3\n");
    assert_eq!(page(&["--apply"]), format!("took over: {what}\n"));
    let policy = kw.ok(&["policy", "get", "supply", "terms.md", "--folder", "pages"]);
    assert_eq!(policy, "# As the app had it\n");
    let shown = kw.json(&["issue", "show", "supply", ISSUE, "--folder", "pages", "--json"]);
    assert_eq!(
        (&shown["state"], &shown["title"]),
        (&json!("pending"), &json!("Ten days or thirty?"))
    );
    assert_eq!(kw.ok(&["get", "system:adopted:job:task1"]), "3\n");
    assert!(page(&["--apply"]).starts_with("nothing to take over\n"));
    kw.fails(2, &["page", "adopt", "--folder", "pages"]);

    // The same from an export, in another store.
    let line =
        |(key, value): &(&str, Value)| json!({ "key": key, "value": value }).to_string() + "\n";
    kw.write("forge.ndjson", &entries.iter().map(line).collect::<String>());
    let other = ["-s", "embedded:./other"];
    let adopt =
        ["page", "adopt", "--export", "forge.ndjson", "--apply", "--folder", "pages", "--json"];
    let told = kw.json(&[&other[..], &adopt].concat());
    assert_eq!(
        (&told["policies"], &told["issues"], &told["left"]),
        (&json!(1), &json!(1), &json!(0))
    );
    let policy = kw.ok(&[
        &other[..],
        &["policy", "get", "supply", "terms.md", "--folder", "pages"],
    ]
    .concat());
    assert_eq!(policy, "# As the app had it\n");
}

mod cloudflare_kv {
    use super::*;
    use crate::cloudflare_kv::{Namespace, sandbox};
    use crate::repository::Repository;

    #[test]
    fn a_registry_is_kept_in_a_namespace_that_a_worker_reads() {
        let namespace = Namespace::new();
        let kw = sandbox().with("KEYWARD_STORE", &namespace.url("&coordinator=embedded:./coord"));
        let repository = Repository::new(kw.path("policies"));
        repository.write("학칙.md", "# 한국교원대학교 학칙\n").write("b.md", "# B\n");
        let commit = repository.commit();
        let blob = |path: &str| repository.git(&["rev-parse", &format!("HEAD:{path}")]);
        // As the Worker has filled it: one entry is as in git, one is of version 1.
        let entry = json!({
            "policyName": "학칙", "title": "한국교원대학교 학칙", "status": "active",
            "lastUpdated": "2025-10-20T16:00:00Z", "sha": blob("학칙.md"), "path": "학칙.md",
        });
        let put = |name: &str, value: &str| {
            let name = name.replace(':', "%3A").replace("학칙", "%ED%95%99%EC%B9%99");
            assert_eq!(namespace.ask("PUT", &format!("/values/{name}"), value).0, 200);
        };
        put("policy:학칙", &entry.to_string());
        put("policy:B", r#"{"title":"B","fileNo":"868","status":"active"}"#);
        put("metadata:sync:lastCommit", &"0".repeat(40));
        kw.write("keyward.toml", "[registries.policies]\nrepository = \"policies\"\n");
        let run = kw.json(&["sync", "policies", "--apply", "--json"])["run"].take();
        assert_eq!(
            (&run["status"], &run["added"], &run["updated"], &run["deleted"]),
            (&json!("success"), &json!(0), &json!(1), &json!(0))
        );

        let get = |name: &str| {
            let name = name.replace(':', "%3A").replace("학칙", "%ED%95%99%EC%B9%99");
            let (status, text) = namespace.ask("GET", &format!("/values/{name}"), "");
            (status == 200).then_some(text)
        };
        assert_eq!(get("policy:학칙").unwrap(), entry.to_string(), "it was not written");
        assert_eq!(get("policy:B"), None);
        let moved: Value = serde_json::from_str(&get("policy:b").unwrap()).unwrap();
        assert_eq!(
            (&moved["policyName"], &moved["fileNo"], &moved["sha"]),
            (&json!("b"), &json!("868"), &json!(blob("b.md")))
        );
        assert_eq!(get("metadata:sync:lastCommit").unwrap(), commit, "without quotes, as it was");
        let (_, keys) = namespace.ask("GET", "/keys", "");
        let keys: Value = serde_json::from_str(&keys).unwrap();
        let names: Vec<&str> = keys["result"]
            .as_array()
            .unwrap()
            .iter()
            .map(|key| key["name"].as_str().unwrap())
            .collect();
        let expected =
            ["metadata:sync:lastCommit", "metadata:sync:lastRun", "policy:b", "policy:학칙"];
        assert_eq!(names, expected);
        assert!(kw.ok(&["sync", "policies", "--apply"]).contains("nothing"));
        // Consumers work without a trace in the namespace; here one that copies into another namespace.
        let edge = Namespace::new();
        kw.write(
            "keyward.toml",
            &format!(
                "[registries.policies]\nrepository = \"policies\"\n\
             [registries.policies.consumers.edge]\nstore = \"{}\"\n",
                edge.url("")
            ),
        );
        kw.ok(&["registry", "repair", "policies", "edge"]);
        let (status, copied) = edge.ask("GET", "/values/policy%3Ab", "");
        assert_eq!((status, copied), (200, get("policy:b").unwrap()));
        let (_, copied) = edge.ask("GET", "/values/metadata%3Async%3AlastCommit", "");
        assert_eq!(copied, format!("\"{commit}\""));
    }
}
