//! What URLs say without anything being opened.

use keyward::{ErrorKind, Tier, has_document_layout, url_beside};

/// Engines that a build can leave out, with their tier.
#[cfg(all(
    feature = "cloudflare-kv",
    feature = "couchdb",
    feature = "dynamodb",
    feature = "firestore",
    feature = "forge-kvs"
))]
#[test]
fn every_engine_tells_its_tier_by_url() {
    for (url, engine, tier) in [
        ("memory:", "memory", Tier::Atomic),
        ("embedded:./data", "embedded", Tier::Atomic),
        ("postgres://h/db", "postgres", Tier::Atomic),
        ("couchdb://h/db", "couchdb", Tier::Recoverable),
        ("couchdb+https://h/db", "couchdb", Tier::Recoverable),
        ("dynamodb://eu-west-1/table", "dynamodb", Tier::Atomic),
        ("firestore://project/(default)/c", "firestore", Tier::Atomic),
        ("cloudflare-kv://a/n", "cloudflare-kv", Tier::Advisory),
        ("cloudflare-kv://a/n?coordinator=embedded:./c&keep=job", "cloudflare-kv", Tier::Atomic),
        ("forge-kvs://default", "forge-kvs", Tier::Advisory),
        ("forge-kvs://default?coordinator=memory:", "forge-kvs", Tier::Atomic),
    ] {
        let capabilities = keyward::capabilities(url).unwrap();
        assert_eq!((capabilities.engine, capabilities.tier()), (engine, tier), "{url}");
    }
    for url in [
        "keyward+http://h/main",
        "couchdb://h/db?layout=document",
        "cloudflare-kv://a/n?coordinator=keyward+http://h/main",
    ] {
        let error = keyward::capabilities(url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{url}: {error}");
    }
    for (url, has_layout) in [
        ("couchdb://h/db?layout=document", true),
        ("dynamodb://eu-west-1/table?layout=document", true),
        ("firestore://p/d/c?layout=document", true),
        ("couchdb://h/db", false),
        ("embedded:./d?layout=document", false),
        ("no url", false),
    ] {
        assert_eq!(has_document_layout(url), has_layout, "{url}");
    }
}

#[cfg(not(feature = "dynamodb"))]
#[tokio::test]
async fn an_engine_that_was_left_out_says_how_to_get_it() {
    let url = "dynamodb://eu-west-1/table";
    let says = "this build has no DynamoDB engine: rebuild with --features dynamodb";
    for error in [
        keyward::capabilities(url).unwrap_err(),
        keyward::open(url).await.unwrap_err(),
        keyward::open_existing(url).await.unwrap_err(),
        keyward::prepare("dynamodb://eu-west-1/table?layout=document", false).await.unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.message()), (ErrorKind::Unsupported, says));
    }
}

#[test]
fn a_coordinator_that_cannot_be_one_is_refused() {
    for (url, says) in [
        ("cloudflare-kv://a/n?coordinator=./c", "is not a store URL"),
        ("cloudflare-kv://a/n?coordinator=%zz", "percent-encoded"),
        ("cloudflare-kv://a/n?coordinator=forge-kvs://d", "cannot be a coordinator"),
        (
            "cloudflare-kv://a/n?coordinator=embedded:./c?coordinator=memory:",
            "a coordinator of its own",
        ),
        ("cloudflare-kv://a/n?grace=600", "grace is an option of a coordinator"),
        ("memory:?coordinator=memory:", "the memory engine needs no coordinator"),
        ("memory:?layout=document", "couchdb, dynamodb and firestore have"),
    ] {
        let error = keyward::capabilities(url).unwrap_err();
        assert!(error.message().contains(says), "{url}: {error}");
    }
    let weak = "cloudflare-kv://a/n?coordinator=memory:?tier=recoverable";
    #[cfg(feature = "cloudflare-kv")]
    {
        let error = keyward::capabilities(weak).unwrap_err();
        assert!(error.message().contains("a coordinator must be atomic"), "{error}");
    }
    assert!(url_beside(std::path::Path::new("/x"), weak).is_ok());
}
