//! Which store is meant.

use std::process::Command;

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
fn without_a_store_the_three_ways_to_name_one_are_told() {
    let kw = Sandbox::new();
    let text = told(&kw, &["ls"], 2);
    assert!(text.starts_with("error: no store was named\nhint: "), "{text}");
    for way in ["keyward -s ", "KEYWARD_STORE=", "keyward.toml"] {
        assert!(text.contains(way), "{text}");
    }
    kw.write("keyward.toml", "");
    let text = told(&kw, &["ls"], 2);
    assert!(text.contains("not in keyward.toml either"), "{text}");
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
