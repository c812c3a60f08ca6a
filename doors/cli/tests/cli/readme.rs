//! The README's example session, as printed.

use std::env;
use std::path::Path;
use std::process::Command;

const README: &str = include_str!("../../../../README.md");

/// What the README shows of a terminal: commands after `$`, and what they print.
fn session() -> String {
    let blocks = README.split("```console\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap()).collect()
}

#[test]
fn the_readmes_session_works_as_printed() {
    let directory = tempfile::tempdir().unwrap();
    let session = session();
    let commands: Vec<&str> = session.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert!(!commands.is_empty());

    // One shell for all of it, which shows each command before it runs it.
    let mut script = String::from("exec 2>&1\n");
    for command in commands {
        let quoted = command.replace('\'', r"'\''");
        script.push_str(&format!("printf '$ %s\\n' '{quoted}'\n{command}\n"));
    }
    let built = Path::new(env!("CARGO_BIN_EXE_keyward")).parent().unwrap().to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([built].into_iter().chain(env::split_paths(&path))).unwrap();
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(directory.path())
        .env("PATH", path)
        .env("HOME", directory.path())
        .env_remove("KEYWARD_STORE")
        .env_remove("KEYWARD_SCHEMA")
        .env_remove("XDG_CONFIG_HOME")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), session);
}
