//! Help, completions, the manual, and being one part of a pipeline.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::Value;

use crate::sandbox::{Sandbox, is_absent};

const COMMANDS: [&str; 25] = [
    "put",
    "get",
    "del",
    "ls",
    "scan",
    "watch",
    "stats",
    "export",
    "import",
    "copy",
    "backup",
    "restore",
    "compact",
    "schema",
    "record",
    "sync",
    "registry",
    "lock",
    "cache",
    "queue",
    "dead-letter",
    "job",
    "worker",
    "completions",
    "man",
];

#[test]
fn the_help_lists_the_commands_and_the_exit_codes() {
    let kw = Sandbox::new();
    let help = kw.ok(&["--help"]);
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command}: {help}");
    }
    assert!(
        help.contains("Exit codes:\n    0  done\n    1  the key or record is not there"),
        "{help}"
    );
    assert!(kw.ok(&["--version"]).starts_with("keyward "));
}

#[test]
fn the_help_of_each_command_has_examples() {
    let kw = Sandbox::new();
    for command in COMMANDS {
        let help = kw.ok(&[command, "--help"]);
        assert!(help.contains("\nExamples:\n  "), "{command}: {help}");
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    let kw = Sandbox::new();
    for wrong in [&["fetch", "k"][..], &["put", "k"], &["del"], &["ls", "--limit", "0"]] {
        let told = kw.fails(2, wrong);
        assert!(told.starts_with("error: "), "{told}");
    }
    let told: Value = serde_json::from_str(&kw.fails(2, &["put", "k", "--json"])).unwrap();
    assert_eq!(told["error"]["code"], "usage");
    assert!(is_absent(&kw.path("data")));
}

#[test]
fn completions_are_made_for_every_shell() {
    let kw = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = kw.ok(&["completions", shell]);
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    kw.fails(2, &["completions", "tcl"]);
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let kw = Sandbox::new();
    let root = kw.ok(&["man"]);
    assert!(root.contains(".SH \"EXIT STATUS\""), "{root}");
    let told = kw.ok(&["man", "--dir", "man1"]);
    let pages = std::fs::read_dir(kw.path("man1")).unwrap().count();
    assert_eq!(told, format!("wrote {pages} pages into man1\n"));
    assert_eq!(kw.read("man1/keyward.1"), root);
    for command in COMMANDS {
        let page = kw.read(&format!("man1/keyward-{command}.1"));
        assert!(page.contains(".SH EXAMPLES"), "{page}");
    }
    for command in ["schema-check", "record-get", "record-query"] {
        assert!(
            kw.read(&format!("man1/keyward-{command}.1")).contains(".SH EXAMPLES"),
            "{command}"
        );
    }
}

#[test]
fn a_reader_that_stops_ends_the_command_quietly() {
    let kw = Sandbox::filled("item", 20_000);
    for command in [&["ls"][..], &["scan", "item"], &["export"]] {
        let mut child = kw.command(command).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut String::new()).unwrap();
        drop(stdout);
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(stderr, "", "{command:?}");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{command:?}");
    }
}

#[test]
fn an_output_that_takes_nothing_more_is_an_error() {
    let kw = Sandbox::filled("item", 1);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = kw.command(&["ls"]).stdout(Stdio::from(full)).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert!(output.stderr.starts_with(b"error: cannot write the output: "));
}
