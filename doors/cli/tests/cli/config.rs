//! Which store is meant.

use std::process::Command;

use serde_json::Value;

use crate::sandbox::Sandbox;

/// Four stores, each of which says where it is.
fn stores() -> Sandbox {
    let kw = Sandbox::new();
    for store in ["flag", "env", "local", "other/place", "home/.config/keyward/user"] {
        std::fs::create_dir_all(kw.path(store).parent().unwrap()).unwrap();
        let url = format!("embedded:./{store}");
        kw.ok(&["-s", &url, "put", "which", &format!("\"{store}\"")]);
    }
    kw
}

fn which(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_flag_comes_before_the_environment_and_that_before_config_files() {
    let kw = stores();
    kw.write("home/.config/keyward/config.toml", "store = \"embedded:./user\"\n");
    let get = |arguments: &[&str], env: Option<&str>| {
        let mut command = kw.command(&[arguments, &["get", "which"]].concat());
        command.env_remove("KEYWARD_STORE");
        if let Some(env) = env {
            command.env("KEYWARD_STORE", env);
        }
        which(command)
    };
    assert_eq!(get(&[], None), "\"home/.config/keyward/user\"");
    kw.write("keyward.toml", "store = \"embedded:./local\"\n");
    assert_eq!(get(&[], None), "\"local\"");
    kw.write("other/my.toml", "# Relative to this file.\nstore = \"embedded:place\"\n");
    assert_eq!(get(&["--config", "other/my.toml"], None), "\"other/place\"");
    // An empty variable is none.
    assert_eq!(get(&[], Some("")), "\"local\"");
    assert_eq!(get(&["--config", "other/my.toml"], Some("embedded:./env")), "\"env\"");
    assert_eq!(get(&["-s", "embedded:./flag"], Some("embedded:./env")), "\"flag\"");
}

#[test]
fn the_configuration_directory_can_be_moved() {
    let kw = stores();
    kw.write("xdg/keyward/config.toml", "store = \"embedded:../../local\"\n");
    let mut command = kw.command(&["get", "which"]);
    command.env_remove("KEYWARD_STORE").env("XDG_CONFIG_HOME", kw.path("xdg"));
    assert_eq!(which(command), "\"local\"");
}

fn told(kw: &Sandbox, arguments: &[&str], code: i32) -> String {
    let output = kw.command(arguments).env_remove("KEYWARD_STORE").output().unwrap();
    assert_eq!(output.status.code(), Some(code));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn without_a_name_the_store_is_the_default_one_of_every_command() {
    let kw = Sandbox::new();
    let text = told(&kw, &["get", "k"], 1);
    assert!(
        text.starts_with("error: there is no store at embedded:./keyward-data\nhint: "),
        "{text}"
    );
    // A config file that names none changes nothing.
    kw.write("keyward.toml", "");
    let ran = |arguments: &[&str]| {
        let mut command = kw.command(arguments);
        which({
            command.env_remove("KEYWARD_STORE");
            command
        })
    };
    ran(&["put", "k", "1"]);
    assert!(kw.path("keyward-data").is_dir());
    assert_eq!(ran(&["get", "k"]), "1");
    let stats: Value = serde_json::from_str(&ran(&["stats", "--json"])).unwrap();
    assert_eq!(stats["store"], "embedded:./keyward-data");
    assert_eq!(stats["named_by"], "the default");
}

#[test]
fn a_config_file_that_is_missing_or_wrong_is_named() {
    let kw = Sandbox::new();
    let text = told(&kw, &["--config", "my.toml", "ls"], 7);
    assert!(text.starts_with("error: cannot read the config file my.toml: "), "{text}");
    kw.write("my.toml", "sotre = \"embedded:./data\"\n");
    let text = told(&kw, &["--config", "my.toml", "ls"], 2);
    assert!(text.contains("my.toml is no valid config file"), "{text}");
    assert!(text.contains("sotre"), "{text}");
}

#[test]
fn a_url_that_names_no_store_is_refused() {
    let kw = Sandbox::new();
    for (url, reason) in [
        ("data", "is not a store URL"),
        ("mongo:there", "no engine called \"mongo\""),
        ("memory:?size=1", "no option \"size\""),
    ] {
        let text = kw.fails(2, &["-s", url, "ls"]);
        assert!(text.contains(reason), "{text}");
    }
    kw.write("file", "");
    kw.fails(7, &["-s", "embedded:./file", "ls"]);
}

/// What `serve --check` shows with these arguments and variables.
fn in_force(kw: &Sandbox, arguments: &[&str], env: &[(&str, &str)]) -> Value {
    let mut command = kw.command(&[&["serve", "--check", "--json"], arguments].concat());
    let output = command.envs(env.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_server_is_told_by_flag_then_variable_then_file_then_by_default() {
    let kw = Sandbox::new();
    let shown = in_force(&kw, &[], &[]);
    assert_eq!(shown["server"]["listen"], "127.0.0.1:7480");
    assert_eq!(shown["server"]["rates"]["tenant"], "1000/2000");
    assert_eq!(shown["server"]["audit"]["kept"], "90d");
    assert_eq!(
        shown["stores"]["main"].as_str().map(|url| url.starts_with("embedded:")),
        Some(true)
    );

    kw.write(
        "etc/server.toml",
        r#"
        [server]
        listen = "127.0.0.1:1001"
        control = "embedded:control"
        log = "json"
        log_level = "info"
        rates.tenant = "7/9"
        rates.stranger = "none"
        quota.writes_per_day_max = 11
        audit.kept = "30d"
        issuer.name = "https://id.example"
        issuer.audience = "keyward"
        issuer.algorithms = ["EdDSA"]
        limits.body_bytes_max = 4096
        limits.answer_time_max = "5s"
        "#,
    );
    let file = [("KEYWARD_CONFIG", "etc/server.toml")];
    let shown = in_force(&kw, &[], &file);
    let server = &shown["server"];
    assert_eq!(server["listen"], "127.0.0.1:1001");
    assert!(server["control"].as_str().unwrap().ends_with("etc/control"), "{server}");
    assert_eq!(server["rates"], serde_json::json!({"tenant": "7/9", "stranger": "none"}));
    assert_eq!(server["quota"]["writes_per_day_max"], 11);
    assert_eq!(server["issuer"]["algorithms"], serde_json::json!(["EdDSA"]));
    assert_eq!(server["issuer"]["user_claim"], "sub");
    assert_eq!(server["limits"]["body_bytes_max"], 4096);
    assert_eq!(server["limits"]["answer_time_max"], "5s");
    assert_eq!(server["limits"]["requests_max"], 1024);
    assert_eq!(server["limits"]["write_time_max"], "20s");
    assert_eq!(server["limits"]["connections_per_address_max"], 5_000);
    assert_eq!(server["limits"]["bodies_bytes_max"], 256 << 20);
    assert_eq!((&server["log"], &server["log_level"]), (&"json".into(), &"info".into()));

    let env = [file[0], ("KEYWARD_LISTEN", "127.0.0.1:1002"), ("KEYWARD_TENANT_RATE", "3")];
    let audit = ["--audit-kept", "7d", "--audit-store", "memory:", "--audit-bytes-max", "5000000"];
    let server = &in_force(&kw, &audit, &env)["server"];
    assert_eq!(server["listen"], "127.0.0.1:1002");
    assert_eq!(server["rates"]["tenant"], "3/3");
    assert_eq!(server["audit"]["kept"], "7d");
    assert_eq!(server["audit"]["store"], "memory:");
    assert_eq!(server["audit"]["bytes_max"], 5_000_000);
    assert_eq!(server["limits"]["watch_stall_time_max"], "20s");
    let server =
        &in_force(&kw, &["--listen", "127.0.0.1:1003", "--quota-writes", "12"], &env)["server"];
    assert_eq!(server["listen"], "127.0.0.1:1003");
    assert_eq!(server["quota"]["writes_per_day_max"], 12);
    let server = &in_force(&kw, &["--connections-per-address", "10000"], &env)["server"];
    assert_eq!(server["limits"]["connections_per_address_max"], 10_000);
}

#[test]
fn what_a_server_cannot_be_told_is_named_with_its_line() {
    let kw = Sandbox::new();
    for (text, line, told) in [
        ("[server]\nlisten = \"127.0.0.1:1\"\nport = 7\n", "line 3", "unknown field `port`"),
        ("[server.limits]\nconnections_max = 0\n", "line 2", "0 is not from 1"),
        ("\n\n[server.audit]\nkept = \"soon\"\n", "line 4", "write a number and a unit"),
        ("[server.rates]\ntenant = \"fast\"\n", "line 2", "requests a second"),
        ("[server.issuer]\nalgorithms = [\"HS256\"]\n", "line 2", "HS256"),
        ("[sever]\n", "line 1", "unknown field `sever`"),
    ] {
        kw.write("keyward.toml", text);
        let told_text = kw.fails(2, &["serve", "--check"]);
        assert!(told_text.contains("keyward.toml is no valid config file"), "{told_text}");
        assert!(told_text.contains(line) && told_text.contains(told), "{text}: {told_text}");
    }
    for (text, code, told) in [
        ("[server.tls]\ncert = \"a.pem\"\n", 2, "both a certificate and its key"),
        ("[server.issuer]\nname = \"me\"\n", 2, "an issuer and an audience"),
        ("[server]\nlisten = \"0.0.0.0:1\"\n", 7, "could read credentials"),
        ("[server.tls]\ncert = \"a.pem\"\nkey = \"b.pem\"\n", 7, "a.pem cannot be used for TLS"),
        (
            "[server.issuer]\nname = \"me\"\naudience = \"a\"\nkeys = \"none.json\"\n",
            7,
            "none.json",
        ),
        (
            "[server.issuer]\nname = \"me\"\naudience = \"a\"\nkeys = \"http://id.example/\"\n",
            7,
            "TLS",
        ),
    ] {
        kw.write("keyward.toml", text);
        let told_text = kw.fails(code, &["serve", "--check"]);
        assert!(told_text.contains(told), "{text}: {told_text}");
    }
}

#[test]
fn files_of_the_first_key_and_the_start_token_are_settings() {
    let kw = Sandbox::new();
    let made = kw.ok(&["-s", "embedded:./other", "key", "create", "elsewhere"]);
    kw.write_secret("etc/first", &made, 0o600);
    kw.write("etc/server.toml", "[server]\nfirst_key_file = \"first\"\nstart_token = true\n");
    let server = &in_force(&kw, &["--config", "etc/server.toml"], &[])["server"];
    assert!(server["first_key_file"].as_str().unwrap().ends_with("etc/first"), "{server}");
    assert_eq!((&server["start_token"], &server["start_token_file"]), (&true.into(), &Value::Null));
    let server = &in_force(&kw, &["--start-token-file", "token"], &[])["server"];
    assert_eq!(
        (&server["start_token"], &server["start_token_file"]),
        (&true.into(), &"token".into())
    );
    assert_eq!(in_force(&kw, &[], &[])["server"]["start_token"], false);
}

#[test]
fn what_is_shown_is_a_config_file_without_passwords() {
    let kw = Sandbox::new();
    let control = "postgres://keyward:canary-password@db.example/app?store=x";
    let shown = kw.ok(&["serve", "--check", "--text", "--control", control]);
    assert!(!shown.contains("canary-password"), "{shown}");
    let server = shown.split_once("[server]").unwrap().1;
    assert!(server.contains("db.example"), "{shown}");
    let plain = kw.ok(&["serve", "--check", "--text", "--quota-bytes", "5"]);
    let server = plain.split_once("[server]").unwrap().1;
    kw.write("again.toml", &format!("[server]{server}"));
    assert_eq!(kw.ok(&["serve", "--check", "--text", "--config", "again.toml"]), plain);
}

#[test]
fn the_limits_of_agents_are_shown_and_hold() {
    let kw = Sandbox::new();
    let limits = "value_bytes_max = 20\nmetadata_bytes_max = 30\nflush_interval = \"500ms\"\n\
                  tracked_max = 40\nlogged_max = 50\nlog_life = \"7d\"\npreview_chars_max = 0\n";
    kw.write("keyward.toml", &format!("[server.agents]\n{limits}"));
    let shown = kw.ok(&["serve", "--check", "--text"]);
    assert!(shown.contains(&format!("[server.agents]\n{limits}")), "{shown}");
    let set = |id: usize, value: &str| {
        let arguments = serde_json::json!({ "key": "k", "value": value });
        let params = serde_json::json!({ "name": "agent_set", "arguments": arguments });
        serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let params = serde_json::json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "tester", "version": "1" },
    });
    let lines = [
        serde_json::json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }),
        serde_json::json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        set(1, "0123456789"),
        set(2, "0123456789012345678"),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let told = kw.run_with(&["mcp"], lines).ok();
    let answer = |id: usize| {
        let all = told.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        all.into_iter().find(|answer| answer["id"] == id).unwrap()
    };
    assert_eq!(answer(1)["result"]["isError"], false, "{told}");
    assert_eq!(answer(2)["result"]["isError"], true, "{told}");
}
