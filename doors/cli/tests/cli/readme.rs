//! The README's example session, as printed, and what it does with this project's own documents.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::repository::Repository;
use crate::sandbox::Sandbox;

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
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(directory.path())
        .env("PATH", path())
        .env("HOME", directory.path())
        .env_remove("KEYWARD_STORE")
        .env_remove("KEYWARD_SCHEMA")
        .env_remove("XDG_CONFIG_HOME")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), session);
}

/// Where programs are looked for, with the command that was built.
fn path() -> OsString {
    let built = Path::new(env!("CARGO_BIN_EXE_keyward")).parent().unwrap().to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    env::join_paths([built].into_iter().chain(env::split_paths(&path))).unwrap()
}

/// The files of a folder and of those below it, with their paths.
fn files(folder: &Path, below: &str, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{below}/{}", entry.file_name().to_str().unwrap());
        match entry.file_type().unwrap().is_dir() {
            true => files(&entry.path(), &name, found),
            false => found.push((name, std::fs::read(entry.path()).unwrap())),
        }
    }
}

#[test]
fn this_projects_documents_are_synced_as_the_readme_says() {
    let kw = Sandbox::new();
    let repository = Repository::new(kw.path("keyward"));
    let mut documents = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs"), "docs", &mut documents);
    for (name, content) in &documents {
        repository.write(name, content);
    }
    repository.commit();
    let section = README.split("## Documents from git").nth(1).unwrap();
    let commands = section.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let output = Command::new("sh")
        .args(["-e", "-c", commands])
        .current_dir(repository.path())
        .env("PATH", path())
        .env("HOME", kw.path("home"))
        .env("KEYWARD_STORE", "embedded:./keyward-data")
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    let policies = documents.iter().filter(|(name, _)| name.ends_with(".md")).count();
    assert!(policies > 10);
    assert!(shown.contains(&format!(", {policies} files: {policies} to add, ")), "{shown}");
    assert!(shown.contains(&format!(": {policies} added, 0 updated, 0 deleted (")), "{shown}");
    let locks = documents.iter().find(|(name, _)| name == "docs/locks.md").unwrap();
    assert!(shown.contains(std::str::from_utf8(&locks.1).unwrap()), "{shown}");
}
