//! Placeholders in prose: where a program puts values.
//!
//! | form | is a placeholder |
//! |---|---|
//! | `{{name}}`, `{{ name }}`, `${name}` | always |
//! | `{first_name}`, `{order.id}`, `{userName}`, `{0}` | if the name is no ordinary word |
//! | `{days}` | perhaps: people put ordinary words in braces too |
//! | `%s`, `%1$d`, `%(name)s` | always |
//!
//! Those that are placeholders for certain must be the same in a translation. A word in braces must stay in
//! braces, and may be translated. LaTeX (`\text{speed}`, `x_{max}`) has braces for another reason; code and math
//! are no prose ([`Shape`](super::shape::Shape)).

use std::collections::BTreeSet;

/// How many examples of each fault are given.
const EXAMPLES_MAX: usize = 3;
/// The longest text in braces that is looked at, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The longest number that is an index.
const INDEX_DIGITS_MAX: usize = 2;

/// What stands in braces or after a percent sign.
#[derive(Debug, Default)]
pub(super) struct Placeholders {
    /// Those that are certain.
    certain: BTreeSet<String>,
    /// Words in single braces, which may be placeholders.
    words: BTreeSet<String>,
    /// Everything else in single braces.
    others: BTreeSet<String>,
}

impl Placeholders {
    pub fn of(prose: &str) -> Self {
        let mut found = Self::default();
        let mut rest = prose;
        // What stands before the rest, as far as it matters.
        let (mut before, mut latex) = (' ', Latex::No);
        while let Some(letter) = rest.chars().next() {
            let after = &rest[letter.len_utf8()..];
            let taken = match letter {
                '{' if latex != Latex::No || matches!(before, '_' | '^') => {
                    // The argument of a command, after which another may come.
                    latex = Latex::Argument;
                    group(after).map_or(1, |inside| inside.len() + 2)
                }
                '{' => found.braced(before == '$', after).unwrap_or(1),
                '%' if !(before.is_ascii_alphanumeric() || before == '%') => {
                    found.formatted(after).unwrap_or(1)
                }
                _ => letter.len_utf8(),
            };
            latex = match (letter, latex) {
                ('\\', _) => Latex::Command,
                ('{', Latex::Argument) => Latex::Argument,
                (letter, Latex::Command) if letter.is_ascii_alphabetic() => Latex::Command,
                _ => Latex::No,
            };
            before = rest[..taken].chars().next_back().unwrap_or(' ');
            rest = &rest[taken..];
        }
        found
    }

    /// Takes what stands in braces after an opening one; how long it is with both.
    fn braced(&mut self, is_dollar: bool, after: &str) -> Option<usize> {
        if let Some(inside) = after.strip_prefix('{').and_then(group)
            && after[inside.len() + 1..].starts_with("}}")
        {
            if is_name(inside.trim()) {
                self.certain.insert(format!("{{{{{}}}}}", inside.trim()));
            }
            return Some(inside.len() + 4);
        }
        let inside = group(after)?;
        let name = inside.trim();
        if is_dollar && is_name(name) {
            self.certain.insert(format!("${{{name}}}"));
        } else if is_name(name) && !is_word(name) {
            self.certain.insert(format!("{{{name}}}"));
        } else if is_word(name) {
            self.words.insert(format!("{{{name}}}"));
        } else if !name.is_empty() {
            self.others.insert(format!("{{{name}}}"));
        }
        Some(inside.len() + 2)
    }

    /// Takes a place for a value by `printf`'s rules after its percent sign; how long it is with that.
    fn formatted(&mut self, after: &str) -> Option<usize> {
        let (name, kind) = if let Some(named) = after.strip_prefix('(') {
            let end = named.find(')').filter(|end| *end <= NAME_BYTES_MAX)?;
            is_name(&named[..end]).then_some((&after[..end + 2], &named[end + 1..]))?
        } else {
            let digits = after.find(|letter: char| !letter.is_ascii_digit())?;
            match after[digits..].strip_prefix('$') {
                Some(kind) if digits > 0 => (&after[..=digits], kind),
                _ => ("", after),
            }
        };
        let mut letters = kind.chars();
        let kind = letters.next().filter(|kind| "sdifux@".contains(*kind))?;
        // Scripts without spaces go on at once.
        let ends = letters.next().is_none_or(|next| !next.is_ascii_alphanumeric());
        ends.then(|| self.certain.insert(format!("%{name}{kind}")))?;
        Some(name.len() + 2)
    }

    /// Says what a translation lost and added.
    pub fn compare(&self, translation: &Self, faults: &mut Vec<String>) {
        let lost = some(self.certain.difference(&translation.certain));
        if !lost.is_empty() {
            faults.push(format!("it lacks the placeholder {lost}"));
        }
        let gone: Vec<&String> = self.words.difference(&translation.words).collect();
        // What a word in braces became may look like anything.
        let added = some(translation.certain.difference(&self.certain));
        if !added.is_empty() && gone.is_empty() {
            faults.push(format!("it adds the placeholder {added}"));
        }
        let new = translation.all().filter(|one| !self.all().any(|known| known == *one));
        if gone.len() > new.count() {
            faults.push(format!("it lacks {} in braces", some(gone.into_iter())));
        }
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.certain.iter().chain(&self.words).chain(&self.others)
    }
}

/// How far a LaTeX command goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Latex {
    No,
    /// In the name of a command.
    Command,
    /// After an argument of one.
    Argument,
}

/// The text up to the closing brace, if it is short, and on one line without other braces.
fn group(after: &str) -> Option<&str> {
    let end = after.find(['{', '}', '\n'])?;
    (after[end..].starts_with('}') && end <= NAME_BYTES_MAX).then(|| &after[..end])
}

/// Whether it can be the name of a value: ASCII letters, digits and what joins them; or a small number.
fn is_name(text: &str) -> bool {
    let joins = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        return text.len() <= INDEX_DIGITS_MAX;
    }
    let begins = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    begins && text.chars().all(joins) && !text.ends_with(['.', '-'])
}

/// Whether it can be an ordinary word or an abbreviation: nothing but letters, and not several words joined by
/// capitals (`userName`).
fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let joined = |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
    !text.is_empty()
        && bytes.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'-')
        && !bytes.windows(2).any(joined)
}

fn some<'n>(names: impl Iterator<Item = &'n String>) -> String {
    names.take(EXAMPLES_MAX).map(String::as_str).collect::<Vec<_>>().join(", ")
}
