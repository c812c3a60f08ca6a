//! Whether a translation can be one of its original. Models cut texts, leave parts out, add remarks of their own,
//! and answer with nothing. What every translation keeps is compared exactly, the rest with a lot of room.

mod placeholders;
mod shape;

use std::collections::BTreeSet;

use placeholders::Placeholders;
use shape::Shape;

/// How many faults are reported, and how many examples of each.
const FAULTS_MAX: usize = 5;
const EXAMPLES_MAX: usize = 3;
/// How long a remark before a translation can be, in characters.
const REMARK_CHARS_MAX: usize = 200;
/// From how many sentences on they are counted.
const SENTENCES_MIN: usize = 4;
/// From how many words on a text has to change when it is translated. Fewer can be names.
const WORDS_MIN: usize = 8;

/// Refuses a translation of a Markdown text that cannot be one, and says what is wrong with it. With `may_stay` the
/// original is in the language of the translation already, and may be its own translation.
pub(crate) fn check(original: &str, translation: &str, may_stay: bool) -> Result<(), String> {
    if translation.trim().is_empty() {
        return Err("the translation is empty".to_owned());
    }
    let mut faults = Vec::new();
    let (of, has) = (Shape::of(original), Shape::of(translation));
    let weights = (weight(original), weight(translation));
    lengths(weights.0, weights.1, &mut faults);
    if faults.is_empty() {
        cut((&of.prose, weights.0), (&has.prose, weights.1), &mut faults);
    }
    remark(&of.opening, &has.opening, &mut faults);
    of.compare(&has, &mut faults);
    Placeholders::of(&of.prose).compare(&Placeholders::of(&has.prose), &mut faults);
    kept_addresses(&addresses(original), &addresses(translation), &mut faults);
    sections(original, translation, &mut faults);
    if !may_stay {
        echo(&of.prose, &has.prose, &mut faults);
    }
    if faults.is_empty() {
        return Ok(());
    }
    faults.truncate(FAULTS_MAX);
    Err(format!("the translation differs from the original: {}", faults.join("; ")))
}

/// Languages differ in how long they are, but not by this much.
fn lengths(original: usize, translation: usize, faults: &mut Vec<String>) {
    let least = (original * 2 / 5).saturating_sub(20);
    let most = original * 4 + 400;
    if translation < least {
        faults.push(format!("it is too short, {translation} letters for {original}: is it cut?"));
    } else if translation > most {
        faults.push(format!("it is too long, {translation} letters for {original}"));
    }
}

/// How many letters a text has, as if in an alphabet: an ideograph says as much as about three letters, a
/// Korean syllable as two, a kana as one and a half.
fn weight(text: &str) -> usize {
    let letters = text.chars().filter(|letter| letter.is_alphanumeric());
    let halves: usize = letters
        .map(|letter| match letter {
            _ if is_ideograph(letter) => 6,
            '\u{ac00}'..='\u{d7af}' => 4,
            _ if is_kana(letter) => 3,
            _ => 2,
        })
        .sum();
    halves / 2
}

fn is_ideograph(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}

/// Hiragana and katakana, also of half the width.
fn is_kana(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{ff66}'..='\u{ff9f}')
}

/// Finds an original that was handed back as it was.
fn echo(original: &str, translation: &str, faults: &mut Vec<String>) {
    let is_same = original.split_whitespace().eq(translation.split_whitespace());
    if is_same && words(original) >= WORDS_MIN {
        faults.push("it is the original, and was not translated".to_owned());
    }
}

/// How many words a text has that a translation changes: not names, addresses and placeholders. Where no spaces
/// stand between words, two signs count as one.
fn words(prose: &str) -> usize {
    let count = |word: &str| {
        let wide = word.chars().filter(|&sign| is_ideograph(sign) || is_kana(sign)).count();
        let first = word.chars().find(|letter| letter.is_alphabetic());
        match first {
            _ if wide > 0 => wide.div_ceil(2),
            Some(first) => usize::from(!first.is_uppercase()),
            None => 0,
        }
    };
    let plain = prose.split_whitespace().filter(|word| !word.contains(['/', '@', '{', '_', '%']));
    plain.map(count).sum()
}

/// Finds a translation that stops half-way, although its structure and its length would do: it is short and has
/// far fewer sentences, or ends within one.
fn cut((original, of): (&str, usize), (translation, has): (&str, usize), faults: &mut Vec<String>) {
    // Some scripts have no full stops.
    if translation.chars().any(is_without_stops) {
        return;
    }
    let (sentences_of, sentences) = (sentences(original), sentences(translation));
    let few = sentences_of >= SENTENCES_MIN && sentences * 10 < sentences_of * 6;
    if few && has * 100 < of * 65 {
        faults.push(format!("it has {sentences} sentences for {sentences_of}: is it cut?"));
        return;
    }
    let ends = |prose: &str| prose.trim_end_matches(is_closing).chars().next_back();
    let ended = ends(original).is_some_and(is_stop);
    let open = ends(translation)
        .is_some_and(|last| last.is_alphanumeric() || matches!(last, ',' | '，' | '、' | '-'));
    if ended && open && has * 100 < of * 70 {
        faults.push("it ends within a sentence: is it cut?".to_owned());
    }
}

/// How many sentences a text has, roughly: abbreviations count too, in every language.
fn sentences(prose: &str) -> usize {
    let mut letters = prose.chars().peekable();
    let mut count = 0;
    while let Some(letter) = letters.next() {
        let is_end = match letter {
            '.' | '!' | '?' | '…' | '؟' | '۔' | '।' => {
                letters.peek().is_none_or(|next| next.is_whitespace() || is_closing(*next))
            }
            _ => is_stop(letter),
        };
        count += usize::from(is_end);
    }
    count
}

fn is_stop(letter: char) -> bool {
    matches!(letter, '.' | '!' | '?' | '…' | '؟' | '۔' | '।' | '。' | '！' | '？' | '｡')
}

/// What can stand after the end of a sentence.
fn is_closing(letter: char) -> bool {
    letter.is_whitespace() || "\"'”’“»«›‹)]}*_」』）】\u{fffc}".contains(letter)
}

/// Thai, Lao, Tibetan, Burmese and Khmer.
fn is_without_stops(letter: char) -> bool {
    matches!(letter, '\u{0e00}'..='\u{0fff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
}

/// Finds a remark of the model's own before the translation, such as "Here is the translation:".
fn remark(original: &str, translation: &str, faults: &mut Vec<String>) {
    if is_remark(translation) && !is_remark(original) {
        faults.push(format!("it begins with a remark: {translation}"));
    }
}

/// Whether a text announces a translation. Models do so in English or in the language of the translation.
fn is_remark(opening: &str) -> bool {
    const TRANSLATION: [&str; 18] = [
        "translat",
        "übersetz",
        "traduc",
        "traduz",
        "tradui",
        "vertaling",
        "vertaald",
        "översätt",
        "oversæt",
        "oversett",
        "tłumacz",
        "překlad",
        "перевод",
        "переклад",
        "翻译",
        "翻譯",
        "翻訳",
        "번역",
    ];
    let first = opening.lines().next().unwrap_or_default().trim_end_matches(is_closing);
    let text = first.to_lowercase();
    first.chars().count() <= REMARK_CHARS_MAX
        && first.ends_with([':', '：'])
        && TRANSLATION.iter().any(|word| text.contains(word))
}

/// Reports addresses that only one of them has. Languages inflect them, and join words to them.
fn kept_addresses(
    original: &BTreeSet<String>,
    translation: &BTreeSet<String>,
    faults: &mut Vec<String>,
) {
    let beyond = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
        let is_kept = |address: &str| {
            other.contains(address)
                || other.iter().any(|it| is_inflected(it, address) || is_inflected(address, it))
        };
        let some = one.iter().filter(|address| !is_kept(address)).take(EXAMPLES_MAX);
        some.cloned().collect::<Vec<_>>().join(", ")
    };
    let (lost, added) = (beyond(original, translation), beyond(translation, original));
    if !lost.is_empty() {
        faults.push(format!("it lacks the address {lost}"));
    }
    if !added.is_empty() {
        faults.push(format!("it adds the address {added}"));
    }
}

/// Whether a text is an address with an ending or a word behind it: `https://a.org-Seite` of German,
/// `https://a.org:ssa` of Finnish.
fn is_inflected(text: &str, address: &str) -> bool {
    let Some(rest) = text.strip_prefix(address) else { return false };
    let ending = rest.trim_start_matches('/').strip_prefix(['-', ':']);
    ending.is_some_and(|ending| {
        !ending.is_empty()
            && ending.chars().all(|letter| letter.is_ascii_alphabetic() || letter == '-')
    })
}

/// Addresses of the web, as far as they are of ASCII.
fn addresses(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for scheme in ["http://", "https://"] {
        for (at, _) in text.match_indices(scheme) {
            let address = &text[at..];
            let is_end =
                |letter: char| !letter.is_ascii_graphic() || "<>()[]\"'`|".contains(letter);
            let address = &address[..address.find(is_end).unwrap_or(address.len())];
            let address = address.replace('\\', "").replace("&amp;", "&");
            found.insert(
                address
                    .trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '_', '~', '/'])
                    .to_owned(),
            );
        }
    }
    found
}

/// Numbers of sections must be somewhere in the translation, whatever it calls a section.
fn sections(original: &str, translation: &str, faults: &mut Vec<String>) {
    // Other scripts have digits of their own.
    if translation.chars().any(|letter| letter.is_numeric() && !letter.is_ascii()) {
        return;
    }
    let numbers: BTreeSet<&str> = translation.split(|c: char| !c.is_ascii_digit()).collect();
    let cited = original.split('§').skip(1).filter_map(|after| {
        let after = after.trim_start();
        let end = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
        (end > 0).then(|| &after[..end])
    });
    let lost: BTreeSet<&str> = cited.filter(|number| !numbers.contains(number)).collect();
    if !lost.is_empty() {
        let lost: Vec<&str> = lost.into_iter().take(EXAMPLES_MAX).collect();
        faults.push(format!("it lacks § {}", lost.join(", ")));
    }
}

#[cfg(test)]
mod tests;
