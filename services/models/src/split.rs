use std::collections::BTreeMap;
use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// A place where a document may be cut; earlier ones are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cut {
    /// Before a heading of this level.
    Heading(u8),
    /// Before a paragraph, a list, a table, a block of code.
    Block,
    /// Before what is inside of one: an item, a row.
    Inner,
    /// After a sentence.
    Sentence,
    /// After a line, also of code.
    Line,
    /// After a space.
    Space,
    /// Anywhere between two characters.
    Anywhere,
}

/// Cuts a document into parts of at most `chars_max` characters, at the best places there are.
///
/// That is before headings, the highest first, then before paragraphs, between sentences, between
/// words, and only if nothing else is left within one. Code is cut only if it is too long by itself.
/// Nothing is lost or repeated: the parts, one after the other, are the document. What stands together
/// and fits into one part stays together. A document without text has no parts.
///
/// ```
/// let document = "# Leave\n\nTwenty days.\n\n# Travel\n\nBy train.\n";
/// let parts = keyward_models::split_markdown(document, 30);
/// assert_eq!(parts, ["# Leave\n\nTwenty days.\n\n", "# Travel\n\nBy train.\n"]);
/// ```
pub fn split_markdown(document: &str, chars_max: usize) -> Vec<&str> {
    let chars_max = chars_max.max(1);
    if document.is_empty() {
        return Vec::new();
    }
    if document.chars().nth(chars_max).is_none() {
        return vec![document];
    }
    let mut parts = Vec::new();
    Cuts::of(document).split(0..document.len(), Cut::Heading(1), chars_max, &mut parts);
    parts
}

/// The good places of a document.
struct Cuts<'a> {
    document: &'a str,
    at: BTreeMap<usize, Cut>,
}

impl<'a> Cuts<'a> {
    fn of(document: &'a str) -> Self {
        let mut cuts = Self { document, at: BTreeMap::new() };
        let options = Options::ENABLE_TABLES | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
        let (mut depth, mut code_depth) = (0_u32, 0_u32);
        for (event, range) in Parser::new_ext(document, options).into_offset_iter() {
            match event {
                Event::Start(tag) => {
                    if let Some(cut) = cut_before(&tag, depth) {
                        cuts.add(line_start(document, range.start), cut);
                    }
                    depth += 1;
                    code_depth += u32::from(is_verbatim(&tag.to_end()));
                }
                Event::End(end) => {
                    depth -= 1;
                    code_depth -= u32::from(is_verbatim(&end));
                }
                Event::Rule if depth == 0 => {
                    cuts.add(line_start(document, range.start), Cut::Block)
                }
                Event::Text(_) if code_depth == 0 => cuts.add_sentences(range),
                _ => {}
            }
        }
        cuts
    }

    fn add(&mut self, at: usize, cut: Cut) {
        let known = self.at.entry(at).or_insert(cut);
        *known = cut.min(*known);
    }

    /// The ends of sentences: a stop and a space, or the stop of a script that has no spaces. The space
    /// up to the line's end belongs to what is before it.
    fn add_sentences(&mut self, range: Range<usize>) {
        let document = self.document;
        for (at, stop) in document[range.clone()].char_indices() {
            if !matches!(stop, '.' | '!' | '?' | '。' | '！' | '？') {
                continue;
            }
            let stopped = range.start + at + stop.len_utf8();
            let mut end = stopped;
            for space in document[stopped..].chars().take_while(|char| char.is_whitespace()) {
                end += space.len_utf8();
                if space == '\n' {
                    break;
                }
            }
            if end > stopped || !stop.is_ascii() {
                self.add(end, Cut::Sentence);
            }
        }
    }

    /// Cuts a range at its best places. Neighbours that fit together stay together.
    fn split(&self, range: Range<usize>, best: Cut, chars_max: usize, parts: &mut Vec<&'a str>) {
        let mut part = range.start..range.start;
        let mut part_chars = 0;
        for piece in self.pieces(range, best) {
            let piece_chars = self.document[piece.clone()].chars().count();
            if part_chars + piece_chars <= chars_max {
                part.end = piece.end;
                part_chars += piece_chars;
                continue;
            }
            self.push(part, parts);
            if piece_chars <= chars_max {
                (part, part_chars) = (piece, piece_chars);
            } else {
                (part, part_chars) = (piece.end..piece.end, 0);
                self.split(piece, best.next(), chars_max, parts);
            }
        }
        self.push(part, parts);
    }

    fn push(&self, part: Range<usize>, parts: &mut Vec<&'a str>) {
        if !part.is_empty() {
            parts.push(&self.document[part]);
        }
    }

    /// The range, cut at all places that are as good as this.
    fn pieces(&self, range: Range<usize>, cut: Cut) -> Vec<Range<usize>> {
        let text = &self.document[range.clone()];
        let ends_after = |is_end: fn(char) -> bool| {
            let ends = text.char_indices().filter(|(_, char)| is_end(*char));
            ends.map(|(at, char)| range.start + at + char.len_utf8()).collect::<Vec<_>>()
        };
        let mut ends = match cut {
            Cut::Line => ends_after(|char| char == '\n'),
            Cut::Space => ends_after(char::is_whitespace),
            Cut::Anywhere => ends_after(|_| true),
            _ => {
                let inside = self.at.range(range.start + 1..range.end);
                inside.filter(|(_, known)| **known == cut).map(|(at, _)| *at).collect()
            }
        };
        ends.push(range.end);
        ends.dedup();
        let starts = std::iter::once(range.start).chain(ends.clone());
        starts.zip(ends).map(|(start, end)| start..end).collect()
    }
}

impl Cut {
    fn next(self) -> Self {
        match self {
            Self::Heading(level) if level < 6 => Self::Heading(level + 1),
            Self::Heading(_) => Self::Block,
            Self::Block => Self::Inner,
            Self::Inner => Self::Sentence,
            Self::Sentence => Self::Line,
            Self::Line => Self::Space,
            Self::Space | Self::Anywhere => Self::Anywhere,
        }
    }
}

fn cut_before(tag: &Tag<'_>, depth: u32) -> Option<Cut> {
    match tag {
        Tag::Heading { level, .. } if depth == 0 => Some(Cut::Heading(level_of(*level))),
        _ if depth == 0 => Some(Cut::Block),
        Tag::Item | Tag::TableRow | Tag::Paragraph | Tag::List(_) | Tag::CodeBlock(_) => {
            Some(Cut::Inner)
        }
        _ => None,
    }
}

fn level_of(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

/// Whether there are no sentences in it.
fn is_verbatim(end: &TagEnd) -> bool {
    matches!(end, TagEnd::CodeBlock | TagEnd::HtmlBlock | TagEnd::MetadataBlock(_) | TagEnd::Table)
}

fn line_start(document: &str, at: usize) -> usize {
    document[..at].rfind('\n').map_or(0, |end| end + 1)
}
