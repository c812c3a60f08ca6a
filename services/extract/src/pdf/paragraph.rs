use std::collections::BTreeMap;

use crate::block::Block;
use crate::pdf::hyphen::Words;
use crate::pdf::layout::{Item, Line};
use crate::text::{escaped, escaped_block};

/// Larger than the letters of most text by this much is a heading.
const HEADING_MIN: f32 = 1.12;
/// A bold line is a heading only if it is short.
const HEADING_CHARS_MAX: usize = 120;
/// By how much the distance of lines may differ in a paragraph.
const LEADING_MAX: f32 = 1.3;

/// Makes blocks of the lines of all pages.
pub(crate) fn blocks(pages: Vec<Vec<Item>>) -> Vec<Block> {
    let body = Typography::of(&pages);
    let mut words = Words::default();
    for line in lines(&pages) {
        words.learn(&line.text);
    }
    let mut writer = Writer { body, words, open: None, blocks: Vec::new() };
    for page in pages {
        let mut at_top = true;
        for item in page {
            match item {
                Item::Line(line) => writer.line(line, at_top),
                Item::Table(rows) => {
                    writer.close();
                    let rows = rows
                        .into_iter()
                        .map(|row| row.into_iter().map(|cell| escaped(&cell)).collect());
                    writer.blocks.push(Block::Table(rows.collect()));
                }
            }
            at_top = false;
        }
    }
    writer.close();
    writer.blocks
}

fn lines(pages: &[Vec<Item>]) -> impl Iterator<Item = &Line> {
    pages.iter().flatten().filter_map(|item| match item {
        Item::Line(line) => Some(line),
        Item::Table(_) => None,
    })
}

/// What most of the text looks like.
struct Typography {
    size: f32,
    /// The distance of lines in a paragraph, in units of the size.
    leading: f32,
    /// The sizes of headings, in halves of a point, from large to small.
    headings: Vec<i32>,
    bold: bool,
}

impl Typography {
    fn of(pages: &[Vec<Item>]) -> Self {
        let mut sizes: BTreeMap<i32, usize> = BTreeMap::new();
        let mut bold = 0_usize;
        let mut all = 0_usize;
        for line in lines(pages) {
            let length = line.text.chars().count();
            *sizes.entry(halves(line.size)).or_default() += length;
            all += length;
            bold += if line.bold { length } else { 0 };
        }
        let size = sizes.iter().max_by_key(|(_, letters)| **letters).map_or(24, |(size, _)| *size);
        let least = f64::from(size) * f64::from(HEADING_MIN);
        let mut headings: Vec<i32> =
            sizes.into_keys().filter(|size| f64::from(*size) >= least).collect();
        headings.reverse();
        #[allow(clippy::cast_precision_loss, reason = "sizes of letters are small")]
        let size = size as f32 / 2.0;
        Self { size, leading: leading(pages, size), headings, bold: bold * 2 > all }
    }

    /// The level of the heading that a line is, if it is one.
    fn heading_level(&self, line: &Line) -> Option<u8> {
        let size = halves(line.size);
        let by_size = self.headings.iter().position(|heading| *heading == size);
        let short = line.text.chars().count() <= HEADING_CHARS_MAX;
        let ends = line.text.ends_with(['.', ',', ';', ':']);
        let by_weight = line.bold && !self.bold && short && !ends && line.size >= 0.95 * self.size;
        let level = by_size.or(by_weight.then_some(self.headings.len()))?;
        let has_letters = line.text.chars().any(char::is_alphabetic);
        has_letters.then(|| u8::try_from(level + 1).unwrap_or(6).min(6))
    }
}

/// The most frequent distance of lines of the usual size.
fn leading(pages: &[Vec<Item>], size: f32) -> f32 {
    let mut distances: BTreeMap<i32, usize> = BTreeMap::new();
    for page in pages {
        for pair in page.windows(2) {
            if let [Item::Line(above), Item::Line(below)] = pair
                && (above.size - below.size).abs() < 0.5
                && (below.size - size).abs() < 0.5
            {
                let distance = (above.y - below.y) / size;
                if (0.8..2.5).contains(&distance) {
                    *distances.entry(halves(distance * 10.0)).or_default() += 1;
                }
            }
        }
    }
    let frequent = distances.iter().max_by_key(|(distance, times)| (**times, -**distance));
    #[allow(clippy::cast_precision_loss, reason = "distances of lines are small")]
    frequent.map_or(1.2, |(distance, _)| *distance as f32 / 20.0)
}

#[allow(clippy::cast_possible_truncation, reason = "sizes of letters are small, and it saturates")]
fn halves(size: f32) -> i32 {
    (size * 2.0).round() as i32
}

/// A block while its lines come.
struct Open {
    kind: Kind,
    text: String,
    /// The left edge of its lines but the first.
    left: f32,
    lines: usize,
    last: Line,
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Kind {
    Heading(u8),
    Item { number: Option<u64> },
    Paragraph,
}

struct Writer {
    body: Typography,
    words: Words,
    open: Option<Open>,
    blocks: Vec<Block>,
}

impl Writer {
    fn line(&mut self, line: Line, at_top: bool) {
        let (mark, rest) = list_mark(&line.text);
        let kind = match (self.body.heading_level(&line), mark) {
            (Some(level), _) => Kind::Heading(level),
            (None, Some(number)) => Kind::Item { number },
            (None, None) => Kind::Paragraph,
        };
        if let Some(open) = &mut self.open
            && continues(&self.body, open, &line, kind, at_top)
        {
            self.words.join(&mut open.text, &line.text);
            if open.lines == 1 || at_top {
                open.left = line.x;
            }
            open.lines += 1;
            open.last = line;
            return;
        }
        self.close();
        let text = if matches!(kind, Kind::Item { .. }) { rest } else { &line.text };
        let text = text.to_owned();
        self.open = Some(Open { kind, text, left: line.x, lines: 1, last: line });
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let text = open.text.replace('\u{ad}', "");
        self.blocks.push(match open.kind {
            Kind::Heading(level) => Block::Heading { level, text: escaped(&text) },
            Kind::Item { number } => Block::Item { depth: 1, number, text: escaped_block(&text) },
            Kind::Paragraph => Block::Paragraph(escaped_block(&text)),
        });
    }
}

/// Whether a line belongs to the open block.
fn continues(body: &Typography, open: &Open, line: &Line, kind: Kind, at_top: bool) -> bool {
    let last = &open.last;
    let alike = halves(last.size) == halves(line.size) && last.bold == line.bold;
    let distance = last.y - line.y;
    match (open.kind, kind) {
        (Kind::Heading(one), Kind::Heading(other)) => {
            return one == other && alike && distance > 0.0 && distance < 1.6 * line.size;
        }
        (Kind::Heading(_), _) | (_, Kind::Heading(_) | Kind::Item { .. }) => return false,
        (Kind::Item { .. } | Kind::Paragraph, Kind::Paragraph) => {}
    }
    let divided = open.text.ends_with('\u{ad}');
    let begins_small = line.text.chars().next().is_some_and(char::is_lowercase);
    // A word that would have fitted on the line before begins something new.
    let first_word = line.text.split(' ').next().unwrap_or_default().chars().count();
    let letters = line.text.chars().count().max(1);
    #[allow(clippy::cast_precision_loss, reason = "lines are short")]
    let needed = (line.end - line.x) * first_word as f32 / letters as f32 + line.size;
    let full = last.right - last.end < needed;
    if at_top || distance <= 0.0 {
        // On the next page, or in the next column.
        let ended = open.text.ends_with(['.', '!', '?', ':', ';', '…', '。']);
        let alike = (last.size - line.size).abs() < 1.0;
        return alike && (divided || begins_small || (full && !ended));
    }
    if !alike && (last.size - line.size).abs() > 0.6 {
        return false;
    }
    if distance > LEADING_MAX * body.leading * line.size {
        return false;
    }
    if matches!(open.kind, Kind::Item { .. }) && open.lines == 1 {
        // The lines of an item are further in than its mark.
        return divided || line.x > last.x + 0.3 * line.size;
    }
    if matches!(open.kind, Kind::Item { .. }) && line.x < open.left - 0.5 * line.size {
        return false;
    }
    let indented = open.lines > 1 && line.x > open.left + 0.8 * line.size && !begins_small;
    divided || (full && !indented) || begins_small
}

/// Whether a text is nothing but the mark of a list item.
pub(crate) fn is_list_mark(text: &str) -> bool {
    let (mark, rest) = list_mark(text);
    mark.is_some() && rest.is_empty()
}

/// The number that the mark of a list item has, if there is a mark, and the text after it.
fn list_mark(text: &str) -> (Option<Option<u64>>, &str) {
    const BULLETS: [char; 10] = ['•', '◦', '▪', '‣', '●', '○', '■', '∙', '□', '➢'];
    // These also stand in texts, and are marks only with a space after them.
    const DASHES: [char; 4] = ['–', '—', '·', '-'];

    let first = text.chars().next().unwrap_or(' ');
    if BULLETS.contains(&first) || DASHES.contains(&first) {
        let rest = &text[first.len_utf8()..];
        if BULLETS.contains(&first) || rest.is_empty() || rest.starts_with(' ') {
            return (Some(None), rest.trim_start());
        }
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let after = &text[digits..];
    if (1..=3).contains(&digits) && after.starts_with(['.', ')']) {
        let rest = &after[1..];
        if rest.is_empty() || rest.starts_with(' ') {
            return (Some(text[..digits].parse().ok()), rest.trim_start());
        }
    }
    (None, text)
}
