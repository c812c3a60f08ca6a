//! URLs of engines that other programs run: what is wrong with them is told before anything is opened.

use crate::sandbox::{Ran, Sandbox};

#[test]
fn a_url_that_cannot_be_right_says_what_would_be() {
    let kw = Sandbox::new();
    for (url, says) in [
        ("rocks:./x", "there is no engine called \"rocks\"; there are embedded, postgres, couchdb"),
        ("couchdb://h", "couchdb://USER:PASSWORD@HOST:PORT/DATABASE"),
        ("couchdb://h/db?layuot=document", "layout"),
        ("couchdb://h/db?layout=records", "layout must be document, not \"records\""),
        ("embedded:./d?layout=document", "couchdb, dynamodb and firestore have"),
        ("dynamodb://eu-west-1", "dynamodb://eu-west-1/TABLE"),
        ("firestore://project", "firestore://my-project/(default)/notes"),
        ("cloudflare-kv://account", "cloudflare-kv://ACCOUNT/NAMESPACE"),
        ("cloudflare-kv://a/n?nonsense=1", "coordinator, keep, grace, rescan"),
        ("cloudflare-kv://a/n?keep=job", "keep is an option of a coordinator"),
        ("cloudflare-kv://a/n?coordinator=./coord", "not a store URL"),
        (
            "cloudflare-kv://a/n?coordinator=memory:?tier=recoverable",
            "a coordinator must be atomic",
        ),
        ("cloudflare-kv://a/n?coordinator=cloudflare-kv://a/m", "cannot be a coordinator"),
        (
            "cloudflare-kv://a/n?coordinator=couchdb://h/d?layout=document",
            "cannot be a coordinator",
        ),
        ("embedded:./d?coordinator=embedded:./c", "needs no coordinator"),
        ("couchdb://h/db?coordinator=embedded:./c", "needs no coordinator"),
    ] {
        let ran = kw.run(&["-s", url, "put", "k", "1"]);
        let code = ran.code();
        assert!(matches!(code, Some(2 | 7)), "{url}: {code:?}");
        let told = ran.fails(code.unwrap());
        assert!(told.contains(says), "{url}: {told}");
    }
    assert!(!kw.path("d").exists() && !kw.path("c").exists(), "nothing was made");
}

#[test]
fn credentials_are_never_shown() {
    let kw = Sandbox::new();
    for url in [
        "couchdb://ada:hush-hush@h/db?nonsense=1",
        "couchdb://ada:hush/hush-hush@h/db",
        "cloudflare-kv://a/n?token=hush-hush",
        "cloudflare-kv://a/n?nonsense=1&coordinator=postgres://ada:hush-hush@h/d",
        "cloudflare-kv://a/n?coordinator=postgres%3A%2F%2Fada%3Ahush-hush%40h%2Fd?nonsense=1",
        "dynamodb://eu-west-1/table?endpoint=ftp://ada:hush-hush@h",
    ] {
        for command in [&["put", "k", "1"][..], &["stats"], &["schema", "init"]] {
            let told = kw.run(&[&["-s", url], command].concat());
            let told = format!("{:?}", told.output());
            assert!(!told.contains("hush"), "{url}: {told}");
        }
    }
}

#[test]
fn coordinators_of_a_schema_are_checked_by_lint_and_by_whatever_opens_a_store() {
    let kw = Sandbox::new();
    for (schema, line, says) in [
        (
            "[stores.a]\nurl = 'embedded:./a'\ncoordinator = 'embedded:./c'\n",
            3,
            "needs no coordinator",
        ),
        (
            "[stores.a]\nurl = 'cloudflare-kv://a/n'\ncoordinator = 'memory:?tier=advisory'\n",
            3,
            "must be atomic",
        ),
        (
            "[stores.a]\nurl = 'cloudflare-kv://a/n'\ncoordinator = 'embedded:./c'\n\
             [stores.b]\nurl = 'cloudflare-kv://a/m?coordinator=embedded:c'\n",
            3,
            "the stores a and b have the same coordinator, embedded:",
        ),
        (
            "[stores.a]\nurl = 'cloudflare-kv://a/n'\ncoordinator = 'embedded:./main'\n\
             [stores.main]\nurl = 'embedded:./main'\n",
            3,
            "the coordinator of a is the store main",
        ),
    ] {
        kw.write("keyward.schema.toml", schema);
        for command in ["lint", "check"] {
            let ran = kw.run(&["schema", command]);
            assert_eq!(ran.code(), Some(2), "{schema}");
            let told = format!("{:?}", ran.output());
            assert!(told.contains(says), "{schema}: {told}");
            assert!(told.contains(&format!("keyward.schema.toml:{line}:")), "{schema}: {told}");
        }
        let told = kw.run(&["-s", "a", "put", "k", "1"]);
        assert!(told.code() != Some(0), "{schema}");
        let told = format!("{:?}", told.output());
        assert!(told.contains(says), "{schema}: {told}");
    }
    assert!(!kw.path("c").exists() && !kw.path("main").exists(), "nothing was made");
}

#[test]
fn stats_tell_tier_guarantee_and_limits_of_each_store() {
    let kw = Sandbox::new();
    kw.write(
        "keyward.schema.toml",
        "[stores.a]\nurl = 'embedded:./a'\n[stores.b]\nurl = 'embedded:./b'\n",
    );
    kw.ok(&["-s", "a", "put", "k", "1"]);
    kw.ok(&["-s", "b", "put", "k", "1"]);
    let mut all = kw.command(&["stats", "--all", "--json"]);
    let all = Ran::of(all.env_remove("KEYWARD_STORE")).ok();
    let all: Vec<serde_json::Value> =
        all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(all.len(), 2);
    for (stats, name) in all.iter().zip(["a", "b"]) {
        assert_eq!((&stats["named_by"], &stats["tier"]), (&name.into(), &"atomic".into()));
        assert!(stats["guarantee"].as_str().unwrap().contains("commits of several keys"));
    }
    let text = kw.ok(&["-s", "a", "stats", "--text"]);
    assert!(text.contains("tier        atomic\nguarantee   commits of several keys"), "{text}");
    let weak = kw.json(&["-s", "memory:?tier=advisory", "stats", "--json"]);
    assert!(weak["guarantee"].as_str().unwrap().starts_with("the last writer wins"));
}

#[test]
fn only_a_store_with_layout_document_is_prepared() {
    let kw = Sandbox::new();
    let told = kw.fails(2, &["agent", "prepare", "--plan"]);
    assert!(told.contains("has no layout=document"), "{told}");
    assert!(!kw.path("data").exists());
}
