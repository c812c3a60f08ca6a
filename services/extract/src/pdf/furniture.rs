use std::collections::HashMap;

use crate::pdf::layout::Item;

/// Pages from which on a repeated line is a running title.
const PAGES_MIN: usize = 3;
/// Numbers in a line that may be that of the page.
const NUMBERS_MAX: usize = 4;

/// Removes running titles and page numbers: the first and the last line of pages, where they are the
/// same on many but for a number that counts the pages; lone numbers; and then lines that are
/// altogether the same on many.
pub(crate) fn remove(pages: &mut [Vec<Item>]) {
    remove_repeated(pages, &with_page_numbers);
    for page in pages.iter_mut() {
        for place in places(page).into_iter().rev() {
            if page.len() > 1 && text(page, place).is_some_and(is_page_number) {
                page.remove(place);
            }
        }
    }
    remove_repeated(pages, &|text, _| vec![text.to_owned()]);
}

/// Removes first and last lines if one of their names is that of such a line on many pages.
fn remove_repeated(pages: &mut [Vec<Item>], names: &dyn Fn(&str, u64) -> Vec<String>) {
    let many = PAGES_MIN.max(pages.len() / 3);
    let mut seen: HashMap<(bool, String), usize> = HashMap::new();
    for (number, page) in (0..).zip(pages.iter()) {
        for place in places(page) {
            for name in text(page, place).map(|text| names(text, number)).unwrap_or_default() {
                *seen.entry((place == 0, name)).or_default() += 1;
            }
        }
    }
    for (number, page) in (0..).zip(pages) {
        for place in places(page).into_iter().rev() {
            let names = text(page, place).map(|text| names(text, number)).unwrap_or_default();
            let times = |name| seen.get(&(place == 0, name)).copied().unwrap_or(0);
            if names.into_iter().any(|name| times(name) >= many) {
                page.remove(place);
            }
        }
    }
}

/// Where the first and the last line are.
fn places(page: &[Item]) -> Vec<usize> {
    match page.len() {
        0 => Vec::new(),
        1 => vec![0],
        length => vec![0, length - 1],
    }
}

fn text(page: &[Item], place: usize) -> Option<&str> {
    match page.get(place)? {
        Item::Line(line) => Some(&line.text),
        Item::Table(_) => None,
    }
}

/// The text, and the text with each of its numbers counted from that of the page.
fn with_page_numbers(text: &str, page: u64) -> Vec<String> {
    let mut names = vec![text.to_owned()];
    let mut at = 0;
    while let Some(start) = text[at..].find(|letter: char| letter.is_ascii_digit()) {
        let start = at + start;
        let length = text[start..].bytes().take_while(u8::is_ascii_digit).count();
        at = start + length;
        if let Ok(number) = text[start..at].parse::<u64>() {
            let counted = number.wrapping_sub(page);
            names.push(format!("{}\0{counted}{}", &text[..start], &text[at..]));
        }
        if names.len() > NUMBERS_MAX {
            break;
        }
    }
    names
}

/// `7`, `- 7 -`, `7 / 12`: nothing but numbers and marks.
fn is_page_number(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_digit() || "-–— /|".contains(letter);
    text.len() < 16
        && text.chars().all(is_part)
        && text.contains(|letter: char| letter.is_ascii_digit())
}
