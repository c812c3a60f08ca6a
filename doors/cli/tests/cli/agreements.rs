//! page, policy and issue: agreements under work, from a folder and from uploads.

use std::thread;

use serde_json::Value;

use crate::ollama::Ollama;
use crate::sandbox::{Sandbox, is_absent};

const TERMS: &str = "# Terms of payment\n\nPayment is due within ten days. Whoever pays late owes \
                     interest, and the other party may withhold what it still has to deliver.\n";
const PDF: &[u8] = include_bytes!("../../src/demo/agreements/convention.pdf");

/// A folder `pages` with two pages, of which one has policies.
pub fn folder() -> Sandbox {
    let kw = Sandbox::new();
    kw.write("pages/supply/page.md", "# Supply of bread\n\nPayment is due within thirty days.\n");
    kw.write("pages/supply/terms.md", TERMS);
    kw.write(
        "pages/supply/data.html",
        "<html lang=\"en\"><title>Data protection</title><h1>Data protection</h1><p>Personal data \
         is deleted <b>when it is no longer needed</b>.</p><script>alert(1)</script></html>",
    );
    std::fs::write(kw.path("pages/supply/convention.pdf"), PDF).unwrap();
    kw.write("pages/empty/page.md", "# Nothing yet\n");
    kw
}

/// The same, as the workspace `bread` of a config file, with a model.
pub fn declared(ollama: &Ollama, more: &str) -> Sandbox {
    let kw = folder();
    let models = ollama.settings("bread");
    kw.write(
        "keyward.toml",
        &format!("[agreements.bread]\npages = {{ folder = \"pages\" }}\n{more}\n{models}"),
    );
    kw
}

pub fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const IN_FOLDER: [&str; 2] = ["--folder", "pages"];

fn with<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &IN_FOLDER].concat()
}

#[test]
fn a_folder_needs_no_configuration() {
    let kw = folder();
    assert_eq!(
        kw.ok(&with(&["page", "list", "--text"])),
        "empty   Nothing yet\nsupply  Supply of bread\n"
    );
    assert!(is_absent(&kw.path("data")), "looking makes no store");
    let first = lines(&kw.ok(&with(&["page", "list", "--limit", "1"])));
    assert_eq!(first[0]["id"], "empty");
    let rest = lines(&kw.ok(&with(&["page", "list", "--after", "empty"])));
    assert_eq!((rest.len(), &rest[0]["id"]), (1, &"supply".into()));
    let page = kw.json(&with(&["page", "show", "supply"]));
    assert_eq!(
        (&page["title"], page["attachments"].as_array().unwrap().len()),
        (&"Supply of bread".into(), 3)
    );
    let body = kw.ok(&with(&["page", "show", "supply", "--body"]));
    assert!(body.starts_with("# Supply of bread\n"), "{body}");

    let before = lines(&kw.ok(&with(&["page", "policies", "supply"])));
    let sources: Vec<&str> = before.iter().map(|it| it["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["convention.pdf", "data.html", "terms.md"]);
    assert!(before.iter().all(|policy| policy["extracted"] == false), "{before:?}");

    let terms = kw.ok(&with(&["policy", "get", "supply", "terms.md"]));
    assert_eq!(terms.trim(), TERMS.trim());
    let html = kw.ok(&with(&["policy", "get", "supply", "data.html", "--html"]));
    assert!(html.contains("<strong>when it is no longer needed</strong>"), "{html}");
    assert!(!html.contains("alert"), "{html}");
    let document = kw.json(&with(&["policy", "get", "supply", "convention.pdf", "--json"]));
    assert_eq!((&document["language"], &document["original"]), (&"fr".into(), &true.into()));
    assert!(document["content"].as_str().unwrap().contains("doctora"), "{document}");

    let after = lines(&kw.ok(&with(&["page", "policies", "supply"])));
    assert!(after.iter().all(|policy| policy["extracted"] == true), "{after:?}");
    let told = kw.ok(&with(&["page", "policies", "supply", "--text"]));
    let words: Vec<&str> = told.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(words, ["terms.md", "en", "-", "Terms", "of", "payment"]);
}

#[test]
fn another_folder_on_the_same_store_is_refused_and_takes_nothing_away() {
    let kw = folder();
    kw.ok(&with(&["issue", "create", "supply", "--title", "Who pays?"]));
    kw.ok(&with(&["policy", "get", "supply", "terms.md"]));
    kw.write("other/else/page.md", "# Something else");
    for command in [
        &["page", "policies", "supply"][..],
        &["policy", "get", "supply", "terms.md"],
        &["page", "purge", "--now"],
        &["page", "clear", "supply"],
    ] {
        let told = kw.fails(3, &[command, &["--folder", "other"]].concat());
        assert!(told.contains("of the pages of the folder"), "{told}");
    }
    assert_eq!(lines(&kw.ok(&with(&["issue", "list", "supply"]))).len(), 1);
}

#[test]
fn what_is_not_there_is_told() {
    let kw = folder();
    let told = kw.fails(1, &with(&["page", "show", "nope"]));
    assert!(told.contains("there is no page nope"), "{told}");
    let told = kw.fails(1, &with(&["policy", "get", "supply", "nope.pdf"]));
    assert!(told.contains("has no policy nope.pdf"), "{told}");
    let told = kw.fails(1, &with(&["page", "policies", "nope", "--json"]));
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["error"]["code"], "unknown-page");
    kw.fails(2, &with(&["policy", "get", "supply", "terms.md", "--language", "klingon"]));
    kw.fails(2, &with(&["page", "show", "system"]));
    kw.fails(5, &["page", "list", "--folder", "nowhere"]);
    let told = kw.fails(2, &["page", "list"]);
    assert!(told.contains("--folder DIR") && told.contains("[agreements.NAME]"), "{told}");
    let told = kw.fails(3, &with(&["page", "put", "new", "--title", "New"]));
    assert!(told.contains("uploads = true"), "{told}");
}

#[test]
fn without_a_model_a_translation_says_what_to_set() {
    let kw = folder();
    let get = ["policy", "get", "supply", "terms.md", "--language", "fr"];
    let told = kw.fails(2, &with(&get));
    assert!(told.contains("provider = ") && told.contains(".models]"), "{told}");
    let told = kw.fails(2, &with(&["issue", "analyze", "supply", "--json"]));
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["error"]["code"], "model-unset");
    // What is in that language already needs none.
    let same = kw.ok(&with(&["policy", "get", "supply", "terms.md", "--language", "en"]));
    assert_eq!(same.trim(), TERMS.trim());
}

#[test]
fn a_model_translates_once_for_all_commands() {
    let ollama = Ollama::start();
    let kw = declared(&ollama, "");
    ollama.hold();
    let answers: Vec<String> = thread::scope(|scope| {
        let ask = |language| {
            let kw = &kw;
            scope.spawn(move || {
                kw.ok(&["policy", "get", "supply", "terms.md", "--language", language])
            })
        };
        let asking: Vec<_> = ["fr", "de", "fr", "de"].map(ask).into();
        ollama.wait_for(2);
        ollama.release();
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    });
    assert!(answers[0].starts_with("# Terms of payment"), "{}", answers[0]);
    assert!(answers[0].trim_end().ends_with("In French."), "{}", answers[0]);
    assert!(answers[1].trim_end().ends_with("In German."), "{}", answers[1]);
    assert_eq!((&answers[0], &answers[1]), (&answers[2], &answers[3]));
    assert_eq!(ollama.asked().len(), 2);
    let document = kw.json(&["policy", "get", "supply", "terms.md", "--language", "fr", "--json"]);
    assert_eq!(
        (&document["title"], &document["original"]),
        (&"Title in French".into(), &false.into())
    );
    assert_eq!(document["made"]["receipt"]["model"], "tiny");
    let listed = lines(&kw.ok(&["page", "policies", "supply"]));
    assert_eq!(listed[2]["translations"], serde_json::json!(["de", "fr"]));

    // A file that changed is read again, and its translations are gone.
    kw.write("pages/supply/terms.md", &TERMS.replace("ten", "twelve"));
    let now = kw.ok(&["policy", "get", "supply", "terms.md"]);
    assert!(now.contains("within twelve days"), "{now}");
    let listed = lines(&kw.ok(&["page", "policies", "supply"]));
    assert_eq!(listed[2]["translations"], serde_json::json!([]));
    assert_eq!(ollama.asked().len(), 2);
}

#[test]
fn a_hundred_callers_in_four_processes_get_two_translations() {
    const CALLERS: usize = 100;
    let ollama = Ollama::start();
    let kw = declared(&ollama, "");
    let workers: Vec<_> =
        (0..4).map(|_| kw.start(&["page", "work", "--concurrency", "25"])).collect();
    for worker in &workers {
        assert_eq!(worker.next_note(), "working on tasks of bread (Ctrl-C stops)");
    }
    ollama.hold();
    for n in 0..CALLERS {
        let language = if n % 2 == 0 { "fr" } else { "de" };
        let order = serde_json::json!({
            "by": "ada", "task": "policy", "page": "supply", "source": "terms.md",
            "language": language,
        });
        kw.ok(&["job", "submit", "agreements", &order.to_string(), "--id", &format!("c{n:03}")]);
    }
    ollama.wait_for(2);
    ollama.release();
    let mut made = std::collections::BTreeSet::new();
    for n in 0..CALLERS {
        kw.ok(&["job", "watch", &format!("c{n:03}")]);
        let job = kw.json(&["job", "status", &format!("c{n:03}"), "--json"]);
        made.insert(job["status"]["result"].to_string());
    }
    assert_eq!(ollama.asked().len(), 2);
    assert_eq!(made.len(), 2, "{made:?}");
    for worker in workers {
        worker.terminate();
        assert_eq!(worker.ended(), Some(0));
    }
}

#[test]
fn a_task_whose_worker_was_killed_is_taken_over() {
    let ollama = Ollama::start();
    let kw = declared(&ollama, "lease = \"2s\"");
    ollama.hold();
    let get = ["policy", "get", "supply", "terms.md", "--language", "fr"];
    let killed = kw.start(&get);
    ollama.wait_for(1);
    killed.kill();
    drop(killed);
    let working = kw.start(&["page", "work"]);
    let id = {
        let jobs = lines(&kw.ok(&["job", "list", "--all", "--json"]));
        jobs[0]["id"].as_str().unwrap().to_owned()
    };
    ollama.wait_for(2);
    ollama.release();
    kw.ok(&["job", "watch", &id]);
    assert!(kw.ok(&get).contains("In French."));
    assert_eq!(ollama.asked().len(), 2);
    working.terminate();
    assert_eq!(working.ended(), Some(0));
}

#[test]
fn ctrl_c_cancels_the_task() {
    let ollama = Ollama::start();
    let kw = declared(&ollama, "");
    ollama.hold();
    let asking = kw.start(&["policy", "get", "supply", "terms.md", "--language", "fr"]);
    ollama.wait_for(1);
    asking.interrupt();
    assert_eq!(asking.ended(), Some(130));
    let jobs = lines(&kw.ok(&["job", "list", "--all", "--json"]));
    assert_eq!(jobs[0]["status"]["trace"]["kind"], "cancelled", "{jobs:?}");
    ollama.release();
    assert!(kw.ok(&["policy", "get", "supply", "terms.md", "--language", "fr"]).contains("French"));
}

#[test]
fn pages_and_files_are_uploaded() {
    let kw = Sandbox::new();
    kw.write("keyward.toml", "[agreements.desk]\npages = { uploads = true }\n");
    kw.write("body.md", "# Lease\n\nThe rent is paid monthly.\n");
    kw.write("rules.md", "# House rules\n\nNo music is played after ten in the evening.\n");
    assert_eq!(
        kw.ok(&["page", "put", "lease", "--title", "Lease", "body.md"]),
        "put lease: Lease\n"
    );
    let told = kw.ok(&["page", "attach", "lease", "rules.md"]);
    assert_eq!(told, "attached rules.md to lease, 60 B\n");
    kw.ok(&["page", "attach", "lease", "rules.md", "--source", "second"]);
    let got = kw.ok(&["policy", "get", "lease", "rules.md"]);
    assert!(got.starts_with("# House rules\n"), "{got}");
    kw.ok(&["page", "detach", "lease", "second"]);
    assert_eq!(lines(&kw.ok(&["page", "policies", "lease"])).len(), 1);
    kw.fails(7, &["page", "attach", "lease", "nothing.pdf"]);

    let cleared = kw.json(&["page", "clear", "lease", "--json"]);
    assert!(cleared["removed"].as_u64().unwrap() > 0, "{cleared}");
    assert_eq!(lines(&kw.ok(&["page", "policies", "lease"]))[0]["extracted"], false);
    kw.ok(&["policy", "get", "lease", "rules.md"]);
    kw.ok(&["page", "delete", "lease"]);
    kw.fails(1, &["page", "show", "lease"]);
    kw.ok(&["page", "purge", "--now"]);
    assert_eq!(kw.ok(&["ls", "lease"]), "");
    kw.ok(&["page", "purge"]);
    let told = kw.ok(&["page", "purge"]);
    assert!(told.contains("nothing was done") && told.contains("--now"), "{told}");
}

#[test]
fn a_file_that_cannot_be_read_is_told_of() {
    let kw = folder();
    kw.write("pages/supply/broken.pdf", "%PDF-1.7\nthis is none\n");
    kw.write("pages/supply/picture.pdf", "\u{89}PNG no picture");
    let told = kw.fails(14, &with(&["policy", "get", "supply", "broken.pdf"]));
    assert!(told.starts_with("error: "), "{told}");
    kw.fails(14, &with(&["policy", "get", "supply", "picture.pdf"]));
}

#[test]
fn pages_are_locked_by_the_names_that_the_guide_gives() {
    let ollama = Ollama::start();
    let kw = declared(&ollama, "");
    let exec = |path: &'static str| ["lock", "exec", "supply", path, "--no-wait", "--", "true"];
    // The config file says that it is a workspace, before there is anything in it.
    let told = kw.fails(2, &exec("drafts"));
    assert!(told.contains("the lock tree agreements has policies"), "{told}");
    kw.fails(2, &exec("policy"));
    ollama.hold();
    let asking = kw.start(&["policy", "get", "supply", "terms.md", "--language", "fr"]);
    ollama.wait_for(1);
    for path in ["policy:terms.md:fr", "policies:terms.md:fr", "policy:terms.md", "policies"] {
        kw.fails(12, &exec(path));
    }
    for path in ["policy:terms.md:de", "policy:data.html", "issues", "issue:7"] {
        kw.ok(&exec(path));
    }
    ollama.release();
    assert_eq!(asking.ended(), Some(0));
    kw.ok(&exec("policy:terms.md:fr"));
    // The store says it itself, where no config file does.
    let elsewhere = Sandbox::new();
    let store = format!("embedded:{}", kw.path("data").display());
    let told = elsewhere.fails(2, &[&["-s", &store][..], &exec("drafts")].concat());
    assert!(told.contains("the lock tree agreements has policies"), "{told}");
    elsewhere.ok(&[&["-s", &store][..], &exec("policy:terms.md")].concat());
    elsewhere.ok(&exec("drafts"));
}

#[test]
fn a_translation_is_made_again_and_the_others_are_kept() {
    let ollama = Ollama::start();
    let kw = declared(&ollama, "");
    let get = |more: &[&'static str]| {
        kw.json(&[&["policy", "get", "supply", "terms.md", "--json"], more].concat())
    };
    let (french, german) = (get(&["--language", "fr"]), get(&["--language", "de"]));
    let again = get(&["--language", "fr", "--redo"]);
    assert_ne!(again["created"], french["created"]);
    assert_eq!(ollama.asked().len(), 3);
    let original = get(&["--redo"]);
    assert_eq!(original["original"], true);
    assert_eq!(get(&["--language", "fr"]), again);
    assert_eq!(get(&["--language", "de"]), german);
    assert_eq!(ollama.asked().len(), 3);
}
