//! Questions to a space.

use serde_json::{Value, json};

use crate::fixture::{Running, answered, refused, told};
use crate::spaces::served;

async fn filled() -> Running {
    let server = served().await;
    for (n, title) in ["kilo", "keys", "locks", "lists", "maps", "knots"].iter().enumerate() {
        let at = format!("/v1/spaces/notes/records/user:ada:notes:n{n}");
        let note = json!({"title": title, "votes": n, "odd": n % 2 == 1, "text": "…"});
        answered(201, server.put(&at, &note.to_string())).await;
    }
    let other = server.put("/v1/spaces/notes/records/user:bob:notes:n9", r#"{"title":"keys"}"#);
    answered(201, other).await;
    server
}

async fn titles(server: &Running, question: Value) -> Vec<String> {
    let page = told(200, server.post("/v1/spaces/notes/query", &question.to_string())).await;
    assert_eq!(page["guarantee"], "atomic");
    let records = page["records"].as_array().unwrap();
    records.iter().map(|it| it["value"]["title"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_index_is_asked_in_every_way() {
    let server = filled().await;
    let by_title = "notes_by_title";
    for (question, expected) in [
        (json!({"index": by_title, "equal": ["keys"]}), vec!["keys"]),
        (json!({"index": by_title, "prefix": "k"}), vec!["keys", "kilo", "knots"]),
        (
            json!({"index": by_title, "prefix": "k", "descending": true}),
            vec!["knots", "kilo", "keys"],
        ),
        (json!({"index": by_title, "from": "kilo", "to": "lists"}), vec!["kilo", "knots", "lists"]),
        (json!({"index": by_title, "above": "kilo", "below": "lists"}), vec!["knots"]),
        (json!({"index": by_title, "above": "locks"}), vec!["maps"]),
        (json!({"index": "notes_by_votes", "from": 2, "below": 4}), vec!["locks", "lists"]),
        (json!({"index": by_title, "prefix": "k", "filter": {"odd": true}}), vec!["keys", "knots"]),
        (
            json!({"index": by_title, "filter": {"votes": {"gte": 3, "lt": 5}}}),
            vec!["lists", "maps"],
        ),
        (json!({"index": by_title, "limit": 2}), vec!["keys", "kilo"]),
        (json!({"values": {"user": "ada"}, "limit": 2}), vec!["kilo", "keys"]),
        (
            json!({"values": {"user": "ada"}, "filter": {"odd": true}, "allow_scan": true}),
            vec!["keys", "lists", "knots"],
        ),
        (json!({"descending": true, "limit": 1}), vec!["knots"]),
    ] {
        let mut question = question;
        question["owner"] = json!("ada");
        assert_eq!(titles(&server, question.clone()).await, expected, "{question}");
    }
    let fields =
        json!({"index": by_title, "owner": "ada", "equal": ["maps"], "fields": ["title", "votes"]});
    let page = told(200, server.post("/v1/spaces/notes/query", &fields.to_string())).await;
    assert_eq!(page["records"][0]["value"], json!({"title": "maps", "votes": 4}));
    assert_eq!(page["records"][0]["key"], "user:ada:notes:n4");
    assert!(page["records"][0]["version"].is_string());
    assert_eq!(page["read"], json!({"entries": 1, "records": 1, "dropped": 0}));
}

#[tokio::test]
async fn pages_follow_each_other_and_cursors_are_of_one_question() {
    let server = filled().await;
    let query = |more: Value| {
        let mut question = json!({"index": "notes_by_title", "owner": "ada", "limit": 4});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post("/v1/spaces/notes/query", &question.to_string())
    };
    let first = told(200, query(json!({}))).await;
    let next = first["next"].as_str().unwrap();
    let second = told(200, query(json!({"cursor": next}))).await;
    assert_eq!(second["records"].as_array().unwrap().len(), 2);
    assert!(second["next"].is_null());
    let mut bent = next.to_owned().into_bytes();
    bent[20] = if bent[20] == b'A' { b'B' } else { b'A' };
    let bent = String::from_utf8(bent).unwrap();
    for (cursor, more) in [
        (next, json!({"owner": "bob"})),
        (next, json!({"index": "notes_by_votes"})),
        (next, json!({"filter": {"odd": true}})),
        (next, json!({"descending": true})),
        (&bent, json!({})),
        ("nonsense", json!({})),
    ] {
        let mut more = more;
        more["cursor"] = json!(cursor);
        refused(400, "bad-cursor", query(more)).await;
    }
    let elsewhere = json!({"cursor": next}).to_string();
    refused(400, "bad-cursor", server.post("/v1/spaces/log/query", &elsewhere)).await;

    // A page that ends early for its budget goes on.
    let poor = told(200, query(json!({"budget": 2, "filter": {"votes": 5}}))).await;
    assert!(poor["next"].is_string(), "{poor}");
}

#[tokio::test]
async fn a_question_that_makes_no_sense_is_refused() {
    let server = filled().await;
    let query = |question: Value| server.post("/v1/spaces/notes/query", &question.to_string());
    let index = "notes_by_title";
    refused(404, "unknown-index", query(json!({"index": "none"}))).await;
    refused(400, "needs-scan", query(json!({"filter": {"odd": true}}))).await;
    for question in [
        json!({"index": index}),
        json!({"index": index, "owner": "ada", "equal": ["a", "b"]}),
        json!({"index": index, "owner": "ada", "filter": {"a": {"near": 1}}}),
        json!({"index": index, "owner": "ada", "filter": []}),
        json!({"index": index, "owner": "ada", "budget": 0}),
        json!({"index": index, "owner": "ada", "budget": 100_001}),
    ] {
        refused(400, "bad-query", query(question)).await;
    }
    for question in [
        json!({"index": index, "values": {}}),
        json!({"equal": ["a"]}),
        json!({"prefix": "a"}),
        json!({"index": index, "from": "a", "above": "b"}),
        json!({"index": index, "from": "a", "prefix": "b"}),
        json!({"index": index, "limit": 0}),
        json!({"index": index, "limit": 1001}),
        json!({"index": index, "fields": ["a..b"]}),
        json!({"indx": index}),
    ] {
        refused(400, "invalid", query(question)).await;
    }
    refused(400, "key-mismatch", query(json!({"values": {"nope": "x"}}))).await;
    refused(400, "key-mismatch", query(json!({"values": {"note": "x"}}))).await;
}

#[tokio::test]
async fn numbers_keep_their_digits_and_are_compared_by_all_of_them() {
    let server = served().await;
    for (n, votes) in [i64::MAX, i64::MAX - 1, i64::MIN].iter().enumerate() {
        let at = format!("/v1/spaces/notes/records/user:ada:notes:n{n}");
        let note = format!(r#"{{"title":"x","votes":{votes},"exact":0.10000000000000000000001}}"#);
        answered(201, server.put(&at, &note)).await;
    }
    let question =
        format!(r#"{{"index":"notes_by_votes","owner":"ada","above":{}}}"#, i64::MAX - 1);
    let found = answered(200, server.post("/v1/spaces/notes/query", &question)).await;
    let text = found.text().await.unwrap();
    let value = format!(
        r#""value":{{"title":"x","votes":{},"exact":0.10000000000000000000001}}"#,
        i64::MAX
    );
    assert!(text.contains(&value), "{text}");
    assert_eq!(text.matches("\"value\"").count(), 1, "{text}");
}

#[tokio::test]
async fn a_question_is_explained_without_its_answer() {
    let server = filled().await;
    let explain = |question: Value| server.post("/v1/spaces/notes/explain", &question.to_string());
    let told_of = told(200, explain(json!({
        "index": "notes_by_title", "owner": "ada", "prefix": "k", "limit": 2, "filter": {"text": "…"},
    })))
    .await;
    assert_eq!(told_of["index"], "notes_by_title");
    assert_eq!((&told_of["records"], &told_of["more"]), (&json!(2), &json!(true)));
    assert_eq!((&told_of["filtered"], &told_of["guarantee"]), (&json!(true), &json!("atomic")));
    assert!(told_of["read"]["entries"].as_u64().unwrap() >= 2);
    assert!(told_of["range"].as_str().unwrap().contains("ada"));
    let by_key = told(200, explain(json!({"values": {"user": "ada"}}))).await;
    assert!(by_key["index"].is_null());
    refused(400, "needs-scan", explain(json!({"filter": {"odd": true}}))).await;
}

#[tokio::test]
async fn places_are_found_in_circles_and_boxes() {
    let server = served().await;
    for (name, lat, lon) in [("a", 52.52, 13.40), ("b", 52.53, 13.41), ("c", 48.85, 2.35)] {
        let at = format!("/v1/spaces/places/records/shared:places:{name}");
        let place = json!({"lat": lat, "lon": lon, "name": name, "kind": "city"});
        answered(201, server.put(&at, &place.to_string())).await;
    }
    let near = |question: Value| server.post("/v1/spaces/places/near", &question.to_string());
    let circle =
        json!({"lat": 52.52, "lon": 13.40, "radius_m": 5000, "limit": 1, "fields": ["name"]});
    let first = told(200, near(circle.clone())).await;
    assert_eq!(first["records"][0]["value"], json!({"name": "a"}));
    assert_eq!(first["records"][0]["distance_m"], 0.0);
    assert_eq!(first["guarantee"], "atomic");
    let mut rest = circle.clone();
    rest["cursor"] = first["next"].clone();
    let second = told(200, near(rest.clone())).await;
    assert_eq!(second["records"][0]["value"], json!({"name": "b"}));
    let distance = second["records"][0]["distance_m"].as_f64().unwrap();
    assert!((1_000.0..2_000.0).contains(&distance), "{distance}");
    rest["radius_m"] = json!(6000);
    refused(400, "bad-cursor", near(rest)).await;
    let mut none = circle.clone();
    none["filter"] = json!({"kind": "village"});
    assert_eq!(told(200, near(none)).await["records"], json!([]));
    let mut poor = circle.clone();
    poor["budget"] = json!(1);
    poor["radius_m"] = json!(2_000_000);
    poor["limit"] = json!(3);
    let problem = refused(422, "too-expensive", near(poor)).await;
    assert_eq!((&problem["entries"], &problem["limit"]), (&json!(1), &json!(3)));
    assert_eq!(problem["retryable"], false);

    let within = |question: Value| server.post("/v1/spaces/places/within", &question.to_string());
    let area = json!({"south": 45, "west": 0, "north": 55, "east": 10, "index": "places_near"});
    let found = told(200, within(area.clone())).await;
    assert_eq!(found["records"].as_array().unwrap().len(), 1);
    assert_eq!(found["records"][0]["value"]["name"], "c");
    assert_eq!(found["guarantee"], "atomic");

    refused(400, "bad-query", near(json!({"lat": 91, "lon": 0, "radius_m": 1}))).await;
    refused(400, "bad-query", near(json!({"lat": 0, "lon": 0, "radius_m": -1}))).await;
    refused(400, "bad-query", within(json!({"south": 10, "west": 0, "north": 5, "east": 1}))).await;
    refused(400, "invalid", near(json!({"lat": 0, "lon": 0}))).await;
    refused(404, "unknown-index", server.post("/v1/spaces/notes/near", &circle.to_string())).await;
    let mut named = area;
    named["index"] = json!("none");
    refused(404, "unknown-index", within(named)).await;
}
