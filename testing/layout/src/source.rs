/// The files that may contain `unsafe`, each of which argues for it where it stands.
pub const UNSAFE_FILES: &[&str] = &[
    // Mapping the data file.
    "engines/embedded/src/environment.rs",
    // The same, to write files that the engine must refuse.
    "engines/embedded/tests/embedded/places.rs",
    // The same, for the reference that the engine is measured against.
    "testing/bench/src/reference/raw_heed.rs",
];

// In two pieces, so that this file does not find itself.
const WORD: &str = concat!("un", "safe");

/// The lines (counted from one) of a Rust source on which `unsafe` stands, as a keyword or in an
/// attribute that allows it. Comments do not count; texts do, which is the simpler rule.
pub fn unsafe_lines(source: &str) -> Vec<usize> {
    let numbered = source.lines().enumerate();
    numbered
        .filter(|(_, line)| says_unsafe(line.split("//").next().unwrap_or_default()))
        .map(|(at, _)| at + 1)
        .collect()
}

fn says_unsafe(code: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(WORD).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let word = code[at..].split(|c| !in_word(c)).next();
        let lint = word.and_then(|word| word.strip_prefix(WORD)) == Some("_code");
        // In code nothing hangs on to the keyword; words of other languages in texts have hyphens.
        let hyphened = code[at + WORD.len()..].starts_with('-');
        !before.is_some_and(in_word) && !hyphened && (word == Some(WORD) || lint)
    })
}

/// Whether a source file's path is called by a name that says nothing about what is in it.
pub fn is_vague(path: &str) -> bool {
    const VAGUE: [&str; 7] = ["common", "helper", "helpers", "manager", "misc", "util", "utils"];
    path.split('/')
        .map(|part| part.strip_suffix(".rs").unwrap_or(part))
        .any(|name| VAGUE.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_word_is_found_by_its_line() {
        for form in ["W { f() }", "W fn f() {}", "W impl S for T {}", "x = W{0}", "#[W(no_mangle)]"]
        {
            let source = format!("//! About it.\n\n    {}\n", form.replace('W', WORD));
            assert_eq!(unsafe_lines(&source), [3], "{form}");
        }
        for lint in ["#![allow(W_code)]", "#[expect(W_code, reason = \"\")]"] {
            assert_eq!(unsafe_lines(&lint.replace('W', WORD)), [1], "{lint}");
        }
        for other in ["// W { f() }", "let W_lines = 1;", "fn is_W() {}", "let W1 = 0;"] {
            assert!(unsafe_lines(&other.replace('W', WORD)).is_empty(), "{other}");
        }
    }

    #[test]
    fn names_that_say_nothing_are_noticed() {
        for path in ["core/key/src/utils.rs", "doors/cli/src/common/mod.rs", "keyward/src/misc.rs"]
        {
            assert!(is_vague(path), "{path}");
        }
        for path in ["core/key/src/text.rs", "doors/cli/src/commonplace.rs"] {
            assert!(!is_vague(path), "{path}");
        }
    }
}
