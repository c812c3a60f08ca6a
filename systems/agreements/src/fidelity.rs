//! Whether a translation can be one of its original: models cut texts, leave things out, and answer with
//! nothing. What every translation keeps is compared exactly, the rest with a lot of room.

use std::collections::BTreeSet;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

/// How many faults are told, and how many examples of each.
const FAULTS_MAX: usize = 5;
const EXAMPLES_MAX: usize = 3;
/// The longest name of a placeholder, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Refuses a translation of a Markdown text that cannot be one, and says what is wrong with it.
pub(crate) fn check(original: &str, translation: &str) -> Result<(), String> {
    if translation.trim().is_empty() {
        return Err("the translation is empty".to_owned());
    }
    let mut faults = Vec::new();
    lengths(weight(original), weight(translation), &mut faults);
    Shape::of(original).compare(&Shape::of(translation), &mut faults);
    kept("placeholder", &placeholders(original), &placeholders(translation), &mut faults);
    kept("address", &addresses(original), &addresses(translation), &mut faults);
    sections(original, translation, &mut faults);
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
/// Korean syllable as two.
fn weight(text: &str) -> usize {
    let letters = text.chars().filter(|letter| letter.is_alphanumeric());
    letters
        .map(|letter| match letter {
            '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}' => 3,
            '\u{ac00}'..='\u{d7af}' => 2,
            _ => 1,
        })
        .sum()
}

/// What a text is built of.
#[derive(Default)]
struct Shape {
    /// The levels of its headings, in order.
    headings: Vec<u8>,
    /// The columns and rows of its tables, in order.
    tables: Vec<(usize, usize)>,
    code_blocks: usize,
    items: usize,
    paragraphs: usize,
}

impl Shape {
    fn of(text: &str) -> Self {
        let mut shape = Self::default();
        let options = Options::ENABLE_TABLES | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
        for event in Parser::new_ext(text, options) {
            let Event::Start(tag) = event else { continue };
            match tag {
                Tag::Heading { level, .. } => shape.headings.push(level as u8),
                Tag::Table(columns) => shape.tables.push((columns.len(), 0)),
                Tag::TableRow => {
                    if let Some((_, rows)) = shape.tables.last_mut() {
                        *rows += 1;
                    }
                }
                Tag::CodeBlock(CodeBlockKind::Fenced(_)) => shape.code_blocks += 1,
                Tag::Item => shape.items += 1,
                Tag::Paragraph => shape.paragraphs += 1,
                _ => {}
            }
        }
        shape
    }

    fn compare(&self, translation: &Self, faults: &mut Vec<String>) {
        if self.headings != translation.headings {
            let (has, of) = (levels(&translation.headings), levels(&self.headings));
            faults.push(format!("its headings are {has}, and those of the original {of}"));
        }
        if self.tables != translation.tables {
            let (has, of) = (sizes(&translation.tables), sizes(&self.tables));
            faults.push(format!("its tables are {has}, and those of the original {of}"));
        }
        for (what, of, has) in [
            ("blocks of code", self.code_blocks, translation.code_blocks),
            ("items of lists", self.items, translation.items),
            ("paragraphs", self.paragraphs, translation.paragraphs),
        ] {
            // Models join and part sentences now and then.
            if of.abs_diff(has) > (of / 4).max(2) {
                faults.push(format!("it has {has} {what}, and the original {of}"));
            }
        }
    }
}

fn levels(headings: &[u8]) -> String {
    let levels: Vec<String> = headings.iter().map(|level| "#".repeat((*level).into())).collect();
    shown(&levels)
}

fn sizes(tables: &[(usize, usize)]) -> String {
    let size = |(columns, rows): &(usize, usize)| format!("{columns} columns with {rows} rows");
    shown(&tables.iter().map(size).collect::<Vec<_>>())
}

/// A list as it is told: its beginning, and how long it is.
fn shown(list: &[String]) -> String {
    const SHOWN_MAX: usize = 12;
    match list.len() {
        0 => "none".to_owned(),
        count if count > SHOWN_MAX => format!("{}, … ({count})", list[..SHOWN_MAX].join(", ")),
        count => format!("{} ({count})", list.join(", ")),
    }
}

/// Says what only one of them has.
fn kept(
    what: &str,
    original: &BTreeSet<String>,
    translation: &BTreeSet<String>,
    faults: &mut Vec<String>,
) {
    let beyond = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
        let some: Vec<String> = one.difference(other).take(EXAMPLES_MAX).cloned().collect();
        some.join(", ")
    };
    let (lost, added) = (beyond(original, translation), beyond(translation, original));
    if !lost.is_empty() {
        faults.push(format!("it lacks the {what} {lost}"));
    }
    if !added.is_empty() {
        faults.push(format!("it adds the {what} {added}"));
    }
}

/// Places for values: `{name}`, `{{ name }}`, `${name}`, `%s`, `%1$d`.
fn placeholders(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        let rest = &text[at + letter.len_utf8()..];
        match letter {
            '{' => found.extend(braced(rest)),
            '%' if !before.is_ascii_alphanumeric() => found.extend(formatted(rest)),
            _ => {}
        }
        before = letter;
    }
    found
}

fn braced(rest: &str) -> Option<String> {
    let name = rest.split_once('}')?.0.trim();
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_.:-".contains(letter);
    let is_one = !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_name);
    is_one.then(|| format!("{{{name}}}"))
}

fn formatted(rest: &str) -> Option<String> {
    let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, kind) = match rest[digits..].strip_prefix('$') {
        Some(kind) if digits > 0 => (&rest[..=digits], kind),
        _ => ("", rest),
    };
    let mut letters = kind.chars();
    let kind = letters.next().filter(|kind| "sdifux@".contains(*kind))?;
    // Scripts without spaces go on at once.
    let ends = letters.next().is_none_or(|next| !next.is_ascii_alphanumeric());
    ends.then(|| format!("%{number}{kind}"))
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
mod tests {
    use super::*;

    const ORIGINAL: &str = "# Leave\n\nEverybody has {days} days of leave, see § 12 and \
        https://example.org/leave?a=1&b=2. Nobody has to say why they take it, and the faculty \
        is told in writing before the term begins.\n\n## Fees\n\n- To the university\n- Of %s\n\n\
        | year | fee |\n|---|---|\n| first | 100 |\n| second | 200 |\n\n```sh\npay --now\n```\n";

    fn refused(translation: &str) -> String {
        check(ORIGINAL, translation).unwrap_err()
    }

    #[test]
    fn true_translations_are_accepted() {
        let german = "# Urlaub\n\nAlle haben {days} Tage Urlaub, siehe Abschnitt 12 und \
            <https://example.org/leave?a=1&amp;b=2>. Niemand muss sagen, wozu er ihn nimmt; die \
            Fakultät wird vor Beginn des Semesters schriftlich benachrichtigt.\n\nGebühren\n--------\n\n\
            * An die Universität\n* Von %s\n\n| Jahr | Gebühr |\n| :-- | --: |\n| erstes | 100 |\n\
            | zweites | 200 |\n\n```sh\npay --now\n```";
        assert_eq!(check(ORIGINAL, german), Ok(()));
        let chinese = "# 假期\n\n每人有{days}天假期，参见第12条和https://example.org/leave?a=1&b=2。\
            任何人都无需说明休假原因，学期开始前须书面通知学院。\n\n## 费用\n\n- 交给大学\n- %s的\n\n\
            | 年 | 费用 |\n|---|---|\n| 第一年 | 100 |\n| 第二年 | 200 |\n\n```sh\npay --now\n```";
        assert_eq!(check(ORIGINAL, chinese), Ok(()));
        // And back: alphabets take more letters.
        assert_eq!(check(chinese, &german.replace("siehe", "siehe §")), Ok(()));
        assert_eq!(check("## 5", "## 5"), Ok(()));
        assert_eq!(check("Ja.", "Yes, of course it is so."), Ok(()));
        assert_eq!(
            check("Es sind 50 % der Summe, 100% sicher {nicht so}", "50% sure, 100 % {not so}"),
            Ok(())
        );
        assert_eq!(check("See https://a.org/", "Siehe [https://a.org](https://a.org)."), Ok(()));
    }

    #[test]
    fn what_is_empty_or_cut_is_refused_with_the_reason() {
        assert_eq!(refused(" \n"), "the translation is empty");
        let cut = refused(&ORIGINAL[..ORIGINAL.find("## Fees").unwrap()]);
        assert!(
            cut.contains("its headings are # (1), and those of the original #, ## (2)"),
            "{cut}"
        );
        assert!(cut.contains("its tables are none"), "{cut}");
        let long = "One sentence follows the other here. ".repeat(40);
        let short = check(&long, "Ein Satz folgt dem anderen.").unwrap_err();
        assert!(short.contains("too short"), "{short}");
        let endless = check("A short text.", &"und ".repeat(1_000)).unwrap_err();
        assert!(endless.contains("too long"), "{endless}");
        let paragraphs = "A paragraph of a text.\n\n".repeat(20);
        let half = check(&paragraphs, &paragraphs[..paragraphs.len() / 2]).unwrap_err();
        assert!(half.contains("10 paragraphs, and the original 20"), "{half}");
    }

    #[test]
    fn what_is_lost_on_the_way_is_named() {
        for (from, to, told) in [
            ("## Fees", "### Fees", "headings"),
            ("| second | 200 |\n", "", "its tables are 2 columns with 1 rows (1)"),
            ("{days}", "{Tage}", "it lacks the placeholder {days}; it adds the placeholder {Tage}"),
            ("%s", "s", "it lacks the placeholder %s"),
            ("https://example.org", "https://example.com", "it lacks the address"),
            ("§ 12", "§ 21", "it lacks § 12"),
        ] {
            let refused = refused(&ORIGINAL.replacen(from, to, 1));
            assert!(refused.contains(told), "{from}: {refused}");
        }
    }
}
