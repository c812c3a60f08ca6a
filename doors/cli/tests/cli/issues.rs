//! issue: from its making to its end, and what is refused on the way.

use serde_json::Value;

use crate::agreements::{declared, folder, lines};
use crate::ollama::Ollama;
use crate::sandbox::Sandbox;

fn supply(arguments: &[&str]) -> Vec<String> {
    let folder = ["--folder", "pages"];
    arguments.iter().chain(&folder).map(ToString::to_string).collect()
}

fn ok(kw: &Sandbox, arguments: &[&str]) -> String {
    kw.ok(&supply(arguments).iter().map(String::as_str).collect::<Vec<_>>())
}

fn fails(kw: &Sandbox, code: i32, arguments: &[&str]) -> String {
    kw.fails(code, &supply(arguments).iter().map(String::as_str).collect::<Vec<_>>())
}

fn json(kw: &Sandbox, arguments: &[&str]) -> Value {
    serde_json::from_str(&ok(kw, arguments)).unwrap()
}

fn created(kw: &Sandbox, title: &str, severity: &str) -> String {
    let line = ["issue", "create", "supply", "--title", title, "--severity", severity, "--json"];
    json(kw, &line)["id"].as_str().unwrap().to_owned()
}

#[test]
fn an_issue_lives_from_pending_to_resolved_and_back() {
    let kw = folder();
    assert_eq!(ok(&kw, &["issue", "list", "supply"]), "");
    let told = ok(&kw, &["issue", "create", "supply", "--title", "Which law?"]);
    assert!(
        told.starts_with("created ") && told.ends_with(": pending, medium: Which law?\n"),
        "{told}"
    );
    let id = created(&kw, "Liability", "high");

    let told = ok(&kw, &["issue", "move", "supply", &id, "active", "--why", "Ada asks"]);
    assert_eq!(told, format!("moved {id}: active, high: Liability\n"));
    ok(&kw, &["issue", "move", "supply", &id, "blocked"]);
    let told = fails(&kw, 3, &["issue", "move", "supply", &id, "pending"]);
    assert!(told.contains("from there it can become active or resolved"), "{told}");
    let told = fails(&kw, 3, &["issue", "move", "supply", &id, "pending", "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["error"]["code"], "transition-refused");
    ok(&kw, &["issue", "move", "supply", &id, "resolved"]);
    assert!(json(&kw, &["issue", "show", "supply", &id])["resolvedAt"].is_string());
    ok(&kw, &["issue", "move", "supply", &id, "active"]);
    let shown = json(&kw, &["issue", "show", "supply", &id]);
    assert!(shown["resolvedAt"].is_null());
    assert_eq!(shown["history"].as_array().unwrap().len(), 5);
    assert_eq!(shown["history"][1]["why"], "Ada asks");

    let version = shown["version"].as_str().unwrap();
    ok(&kw, &["issue", "classify", "supply", &id, "1", "--if-version", version]);
    let told = fails(&kw, 3, &["issue", "classify", "supply", &id, "2", "--if-version", version]);
    assert!(told.contains("was changed meanwhile"), "{told}");
    ok(&kw, &["issue", "annotate", "supply", &id, "First."]);
    ok(&kw, &["issue", "annotate", "supply", &id, "Second."]);
    let notes = json(&kw, &["issue", "show", "supply", &id])["annotations"].clone();
    assert!(notes.as_str().unwrap().contains("First.\n\nSecond."), "{notes}");
    let text = ok(&kw, &["issue", "show", "supply", &id, "--text"]);
    assert!(text.contains("severity  low") && text.contains("moved it from"), "{text}");

    ok(&kw, &["issue", "archive", "supply", &id]);
    assert_eq!(lines(&ok(&kw, &["issue", "list", "supply"])).len(), 1);
    assert_eq!(lines(&ok(&kw, &["issue", "list", "supply", "--archived"])).len(), 2);
    assert_eq!(lines(&ok(&kw, &["issue", "list", "supply", "--archived=only"])).len(), 1);
    fails(&kw, 3, &["issue", "move", "supply", &id, "resolved"]);
    ok(&kw, &["issue", "archive", "supply", &id, "--undo"]);
    ok(&kw, &["issue", "move", "supply", &id, "resolved"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let kw = folder();
    let id = created(&kw, "One", "low");
    fails(&kw, 2, &["issue", "move", "supply", &id, "done"]);
    fails(&kw, 2, &["issue", "classify", "supply", &id, "9"]);
    fails(&kw, 2, &["issue", "show", "supply", "7"]);
    fails(&kw, 2, &["issue", "create", "supply", "--title", ""]);
    fails(&kw, 1, &["issue", "create", "nope", "--title", "x"]);
    let unknown = "f47ac10b-58cc-4372-a567-0e02b2c3d479";
    let told = fails(&kw, 1, &["issue", "move", "supply", unknown, "active"]);
    assert!(told.contains("has no issue"), "{told}");
    fails(&kw, 1, &["issue", "analyze", "supply", "--last"]);
}

#[test]
fn issues_are_found_sorted_paged_and_exported() {
    let kw = folder();
    let ids = [("Alpha", "low"), ("Beta", "high"), ("Gamma", "medium")]
        .map(|(title, severity)| created(&kw, title, severity));
    ok(&kw, &["issue", "move", "supply", &ids[0], "active"]);
    let titles = |more: &[&str]| {
        let found = lines(&ok(&kw, &[&["issue", "list", "supply"], more].concat()));
        found.iter().map(|it| it["title"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(titles(&[]), ["Beta", "Gamma", "Alpha"]);
    assert_eq!(titles(&["--sort", "title"]), ["Alpha", "Beta", "Gamma"]);
    assert_eq!(titles(&["--state", "active,blocked"]), ["Alpha"]);
    assert_eq!(titles(&["--severity", "high,medium"]), ["Beta", "Gamma"]);
    assert_eq!(titles(&["--matching", "AMM"]), ["Gamma"]);
    assert_eq!(titles(&["--stale"]), [""; 0]);
    assert_eq!(titles(&["--limit", "2"]), ["Beta", "Gamma"]);
    let text = ok(&kw, &["issue", "list", "supply", "--text"]);
    assert!(text.starts_with(&format!("{}  high    pending  Beta\n", ids[1])), "{text}");
    let csv = ok(&kw, &["issue", "export", "supply", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 4, "{csv}");
    let markdown = ok(&kw, &["issue", "export", "supply", "--format", "markdown"]);
    assert!(markdown.contains("Beta") && markdown.contains("ctive"), "{markdown}");
}

#[test]
fn a_model_finds_issues_and_does_not_find_them_again() {
    let ollama = Ollama::start();
    let kw = declared(&ollama, "");
    let told = kw.ok(&["issue", "analyze", "supply"]);
    assert!(told.contains("compared with 3 policies") && told.contains("1 new issue"), "{told}");
    let found = lines(&kw.ok(&["issue", "list", "supply"]));
    assert_eq!((found.len(), &found[0]["severity"]), (1, &3.into()));
    let reference = &found[0]["description"][1];
    assert_eq!(
        (&reference["source"], &reference["located"]),
        (&"terms.md".into(), &"exact".into())
    );
    let asked = ollama.asked().len();
    let told = kw.ok(&["issue", "analyze", "supply"]);
    assert!(told.contains("nothing has changed since"), "{told}");
    assert_eq!(ollama.asked().len(), asked);
    kw.ok(&["issue", "analyze", "supply", "--again"]);
    assert_eq!(lines(&kw.ok(&["issue", "list", "supply"])).len(), 1);
    let last = kw.json(&["issue", "analyze", "supply", "--last", "--json"]);
    assert_eq!(last["policies"], 3);

    // The policy changes: the issue is stale.
    kw.write("pages/supply/terms.md", "# Terms\n\nPayment is due within two days.\n");
    kw.ok(&["page", "policies", "supply"]);
    assert_eq!(lines(&kw.ok(&["issue", "list", "supply", "--stale"])).len(), 1);
}
