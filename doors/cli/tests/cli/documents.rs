//! The README from top to bottom in one directory, and every shell block of the pages that people copy from:
//! as printed, in bash and in zsh.

use std::path::Path;

use crate::repository::Repository;
use crate::sandbox::Sandbox;
use crate::snippets::{Block, Reader, Shell, blocks};

const README: &str = include_str!("../../../../README.md");
const SERVER: &str = include_str!("../../../../docs/server.md");
const LOCKS: &str = include_str!("../../../../docs/locks.md");
const DEPLOYMENT: &str = include_str!("../../../../docs/deployment.md");

/// Each page with the number of its blocks that a test cannot run. One more is a decision.
const UNTESTED: [(&str, &str, usize); 4] = [
    ("README.md", README, 2),
    ("docs/server.md", SERVER, 0),
    ("docs/locks.md", LOCKS, 0),
    ("docs/deployment.md", DEPLOYMENT, 5),
];

/// A key set as an issuer publishes it: the one of RFC 8037, with a name.
const KEY_SET: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":"a",
    "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

/// The README in a checkout of this project, as far as it is used there.
fn readme(shell: Shell) {
    shell.require();
    let kw = Sandbox::new();
    let checkout = Repository::new(kw.path("keyward"));
    let mut documents = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs"), "docs", &mut documents);
    for (name, content) in &documents {
        checkout.write(name, content);
    }
    checkout.commit();
    let reader = Reader::new(checkout.path().to_owned());
    let all = blocks(README);
    reader.run(shell, "README.md", all.iter().filter(|block| block.untested.is_none()));
    // One store has everything, and the documents among it are those of the folder.
    let runs =
        kw.command(&["-s", "embedded:keyward/keyward-data", "ls", "policy"]).output().unwrap();
    let synced = String::from_utf8(runs.stdout).unwrap().lines().count();
    let policies = documents.iter().filter(|(name, _)| name.ends_with(".md")).count();
    assert!(policies > 10);
    assert_eq!(synced, policies);
    for other in ["data", "agreements"] {
        assert!(!checkout.path().join(other).exists(), "{other}");
    }
}

/// Each block of a page in a directory of its own.
fn page(shell: Shell, name: &str, text: &str) {
    shell.require();
    let tested = blocks(text).into_iter().filter(|block| block.untested.is_none());
    for block in tested {
        run_alone(shell, name, &block);
    }
}

/// One block, in a directory with a schema to begin with and a registry, beside a server unless it starts
/// one itself.
fn run_alone(shell: Shell, name: &str, block: &Block) {
    let kw = Sandbox::new();
    let text = block.text();
    let mut reader = Reader::new(kw.path("."));
    let port = reader.port;
    let ran = |arguments: &[&str]| {
        let mut command = kw.command(arguments);
        let output = command.env_remove("KEYWARD_STORE").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    ran(&["schema", "init"]);
    Repository::new(kw.path("documents")).write("leave.md", "# Leave\n\nTwo weeks.\n").commit();
    kw.write("keyward.toml", "[registries.policies]\nrepository = \"documents\"\n");
    kw.write("jwks.json", KEY_SET);
    // Places of an installation, below this directory.
    for place in ["/var/lib/keyward", "/backup"] {
        let real = kw.path(place.trim_start_matches('/'));
        std::fs::create_dir_all(&real).unwrap();
        reader.instead.push((place.to_owned(), real.display().to_string()));
    }
    ran(&["-s", "embedded:./var/lib/keyward/store", "put", "k", "1"]);
    if text.contains("$KEYWARD_KEY") && !text.contains("KEYWARD_KEY=") {
        let key = ran(&["key", "create", "reader", "--scope", "admin:*"]);
        reader.variables.push(("KEYWARD_KEY".to_owned(), key.trim().to_owned()));
    }
    let needs_server = text.contains(":7480") && !text.contains("keyward serve");
    let server = needs_server.then(|| {
        let listen = format!("127.0.0.1:{port}");
        let mut command = kw.command(&["serve", "--listen", &listen, "--json"]);
        let running = crate::sandbox::Running::of(command.env_remove("KEYWARD_STORE"));
        running.next_line();
        running
    });
    reader.run(shell, name, [block].into_iter());
    drop(server);
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

/// What a server says to try when it has started.
fn tried(shell: Shell) {
    shell.require();
    let kw = Sandbox::new();
    let reader = Reader::new(kw.path("."));
    let listen = format!("127.0.0.1:{}", reader.port);
    let server = kw.start(&["serve", "--listen", &listen]);
    let mut said = Vec::new();
    while said.last().is_none_or(|line: &String| !line.starts_with("Ctrl-C")) {
        said.push(server.next_line());
    }
    let lines = said.iter().skip_while(|line| *line != "Try:").skip(1);
    let lines: Vec<&str> =
        lines.take_while(|line| !line.is_empty()).map(|line| line.trim()).collect();
    let page = format!("```sh\n{}\n```\n", lines.join("\n"));
    let all = blocks(&page);
    assert_eq!(all[0].commands.len(), 2, "{page}");
    reader.run(shell, "what keyward serve prints", all.iter());
    drop(server);
}

/// Blocks that no test can run are few, say why, and can at least be read by the shell.
fn untested(shell: Shell) {
    shell.require();
    for (name, text, count) in UNTESTED {
        let all = blocks(text);
        let marked: Vec<&Block> = all.iter().filter(|block| block.untested.is_some()).collect();
        assert_eq!(marked.len(), count, "{name}");
        for block in marked {
            assert!(!block.is_session, "{name}:{}: what is printed is not compared", block.line);
            shell.check(&block.text(), &format!("{name}:{}", block.line));
        }
    }
}

mod bash {
    use super::*;

    #[test]
    fn the_readme_works_as_printed_in_one_directory() {
        readme(Shell::Bash);
    }

    #[test]
    fn every_block_about_the_server_works_as_printed() {
        page(Shell::Bash, "docs/server.md", SERVER);
    }

    #[test]
    fn every_block_about_locks_works_as_printed() {
        page(Shell::Bash, "docs/locks.md", LOCKS);
    }

    #[test]
    fn every_block_about_deployment_works_as_printed() {
        page(Shell::Bash, "docs/deployment.md", DEPLOYMENT);
    }

    #[test]
    fn what_a_server_says_to_try_works() {
        tried(Shell::Bash);
    }

    #[test]
    fn blocks_that_are_not_tested_say_why_and_are_sound() {
        untested(Shell::Bash);
    }
}

mod zsh {
    use super::*;

    #[test]
    fn the_readme_works_as_printed_in_one_directory() {
        readme(Shell::Zsh);
    }

    #[test]
    fn every_block_about_the_server_works_as_printed() {
        page(Shell::Zsh, "docs/server.md", SERVER);
    }

    #[test]
    fn every_block_about_locks_works_as_printed() {
        page(Shell::Zsh, "docs/locks.md", LOCKS);
    }

    #[test]
    fn every_block_about_deployment_works_as_printed() {
        page(Shell::Zsh, "docs/deployment.md", DEPLOYMENT);
    }

    #[test]
    fn what_a_server_says_to_try_works() {
        tried(Shell::Zsh);
    }

    #[test]
    fn blocks_that_are_not_tested_say_why_and_are_sound() {
        untested(Shell::Zsh);
    }
}
