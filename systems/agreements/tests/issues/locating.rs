//! Excerpts of documents at random.

use fastrand::Rng;
use keyward_agreements::{Located, Precision, locate};
use keyward_testkit::{Replay, Test, deep, seeds};

/// Letters of several scripts, marks that combine, and what lies outside of 16 bits.
const LETTERS: [&str; 5] =
    ["abcdefghijklmnoprstuvwz", "äöüßéèçñø", "абвгдежзиклмнопрст", "学则第一条规定", "e\u{301}🦀𝒳"];
const GAPS: [&str; 9] = [" ", " ", " ", " ", "\n", "\n\n## ", ", ", "  ", " – “"];

fn word(rng: &mut Rng) -> String {
    let script: Vec<char> =
        LETTERS[rng.usize(0..LETTERS.len()).min(rng.usize(0..9))].chars().collect();
    (0..rng.usize(1..=9)).map(|_| script[rng.usize(0..script.len())]).collect()
}

fn document(rng: &mut Rng, words_max: usize) -> Vec<char> {
    let mut text = String::new();
    for _ in 0..rng.usize(20..=words_max) {
        text.push_str(&word(rng));
        text.push_str(GAPS[rng.usize(0..GAPS.len())]);
    }
    text.chars().collect()
}

/// A place in a document.
fn place(rng: &mut Rng, document: &[char], least: usize, most: usize) -> (usize, usize) {
    let length = rng.usize(least..=most.min(document.len()));
    (rng.usize(0..=document.len() - length), length)
}

#[test]
fn an_excerpt_is_found_where_the_document_has_just_that() {
    const PATH: &str = "issues::locating::an_excerpt_is_found_where_the_document_has_just_that";
    for seed in seeds(500, 20_000) {
        let mut replay = Replay::new(Test { package: "keyward-agreements", path: PATH }, seed);
        let mut rng = Rng::with_seed(seed);
        let document = document(&mut rng, 400);
        let (start, length) = place(&mut rng, &document, 1, 2_000);
        let excerpt: String = document[start..start + length].iter().collect();
        replay.step(format!("{excerpt:?} at {start}"));
        let whole: String = document.iter().collect();
        let found = locate(&whole, &excerpt);
        assert_eq!(found.how, Precision::Exact);
        let there: String = document[found.offset..found.offset + found.length].iter().collect();
        assert_eq!(there, excerpt);
        assert!(found.offset <= start, "the first one is found");
    }
}

#[test]
fn an_excerpt_set_otherwise_is_found_where_it_is() {
    const PATH: &str = "issues::locating::an_excerpt_set_otherwise_is_found_where_it_is";
    for seed in seeds(200, 5_000) {
        let mut replay = Replay::new(Test { package: "keyward-agreements", path: PATH }, seed);
        let mut rng = Rng::with_seed(seed);
        let document = document(&mut rng, 200);
        let (start, length) = place(&mut rng, &document, 30, 600);
        let excerpt: String = document[start..start + length].iter().collect();
        let words: Vec<&str> = excerpt.split_whitespace().collect();
        let excerpt = words.join("\n ").replace('–', "-").replace('“', "\"");
        replay.step(format!("{excerpt:?} at {start}"));
        let whole: String = document.iter().collect();
        let found = locate(&whole, &excerpt);
        assert_eq!(found.how, Precision::Exact);
        let there: String = document[found.offset..found.offset + found.length].iter().collect();
        let there: Vec<&str> = there.split_whitespace().collect();
        assert_eq!(there, words);
    }
}

/// Changes, adds or removes one in so many characters.
fn edited(rng: &mut Rng, excerpt: &[char], one_in: usize) -> String {
    let mut text = excerpt.to_vec();
    for _ in 0..excerpt.len() / one_in {
        let at = rng.usize(0..text.len());
        match rng.u8(0..3) {
            0 => text[at] = rng.lowercase(),
            1 => text.insert(at, rng.lowercase()),
            _ => drop(text.remove(at)),
        }
    }
    text.into_iter().collect()
}

#[test]
fn an_excerpt_with_one_edit_in_ten_characters_is_found_where_it_is() {
    const PATH: &str =
        "issues::locating::an_excerpt_with_one_edit_in_ten_characters_is_found_where_it_is";
    let mut missed = Vec::new();
    let seeds = seeds(200, 5_000);
    for seed in &seeds {
        let _replay = Replay::new(Test { package: "keyward-agreements", path: PATH }, *seed);
        let mut rng = Rng::with_seed(*seed);
        let document = document(&mut rng, 300);
        let most = if rng.u8(0..10) == 0 { 1_500 } else { 200 };
        let (start, length) = place(&mut rng, &document, 20, most);
        let excerpt = edited(&mut rng, &document[start..start + length], 10);
        let whole: String = document.iter().collect();
        let Located { offset, length: found, how } = locate(&whole, &excerpt);
        let overlaps = offset < start + length && start < offset + found;
        if how == Precision::None || !overlaps {
            missed.push(*seed);
        }
    }
    let tried = seeds.len();
    assert!(missed.len() * 20 <= tried, "missed {} of {tried}, by seed: {missed:?}", missed.len());
}

/// A document as long as one can be, and an excerpt that is not in it.
#[test]
fn the_longest_document_is_looked_through_to_its_end() {
    let mut rng = Rng::with_seed(1);
    let length: usize = if deep() { 1 << 20 } else { 1 << 17 };
    let mut text = |length: usize| -> String {
        let mut text = String::new();
        while text.len() < length {
            text.push_str(&(0..rng.usize(2..9)).map(|_| rng.lowercase()).collect::<String>());
            text.push(' ');
        }
        text.truncate(length);
        text
    };
    let (mut document, other) = (text(length), text(1_999));
    assert_eq!(locate(&document, &other).how, Precision::None);
    let changed = format!("{}###{}", &other[..900], &other[950..]);
    document.replace_range(length - 5_000..length - 3_001, &changed);
    let found = locate(&document, &other);
    assert_eq!((found.how, found.offset), (Precision::Fuzzy, length - 5_000));
}
