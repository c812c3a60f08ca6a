//! record: list, query, explain, near, within.

use serde_json::{Value, json};

use crate::records::declared;
use crate::sandbox::Sandbox;

/// Notes n00 to n24 of ada with titles and votes, and one of bob.
fn noted() -> Sandbox {
    let kw = declared();
    for n in 0..25 {
        let value =
            format!(r#"{{"title":"{} {n:02}","votes":{}}}"#, ["key", "lock"][n % 2], n as i64 - 5);
        kw.record(&["put", "notes", &format!("note=n{n:02}"), &value, "--as", "ada"]);
    }
    kw.record(&["put", "notes", "note=n1", r#"{"title":"key of bob"}"#, "--as", "bob"]);
    kw
}

#[test]
fn listings_and_queries_go_on_where_a_page_ended() {
    let kw = noted();
    let list = ["list", "notes", "--as", "ada"];
    let all = kw.record(&[&list[..], &["--all"]].concat());
    assert_eq!(all.lines().count(), 25);
    assert!(all.starts_with("user:ada:notes:n00\nuser:ada:notes:n01\n"), "{all}");
    assert_eq!(kw.record(&["list", "notes", "--depth", "1"]), "user:ada:\nuser:bob:\n");
    let last = kw.record(&[&list[..], &["--desc", "--limit", "1", "--text"]].concat());
    assert_eq!(last, "user:ada:notes:n24\n");

    for question in [&list[..], &["query", "notes", "notes_by_title", "--as", "ada"]] {
        let mut cursor = None::<String>;
        let mut keys = Vec::new();
        loop {
            let mut page = [&["record"], question, &["--limit", "10", "--json"]].concat();
            if let Some(cursor) = &cursor {
                page.extend(["--cursor", cursor]);
            }
            let lines: Vec<Value> =
                kw.ok(&page).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            keys.extend(lines.iter().filter_map(|line| line["key"].as_str().map(str::to_owned)));
            match lines.last().and_then(|line| line["next"].as_str()) {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        assert_eq!(keys.len(), 25);
        // The cursor of one question answers no other, nor one that was changed.
        let cursor = cursor.unwrap();
        let other = [question, &["--desc", "--cursor", &cursor]].concat();
        let told = kw.refuses(2, "bad-cursor", &other);
        assert!(told.ends_with("hint: Begin again with the first page.\n"), "{told}");
        let changed =
            cursor.replace(&cursor[20..21], if &cursor[20..21] == "A" { "B" } else { "A" });
        kw.refuses(2, "bad-cursor", &[question, &["--cursor", &changed]].concat());
    }
}

#[test]
fn queries_ask_indexes_for_values_spans_and_beginnings() {
    let kw = noted();
    let keys = |arguments: &[&str]| -> Vec<String> {
        let found =
            kw.record(&[&["query", "notes"], arguments, &["--as", "ada", "--text"]].concat());
        let keys = found.lines().map(|line| line.split('\t').next().unwrap());
        keys.map(|key| key.rsplit(':').next().unwrap().to_owned()).collect()
    };
    assert_eq!(keys(&["notes_by_title", "--equal", "key 04"]), ["n04"]);
    assert_eq!(keys(&["notes_by_title", "--prefix", "lock 2"]), ["n21", "n23"]);
    assert_eq!(
        keys(&["notes_by_title", "--from", "key 20", "--to", "lock 03"]),
        ["n20", "n22", "n24", "n01", "n03"]
    );
    assert_eq!(keys(&["notes_by_votes", "--from", "-2", "--to", "0"]), ["n03", "n04", "n05"]);
    assert_eq!(keys(&["notes_by_votes", "--above", "-2", "--to", "0"]), ["n04", "n05"]);
    assert_eq!(keys(&["notes_by_votes", "--from", "-2", "--below", "0"]), ["n03", "n04"]);
    assert_eq!(keys(&["notes_by_votes", "--above", "-2", "--below", "0"]), ["n04"]);
    assert_eq!(keys(&["notes_by_votes", "--above", "0", "--below", "1"]), [""; 0]);
    assert_eq!(keys(&["notes_by_title", "--above", "lock 21"]), ["n23"]);
    assert_eq!(keys(&["notes_by_votes", "--desc", "--limit", "2"]), ["n24", "n23"]);
    assert_eq!(
        keys(&["notes_by_title", "--prefix", "key", "--filter", r#"{"votes":{"gte":17}}"#]),
        ["n22", "n24"]
    );
    assert_eq!(keys(&["--limit", "2"]), ["n00", "n01"]);

    let some = kw.record(&[
        "query",
        "notes",
        "notes_by_votes",
        "--owner",
        "ada",
        "--equal",
        "19",
        "--fields",
        "votes",
    ]);
    let some: Value = serde_json::from_str(&some).unwrap();
    assert_eq!(some["value"], json!({"votes": 19}));
}

#[test]
fn questions_that_cannot_be_answered_are_told_why() {
    let kw = noted();
    let told = kw.refuses(2, "unknown-index", &["query", "notes", "by_colour", "--as", "ada"]);
    assert!(told.contains("it has notes_by_title, notes_by_votes"), "{told}");
    let scan = ["query", "notes", "--filter", r#"{"votes":1}"#, "--as", "ada"];
    let told = kw.refuses(2, "needs-scan", &scan);
    assert!(told.contains("add --allow-scan"), "{told}");
    assert!(told.contains("read from end to end"), "{told}");
    let found = kw.record(&[&scan[..], &["--allow-scan", "--text"]].concat());
    assert!(found.starts_with("user:ada:notes:n06\t"), "{found}");
    let told = kw.refuses(2, "invalid", &["query", "notes", "notes_by_title"]);
    assert!(told.contains("--owner USER, or --as USER"), "{told}");
    for twice in [["--from", "1", "--above", "1"], ["--to", "1", "--below", "1"]] {
        kw.fails(2, &[&["record", "query", "notes", "notes_by_votes"], &twice[..]].concat());
    }
    kw.refuses(2, "invalid", &["query", "notes", "--above", "x", "--as", "ada"]);
    let told = kw.refuses(2, "invalid", &["query", "notes", "--equal", "x", "--as", "ada"]);
    assert!(told.contains("The indexes of notes are notes_by_title, notes_by_votes."), "{told}");
    let told = kw.refuses(
        2,
        "invalid",
        &["query", "notes", "notes_by_votes", "--equal", "many", "--as", "ada"],
    );
    assert!(told.contains("votes of notes_by_votes is a number"), "{told}");
    kw.refuses(
        2,
        "bad-query",
        &["query", "notes", "notes_by_title", "--as", "ada", "--filter", "[]"],
    );
}

#[test]
fn explain_tells_the_index_the_range_and_the_cost() {
    let kw = noted();
    let explain = ["explain", "notes", "notes_by_title", "--prefix", "key", "--as", "ada"];
    let told = kw.record(&explain);
    assert_eq!(
        told,
        "index    notes_by_title
range    index:notes_by_title:ada:key*
filter   no
read     13 entries, 13 records
dropped  0 records
found    13 records
answer   exact (atomic)
"
    );
    let told = kw.json(&[&["record"], &explain[..], &["--limit", "5", "--json"]].concat());
    assert_eq!((told["found"].clone(), told["more"].clone()), (json!(5), json!(true)));
    let told =
        kw.record(&["explain", "notes", "user=ada", "--filter", r#"{"votes":1}"#, "--allow-scan"]);
    assert!(
        told.starts_with("index    none: the keys themselves\nrange    user:ada:notes:"),
        "{told}"
    );
    assert!(
        told.contains("read     25 entries, 25 records\ndropped  24 records\nfound    1 record\n"),
        "{told}"
    );
}

#[test]
fn places_are_found_by_distance_and_in_boxes() {
    let kw = declared();
    for (name, lat, lon) in [
        ("gate", 52.51628, 13.3777),
        ("tower", 52.52082, 13.40942),
        ("suva", -18.1416, 178.4419),
        ("apia", -13.8333, -171.7666),
    ] {
        let value = format!(r#"{{"lat":{lat},"lon":{lon}}}"#);
        kw.record(&["put", "places", &format!("place={name}"), &value]);
    }
    let near = ["near", "places", "--lat", "52.5203", "--lon", "13.387", "--radius", "3km"];
    let told = kw.record(&[&near[..], &["--text"]].concat());
    let shown: Vec<&str> = told.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(shown, ["   772 m  shared:places:gate", "  1.5 km  shared:places:tower"]);
    let first = kw.record(&[&near[..], &["--limit", "1", "--json"]].concat());
    let lines: Vec<Value> = first.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (nearest, next) = (&lines[0], lines[1]["next"].as_str().unwrap());
    let rest = kw.record(&[&near[..], &["--cursor", next, "--text"]].concat());
    assert_eq!(rest.lines().collect::<Vec<_>>(), told.lines().skip(1).collect::<Vec<_>>());
    let all = kw.record(&[&near[..], &["--all", "--text"]].concat());
    assert_eq!(all, told);
    let other = [&near[..7], &["2km", "--cursor", next]].concat();
    kw.refuses(2, "bad-cursor", &other);
    let told = kw.refuses(4, "too-expensive", &[&near[..], &["--budget", "1"]].concat());
    assert!(told.contains("entries read: 1") && told.contains("smaller radius"), "{told}");
    assert_eq!(nearest["key"], "shared:places:gate");
    assert!((nearest["distance_m"].as_f64().unwrap() - 772.0).abs() < 2.0, "{nearest}");

    let across =
        ["within", "places", "--south", "-20", "--west", "177", "--north", "-10", "--east", "-170"];
    let mut found: Vec<String> = kw
        .record(&across)
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["key"].as_str().unwrap().to_owned()
        })
        .collect();
    found.sort();
    assert_eq!(found, ["shared:places:apia", "shared:places:suva"]);

    let told = kw.refuses(
        2,
        "invalid",
        &["near", "places", "--lat", "95", "--lon", "0", "--radius", "1km"],
    );
    assert!(told.contains("latitude 95 is not between -90 and 90"), "{told}");
    let told =
        kw.refuses(2, "invalid", &["near", "notes", "--lat", "5", "--lon", "0", "--radius", "1km"]);
    assert!(told.contains("the space notes has no index of places"), "{told}");
}
