//! Records: reading, writing, conditions, merging, listings.

use reqwest::Method;
use serde_json::json;

use crate::fixture::{answered, etag, refused, told};
use crate::spaces::served;

const NOTE: &str = "/v1/spaces/notes/records/user:ada:notes:n1";

#[tokio::test]
async fn what_is_put_is_read_back_with_its_version() {
    let server = served().await;
    let value = r#"{"title":"hi","n":12345678901234567890123,"x":1.10}"#;
    let created = answered(201, server.put(NOTE, value)).await;
    let version = etag(&created);
    let read = answered(200, server.get(NOTE)).await;
    assert_eq!(etag(&read), version);
    assert_eq!(read.text().await.unwrap(), value);
    answered(304, server.get(NOTE).header("if-none-match", &version)).await;
    answered(200, server.get(NOTE).header("if-none-match", "\"other\"")).await;

    let again = answered(200, server.put(NOTE, r#"{"title":"ho"}"#)).await;
    assert_ne!(etag(&again), version);
    answered(204, server.request(Method::DELETE, NOTE)).await;
    refused(404, "not-found", server.request(Method::DELETE, NOTE)).await;
    refused(404, "not-found", server.get(NOTE)).await;
    refused(400, "invalid", server.get(&format!("{NOTE}?vew=entry"))).await;
}

#[tokio::test]
async fn a_record_has_metadata_and_an_end() {
    let server = served().await;
    let session = "/v1/spaces/sessions/records/sessions:web:s1";
    let entry = async || told(200, server.get(&format!("{session}?view=entry"))).await;
    answered(201, server.put(session, "1")).await;
    let declared = entry().await["expires"].as_str().unwrap().to_owned();

    let body = r#"{"value":2,"metadata":{"by":"ada"},"ttl":7200}"#;
    answered(200, server.put(&format!("{session}?view=entry"), body)).await;
    let longer = entry().await;
    assert_eq!((&longer["value"], &longer["metadata"]), (&json!(2), &json!({"by": "ada"})));
    let ends = longer["expires"].as_str().unwrap().to_owned();
    assert!(ends > declared, "{ends} {declared}");
    let read = answered(200, server.get(session)).await;
    assert_eq!(read.headers()["keyward-expires"], ends);

    answered(200, server.put(&format!("{session}?ttl=keep"), "3")).await;
    assert_eq!(entry().await["expires"], ends);
    answered(200, server.sent(Method::PATCH, session, "4")).await;
    assert_eq!(entry().await["expires"], ends);
    answered(200, server.put(&format!("{session}?ttl=never"), "5")).await;
    assert!(entry().await.get("expires").is_none());
    for wrong in ["0", "soon", "-1"] {
        refused(400, "invalid", server.put(&format!("{session}?ttl={wrong}"), "1")).await;
    }
    let body = r#"{"value":1,"ttl":0}"#;
    refused(400, "invalid", server.put(&format!("{session}?view=entry"), body)).await;
}

#[tokio::test]
async fn a_change_is_made_only_if_its_condition_holds() {
    let server = served().await;
    let put = |title: &str| server.put(NOTE, &json!({ "title": title }).to_string());
    let patch = |body: &str| server.sent(Method::PATCH, NOTE, body);
    let failed = "precondition-failed";
    refused(412, failed, put("0").header("if-match", "*")).await;
    refused(412, failed, patch("{}").header("if-match", "\"7\"")).await;
    let first = etag(&answered(201, put("1").header("if-none-match", "*")).await);
    refused(412, failed, put("2").header("if-none-match", "*")).await;
    let several = format!("\"x\", \"y\", {first}");
    let second = etag(&answered(200, put("2").header("if-match", several)).await);
    for late in [put("3"), patch(r#"{"title":"3"}"#), server.request(Method::DELETE, NOTE)] {
        refused(412, failed, late.header("if-match", &first)).await;
    }
    refused(412, failed, put("3").header("if-match", format!("W/{second}"))).await;
    refused(412, failed, put("3").header("if-match", "\"x\", \"y\"")).await;
    assert_eq!(told(200, server.get(NOTE)).await, json!({"title": "2"}));
    answered(200, put("4").header("if-match", "*")).await;
    // Records are not locked as entries are: a ticket is refused rather than ignored.
    refused(400, "invalid", put("5").header("keyward-lock", "x")).await;
    answered(204, server.request(Method::DELETE, NOTE).header("if-match", "*")).await;
    refused(412, failed, server.request(Method::DELETE, NOTE).header("if-match", "*")).await;
}

#[tokio::test]
async fn a_part_is_merged_as_it_is_asked_for() {
    let server = served().await;
    let patch = |more: &str, body: &'static str| {
        let request = server.request(Method::PATCH, &format!("{NOTE}{more}")).body(body);
        request.header("content-type", "application/merge-patch+json")
    };
    answered(201, patch("", r#"{"title":"a","tags":["x"],"by":{"id":1},"n":1}"#)).await;
    answered(200, patch("", r#"{"n":10000000000000000000000,"gone":null}"#)).await;
    answered(200, patch("?arrays=append", r#"{"tags":["x"]}"#)).await;
    answered(200, patch("?arrays=union", r#"{"tags":["x","y"]}"#)).await;
    answered(200, patch("?preserve=title,by.id", r#"{"title":"b","by":{"id":2,"n":3}}"#)).await;
    let read = answered(200, server.get(NOTE)).await.text().await.unwrap();
    assert_eq!(
        read,
        r#"{"title":"a","tags":["x","x","y"],"by":{"id":1,"n":3},"n":10000000000000000000000}"#
    );
    answered(200, patch("?arrays=replace", r#"{"tags":[]}"#)).await;
    assert_eq!(told(200, server.get(NOTE)).await["tags"], json!([]));
    refused(400, "invalid", patch("?arrays=mix", "{}")).await;
    refused(400, "invalid", patch("?preserve=a..b", "{}")).await;
    refused(422, "schema-mismatch", patch("", r#"{"title":null}"#)).await;
}

#[tokio::test]
async fn a_record_is_made_by_the_variables_of_its_key() {
    let server = served().await;
    let create = |body: &str| server.post("/v1/spaces/notes/records", body);
    let body =
        r#"{"values":{"user":"ada","note":"a/b: ü%"},"value":{"title":"hi"},"metadata":{"m":1}}"#;
    let made = answered(201, create(body)).await;
    let (version, place) = (etag(&made), made.headers()["location"].to_str().unwrap().to_owned());
    assert!(place.is_ascii() && !place["/v1/spaces/notes/records/".len()..].contains('/'));
    let read = answered(200, server.get(&place)).await;
    assert_eq!(etag(&read), version);
    let key = told(200, server.get(&format!("{place}?view=entry"))).await["key"].clone();
    let listed = told(200, server.get("/v1/spaces/notes/records?prefix=user:ada:")).await;
    assert_eq!(listed["items"], json!([{ "key": key }]));

    refused(409, "exists", create(body)).await;
    for wrong in [
        r#"{"values":{"user":"ada"},"value":{"title":"x"}}"#,
        r#"{"values":{"note":"n1"},"value":{"title":"x"}}"#,
        r#"{"values":{"user":"ada","note":""},"value":{"title":"x"}}"#,
        r#"{"values":{"user":"ada","note":1},"value":{"title":"x"}}"#,
        r#"{"values":{"user":"ada","nope":"1"},"value":{"title":"x"}}"#,
    ] {
        refused(400, "key-mismatch", create(wrong)).await;
    }
    refused(400, "invalid", create(r#"{"values":{},"vlaue":1}"#)).await;
    let numbered = r#"{"values":{"app":"a","n":18446744073709551615},"value":1}"#;
    let made = answered(201, server.post("/v1/spaces/log/records", numbered)).await;
    let place = made.headers()["location"].to_str().unwrap();
    assert_eq!(place, "/v1/spaces/log/records/log:a:18446744073709551615");
}

#[tokio::test]
async fn what_the_space_does_not_take_is_told_with_where() {
    let server = served().await;
    let wrong = server.put(NOTE, r#"{"title":"x","votes":"many"}"#);
    let problem = refused(422, "schema-mismatch", wrong).await;
    assert_eq!(problem["mismatches"][0]["path"], "/votes", "{problem}");
    assert_eq!(problem["mismatches_total"], 1, "{problem}");
    let long = format!(r#"{{"title":"x","votes":"{}"}}"#, "many ".repeat(50_000));
    let problem = refused(422, "schema-mismatch", server.put(NOTE, &long)).await;
    assert!(problem["mismatches"][0]["message"].as_str().unwrap().contains("many many"));
    assert!(problem.to_string().len() < 2_000, "{problem}");
    refused(400, "invalid", server.put(NOTE, "{")).await;
    refused(400, "key-mismatch", server.put("/v1/spaces/notes/records/user:ada", "{}")).await;
    refused(400, "key-mismatch", server.get("/v1/spaces/notes/records/system:catalog")).await;
    refused(400, "invalid", server.get("/v1/spaces/notes/records/a%25zz")).await;

    answered(201, server.put(NOTE, r#"{"title":"x","slug":"One"}"#)).await;
    let other = "/v1/spaces/notes/records/user:bob:notes:n1";
    let clash = server.put(other, r#"{"title":"y","slug":"one"}"#);
    let problem = refused(409, "unique-clash", clash).await;
    assert_eq!(problem["index"], "notes_slug");
    assert_eq!(problem["holder"], "user:ada:notes:n1");
    refused(404, "not-found", server.get(other)).await;
    // Records are not changed as entries are: their indexes would not follow.
    let entry = server.put("/v1/stores/app/entries/user:ada:notes:n1", "1");
    refused(403, "reserved", entry).await;
}

#[tokio::test]
async fn a_listing_is_paged_by_a_cursor_of_its_own() {
    let server = served().await;
    for n in 0..12 {
        for user in ["ada", "bob"] {
            let at = format!("/v1/spaces/notes/records/user:{user}:notes:n{n:02}");
            answered(201, server.put(&at, r#"{"title":"x"}"#)).await;
        }
    }
    let list = |more: &str| server.get(&format!("/v1/spaces/notes/records?limit=5{more}"));
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = told(200, list(&format!("&prefix=user:ada:{cursor}"))).await;
        assert_eq!(page["guarantee"], "atomic");
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 5);
        seen.extend(items.iter().map(|item| item["key"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let expected: Vec<_> = (0..12).map(|n| format!("user:ada:notes:n{n:02}")).collect();
    assert_eq!(seen, expected);

    let first = told(200, list("&prefix=user:ada:&descending=true")).await;
    assert_eq!(first["items"][0]["key"], "user:ada:notes:n11");
    let next = first["next"].as_str().unwrap();
    let foreign = format!("&prefix=user:bob:&descending=true&cursor={next}");
    refused(400, "bad-cursor", list(&foreign)).await;
    refused(400, "bad-cursor", list(&format!("&prefix=user:ada:&cursor={next}"))).await;
    let mut bent = next.to_owned().into_bytes();
    bent[20] = if bent[20] == b'A' { b'B' } else { b'A' };
    let bent = String::from_utf8(bent).unwrap();
    let bent = format!("&prefix=user:ada:&descending=true&cursor={bent}");
    refused(400, "bad-cursor", list(&bent)).await;
    refused(400, "bad-cursor", list("&cursor=nonsense")).await;

    let users = told(200, list("&depth=1")).await;
    assert_eq!(users["items"], json!([{"prefix": "user:ada:"}, {"prefix": "user:bob:"}]));
    // Deeper than any key can be.
    let keys = told(200, list(&format!("&prefix=user:ada:&depth={}", usize::MAX))).await;
    assert_eq!(keys["items"][0]["key"], "user:ada:notes:n00");
    refused(400, "key-mismatch", list("&prefix=system:")).await;
    refused(400, "bad-query", list("&depth=0")).await;
    refused(400, "bad-query", list("&budget=0")).await;
    refused(400, "invalid", list("&limit=1001")).await;
}

#[tokio::test]
async fn records_below_a_prefix_are_removed_when_their_number_is_confirmed() {
    let server = served().await;
    for key in ["user:ada:notes:a", "user:ada:notes:b", "user:bob:notes:a"] {
        let path = format!("/v1/spaces/notes/records/{key}");
        answered(201, server.put(&path, r#"{"title":"t"}"#)).await;
    }
    let notes = "/v1/spaces/notes/records";
    let clear = |more: &str| server.request(Method::DELETE, &format!("{notes}?{more}"));
    // All are not meant by saying nothing.
    refused(400, "invalid", server.request(Method::DELETE, notes)).await;
    refused(400, "invalid", clear("prefix=user:ada:&all=true")).await;
    for wrong in ["prefix=user:ada:", "prefix=user:ada:&confirm=1"] {
        let problem = refused(409, "unconfirmed", clear(wrong)).await;
        assert_eq!(problem["count"], 2, "{problem}");
    }
    let counted = told(200, clear("prefix=user:ada:&dry_run=true")).await;
    assert_eq!(counted, json!({ "count": 2, "deleted": 0 }));
    refused(400, "invalid", clear("prefix=user:ada:&confirm=2").header("idempotency-key", "k"))
        .await;
    let removed = told(200, clear("prefix=user:ada:&confirm=2")).await;
    assert_eq!(removed, json!({ "count": 2, "deleted": 2 }));
    let left = told(200, server.get(notes)).await;
    assert_eq!(left["items"], json!([{ "key": "user:bob:notes:a" }]));
    // Indexes know of it.
    let query =
        server.post("/v1/spaces/notes/query", r#"{"index":"notes_by_title","owner":"ada"}"#);
    assert_eq!(told(200, query).await["records"], json!([]));

    let admin = server.admin().await;
    let eve = server.key(&admin, &json!({ "name": "e", "user": "eve" })).await.secret;
    let reader = server.key(&admin, &json!({ "name": "r", "scopes": ["read:*"] })).await.secret;
    let bobs = "prefix=user:bob:&confirm=1";
    refused(403, "forbidden", clear(bobs).bearer_auth(&reader)).await;
    let said = clear(bobs).bearer_auth(&eve).send().await.unwrap();
    assert!(said.status().is_client_error(), "{}", said.status());
    let own = told(200, clear("prefix=&confirm=0").bearer_auth(&eve)).await;
    assert_eq!(own, json!({ "count": 0, "deleted": 0 }));
    answered(200, server.get(&format!("{notes}/user:bob:notes:a")).bearer_auth(&admin.secret))
        .await;
}
