//! Every command in a shell block of the documents is one that the command line takes.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::args::Cli;

/// The words of a simple command, as far as a shell would pass them on; `None` if it ends in the middle of
/// quotes.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('\\', None) => word.get_or_insert_default().extend(characters.next()),
            (' ', None) => words.extend(word.take()),
            // The rest is another command, a file or a comment.
            ('|' | '>' | '<' | '&' | ';' | ')', None) => break,
            ('#', None) if word.is_none() => break,
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// The commands of the shell blocks of a page, those on several lines as one.
fn commands(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(fence) = lines.next() {
        let Some(language) = fence.strip_prefix("```") else { continue };
        let is_session = language == "console";
        let is_shell = is_session || language.split(' ').next() == Some("sh");
        let block = lines.by_ref().take_while(|line| !line.starts_with("```"));
        let block = block.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
        if is_shell {
            let shown = block.lines().filter_map(|line| match is_session {
                true => line.strip_prefix("$ "),
                false => Some(line),
            });
            found.extend(shown.map(str::to_owned));
        }
    }
    found
}

#[test]
fn every_command_of_the_documents_can_be_parsed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        pages.push(entry.unwrap().path());
    }
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages.iter().filter(|page| page.extension().is_some_and(|it| it == "md")) {
        for line in commands(&fs::read_to_string(page).unwrap()) {
            // After variables that are set for it.
            let is_set = |word: &str| word.contains('=') && !word.starts_with('-');
            let start =
                line.split(' ').take_while(|word| is_set(word)).map(|it| it.len() + 1).sum();
            let Some(command) = line.get(start..).filter(|rest| rest.starts_with("keyward "))
            else {
                continue;
            };
            let Some(words) = words(command) else { continue };
            count += 1;
            // What stands for something else is no value of its kind.
            if words.iter().any(|word| word.contains(['$', '…'])) {
                continue;
            }
            if let Err(error) = Cli::read_from(words.into_iter().map(OsString::from)) {
                let is_help = !error.use_stderr();
                if !is_help {
                    wrong.push(format!("{}: {line}\n{error}", page.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "{count} commands");
}
