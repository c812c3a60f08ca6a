//! Schemas that are right, and what is read from them.

use std::fs;
use std::time::Duration;

use keyward_schema::{
    EXAMPLE, IndexKind, Lifetime, Ownership, Problems, Schema, Scope, Share, ValueKind,
    ValueSchema, bounds, lint,
};
use serde_json::json;

use crate::schema;

/// The first block of TOML on a page.
fn toml_block(page: &str) -> &str {
    let start = page.find("```toml\n").expect("the page shows a schema") + "```toml\n".len();
    let length = page[start..].find("```").expect("the block ends");
    &page[start..start + length]
}

#[test]
fn the_example_loads_without_problems_and_without_findings() {
    let (schema, warnings) =
        Schema::parse_with_warnings(EXAMPLE, "example.toml").unwrap_or_else(|p| panic!("{p}"));
    assert!(warnings.is_empty(), "{warnings}");
    assert_eq!(lint(&schema), []);
    assert_eq!((schema.stores.len(), schema.spaces.len(), schema.locks.len()), (1, 9, 1));
}

#[test]
fn the_example_of_the_reference_loads_without_problems_and_names_every_key() {
    let page = include_str!("../../../../docs/schema.md");
    let example = toml_block(page);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("schema.toml"), example).unwrap();
    fs::write(folder.path().join("task.schema.json"), r#"{"type": "object"}"#).unwrap();
    let (schema, warnings) = Schema::load_with_warnings(&folder.path().join("schema.toml"))
        .unwrap_or_else(|problems| panic!("{problems}"));
    assert!(warnings.is_empty(), "{warnings}");
    assert_eq!(lint(&schema), []);
    for key in [
        "url",
        "description",
        "store",
        "key",
        "ownership",
        "owner",
        "share",
        "ttl",
        "sliding",
        "value_bytes_max",
        "history",
        "read_roles",
        "write_roles",
        "value",
        "field",
        "fields",
        "type",
        "types",
        "multi",
        "unique",
        "scope",
        "kind",
        "lat",
        "lon",
        "precision",
        "name",
        "by",
        "root",
        "paths",
    ] {
        let used = example.lines().any(|line| line.starts_with(&format!("{key} = ")));
        assert!(used, "{key}");
    }
}

#[test]
fn everything_a_space_says_is_read() {
    let schema = schema(
        r#"
        [stores.app]
        url = "embedded:./data"
        description = "Everything"
        [spaces.notes]
        key = "user:{user}:notes:{note}"
        ownership = "user"
        owner = "user"
        ttl = "1h 30m"
        sliding = true
        value_bytes_max = "64 KiB"
        history = 10
        read_roles = ["reader"]
        write_roles = ["editor", "author"]
        description = "What a user writes down"
        value = { type = "object", properties = { title = { type = "string", maxLength = 0x0A } } }
        [[spaces.notes.queries]]
        name = "by title"
        by = ["title"]
        "#,
    );
    assert_eq!(schema.store("app").unwrap().url.as_deref(), Some("embedded:./data"));
    let notes = schema.space("notes").unwrap();
    assert_eq!(notes.store, "app", "the only store need not be named");
    assert_eq!(notes.key.as_str(), "user:{user}:notes:{note}");
    assert_eq!(notes.ownership, Ownership::User { owner: "user".to_owned() });
    let ttl = Duration::from_secs(5400);
    assert_eq!(notes.lifetime, Some(Lifetime { ttl, sliding: true }));
    assert_eq!(notes.value_bytes_max, Some(65_536));
    assert_eq!(notes.history.map(|kept| kept.get()), Some(10));
    assert_eq!(notes.read_roles, ["reader"]);
    assert_eq!(notes.write_roles, ["editor", "author"]);
    assert_eq!(notes.description.as_deref(), Some("What a user writes down"));
    let definition =
        json!({"type": "object", "properties": {"title": {"type": "string", "maxLength": 10}}});
    assert_eq!(notes.value.as_ref().unwrap().definition(), &definition);
    assert_eq!(notes.queries[0].name, "by title");
    assert_eq!(notes.queries[0].scope, Scope::Owner);
}

#[test]
fn spaces_and_indexes_keep_the_order_of_the_file() {
    let schema = schema(
        r#"
        [stores.app]
        [spaces.zebra]
        key = "shared:zebra:{z}"
        ownership = "shared"
        indexes.second = { field = "b", type = "text" }
        indexes.first = { field = "a", type = "text" }
        [spaces.ant]
        key = "shared:ant:{a}"
        ownership = "shared"
        "#,
    );
    let names: Vec<&str> = schema.spaces.iter().map(|space| space.name.as_str()).collect();
    assert_eq!(names, ["zebra", "ant"]);
    let names: Vec<&str> = schema.spaces[0].indexes.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["second", "first"]);
}

/// The parts of the only index of a hybrid space of posts, as `field kind multi`.
fn parts(index: &str) -> Vec<String> {
    let schema = schema(&posts(index));
    match &schema.spaces[0].indexes[0].kind {
        IndexKind::Values { parts, .. } => parts
            .iter()
            .map(|part| {
                format!("{} {:?}{}", part.field, part.kind, if part.multi { " multi" } else { "" })
            })
            .collect(),
        IndexKind::Geohash { lat, lon, precision } => vec![format!("{lat} {lon} {precision}")],
    }
}

fn posts(index: &str) -> String {
    format!(
        r#"
        [stores.app]
        [spaces.posts]
        key = "user:{{user}}:posts:{{post}}"
        ownership = "hybrid"
        share = "everything"
        [spaces.posts.value.properties]
        title = {{ type = ["string", "null"] }}
        at = {{ type = "string", format = "date-time" }}
        likes = {{ type = "integer" }}
        score = {{ type = "number" }}
        draft = {{ type = "boolean" }}
        state = {{ enum = ["a", "b"] }}
        tags = {{ type = "array", items = {{ type = "string" }} }}
        place = {{ type = "object", properties = {{ lat = {{ type = "number" }}, lon = {{ type = "number" }} }} }}
        free = {{}}
        [spaces.posts.indexes.one]
        {index}
        "#
    )
}

#[test]
fn the_type_of_an_index_comes_from_the_value_schema() {
    for (index, expected) in [
        ("field = 'title'", &["title Text"][..]),
        ("field = 'at'", &["at Time"]),
        ("field = 'likes'", &["likes Integer"]),
        ("field = 'score'", &["score Number"]),
        ("field = 'draft'", &["draft Bool"]),
        ("field = 'state'", &["state Text"]),
        ("field = 'title'\ntype = 'folded'", &["title Folded"]),
        ("field = 'likes'\ntype = 'number'", &["likes Number"]),
        ("field = 'free'\ntype = 'time'", &["free Time"]),
        ("field = 'tags'\nmulti = true", &["tags Text multi"]),
        ("fields = ['tags', 'at']\nmulti = 'tags'", &["tags Text multi", "at Time"]),
        (
            "fields = ['state', 'free']\ntypes = { free = 'integer' }",
            &["state Text", "free Integer"],
        ),
        ("kind = 'time'\nfield = 'at'", &["at Time"]),
        ("kind = 'geohash'\nlat = 'place.lat'\nlon = 'place.lon'", &["place.lat place.lon 7"]),
        (
            "kind = 'geohash'\nlat = 'place.lat'\nlon = 'place.lon'\nprecision = 12",
            &["place.lat place.lon 12"],
        ),
    ] {
        assert_eq!(parts(index), expected, "{index}");
    }
}

#[test]
fn the_scope_of_an_index_follows_the_ownership() {
    let index = "indexes.one = { field = 'a', type = 'text' }";
    for (ownership, expected) in [
        ("ownership = 'user'", Scope::Owner),
        ("ownership = 'hybrid'\nshare = 'everything'", Scope::Owner),
        ("ownership = 'shared'", Scope::Shared),
    ] {
        let text =
            format!("[stores.a]\n[spaces.s]\nkey = 'user:{{user}}:x'\n{ownership}\n{index}\n");
        assert_eq!(schema(&text).spaces[0].indexes[0].scope, expected, "{ownership}");
    }
}

#[test]
fn a_hybrid_space_shares_what_it_says() {
    let posts = schema(&posts("field = 'at'").replace("\"everything\"", "['title', 'place.lat']"));
    let Ownership::Hybrid { owner, share: Share::Fields(fields) } = &posts.spaces[0].ownership
    else {
        panic!("{:?}", posts.spaces[0].ownership);
    };
    let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
    assert_eq!(
        (owner.as_str(), fields),
        ("user", vec!["title".to_owned(), "place.lat".to_owned()])
    );
}

#[test]
fn lock_paths_come_coarse_before_fine() {
    let schema = schema(
        r#"
        [stores.a]
        [locks.agreement]
        root = "{page}"
        paths = ["issues:{id}", "policies:{source}[:{language}]", "issues", "policies"]
        "#,
    );
    let paths: Vec<&str> = schema.locks[0].paths.iter().map(|path| path.as_str()).collect();
    assert_eq!(paths, ["issues", "policies", "issues:{id}", "policies:{source}[:{language}]"]);
    assert_eq!(schema.locks[0].root.as_str(), "{page}");
}

/// Writes a schema file beside other files, and loads it.
fn load(text: &str, others: &[(&str, &str)]) -> Result<Schema, Problems> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("schema.toml"), text).expect("a file");
    for (name, text) in others {
        fs::create_dir_all(folder.path().join(name).parent().expect("a parent")).expect("a folder");
        fs::write(folder.path().join(name), text).expect("a file");
    }
    Schema::load(&folder.path().join("schema.toml"))
}

fn with_value_file(name: &str) -> String {
    format!(
        "[stores.a]\n[spaces.s]\nkey = 'shared:s:{{s}}'\nownership = 'shared'\nvalue = '{name}'\n\
         indexes.one = {{ field = 'title' }}\n"
    )
}

#[test]
fn a_value_schema_can_have_a_file_of_its_own() {
    let file = r#"{"properties": {"title": {"type": "string"}}}"#;
    for name in ["note.schema.json", "schemas/note.json"] {
        let schema = load(&with_value_file(name), &[(name, file)]).unwrap();
        let IndexKind::Values { parts, .. } = &schema.spaces[0].indexes[0].kind else { panic!() };
        assert_eq!(parts[0].kind, ValueKind::Text);
    }
}

#[test]
fn a_value_schema_file_that_is_missing_or_wrong_is_told_with_its_own_place() {
    let cases: [(&str, &str, &str, (usize, usize)); 5] = [
        ("gone.json", "{}", "value-file", (5, 9)),
        ("../note.json", "{}", "value-file", (5, 9)),
        ("/note.json", "{}", "value-file", (5, 9)),
        ("note.json", "{\n  \"type\": \"object\",,\n}", "value-file", (2, 20)),
        ("note.json", "{\"type\": \"objekt\", \"required\": 1}", "value-schema", (0, 0)),
    ];
    for (name, file, code, place) in cases {
        let problems = load(&with_value_file(name), &[("note.json", file)]).unwrap_err();
        let first = problems.iter().next().unwrap();
        assert_eq!((first.code, (first.line, first.column)), (code, place), "{problems}");
        let outside = name != "gone.json" && place.0 == 5;
        assert_eq!(first.message.contains("beside or below"), outside, "{problems}");
        let in_file = if place.0 == 5 { "schema.toml" } else { "note.json" };
        assert!(first.file.ends_with(in_file), "{}", first.file);
        let unknown_type = problems.iter().any(|problem| problem.code == "index-type");
        assert!(!unknown_type, "an index does not suffer for the file: {problems}");
    }
}

#[test]
fn every_fault_of_a_value_schema_is_told() {
    let problems =
        load(&with_value_file("n.json"), &[("n.json", r#"{"type": "objekt", "required": 1}"#)])
            .unwrap_err();
    assert_eq!(problems.len(), 2, "{problems}");
}

#[test]
fn a_value_schema_cannot_reach_other_documents() {
    for reference in ["https://example.com/a.json", "file:///etc/hostname", "other.json"] {
        let text = with_value_file("n.json");
        let file = format!("{{\"$ref\": \"{reference}\"}}");
        let problems = load(&text, &[("n.json", &file), ("other.json", "{}")]).unwrap_err();
        assert_eq!(problems.iter().next().unwrap().code, "value-schema", "{problems}");
    }
}

#[test]
fn files_that_cannot_be_read_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("schema.toml");
    let code = |problems: &Problems| problems.iter().next().unwrap().code;
    assert_eq!(code(&Schema::load(&path).unwrap_err()), "file-unreadable");
    fs::write(&path, b"# \xFF\n").unwrap();
    assert_eq!(code(&Schema::load(&path).unwrap_err()), "file-unreadable");
    fs::write(&path, " ".repeat(bounds::FILE_BYTES_MAX)).unwrap();
    assert!(Schema::load(&path).is_ok());
    let text = " ".repeat(bounds::FILE_BYTES_MAX + 1);
    fs::write(&path, &text).unwrap();
    assert_eq!(code(&Schema::load(&path).unwrap_err()), "file-too-large");
    assert_eq!(code(&Schema::parse(&text, "x").unwrap_err()), "file-too-large");
}

#[test]
fn absurd_files_are_refused_and_not_fatal() {
    let deep = format!("spaces{}.x = 1\n", ".a".repeat(100_000));
    let nested = format!("spaces = {}{}\n", "[".repeat(50_000), "]".repeat(50_000));
    let wide: String = (0..20_000).map(|n| format!("unknown{n} = 1\n")).collect();
    let many: String = (0..2_000)
        .map(|n| format!("[spaces.s{n}]\nkey = 'a:{{b}}'\nownership = 'shared'\n"))
        .collect();
    for text in [deep, nested, wide, format!("[stores.a]\n{many}")] {
        let problems = Schema::parse(&text, "schema.toml").unwrap_err();
        assert!(problems.len() <= bounds::PROBLEMS_MAX + 1);
        assert!(!problems.to_string().is_empty());
        let last = problems.iter().last().unwrap();
        assert_eq!(problems.len() > bounds::PROBLEMS_MAX, last.code == "too-many-problems");
    }
}

#[test]
fn values_are_checked_against_their_schema_and_its_formats() {
    let value = schema(EXAMPLE).space("users").unwrap().value.clone().unwrap();
    assert!(value.mismatches(&json!({"email": "ada@example.com", "name": "Ada"})).is_empty());
    let mismatches = value.mismatches(&json!({"email": "nobody", "name": 7}));
    let paths: Vec<&str> = mismatches.shown.iter().map(|mismatch| mismatch.path.as_str()).collect();
    assert_eq!(paths, ["/email", "/name"]);
    let missing = value.mismatches(&json!({"name": "Ada"}));
    assert_eq!((missing.shown.len(), missing.total), (1, 1));
    assert_eq!(missing.to_string(), r#""email" is a required property"#);
}

#[test]
fn a_mismatch_quotes_the_beginning_of_a_value_and_not_all_of_it() {
    let long = "é".repeat(100_000);
    let quoting = ValueSchema::new(json!({"properties": {"n": {"type": "integer"}}})).unwrap();
    let told = quoting.mismatches(&json!({ "n": long })).to_string();
    assert!(
        told.starts_with("/n: \"é") && told.ends_with("… is not of type \"integer\""),
        "{told}"
    );
    assert!(told.len() < 200, "{told}");
    // Names of members come from the value, too.
    let closed = ValueSchema::new(json!({"additionalProperties": false})).unwrap();
    let names: serde_json::Map<_, _> = (0..5_000)
        .map(|n| (format!("name-{n}"), json!(1)))
        .chain([(long.clone(), json!(1))])
        .collect();
    assert!(closed.mismatches(&json!(names)).to_string().len() < 500);
    let named = ValueSchema::new(json!({"propertyNames": {"maxLength": 5}})).unwrap();
    assert!(named.mismatches(&json!({ long.clone(): 1 })).to_string().len() < 500);
    let inside = ValueSchema::new(json!({"additionalProperties": {"type": "integer"}})).unwrap();
    assert!(inside.mismatches(&json!({ long: "x" })).to_string().len() < 500);
}

#[test]
fn a_few_mismatches_are_shown_and_all_are_counted_up_to_a_bound() {
    let numbers = ValueSchema::new(json!({"items": {"type": "integer"}})).unwrap();
    let told = |count: usize| numbers.mismatches(&json!(vec!["x"; count]));
    assert_eq!((told(10).shown.len(), told(10).total), (10, 10));
    assert!(!told(10).to_string().contains("in all"));
    assert_eq!((told(500).shown.len(), told(500).total), (10, 500));
    assert!(told(500).to_string().ends_with("; 500 mismatches in all"));
    assert_eq!((told(5_000).shown.len(), told(5_000).total), (10, 1_000));
    assert!(told(5_000).to_string().ends_with("; at least 1000 mismatches in all"));
}

#[test]
fn names_of_locks_and_their_paths_go_both_ways() {
    let schema = schema(EXAMPLE);
    let tree = &schema.locks[0];
    for (name, path) in [
        ("", &[][..]),
        ("policies", &["policies"]),
        ("issues", &["issues"]),
        ("policy:123", &["policies", "123"]),
        ("policy:123:fr", &["policies", "123", "fr"]),
        ("policy:a%3Ab", &["policies", "a:b"]),
        ("issue:7", &["issues", "7"]),
    ] {
        assert_eq!(tree.path(name).unwrap(), path, "{name}");
        assert_eq!(tree.name(&tree.path(name).unwrap()), name);
    }
    assert_eq!(tree.path("policies:123:fr").unwrap(), tree.path("policy:123:fr").unwrap());
    for (name, says) in [
        ("policy", "write policies for all of it"),
        ("policys:1", "did you mean"),
        ("issue:7:comments", "the lock tree agreement has"),
        ("zzz", "policies:{source}[:{language}]"),
        ("50%", "%25"),
    ] {
        let refused = tree.path(name).unwrap_err().to_string();
        assert!(refused.contains(says), "{name}: {refused}");
    }
}
