//! page, policy and issue through a server, in the demo, and what a config file says of workspaces.

use serde_json::Value;

use crate::agreements::{declared, lines};
use crate::ollama::Ollama;
use crate::sandbox::Sandbox;
use crate::serving::serve;

#[test]
fn a_broken_config_is_told_by_line() {
    let kw = Sandbox::new();
    kw.write(
        "keyward.toml",
        "[agreements.bread]\npages = { folder = \"pages\" }\nlease = \"0s\"\n\n\
         [agreements.other]\npages = { uploads = false }\n",
    );
    for line in [&["page", "list"][..], &["serve", "--check"], &["serve"]] {
        let told = kw.fails(2, line);
        assert!(told.contains("keyward.toml:3: agreements.bread.lease: "), "{told}");
        assert!(told.contains("keyward.toml:6: agreements.other.pages.uploads: "), "{told}");
        assert!(told.contains("keyward.toml:5: agreements.other: has the same store"), "{told}");
    }
    kw.write("keyward.toml", "[agreements.bread]\npages = { folder = \"p\" }\nleese = \"1s\"\n");
    let told = kw.fails(2, &["page", "list"]);
    assert!(told.contains("leese") && told.contains("line 3"), "{told}");
}

#[test]
fn a_workspace_is_named_where_there_are_several() {
    let kw = Sandbox::new();
    kw.write(
        "keyward.schema.toml",
        "[stores.main]\nurl = \"embedded:./data\"\n[stores.two]\nurl = \"embedded:./two\"\n",
    );
    kw.write(
        "keyward.toml",
        "[agreements.a]\nstore = \"main\"\npages = { uploads = true }\n\
         [agreements.b]\nstore = \"two\"\npages = { uploads = true }\n",
    );
    let told = kw.fails(2, &["page", "list"]);
    assert!(told.contains("a, b") && told.contains("--workspace"), "{told}");
    kw.ok(&["page", "put", "p", "--title", "P", "--workspace", "b"]);
    assert_eq!(kw.ok(&["page", "list", "--workspace", "b", "--text"]), "p  P\n");
    assert_eq!(kw.ok(&["page", "list", "--workspace", "a"]), "");
    let told = kw.fails(2, &["page", "list", "--workspace", "c"]);
    assert!(told.contains("declares no workspace c; it declares a, b"), "{told}");
    kw.fails(2, &["page", "list", "--workspace", "a", "--folder", "x"]);
}

#[test]
fn a_check_shows_workspaces_and_no_secrets() {
    let kw = Sandbox::new();
    kw.write(
        "keyward.toml",
        "[agreements.bread]\npages = { folder = \"pages\" }\n[agreements.bread.models]\n\
         provider = \"openai\"\nmodel = \"m\"\napi_key = { env = \"BREAD_KEY\" }\n",
    );
    let mut command = kw.command(&["serve", "--check", "--json"]);
    let ran = crate::sandbox::Ran::of(command.env("BREAD_KEY", "sk-secret")).ok();
    let shown: Value = serde_json::from_str(&ran).unwrap();
    assert_eq!(shown["agreements"]["bread"]["models"]["api_key"]["env"], "BREAD_KEY");
    assert!(!ran.contains("sk-secret"));
    let text = kw.ok(&["serve", "--check"]);
    assert!(text.contains("[agreements.bread.models]"), "{text}");
    kw.write("keyward.toml", "[agreements.bread]\nstore = \"nope\"\npages = { uploads = true }\n");
    let told = kw.fails(2, &["serve", "--check"]);
    assert!(told.contains("agreements.bread") && told.contains("nope"), "{told}");
}

#[test]
fn the_same_commands_work_through_a_server() {
    let ollama = Ollama::start();
    let there = declared(&ollama, "");
    let served = serve(&there, &[]);
    let url = format!("http://{}", served.address);
    let here = Sandbox::new();
    let line = |arguments: &[&'static str]| -> Vec<String> {
        ["--server", &url].into_iter().chain(arguments.iter().copied()).map(str::to_owned).collect()
    };
    let ok = |arguments: &[&'static str]| {
        here.ok(&line(arguments).iter().map(String::as_str).collect::<Vec<_>>())
    };
    let fails = |code, arguments: &[&'static str]| {
        here.fails(code, &line(arguments).iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert_eq!(ok(&["page", "list", "--text"]), "empty   Nothing yet\nsupply  Supply of bread\n");
    assert_eq!(lines(&ok(&["page", "policies", "supply"])).len(), 3);
    let got = ok(&["policy", "get", "supply", "terms.md", "--language", "fr"]);
    assert!(got.starts_with("# Terms of payment") && got.contains("In French."), "{got}");
    let again = ok(&["policy", "get", "supply", "terms.md", "--language", "fr", "--redo"]);
    assert_eq!((again, ollama.asked().len()), (got, 2));
    ok(&["lock", "exec", "supply", "policy:terms.md:fr", "--", "true"]);
    let told = fails(2, &["lock", "exec", "supply", "drafts", "--", "true"]);
    assert!(told.contains("the lock tree agreements has policies"), "{told}");
    let html = ok(&["policy", "get", "supply", "data.html", "--html"]);
    assert!(html.contains("Data protection") && !html.contains("alert"), "{html}");
    let told = ok(&["issue", "analyze", "supply"]);
    assert!(told.contains("1 new issue"), "{told}");
    let found = lines(&ok(&["issue", "list", "supply", "--severity", "high", "--json"]));
    let id: &'static str = found[0]["id"].as_str().unwrap().to_owned().leak();
    ok(&["issue", "move", "supply", id, "resolved", "--why", "settled"]);
    let told = fails(3, &["issue", "move", "supply", id, "blocked"]);
    assert!(told.contains("from there it can become active"), "{told}");
    let old: &'static str = found[0]["version"].as_str().unwrap().to_owned().leak();
    fails(3, &["issue", "classify", "supply", id, "low", "--if-version", old]);
    ok(&["issue", "annotate", "supply", id, "A note."]);
    let shown: Value = serde_json::from_str(&ok(&["issue", "show", "supply", id])).unwrap();
    assert_eq!((&shown["annotations"], &shown["state"]), (&"A note.".into(), &"resolved".into()));
    assert!(ok(&["issue", "export", "supply", "--format", "csv"]).contains(id));
    fails(1, &["page", "show", "nope"]);
    fails(1, &["policy", "get", "supply", "nope.md"]);
    fails(1, &["page", "list", "--workspace", "nope"]);
    fails(3, &["page", "put", "new", "--title", "New"]);
    fails(4, &["page", "work"]);
    ok(&["page", "clear", "supply"]);
    // What the server made is what commands beside it find.
    assert_eq!(lines(&there.ok(&["issue", "list", "supply"])).len(), 0);
    served.process.terminate();
    assert_eq!(served.process.ended(), Some(0));
}

#[test]
fn files_are_uploaded_through_a_server() {
    let there = Sandbox::new();
    there.write("keyward.toml", "[agreements.desk]\npages = { uploads = true }\n");
    let served = serve(&there, &[]);
    let url = format!("http://{}", served.address);
    let here = Sandbox::new();
    here.write("rules.md", "# House rules\n\nNo music is played after ten in the evening.\n");
    let ok = |arguments: &[&str]| here.ok(&[&["--server", &url], arguments].concat());
    ok(&["page", "put", "a/b ü", "--title", "Lease"]);
    ok(&["page", "attach", "a/b ü", "rules.md", "--source", "rules & more"]);
    assert!(ok(&["policy", "get", "a/b ü", "rules & more"]).starts_with("# House rules\n"));
    ok(&["page", "detach", "a/b ü", "rules & more"]);
    assert_eq!(ok(&["page", "policies", "a/b ü"]), "");
    ok(&["page", "delete", "a/b ü"]);
    assert_eq!(ok(&["page", "list"]), "");
    served.process.terminate();
    assert_eq!(served.process.ended(), Some(0));
}

#[test]
fn the_demo_has_an_agreement_whose_script_says_that_it_is_one() {
    let kw = Sandbox::new();
    let here = Sandbox::new();
    let mut versions = Vec::new();
    for _ in 0..2 {
        let served = serve(&kw, &["--demo", "-s", "embedded:./demo"]);
        let url = format!("http://{}", served.address);
        let ok = |arguments: &[&str]| here.ok(&[&["--server", &url], arguments].concat());
        assert!(ok(&["page", "list", "--text"]).starts_with("joint-doctorate  Agreement on joint"));
        assert_eq!(lines(&ok(&["page", "policies", "joint-doctorate"])).len(), 3);
        let got = ok(&[
            "policy",
            "get",
            "joint-doctorate",
            "supervision.md",
            "--language",
            "fr",
            "--json",
        ]);
        let got: Value = serde_json::from_str(&got).unwrap();
        assert_eq!(got["title"], "[scripted fr] Policy on supervision");
        assert_eq!(got["made"]["receipt"]["provider"], "scripted");
        let issues = lines(&ok(&["issue", "list", "joint-doctorate", "--sort", "title"]));
        assert_eq!(issues.len(), 3, "{issues:?}");
        assert!(issues.iter().all(|it| it["description"][1]["located"] != "missing"), "{issues:?}");
        versions.push(issues.iter().map(|it| it["version"].clone()).collect::<Vec<_>>());
        served.process.terminate();
        assert_eq!(served.process.ended(), Some(0));
    }
    assert_eq!(versions[0], versions[1], "filled once");
}

#[test]
fn help_names_the_commands_and_not_the_process_that_reads_files() {
    let kw = Sandbox::new();
    let help = kw.ok(&["--help"]);
    for name in ["  page ", "  policy ", "  issue "] {
        assert!(help.contains(name), "{name}");
    }
    assert!(!help.contains("extract-child"));
    assert!(kw.ok(&["policy", "get", "--help"]).contains("--language fr"));
    assert!(kw.ok(&["issue", "move", "--help"]).contains("--if-version"));
    let completions = kw.ok(&["completions", "bash"]);
    assert!(completions.contains("keyward__issue__analyze") || completions.contains("analyze"));
    assert!(!completions.contains("extract-child"));
    kw.ok(&["man", "--dir", "man"]);
    assert!(kw.read("man/keyward-policy-get.1").contains("EXAMPLES"));
    assert!(kw.run_with(&["extract-child"], "no request\n").code() != Some(0));
}
