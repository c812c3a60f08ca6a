//! sync, and registry: documents that are kept in git.

use serde_json::Value;

use crate::repository::Repository;
use crate::sandbox::{Sandbox, is_absent};

/// A repository of policies in `./policies`, which `keyward.toml` declares as the registry `policies`.
fn declared(more: &str) -> (Sandbox, Repository) {
    let kw = Sandbox::new();
    let repository = Repository::new(kw.path("policies"));
    repository.write("학사/휴학.md", "# 휴학 규정\n\n내용\n");
    repository.write("dorm.md", "# Dormitory\n");
    repository.write("leave.md", "# Leave of absence\n");
    repository.write("README.md", "# Not a policy\n");
    repository.commit();
    let settings = format!("[registries.policies]\nrepository = \"policies\"\n{more}");
    kw.write("keyward.toml", &settings);
    (kw, repository)
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_plan_is_shown_and_nothing_is_changed() {
    let (kw, repository) = declared("");
    let shown = kw.ok(&["sync", "policies", "--plan"]);
    let id = |name| repository.short(name);
    let commit = &repository.git(&["rev-parse", "HEAD"])[..7];
    assert_eq!(
        shown,
        format!(
            "add  dorm   Dormitory         dorm.md       {}\n\
             add  leave  Leave of absence  leave.md      {}\n\
             add  휴학   휴학 규정         학사/휴학.md  {}\n\n\
             policies at {commit}, 3 files: 3 to add, 0 to update, 0 to delete\n",
            id("dorm.md"),
            id("leave.md"),
            id("학사/휴학.md")
        )
    );
    let plan = kw.json(&["sync", "policies", "--dry-run", "--json"]);
    assert_eq!(plan["steps"][2]["policyName"], "휴학");
    assert_eq!(plan["steps"][2]["operation"], "add");
    assert!(is_absent(&kw.path("data")), "looking makes no store");
}

#[test]
fn whether_to_show_or_to_do_it_is_asked_or_must_be_said() {
    let (kw, _repository) = declared("");
    let told = kw.fails(2, &["sync", "policies"]);
    assert!(told.contains("--plan") && told.contains("--apply"), "{told}");
    kw.fails(2, &["sync", "policies", "--plan", "--apply"]);
    kw.fails(2, &["sync", "--apply"]);
    assert!(is_absent(&kw.path("data")));
}

#[test]
fn what_is_applied_is_in_the_registry_and_doing_it_again_does_nothing() {
    let (kw, repository) = declared("");
    let told = kw.ok(&["sync", "policies", "--apply"]);
    let commit = repository.git(&["rev-parse", "HEAD"]);
    let short = &commit[..7];
    let expected = format!("policies is at {short}: 3 added, 0 updated, 0 deleted (");
    assert!(told.starts_with(&expected), "{told}");
    let again = kw.ok(&["sync", "policies", "--apply"]);
    assert_eq!(again, format!("policies is at {short} already: nothing to do\n"));
    assert_eq!(kw.json(&["get", "metadata:sync:lastCommit"]), Value::from(commit.clone()));

    let entries = lines(&kw.ok(&["registry", "policies", "policies"]));
    let titles: Vec<&str> = entries.iter().map(|entry| entry["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["Dormitory", "Leave of absence", "휴학 규정"]);
    assert_eq!(entries[2], kw.json(&["get", "policy:휴학"]));
    let found = lines(&kw.ok(&["registry", "search", "policies", "LEAVE"]));
    assert_eq!(found, [entries[1].clone()]);
    assert_eq!(kw.ok(&["registry", "search", "policies", "nothing like it"]), "");
    let first = kw.ok(&["registry", "policies", "policies", "--limit", "1", "--text"]);
    assert!(first.starts_with("dorm  Dormitory  dorm.md  "), "{first}");
    let rest = kw.ok(&["registry", "policies", "policies", "--after", "dorm"]);
    assert_eq!(lines(&rest), entries[1..]);

    assert_eq!(kw.json(&["registry", "show", "policies", "dorm"]), entries[0]);
    let content = kw.ok(&["registry", "show", "policies", "휴학", "--content"]);
    assert_eq!(content, "# 휴학 규정\n\n내용\n");
    let told = kw.fails(1, &["registry", "show", "policies", "nope"]);
    assert!(told.contains("has no policy nope"), "{told}");

    let runs = lines(&kw.ok(&["registry", "runs", "policies"]));
    let done: Vec<&Value> = runs.iter().filter(|run| run["added"] == 3).collect();
    assert_eq!(done.len(), 1, "{runs:?}");
    assert_eq!((&done[0]["status"], &done[0]["trigger"]), (&"success".into(), &"hand".into()));
    let id = done[0]["id"].as_str().unwrap();
    assert_eq!(&kw.json(&["registry", "runs", "policies", id]), done[0]);
    kw.fails(1, &["registry", "runs", "policies", "001767628800000-00"]);

    let status = kw.json(&["registry", "show", "policies"]);
    assert_eq!(status["commit"], Value::from(commit));
    assert_eq!((&status["policies"], &status["queue"]["ready"]), (&3.into(), &3.into()));
    let listed = lines(&kw.ok(&["registry", "list"]));
    assert_eq!((&listed[0]["name"], &listed[0]["waiting"]), (&"policies".into(), &3.into()));
}

#[test]
fn a_rename_an_update_a_move_and_a_delete_are_told() {
    let (kw, repository) = declared("");
    repository.write("old.md", "# Old\n").commit();
    kw.ok(&["sync", "policies", "--apply"]);
    let before = repository.short("leave.md");
    repository.remove("dorm.md").write("residence.md", "# Dormitory\n");
    repository.remove("학사/휴학.md").write("휴학.md", "# 휴학 규정\n\n내용\n");
    repository.remove("old.md").write("leave.md", "# Leave\n").commit();
    let shown = kw.ok(&["sync", "policies", "--plan", "--full"]);
    let ids = format!("{before} → {}", repository.short("leave.md"));
    let words: Vec<String> = shown
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .take(5)
        .collect();
    let (dorm, old) =
        (repository.short("residence.md"), &repository.git(&["rev-parse", "HEAD~1:old.md"])[..7]);
    assert_eq!(
        words,
        [
            format!("delete dorm Dormitory dorm.md {dorm}"),
            format!("update leave Leave leave.md {ids}"),
            format!("delete old Old old.md {old}"),
            format!("add residence Dormitory residence.md {dorm} renamed from dorm"),
            format!(
                "update 휴학 휴학 규정 휴학.md {} was in 학사/휴학.md",
                repository.short("휴학.md")
            ),
        ],
        "{shown}"
    );
    let told = kw.ok(&["sync", "policies", "--apply"]);
    assert!(told.contains("1 added, 2 updated, 2 deleted"), "{told}");
    let shown = kw.ok(&["registry", "queue", "policies", "--text"]);
    assert!(shown.starts_with("dorm       delete  ready  0\n"), "{shown}");
}

#[test]
fn a_file_that_is_no_policy_is_named_and_its_entry_stays() {
    let (kw, repository) = declared("");
    kw.ok(&["sync", "policies", "--apply"]);
    repository.write("dorm.md", b"# \xff\n").commit();
    let ended = kw.run(&["sync", "policies", "--apply"]).ended(10);
    assert!(ended.starts_with("left alone  dorm.md: "), "{ended}");
    assert!(ended.contains(" 0 deleted, 1 left alone"), "{ended}");
    assert_eq!(kw.json(&["get", "policy:dorm"])["title"], "Dormitory");
    let ended = kw.run(&["sync", "policies", "--apply", "--json"]).ended(10);
    let ended: Value = serde_json::from_str(&ended).unwrap();
    assert_eq!((&ended["outcome"], &ended["run"]["status"]), (&"done".into(), &"partial".into()));
    let run =
        kw.ok(&["registry", "runs", "policies", ended["run"]["id"].as_str().unwrap(), "--text"]);
    assert!(run.contains("left alone  dorm.md: "), "{run}");
}

#[test]
fn a_mass_delete_must_be_allowed() {
    let (kw, repository) = declared("");
    kw.ok(&["sync", "policies", "--apply"]);
    repository.remove("dorm.md").remove("leave.md").commit();
    let told = kw.fails(3, &["sync", "policies", "--apply"]);
    assert!(told.contains("2 of 3 policies would be deleted"), "{told}");
    assert!(told.contains("--allow-mass-delete"), "{told}");
    assert!(kw.ok(&["sync", "policies", "--plan"]).contains("2 to delete"));
    assert_eq!(kw.json(&["get", "policy:dorm"])["title"], "Dormitory");
    let told = kw.ok(&["sync", "policies", "--apply", "--allow-mass-delete"]);
    assert!(told.contains("2 deleted"), "{told}");
    kw.fails(1, &["get", "policy:dorm"]);
}

#[test]
fn a_repository_that_is_not_there_changes_nothing() {
    let (kw, repository) = declared("");
    kw.ok(&["sync", "policies", "--apply"]);
    std::fs::rename(repository.path(), kw.path("elsewhere")).unwrap();
    let told = kw.fails(7, &["sync", "policies", "--apply"]);
    assert!(told.contains("policies"), "{told}");
    let told: Value =
        serde_json::from_str(&kw.fails(7, &["sync", "policies", "--plan", "--json"])).unwrap();
    assert_eq!(told["error"]["code"], "source-failed");
    assert_eq!(lines(&kw.ok(&["registry", "policies", "policies"])).len(), 3);
    let runs = lines(&kw.ok(&["registry", "runs", "policies"]));
    assert_eq!(runs[0]["status"], "failed");
}

#[test]
fn two_syncs_do_not_run_at_once() {
    let (kw, _repository) = declared("");
    kw.ok(&["sync", "policies", "--apply"]);
    let keyward = env!("CARGO_BIN_EXE_keyward");
    let locked = ["lock", "exec", "system:registry:policies:lock", "--", keyward];
    let told = kw.fails(12, &[&locked[..], &["sync", "policies", "--apply"]].concat());
    assert!(told.contains("another sync of policies runs"), "{told}");
    kw.ok(&["sync", "policies", "--apply"]);
}

#[test]
fn a_registry_needs_no_config_file() {
    let kw = Sandbox::new();
    let repository = Repository::new(kw.path("handbook"));
    repository.write("docs/a.md", "# A\n").write("docs/b.markdown", "# B\n").write("c.md", "# C\n");
    repository.commit();
    let told = kw.fails(2, &["sync", "handbook", "--apply"]);
    assert!(told.contains("--repository") && told.contains("[registries.handbook]"), "{told}");
    let flags = ["--repository", "handbook", "--folder", "docs", "--include", "*.m*"];
    let told = kw.ok(&[&["sync", "handbook", "--apply"], &flags[..]].concat());
    assert!(told.contains(": 2 added, "), "{told}");
    // Its store knows it from then on; only what is in git has to be found again.
    assert_eq!(lines(&kw.ok(&["registry", "policies", "handbook"])).len(), 2);
    assert_eq!(kw.json(&["registry", "show", "handbook"])["settings"], Value::Null);
    kw.fails(2, &["registry", "show", "handbook", "a", "--content"]);
    let show = ["registry", "show", "handbook", "a", "--content", "--repository", "handbook"];
    assert_eq!(kw.ok(&show), "# A\n");
    let told = kw.fails(2, &["registry", "policies", "hnadbook"]);
    assert!(told.contains("what the registry hnadbook is"), "{told}");
    // Another one in the same store would delete what this one has.
    let told = kw.fails(3, &["sync", "other", "--apply", "--repository", "handbook"]);
    assert!(told.contains("handbook"), "{told}");
    kw.ok(&["sync", "other", "--apply", "--repository", "handbook", "--prefix", "other"]);
}

#[test]
fn what_a_config_file_declares_is_relative_to_it_and_not_declared_twice() {
    let (kw, _repository) = declared("");
    std::fs::create_dir(kw.path("below")).unwrap();
    let mut command = kw.command(&["sync", "policies", "--plan", "--config", "../keyward.toml"]);
    let output = command.current_dir(kw.path("below")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = kw.fails(2, &["sync", "policies", "--plan", "--branch", "next"]);
    assert!(told.contains("keyward.toml declares the registry policies already"), "{told}");
}

#[test]
fn what_is_wrong_with_a_registry_is_told_with_its_line() {
    let (kw, _repository) = declared("retries = 0\nschedule = { cron = \"0 25 * * *\" }\n");
    for command in
        [&["sync", "policies", "--plan"][..], &["registry", "list"], &["serve", "--check"]]
    {
        let told = kw.fails(2, command);
        assert!(told.contains("keyward.toml:3: registries.policies.retries: "), "{told}");
        assert!(told.contains("keyward.toml:4: registries.policies.schedule.cron: "), "{told}");
    }
    kw.write("keyward.toml", "[registries.policies]\nrepository = \"p\"\nschedule = \"daily\"\n");
    let told = kw.fails(2, &["registry", "list"]);
    assert!(told.contains("line 3, column 12") && told.contains("or \"off\""), "{told}");
    kw.write("keyward.toml", "[registries.policies]\nrepository = \"https://a:canary@b/p\"\n");
    assert!(!kw.fails(2, &["registry", "list"]).contains("canary"));
    // What has nothing to do with registries goes on.
    kw.write("keyward.toml", "[registries.policies]\nrepository = \"p\"\nretries = 0\n");
    kw.ok(&["ls"]);
}

#[test]
fn the_example_of_a_config_file_can_be_used() {
    let kw = Sandbox::new();
    kw.write("keyward.toml", include_str!("../../../../examples/registry/keyward.toml"));
    let shown = kw.json(&["serve", "--check", "--json"]);
    assert_eq!(shown["registries"]["policies"]["consumers"].as_object().unwrap().len(), 4);
    assert_eq!(shown["registries"]["handbook"]["schedule"], "off");
}

#[test]
fn what_a_server_is_told_of_registries_shows_no_secrets() {
    let (kw, _repository) = declared(
        "webhook = { secret = { env = \"HOOK\" } }\n\
         [registries.policies.consumers.hook]\n\
         post = \"https://example.org/hook\"\nsecret = { file = \"secret\" }\n",
    );
    kw.write("secret", "canary");
    let mut command = kw.command(&["serve", "--check", "--json"]);
    let output = command.env("HOOK", "canary").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("canary"), "{text}");
    let shown: Value = serde_json::from_str(&text).unwrap();
    let policies = &shown["registries"]["policies"];
    assert_eq!(policies["webhook"]["secret"]["env"], "HOOK");
    assert_eq!(policies["schedule"]["cron"], "0 16 * * *");
    let text = kw.ok(&["serve", "--check"]);
    assert!(text.contains("[registries.policies.consumers.hook]"), "{text}");
    // A store that nobody declares cannot have it.
    let (kw, _repository) = declared("store = \"archive\"\n");
    let told = kw.fails(2, &["serve", "--check"]);
    assert!(told.contains("registries.policies: ") && told.contains("\"archive\""), "{told}");
}

#[test]
fn all_registries_have_their_turn_also_after_one_that_fails() {
    let (kw, repository) = declared("prefix = \"b\"\n");
    let config =
        format!("{}[registries.alpha]\nrepository = \"nowhere\"\n", kw.read("keyward.toml"));
    kw.write("keyward.toml", &config);
    let ran = kw.run(&["sync", "--all", "--apply", "--json"]);
    let ended: Value = serde_json::from_str(&ran.ended(7)).unwrap();
    assert_eq!((&ended["registry"], &ended["outcome"]), (&"policies".into(), &"done".into()));
    assert_eq!(kw.json(&["get", "b:policy:dorm"])["title"], "Dormitory");
    repository.write("dorm.md", "# Dorms\n").commit();
    let shown = kw.run(&["sync", "--all", "--plan"]).ended(7);
    assert!(shown.contains("1 to update"), "{shown}");
    let listed = kw.ok(&["registry", "list", "--text"]);
    assert!(listed.starts_with("alpha     failed"), "{listed}");
}

#[test]
fn what_is_fetched_is_kept_where_it_is_said() {
    let kw = Sandbox::new();
    let repository = Repository::new(kw.path("far"));
    repository.write("a.md", "# A\n").commit();
    let address = repository.served(8);
    let sync = ["sync", "far", "--repository", &address, "--apply"];
    assert!(kw.ok(&[&sync[..], &["--cache", "kept"]].concat()).contains("1 added"));
    assert!(std::fs::read_dir(kw.path("kept")).unwrap().count() > 0);
    assert!(is_absent(&kw.path("home/.cache")));
    repository.write("b.md", "# B\n").commit();
    assert!(kw.ok(&sync).contains("1 added"));
    assert!(kw.path("home/.cache/keyward/registries").is_dir());
    let mut command = kw.command(&sync);
    let output = command.env_remove("HOME").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && told.contains("--cache DIR"), "{told}");
}

#[test]
fn a_registry_that_a_server_keeps_is_run_by_it() {
    let (kw, repository) = declared("schedule = \"off\"\n");
    let server = kw.start(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    let started: Value = serde_json::from_str(&server.next_line()).unwrap();
    let url = started["url"].as_str().unwrap();
    let far = Sandbox::new();
    let sync = ["--server", url, "sync", "policies"];
    let shown = far.ok(&[&sync[..], &["--plan"]].concat());
    assert!(shown.contains("3 to add, 0 to update"), "{shown}");
    let told = far.ok(&[&sync[..], &["--apply"]].concat());
    assert!(told.contains(": 3 added, 0 updated, 0 deleted"), "{told}");
    assert!(far.ok(&[&sync[..], &["--apply"]].concat()).contains("nothing to do"));
    repository.remove("dorm.md").remove("leave.md").commit();
    let told = far.fails(2, &[&sync[..], &["--apply"]].concat());
    assert!(told.contains("2 of 3 policies would be deleted"), "{told}");
    far.fails(2, &sync);
    far.fails(2, &[&sync[..], &["--apply", "--deliver"]].concat());
    let told = far.fails(2, &["--server", url, "sync", "nope", "--plan"]);
    assert!(told.contains("no registry called \"nope\""), "{told}");
    // What it keeps can be read, also by who has the same config file.
    let listed = far.ok(&["--server", url, "registry", "policies", "policies"]);
    assert_eq!(lines(&listed).len(), 3);
    let same = kw.ok(&["--server", url, "sync", "policies", "--plan"]);
    assert!(same.contains("2 to delete"), "{same}");
    // One that it does not keep goes into its store.
    let other = Repository::new(far.path("other"));
    other.write("a.md", "# A\n").commit();
    let flags = ["--repository", "other", "--prefix", "other", "--apply"];
    let told = far.ok(&[&["--server", url, "sync", "other"], &flags[..]].concat());
    assert!(told.contains(": 1 added"), "{told}");
    assert_eq!(kw.json(&["get", "other:policy:a"])["title"], "A");
    server.terminate();
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn entries_of_version_1_are_moved_at_once_and_told_before() {
    let (kw, _repository) = declared("");
    let old = r#"{"title":"Leave of absence","fileNo":"868"}"#;
    let put = ["put", "policy:Leave of absence", old];
    let told = kw.fails(11, &put);
    assert!(told.contains("belongs to the registry policies"), "{told}");
    kw.ok(&[&put[..], &["--raw"]].concat());
    let told = kw.ok(&["registry", "migrate", "policies", "--dry-run", "--text"]);
    assert!(told.contains("Leave of absence  →  leave"), "{told}");
    assert!(told.ends_with("1 entry: 1 would be moved, 0 would be cleaned\n"), "{told}");
    kw.fails(1, &["get", "policy:leave"]);
    let done = kw.ok(&["registry", "migrate", "policies", "--text"]);
    assert!(done.ends_with("1 entry: 1 moved, 0 cleaned\n"), "{done}");
    assert_eq!(kw.json(&["get", "policy:leave"])["fileNo"], "868");
    kw.fails(1, &["get", "policy:Leave of absence"]);
}
