//! mcp install: the configurations of clients, below a home of their own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, is_absent};

/// Each client: its name, its file below the home, and where servers stand in it.
const CLIENTS: [(&str, &str, &str); 7] = [
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers"),
    ("claude-code", ".claude.json", "mcpServers"),
    ("cursor", ".cursor/mcp.json", "mcpServers"),
    ("vscode", ".config/Code/User/mcp.json", "servers"),
    ("windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
    ("zed", ".config/zed/settings.json", "context_servers"),
    ("gemini-cli", ".gemini/settings.json", "mcpServers"),
];

impl Sandbox {
    /// What `keyward mcp install …` prints, where no store is named but by the arguments.
    #[track_caller]
    fn install(&self, arguments: &[&str]) -> String {
        self.ok(&[&["mcp", "install"], arguments].concat())
    }

    /// What a file below the home says.
    fn configured(&self, file: &str) -> Value {
        serde_json::from_str(&self.read(&format!("home/{file}"))).unwrap()
    }
}

fn here(kw: &Sandbox) -> String {
    let here = fs::canonicalize(kw.path(".")).unwrap();
    here.to_str().unwrap().to_owned()
}

#[test]
fn every_client_starts_the_command_on_the_store_that_is_meant() {
    for (client, file, table) in CLIENTS {
        let kw = Sandbox::new();
        let told = kw.install(&[client]);
        assert!(told.starts_with("added keyward in ") && told.contains(file), "{told}");
        let all = kw.configured(file);
        let entry = &all[table]["keyward"];
        assert_eq!(entry["command"], env!("CARGO_BIN_EXE_keyward"));
        let store = format!("embedded:{}/./data", here(&kw));
        assert_eq!(entry["args"], json!(["mcp", "--store", store]), "{client}");
        let kind = ["claude-code", "vscode"].contains(&client).then_some("stdio");
        assert_eq!(entry.get("type").and_then(Value::as_str), kind);
        assert!(is_absent(&kw.path(&format!("home/{file}.bak"))), "there was nothing to keep");
        // Once more is nothing to do.
        let again = kw.json(&["mcp", "install", client, "--json"]);
        assert_eq!((&again["outcome"], again.get("backup")), (&json!("unchanged"), None));
    }
}

#[test]
fn the_user_and_the_roles_are_passed_on() {
    let kw = Sandbox::new();
    kw.install(&["cursor", "--user", "ada", "--role", "hr", "--role", "it"]);
    let store = format!("embedded:{}/./data", here(&kw));
    let given = &kw.configured(".cursor/mcp.json")["mcpServers"]["keyward"]["args"];
    let whom = ["mcp", "--user", "ada", "--role", "hr", "--role", "it", "--store", &store];
    assert_eq!(*given, json!(whom));
    let url = ["mcp", "install", "zed", "--user", "ada", "--url", "http://127.0.0.1:7480/mcp"];
    let said = kw.fails(2, &url);
    assert!(said.contains("--user"), "{said}");
}

#[test]
fn what_is_in_the_file_stays_and_is_kept_beside_it() {
    for (client, file, table) in CLIENTS {
        let kw = Sandbox::new();
        let before = format!(
            "{{\n    \"theme\": \"dark\",   \"n\": 1.10,\n    \"{table}\": {{\n        \"other\": {{ \
             \"command\": \"x\", \"env\": {{ \"TOKEN\": \"hush-hush\" }} }}\n    }},\n    \"z\": []\n}}\n"
        );
        let path = kw.write(&format!("home/{file}"), &before);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let told = kw.install(&[client, "--name", "notes"]);
        assert!(!told.contains("hush-hush"), "{told}");
        let after = kw.read(&format!("home/{file}"));
        let at = after.find(",\n        \"notes\"").unwrap();
        let end = at + after[at..].find("\n    },\n    \"z\"").unwrap();
        assert_eq!(format!("{}{}", &after[..at], &after[end..]), before, "{client}");
        assert_eq!(kw.read(&format!("home/{file}.bak")), before);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(is_absent(&kw.path(&format!("home/{file}.part"))));
    }
}

#[test]
fn a_client_speaks_to_a_server_instead() {
    let url = "https://data.example.org/mcp";
    for (client, file, table) in CLIENTS {
        let kw = Sandbox::new();
        if client == "claude-desktop" {
            kw.fails(4, &["mcp", "install", client, "--url", url]);
            continue;
        }
        kw.install(&[client, "--url", url]);
        let all = kw.configured(file);
        let entry = &all[table]["keyward"];
        let field = match client {
            "windsurf" => "serverUrl",
            "gemini-cli" => "httpUrl",
            _ => "url",
        };
        assert_eq!(entry[field], url, "{client}");
        assert_eq!(entry.get("command"), None);
        let kind = ["claude-code", "vscode"].contains(&client).then_some("http");
        assert_eq!(entry.get("type").and_then(Value::as_str), kind);
    }
    let kw = Sandbox::new();
    kw.install(&["cursor", "--url", url, "--key-variable", "KEYWARD_KEY"]);
    let entry = &kw.configured(".cursor/mcp.json")["mcpServers"]["keyward"];
    assert_eq!(entry["headers"], json!({"Authorization": "Bearer ${env:KEYWARD_KEY}"}));
    kw.fails(4, &["mcp", "install", "vscode", "--url", url, "--key-variable", "KEYWARD_KEY"]);
    kw.fails(2, &["mcp", "install", "cursor", "--url", url, "--key-variable", "kw-secret key"]);
    kw.fails(2, &["mcp", "install", "cursor", "--url", url, "-s", "memory:"]);
    kw.fails(2, &["mcp", "install", "cursor", "--url", "data.example.org/mcp"]);
}

#[test]
fn no_secret_is_written_or_shown() {
    let kw = Sandbox::new();
    for line in [
        &["-s", "postgres://ada:hush-hush@db/app?store=s"][..],
        &["--url", "https://ada:hush-hush@data.example.org/mcp"],
    ] {
        let told = kw.fails(2, &[&["mcp", "install", "cursor"], line].concat());
        assert!(!told.contains("hush-hush"), "{told}");
        assert!(is_absent(&kw.path("home")));
    }
    // A config file keeps its secret, and is named.
    kw.write("own.toml", "store = \"postgres://ada:hush-hush@db/app?store=s\"\n");
    let mut command = kw.command(&["mcp", "install", "cursor", "--config", "own.toml"]);
    assert!(command.env_remove("KEYWARD_STORE").output().unwrap().status.success());
    let text = kw.read("home/.cursor/mcp.json");
    assert!(!text.contains("hush-hush"), "{text}");
    let entry = &kw.configured(".cursor/mcp.json")["mcpServers"]["keyward"];
    assert_eq!(entry["args"], json!(["mcp", "--config", format!("{}/own.toml", here(&kw))]));

    // What else is in the file is not shown.
    kw.write("home/.claude.json", r#"{"mcpServers":{"a":{"env":{"TOKEN":"hush-hush"}}}}"#);
    let ran = kw.run(&["mcp", "install", "claude-code", "--print"]);
    let shown: Value = serde_json::from_str(&ran.ok()).unwrap();
    assert_eq!(shown["mcpServers"].as_object().unwrap().keys().collect::<Vec<_>>(), ["keyward"]);
    let text = kw.read("home/.claude.json");
    assert_eq!(
        text, r#"{"mcpServers":{"a":{"env":{"TOKEN":"hush-hush"}}}}"#,
        "nothing was written"
    );
    kw.write("home/.claude.json", r#"{"mcpServers":{"a":{"env":{"TOKEN":"hush-hush"}}}"#);
    let told = kw.fails(2, &["mcp", "install", "claude-code"]);
    assert!(!told.contains("hush-hush"), "{told}");
}

#[test]
fn a_file_that_is_not_json_is_refused_and_left_alone() {
    for (broken, says) in [
        ("{\"mcpServers\": {}", "is not JSON"),
        ("theme = \"dark\"", "is not JSON"),
        ("{ // mine\n}", "is not JSON"),
        ("[]", "is JSON, but no object"),
        ("{\"mcpServers\": 7}", "has a \"mcpServers\" that is no object"),
    ] {
        let kw = Sandbox::new();
        kw.write("home/.claude.json", broken);
        let told = kw.fails(2, &["mcp", "install", "claude-code"]);
        assert!(told.contains(says) && told.contains("Nothing was written"), "{told}");
        assert_eq!(kw.read("home/.claude.json"), broken);
        assert!(is_absent(&kw.path("home/.claude.json.bak")));
    }
    // Where the client allows comments, they stay.
    let kw = Sandbox::new();
    let before = "// Zed settings\n{\n  \"theme\": \"One\", // the first\n}\n";
    kw.write("home/.config/zed/settings.json", before);
    kw.install(&["zed"]);
    let after = kw.read("home/.config/zed/settings.json");
    assert!(after.starts_with("// Zed settings\n{\n  \"theme\": \"One\","), "{after}");
    assert!(after.contains("// the first\n") && after.contains("\"context_servers\""), "{after}");
}

#[test]
fn another_server_of_the_same_name_is_replaced_only_if_asked() {
    let kw = Sandbox::new();
    kw.install(&["cursor", "-s", "embedded:/srv/one"]);
    let first = kw.read("home/.cursor/mcp.json");
    let line = ["mcp", "install", "cursor", "-s", "embedded:/srv/two"];
    let told = kw.fails(3, &line);
    assert!(told.contains("--replace") && told.contains("--name"), "{told}");
    assert_eq!(kw.read("home/.cursor/mcp.json"), first);
    kw.install(&["cursor", "-s", "embedded:/srv/two", "--name", "two"]);
    kw.ok(&[&line[..], &["--replace"]].concat());
    let servers = kw.configured(".cursor/mcp.json")["mcpServers"].clone();
    let store = |name: &str| servers[name]["args"][2].clone();
    assert_eq!(
        (store("keyward"), store("two")),
        (json!("embedded:/srv/two"), json!("embedded:/srv/two"))
    );
    kw.fails(2, &["mcp", "install", "cursor", "--name", "a b"]);
    kw.fails(2, &["mcp", "install", "emacs"]);
}

#[test]
fn a_schema_a_project_a_link_and_another_file_are_gone_by() {
    let kw = Sandbox::new();
    kw.write("keyward.schema.toml", "[stores.a]\nurl = 'embedded:./a'\n[stores.b]\n");
    kw.install(&["claude-code", "--project"]);
    let project: Value = serde_json::from_str(&kw.read(".mcp.json")).unwrap();
    let entry = &project["mcpServers"]["keyward"];
    let here = here(&kw);
    assert_eq!(entry["args"], json!(["mcp", "--schema", format!("{here}/keyward.schema.toml")]));
    // The store that the schema does not place comes from the environment, here as there.
    assert_eq!(entry["env"], json!({"KEYWARD_STORE": format!("embedded:{here}/./data")}));
    assert!(is_absent(&kw.path("home")));
    kw.fails(4, &["mcp", "install", "windsurf", "--project"]);

    let real = kw.write("dotfiles/cursor.json", "{}");
    fs::create_dir_all(kw.path("home/.cursor")).unwrap();
    symlink(&real, kw.path("home/.cursor/mcp.json")).unwrap();
    kw.install(&["cursor"]);
    assert!(fs::symlink_metadata(kw.path("home/.cursor/mcp.json")).unwrap().is_symlink());
    assert!(kw.read("dotfiles/cursor.json").contains("\"keyward\""));
    kw.install(&["cursor", "--file", "here/mcp.json"]);
    assert!(kw.read("here/mcp.json").contains("\"keyward\""));

    let other = Sandbox::new();
    let mut command = other.command(&["mcp", "install", "cursor"]);
    assert!(command.env_remove("KEYWARD_STORE").output().unwrap().status.success());
    let entry = &other.configured(".cursor/mcp.json")["mcpServers"]["keyward"];
    let default = format!("embedded:{}/./keyward-data", self::here(&other));
    assert_eq!(entry["args"], json!(["mcp", "--store", default]));
    other.fails(4, &["--server", "http://127.0.0.1:1", "mcp", "install", "cursor"]);
}
