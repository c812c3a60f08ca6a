use std::collections::HashSet;

/// The words of a document, by which it is decided what a hyphen at the end of a line is.
#[derive(Debug, Default)]
pub(crate) struct Words(HashSet<String>);

impl Words {
    pub(crate) fn learn(&mut self, line: &str) {
        for word in line.split_whitespace() {
            let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
            if !word.is_empty() {
                self.0.insert(word.to_lowercase());
            }
        }
    }

    /// Adds a line to the text before it. A word divided at the end of the line becomes whole again.
    pub(crate) fn join(&self, text: &mut String, line: &str) {
        if let Some(start) = text.strip_suffix('\u{ad}') {
            text.truncate(start.len());
            text.push_str(line);
            return;
        }
        let hyphen = text.ends_with(['-', '\u{2010}']);
        let next = line.chars().next().unwrap_or(' ');
        let before = text.chars().rev().nth(1).unwrap_or(' ');
        if !hyphen || !before.is_alphabetic() {
            let unspaced = is_wide(text.chars().next_back()) && is_wide(Some(next));
            if !text.is_empty() && !unspaced {
                text.push(' ');
            }
            text.push_str(line);
            return;
        }
        if is_conjunction(line) || !next.is_alphanumeric() {
            text.push(' ');
        } else if next.is_lowercase() && !self.is_compound(text, line) {
            text.pop();
        }
        text.push_str(line);
    }

    /// Whether the word is written with a hyphen elsewhere, and never without.
    fn is_compound(&self, text: &str, line: &str) -> bool {
        let first = text.split_whitespace().next_back().unwrap_or_default();
        let first = first.trim_start_matches(|letter: char| !letter.is_alphanumeric());
        let second = line.split_whitespace().next().unwrap_or_default();
        let second = second.trim_end_matches(|letter: char| !letter.is_alphanumeric());
        let with = format!("{first}{second}").to_lowercase();
        let without = with.replace(['-', '\u{2010}'], "");
        self.0.contains(&with) && !self.0.contains(&without)
    }
}

/// "Aus- und Fortbildung": the hyphen stands for a word that follows.
fn is_conjunction(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    ["und", "oder", "och", "eller", "ja", "tai", "sekä", "bzw."].contains(&first)
}

/// Chinese and Japanese letters, between which no space is written.
fn is_wide(letter: Option<char>) -> bool {
    letter.is_some_and(|letter| matches!(letter, '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(known: &str, text: &str, line: &str) -> String {
        let mut words = Words::default();
        words.learn(known);
        let mut text = text.to_owned();
        words.join(&mut text, line);
        text
    }

    #[test]
    fn a_divided_word_becomes_whole() {
        assert_eq!(join("", "the super-", "visor of"), "the supervisor of");
        assert_eq!(join("", "the super\u{ad}", "Visor"), "the superVisor");
        assert_eq!(join("", "the end", "of it"), "the end of it");
    }

    #[test]
    fn a_word_with_a_hyphen_of_its_own_keeps_it() {
        assert_eq!(join("a co-operation", "the co-", "operation"), "the co-operation");
        assert_eq!(join("", "pages 3-", "7 of"), "pages 3- 7 of");
        assert_eq!(join("", "the UN-", "Charter"), "the UN-Charter");
        assert_eq!(join("", "Aus-", "und Fortbildung"), "Aus- und Fortbildung");
    }
}
