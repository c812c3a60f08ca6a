//! What changes between two schemas, and what that means.

use keyward_schema::{Diff, EXAMPLE, Migration, Source, Verdict, diff};
use serde_json::json;

use crate::schema;

const NOTES: &str = r#"
[stores.app]
url = "embedded:./data"
[spaces.notes]
key = "user:{user}:notes:{note}"
ownership = "user"
value_bytes_max = 1000
[spaces.notes.value]
properties.title = { type = "string", maxLength = 100 }
properties.state = { enum = ["open", "done"] }
properties.userId = { type = "string" }
[spaces.notes.indexes.title]
field = "title"
"#;

/// The difference between the schema of notes and the same with `from` replaced.
fn changed(from: &str, to: &str) -> Diff {
    assert!(NOTES.contains(from), "{from}");
    diff(&schema(NOTES), &schema(&NOTES.replace(from, to)))
}

/// The changes as `message → verdict`.
fn told(diff: &Diff) -> Vec<String> {
    let verdict = |verdict: &Verdict| match verdict {
        Verdict::Compatible => "compatible".to_owned(),
        Verdict::NeedsMigration { migration } => {
            let migration = serde_json::to_value(migration).expect("a migration is JSON");
            migration["kind"].as_str().expect("it has a kind").to_owned()
        }
        Verdict::Incompatible { .. } => "incompatible".to_owned(),
        Verdict::CannotTell { .. } => "cannot tell".to_owned(),
    };
    diff.changes
        .iter()
        .map(|c| format!("{}: {} → {}", c.subject, c.message, verdict(&c.verdict)))
        .collect()
}

/// The only change of a diff, without its subject.
fn only(diff: &Diff) -> String {
    let told = told(diff);
    let [one] = &told[..] else { panic!("{told:#?}") };
    one.split_once(": ").expect("a subject").1.to_owned()
}

#[test]
fn a_schema_does_not_differ_from_itself() {
    let same = diff(&schema(EXAMPLE), &schema(EXAMPLE));
    assert_eq!(same.to_string(), "no changes");
    assert!(same.is_compatible() && same.migrations().is_empty());
}

#[test]
fn indexes_are_added_dropped_and_rebuilt() {
    let state = "[spaces.notes.indexes.state]\nfield = 'state'\n[spaces.notes.indexes.title]";
    let added = changed("[spaces.notes.indexes.title]", state);
    assert_eq!(told(&added), ["index state of notes: new → add-index"]);
    let dropped = changed("[spaces.notes.indexes.title]\nfield = \"title\"\n", "");
    assert_eq!(told(&dropped), ["index title of notes: gone → drop-index"]);
    for to in [
        "field = \"state\"",
        "field = \"title\"\ntype = \"folded\"",
        "field = \"title\"\nunique = true",
    ] {
        let rebuilt = changed("field = \"title\"", to);
        assert!(only(&rebuilt).ends_with("→ rebuild-index"), "{rebuilt}");
    }
}

#[test]
fn keys_that_change_are_renamed_rewritten_or_refused() {
    let key = "user:{user}:notes:{note}";
    for (to, verdict) in [
        ("user:{owner}:notes:{id}", "compatible"),
        ("user:{user}:notes:{note}[:{part}]", "compatible"),
        ("user:{user}:texts:{note}", "rename-segment"),
        ("user:{user}:folder:notes:{note}", "rekey"),
        ("{user}:notes:{note}", "rekey"),
        ("user:{user}:notes:{note:u64}", "rekey"),
        ("user:{user}:folder:{folder}:notes:{note}", "incompatible"),
        ("user:{user}:notes", "incompatible"),
        ("notes:{note}", "incompatible"),
    ] {
        let found = only(&changed(key, to));
        assert_eq!(found, format!("keys {to}, before {key} → {verdict}"));
    }
}

#[test]
fn an_owner_in_the_value_can_move_into_the_key() {
    let old =
        NOTES.replace("user:{user}:notes:{note}", "notes:{note}").replace("\"user\"", "\"shared\"");
    let diff = diff(&schema(&old), &schema(NOTES));
    let Some(Migration::Rekey { from, to, sources, .. }) = diff.migrations().first().copied()
    else {
        panic!("{diff}");
    };
    assert_eq!((from.as_str(), to.as_str()), ("notes:{note}", "user:{user}:notes:{note}"));
    assert_eq!(sources["user"], Source::Field("userId".to_owned()));
    assert_eq!(sources["note"], Source::Variable("note".to_owned()));
    let index = told(&diff)
        .into_iter()
        .any(|change| change == "index title of notes: holds something else → rebuild-index");
    assert!(index, "its entries stand apart for each owner now: {diff}");
}

#[test]
fn an_optional_part_that_goes_leaves_keys_behind() {
    let old = schema(&NOTES.replace("{note}", "{note}[:{part}]"));
    let diff = diff(&old, &schema(NOTES));
    let Verdict::Incompatible { why } = &diff.changes[0].verdict else { panic!("{diff}") };
    assert!(why.contains("user:{user}:notes:{note}:{part}"), "{why}");
}

#[test]
fn value_schemas_that_allow_less_need_a_look_at_the_values() {
    let title = "properties.title = { type = \"string\", maxLength = 100 }";
    for (from, to, message) in [
        (
            title,
            "required = ['title']\nproperties.title = { type = \"string\", maxLength = 100 }",
            "values.title: required now",
        ),
        (
            "\"open\", \"done\"",
            "\"open\"",
            "values.state: one of \"open\", before \"open\", \"done\"",
        ),
        ("maxLength = 100", "maxLength = 50", "values.title: maxLength 50, before 100"),
        (
            "maxLength = 100",
            "maxLength = 100, minLength = 1",
            "values.title: minLength 1, before none",
        ),
        (
            "maxLength = 100",
            "maxLength = 100, pattern = '^a'",
            "values.title: pattern \"^a\", before none",
        ),
        (
            "userId = { type = \"string\" }",
            "userId = { type = \"string\", enum = ['a'] }",
            "values.userId: one of \"a\", before anything",
        ),
        (
            "userId = { type = \"string\" }",
            "userId = { type = 'integer' }",
            "values.userId: integer, before string",
        ),
        (
            title,
            "additionalProperties = false\nproperties.title = { type = \"string\", maxLength = 100 }",
            "values, other fields: nothing is allowed any more",
        ),
    ] {
        assert_eq!(only(&changed(from, to)), format!("{message} → transform-values"), "{to}");
    }
    assert_eq!(
        only(&changed("value_bytes_max = 1000", "value_bytes_max = 999")),
        "values of at most 999 bytes, before 1000 bytes → transform-values"
    );
}

#[test]
fn value_schemas_that_allow_more_are_compatible() {
    for (from, to, message) in [
        (
            "\"open\", \"done\"",
            "\"open\", \"done\", \"late\"",
            "values.state: one of \"open\", \"done\", \"late\", before \"open\", \"done\"",
        ),
        ("maxLength = 100", "maxLength = 200", "values.title: maxLength 200, before 100"),
        (", maxLength = 100", "", "values.title: no maxLength, before 100"),
        (
            "userId = { type = \"string\" }",
            "userId = { type = ['string', 'null'] }",
            "values.userId: string or null, before string",
        ),
        ("properties.userId = { type = \"string\" }\n", "", "values.userId: described no more"),
    ] {
        assert_eq!(only(&changed(from, to)), format!("{message} → compatible"), "{to}");
    }
    assert_eq!(
        only(&changed("value_bytes_max = 1000\n", "")),
        "values of at most any size, before 1000 bytes → compatible"
    );
}

#[test]
fn value_schemas_that_cannot_be_compared_are_not_called_compatible() {
    for (from, to) in [
        (
            "userId = { type = \"string\" }",
            "userId = { type = \"string\" }\nproperties.extra = { type = 'string' }",
        ),
        (
            "userId = { type = \"string\" }",
            "userId = { type = \"string\" }\npatternProperties.x = false",
        ),
    ] {
        assert!(only(&changed(from, to)).ends_with("→ cannot tell"), "{to}");
    }
    let old = NOTES.replace("maxLength = 100", "maxLength = 100, pattern = 'a'");
    let new = NOTES.replace("maxLength = 100", "maxLength = 100, pattern = 'b'");
    let found = only(&diff(&schema(&old), &schema(&new)));
    assert_eq!(found, "values.title: pattern \"b\", before \"a\" → cannot tell");
}

#[test]
fn definitions_are_compared_through_references() {
    let with = |keyword: &str, limit: usize| {
        let value = format!(
            "properties.x = {keyword}\n'$defs'.x.maxLength = {limit}\n[spaces.notes.indexes.title]"
        );
        schema(&NOTES.replace("[spaces.notes.indexes.title]", &value))
    };
    let direct = "{ '$ref' = '#/$defs/x' }";
    let found = only(&diff(&with(direct, 100), &with(direct, 50)));
    assert_eq!(found, "values.x: maxLength 50, before 100 → transform-values");
    // Inside keywords that are not taken apart, a change is noticed, though not understood.
    let hidden = "{ anyOf = [{ '$ref' = '#/$defs/x' }] }";
    let found = only(&diff(&with(hidden, 100), &with(hidden, 50)));
    assert_eq!(found, "values.x: what anyOf refers to changes → cannot tell");
}

#[test]
fn comparing_schemas_that_hold_themselves_ends() {
    let with = |limit: usize| {
        let value = format!(
            "properties.child = {{ '$ref' = '#' }}\nmaxProperties = {limit}\n[spaces.notes.indexes.title]"
        );
        schema(&NOTES.replace("[spaces.notes.indexes.title]", &value))
    };
    let found = diff(&with(3), &with(2));
    assert!(!found.is_compatible() && found.changes.len() < 10, "{found}");
}

#[test]
fn annotations_descriptions_and_queries_change_nothing() {
    for (from, to) in [
        ("maxLength = 100", "maxLength = 100, description = 'x', title = 'y'"),
        ("[spaces.notes.value]", "description = 'x'\n[spaces.notes.value]"),
        (
            "[spaces.notes.indexes.title]",
            "[[spaces.notes.queries]]\nname = 'q'\nby = ['title']\n[spaces.notes.indexes.title]",
        ),
    ] {
        assert_eq!(changed(from, to).to_string(), "no changes", "{to}");
    }
}

#[test]
fn spaces_and_stores_come_go_and_move() {
    let without = "[stores.app]\nurl = \"embedded:./data\"\n";
    let added = diff(&schema(without), &schema(NOTES));
    assert_eq!(told(&added), ["space notes: new → compatible"]);
    let gone = diff(&schema(NOTES), &schema(without));
    assert_eq!(told(&gone), ["space notes: gone → incompatible"]);
    let renamed = diff(&schema(NOTES), &schema(&NOTES.replace("spaces.notes", "spaces.texts")));
    assert_eq!(
        told(&renamed),
        ["space texts: called notes before; its keys are the same → compatible"]
    );
    let moved = changed("embedded:./data", "postgres://a:secret@db/x");
    assert_eq!(only(&moved), "at postgres://a:…@db/x, before embedded:./data → copy-store");
    assert!(!format!("{moved} {}", serde_json::to_string(&moved).unwrap()).contains("secret"));
    assert!(only(&changed("url = \"embedded:./data\"\n", "")).ends_with("→ cannot tell"));
    let url = "url = \"embedded:./data\"\n";
    let coordinated = |by: &str| NOTES.replace(url, &format!("{url}coordinator = '{by}'\n"));
    let (one, other) = (coordinated("embedded:./c"), coordinated("postgres://a:secret@db/c"));
    let first = diff(&schema(NOTES), &schema(&one));
    assert_eq!(only(&first), "the coordinator is embedded:./c, before none → compatible");
    let moved = diff(&schema(&one), &schema(&other));
    assert_eq!(
        only(&moved),
        "the coordinator is postgres://a:…@db/c, before embedded:./c → incompatible"
    );
    let two = NOTES.replace("[spaces.notes]", "[stores.b]\n[spaces.notes]\nstore = 'b'");
    let other = diff(&schema(NOTES), &schema(&two));
    assert!(
        told(&other).contains(&"space notes: in b, before in app → incompatible".to_owned()),
        "{other}"
    );
}

#[test]
fn who_sees_what_and_how_long_is_told_and_compatible() {
    for (from, to) in [
        ("ownership = \"user\"", "ownership = 'hybrid'\nshare = 'everything'"),
        ("ownership = \"user\"", "ownership = \"user\"\nttl = '30d'"),
        ("ownership = \"user\"", "ownership = \"user\"\nhistory = 5"),
        ("ownership = \"user\"", "ownership = \"user\"\nread_roles = ['a']"),
    ] {
        let found = changed(from, to);
        assert!(found.is_compatible() && found.changes.len() == 1, "{found}");
    }
}

#[test]
fn locks_that_move_do_not_keep_old_processes_out() {
    let locks = "[locks.l]\nroot = 'page:{page}'\npaths = ['a']\n";
    let old = schema(&format!("{NOTES}{locks}"));
    let moved = diff(&old, &schema(&format!("{NOTES}{}", locks.replace("page:", "p:"))));
    assert!(only(&moved).ends_with("→ incompatible"), "{moved}");
    let grown =
        diff(&old, &schema(&format!("{NOTES}{}", locks.replace("['a']", "['a', 'a:{b}']"))));
    assert_eq!(only(&grown), "a:{b} can be locked → compatible");
    let deep = schema(&format!("{NOTES}{}", locks.replace("['a']", "['a', 'a:{b}']")));
    let named =
        schema(&format!("{NOTES}{}aliases.c = 'a'\n", locks.replace("['a']", "['a', 'a:{b}']")));
    assert_eq!(
        only(&diff(&deep, &named)),
        "other aliases: the same paths have other names → compatible"
    );
    assert!(diff(&old, &schema(NOTES)).is_compatible());
}

#[test]
fn a_diff_is_drawn_and_is_data() {
    let found = changed("field = \"title\"", "field = \"title\"\nunique = true");
    assert_eq!(
        found.to_string(),
        "\
index title of notes: unique now, so that records with the same values stop the migration
  needs a migration: rebuild the index title of notes

1 change: 1 need a migration"
    );
    assert_eq!(
        serde_json::to_value(&found).unwrap(),
        json!({"changes": [{
            "subject": "index title of notes",
            "message": "unique now, so that records with the same values stop the migration",
            "verdict": "needs-migration",
            "migration": {"kind": "rebuild-index", "space": "notes", "index": "title"},
        }]})
    );
}
