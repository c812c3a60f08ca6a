//! How much two texts are alike.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Of a hundred words, so many may differ.
const DIFFERENT_MAX: usize = 1;

/// Asserts that at least 99 % of the words are equal and in the same order, and that all headings
/// are there.
pub fn assert_alike(name: &str, found: &str, expected: &str) {
    let (found_words, expected_words) = (words(found), words(expected));
    let distance = distance(&found_words, &expected_words);
    assert!(
        distance * 100 <= DIFFERENT_MAX * expected_words.len(),
        "{name}: {distance} of {} words differ\n{found}",
        expected_words.len()
    );
    assert_eq!(headings(found), headings(expected), "{name}\n{found}");
}

pub fn headings(markdown: &str) -> Vec<String> {
    let mut headings = Vec::new();
    let mut open = false;
    for event in parse(markdown) {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                open = true;
                headings.push(String::new());
            }
            Event::End(TagEnd::Heading(_)) => open = false,
            Event::Text(text) if open => {
                headings.last_mut().expect("one was begun").push_str(&text)
            }
            _ => {}
        }
    }
    headings
}

/// The texts of the items of all lists.
pub fn items(markdown: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut open = false;
    for event in parse(markdown) {
        match event {
            Event::Start(Tag::Item) => {
                open = true;
                items.push(String::new());
            }
            Event::End(TagEnd::Item) => open = false,
            Event::Text(text) if open => items.last_mut().expect("one was begun").push_str(&text),
            _ => {}
        }
    }
    items
}

/// The cells of all tables.
pub fn cells(markdown: &str) -> Vec<String> {
    let mut cells = Vec::new();
    let mut open = false;
    for event in parse(markdown) {
        match event {
            Event::Start(Tag::TableCell) => {
                open = true;
                cells.push(String::new());
            }
            Event::End(TagEnd::TableCell) => open = false,
            Event::Text(text) if open => cells.last_mut().expect("one was begun").push_str(&text),
            _ => {}
        }
    }
    cells
}

fn words(markdown: &str) -> Vec<String> {
    let mut text = String::new();
    for event in parse(markdown) {
        match event {
            Event::Text(part) | Event::Code(part) => text.push_str(&part),
            Event::SoftBreak | Event::HardBreak | Event::End(_) => text.push(' '),
            _ => {}
        }
    }
    text.split_whitespace().map(str::to_owned).collect()
}

fn parse(markdown: &str) -> Parser<'_> {
    Parser::new_ext(markdown, Options::ENABLE_TABLES)
}

/// How many words must be put in, taken out or changed.
fn distance(one: &[String], other: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, word) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, candidate) in other.iter().enumerate() {
            let changed = diagonal + usize::from(word != candidate);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
