//! The common mistakes, each with a schema that makes it and one that does not.

use keyward_schema::{EXAMPLE, Finding, Weight, lint};

use crate::schema;

/// The findings about a schema of one store.
fn findings(spaces: &str) -> Vec<Finding> {
    lint(&schema(&format!("[stores.app]\n{spaces}")))
}

/// The findings as `space: code`.
fn told(spaces: &str) -> Vec<String> {
    findings(spaces).iter().map(|finding| format!("{}: {}", finding.space, finding.code)).collect()
}

fn assert_clean(spaces: &str) {
    assert_eq!(findings(spaces), []);
}

#[test]
fn keys_without_a_namespace_are_found() {
    let bad = "[spaces.notes]\nkey = 'notes:{note}'\nownership = 'shared'\n";
    assert_eq!(told(bad), ["notes: no-isolation"]);
    let finding = &findings(bad)[0];
    assert!(finding.fix.contains("\"user:{user}:notes:{note}\""), "{finding}");
    assert!(finding.fix.contains("\"shared:notes:{note}\""), "{finding}");
    assert_clean("[spaces.notes]\nkey = 'user:{user}:notes:{note}'\nownership = 'user'\n");
    assert_clean("[spaces.notes]\nkey = 'shared:notes:{note}'\nownership = 'shared'\n");
    assert_clean("[spaces.config]\nkey = 'config'\nownership = 'shared'\n");
}

#[test]
fn ids_that_share_a_namespace_with_words_are_found() {
    let templates =
        "[spaces.templates]\nkey = 'shared:templates:{template}'\nownership = 'shared'\n";
    let bad = "[spaces.notes]\nkey = '{user}:notes:{note}:text'\nownership = 'user'\n";
    assert_eq!(told(&format!("{bad}{templates}")), ["notes: no-isolation"]);
    let pages = "[spaces.pages]\nkey = '{page}:body'\nownership = 'shared'\n";
    assert_eq!(told(&format!("{bad}{pages}")), ["notes: no-isolation", "pages: no-isolation"]);
    let good = bad.replace("'{user}", "'user:{user}");
    assert_clean(&format!("{good}{templates}"));
    assert_clean(bad);
}

#[test]
fn an_owner_who_stands_in_the_value_only_is_found() {
    let value = "value.properties = { userId = { type = 'string' }, text = { type = 'string' } }\n";
    for key in ["notes:{note}", "shared:notes:{note}"] {
        let bad = format!("[spaces.notes]\nkey = '{key}'\nownership = 'shared'\n{value}");
        assert_eq!(told(&bad), ["notes: owner-in-value"]);
        let finding = &findings(&bad)[0];
        assert!(finding.fix.contains("user:{user}:notes:{note}"), "{finding}");
    }
    let good = "[spaces.notes]\nkey = 'user:{user}:notes:{note}'\nownership = 'user'\n";
    assert_clean(&format!("{good}{value}"));
}

#[test]
fn the_owner_is_known_by_what_other_spaces_call_it() {
    let members = "[spaces.a]\nkey = 'member:{member}:a'\nownership = 'user'\n";
    let bad =
        "[spaces.b]\nkey = 'shared:b:{b}'\nownership = 'shared'\nvalue.properties.memberId = {}\n";
    assert_eq!(told(&format!("{members}{bad}")), ["b: owner-in-value"]);
    assert_eq!(told(bad), ["b: missing-index"], "nobody says that a member is a user");
}

#[test]
fn segments_put_together_without_colons_are_found() {
    let space = |key: &str| format!("[spaces.notes]\nkey = '{key}'\nownership = 'user'\n");
    for key in
        ["user_notes:{user}:{note}", "users/notes:{user}:{note}", "user:{user}:my_notes:{note}"]
    {
        assert_eq!(told(&space(key)), ["notes: inconsistent-keys"], "{key}");
    }
    assert!(findings(&space("user_notes:{user}:{note}"))[0].fix.contains("\"user:notes\""));
    for key in ["user:{user}:notes:{note}", "user:{user}:my-notes:{note}"] {
        assert_clean(&space(key));
    }
}

#[test]
fn two_words_for_one_thing_are_found() {
    let space =
        |name: &str, key: &str| format!("[spaces.{name}]\nkey = '{key}'\nownership = 'user'\n");
    let notes = space("notes", "user:{user}:notes:{note}");
    for key in ["users:{user}:drafts:{draft}", "User:{user}:drafts:{draft}"] {
        let bad = format!("{notes}{}", space("drafts", key));
        assert_eq!(told(&bad), ["drafts: inconsistent-keys"], "{key}");
    }
    let bad = format!("{notes}{}", space("drafts", "user:{userId}:drafts:{draft}"));
    assert_eq!(told(&bad), ["drafts: inconsistent-keys"]);
    assert_clean(&format!("{notes}{}", space("drafts", "user:{user}:drafts:{draft}")));
}

const USERS: &str = "[spaces.users]\nkey = 'user:{user}:profile'\nownership = 'user'\n\
                     value.properties = { email = { type = 'string', format = 'email' } }\n";

#[test]
fn queries_that_nothing_answers_are_found() {
    let query = "[[spaces.users.queries]]\nname = 'by address'\nby = ['email']\nscope = 'shared'\n";
    let bad = format!("{USERS}{query}");
    assert_eq!(told(&bad), ["users: missing-index"]);
    assert_eq!(findings(&bad)[0].weight, Weight::Mistake);
    let index = "[spaces.users.indexes.email]\nfield = 'email'\nunique = true\n";
    assert_clean(&format!("{USERS}{index}scope = 'shared'\n{query}"));
    // Each owner's entries apart do not answer a question about everybody's.
    assert_eq!(told(&format!("{USERS}{index}{query}")), ["users: missing-index"]);
}

#[test]
fn the_key_answers_queries_by_its_leading_variables() {
    let space = |key: &str, by: &str, scope: &str| {
        format!(
            "[spaces.s]\nkey = '{key}'\nownership = 'user'\n\
             [[spaces.s.queries]]\nname = 'q'\nby = [{by}]\nscope = '{scope}'\n"
        )
    };
    let key = "user:{user}:years:{year:u64}:months:{month:u64}";
    for (by, scope, answered) in [
        ("'year'", "owner", true),
        ("'year', 'month'", "owner", true),
        ("'user', 'year'", "owner", true),
        ("'user', 'year'", "shared", true),
        ("'user'", "shared", true),
        ("'month'", "owner", false),
        ("'month', 'year'", "owner", false),
        ("'year'", "shared", false),
    ] {
        assert_eq!(told(&space(key, by, scope)).is_empty(), answered, "{by} {scope}");
    }
}

#[test]
fn an_index_answers_queries_by_its_first_fields() {
    let space = "[spaces.s]\nkey = 'shared:s:{s}'\nownership = 'shared'\n\
                 value.properties = { status = {}, at = {}, lat = {}, lon = {} }\n\
                 indexes.one = { fields = ['status', 'at'], types = { status = 'text', at = 'time' } }\n\
                 indexes.two = { kind = 'geohash', lat = 'lat', lon = 'lon' }\n";
    for (by, answered) in [
        ("'status'", true),
        ("'status', 'at'", true),
        ("'lat', 'lon'", true),
        ("'at'", false),
        ("'at', 'status'", false),
        ("'lat'", false),
        ("'status', 'at', 'lat'", false),
    ] {
        let query = format!("[[spaces.s.queries]]\nname = 'q'\nby = [{by}]\n");
        assert_eq!(told(&format!("{space}{query}")).is_empty(), answered, "{by}");
    }
}

#[test]
fn fields_that_records_are_found_by_are_hinted_at() {
    assert_eq!(told(USERS), ["users: missing-index"]);
    assert_eq!(findings(USERS)[0].weight, Weight::Hint);
    assert_clean(&format!("{USERS}indexes.email = {{ field = 'email' }}\n"));
    for (field, hinted) in [
        ("orderId", true),
        ("order_id", true),
        ("slug", true),
        ("title", false),
        ("paid", false),
        ("id", false),
        ("profileId", true),
        ("userId", false),
    ] {
        let space = USERS
            .replace("email = { type = 'string', format = 'email' }", &format!("{field} = {{}}"));
        assert_eq!(!told(&space).is_empty(), hinted, "{field}");
    }
}

#[test]
fn an_id_that_the_key_has_needs_no_index() {
    let space = |key: &str| {
        format!("[spaces.s]\nkey = '{key}'\nownership = 'user'\nvalue.properties.orderId = {{}}\n")
    };
    assert_clean(&space("user:{user}:orders:{order}"));
    assert_eq!(told(&space("user:{user}:orders:{number}")), ["s: missing-index"]);
}

#[test]
fn indexes_kept_by_hand_are_found() {
    let users = format!("{USERS}[spaces.users.indexes.x]\nfield = 'email'\n");
    for key in [
        "shared:by_email:{email}",
        "email-index:{email}",
        "shared:users:byEmail:{email}",
        "idx:{email}",
    ] {
        let bad = format!(
            "{users}[spaces.emails]\nkey = '{key}'\nownership = 'shared'\nvalue.type = 'string'\n"
        );
        assert_eq!(told(&bad), ["emails: orphaned-index"], "{key}");
        let finding = &findings(&bad)[0];
        assert!(
            finding.fix.contains("[spaces.users.indexes.emails] field = \"email\""),
            "{finding}"
        );
    }
    let pointers = "[spaces.recent]\nkey = 'shared:posts:recent:{at:time}:{post}'\nownership = 'shared'\n\
                    value = { type = 'object', properties = { postId = {}, userId = {} } }\n";
    assert_eq!(told(pointers), ["recent: orphaned-index"]);
    // What an index by hand is about is not another one, nor itself.
    let by_id = pointers.replace("{post}", "{post_id}").replace("postId", "post_id");
    assert!(findings(&by_id)[0].fix.contains("on the space that holds the records"));
    assert_clean(&users);
    // Called like an index, but with records of its own.
    assert_clean(
        "[spaces.books]\nkey = 'shared:index-cards:{card}'\nownership = 'shared'\n\
         value = { type = 'object', properties = { text = { type = 'string' } } }\n",
    );
}

#[test]
fn an_index_by_hand_with_a_lifetime_of_its_own_is_told_why() {
    let bad =
        "[spaces.emails]\nkey = 'shared:by_email:{email}'\nownership = 'shared'\nttl = '1d'\n";
    assert_eq!(told(bad), ["emails: orphaned-index"]);
    assert!(findings(bad)[0].why.contains("lifetime of its own"));
}

#[test]
fn stores_are_looked_at_apart() {
    let two = "[stores.a]\n[stores.b]\n\
               [spaces.x]\nstore = 'a'\nkey = 'user:{user}:x:{x}'\nownership = 'user'\n\
               [spaces.y]\nstore = 'b'\nkey = 'users:{userId}:y:{y}'\nownership = 'user'\n";
    assert_eq!(lint(&schema(two)), []);
}

#[test]
fn a_finding_says_what_why_and_what_to_do() {
    let findings = findings("[spaces.notes]\nkey = 'notes:{note}'\nownership = 'shared'\n");
    assert_eq!(
        findings[0].to_string(),
        "\
mistake[no-isolation] in notes: keys begin with \"notes\" and its id, with nothing before them that says whose they are
  = why: two users who choose the same {note} write the same record, and no listing shows one user's records alone
  = fix: if each record belongs to a user, write key = \"user:{user}:notes:{note}\" and ownership = \"user\"; if it is everybody's, say so in the key: \"shared:notes:{note}\""
    );
    let json = serde_json::to_value(&findings[0]).unwrap();
    assert_eq!(
        (json["code"].as_str(), json["weight"].as_str()),
        (Some("no-isolation"), Some("mistake"))
    );
    assert_eq!(lint(&schema(EXAMPLE)), []);
}

#[test]
fn an_address_is_looked_up_over_all_users_and_is_one_persons() {
    let value =
        "value.properties = { email = { type = 'string' }, taskId = { type = 'string' } }\n";
    let owned = format!("[spaces.people]\nkey = 'user:{{user}}'\nownership = 'user'\n{value}");
    let found = findings(&owned);
    let fix = |of: &str| {
        let about = |finding: &&Finding| finding.message.starts_with(of);
        found.iter().find(about).unwrap().fix.clone()
    };
    assert!(fix("email").contains("unique = true, scope = \"shared\""), "{}", fix("email"));
    assert!(!fix("taskId").contains("unique"), "{}", fix("taskId"));
    // What is advised is no mistake.
    let indexes = "indexes.by_email = { field = 'email', type = 'folded', unique = true, \
                   scope = 'shared' }\nindexes.by_task = { field = 'taskId' }\n";
    assert_clean(&format!("{owned}{indexes}"));
}

#[test]
fn the_owner_is_advised_by_the_name_that_other_keys_have() {
    let first = "[spaces.tasks]\nkey = 'user:{userId}:tasks:{task}'\nownership = 'user'\n";
    for (bad, code) in [
        ("[spaces.notes]\nkey = 'notes:{note}'\nownership = 'shared'\n", "no-isolation"),
        (
            "[spaces.notes]\nkey = 'shared:notes:{note}'\nownership = 'shared'\n\
             value.properties.userId = { type = 'string' }\n",
            "owner-in-value",
        ),
    ] {
        let found = findings(&format!("{first}{bad}"));
        assert_eq!(found[0].code, code);
        assert!(found[0].fix.contains("user:{userId}:notes:{note}"), "{}", found[0].fix);
    }
    assert_clean(&format!(
        "{first}[spaces.notes]\nkey = 'user:{{userId}}:notes:{{note}}'\nownership = 'user'\n"
    ));
}
