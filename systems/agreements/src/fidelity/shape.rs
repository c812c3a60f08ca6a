//! The structure of a Markdown text, and its prose.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Stands in the prose for what is not prose: code, math and HTML. It is part of no word and no placeholder.
const OBJECT: char = '\u{fffc}';
/// How many entries of a list are shown in a fault.
const SHOWN_MAX: usize = 12;

/// The kind of the first block of a text, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Heading,
    Table,
    Code,
    Paragraph,
    Other,
}

/// The structure of a text.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// The levels of its headings, in order.
    headings: Vec<u8>,
    /// The columns and rows of its tables, in order.
    tables: Vec<(usize, usize)>,
    code_blocks: usize,
    /// Items of all lists. Whether a list is loose (blank lines between its items) or tight makes no difference.
    items: usize,
    /// Paragraphs outside of lists and footnotes: those inside come and go with the blank lines between items.
    paragraphs: usize,
    footnotes: usize,
    first: Option<Block>,
    /// The text of the first block.
    pub opening: String,
    /// The text without code, math and HTML, and with escapes resolved.
    pub prose: String,
}

impl Shape {
    pub fn of(text: &str) -> Self {
        let options = Options::ENABLE_TABLES
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_MATH
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
        let mut shape = Self::default();
        // How deep it is in lists and footnotes, and in blocks that are not prose.
        let (mut inner, mut silent) = (0_usize, 0_usize);
        for event in Parser::new_ext(text, options) {
            match event {
                Event::Start(tag) => {
                    match tag {
                        Tag::Item | Tag::FootnoteDefinition(_) => inner += 1,
                        Tag::CodeBlock(_) | Tag::MetadataBlock(_) => silent += 1,
                        _ => {}
                    }
                    shape.begin(&tag, inner > 0);
                }
                Event::End(tag) => {
                    match tag {
                        TagEnd::Item | TagEnd::FootnoteDefinition => inner -= 1,
                        TagEnd::CodeBlock | TagEnd::MetadataBlock(_) => silent -= 1,
                        _ => {}
                    }
                    shape.end(tag);
                }
                Event::Text(text) if silent == 0 => shape.prose.push_str(&text),
                Event::SoftBreak | Event::HardBreak => shape.prose.push('\n'),
                // A pair of placeholders such as ${a}/${b} looks like math.
                Event::InlineMath(math) if math.starts_with('{') => {
                    shape.prose.extend(["$", &math, "$"]);
                }
                Event::Code(_)
                | Event::InlineMath(_)
                | Event::DisplayMath(_)
                | Event::Html(_)
                | Event::InlineHtml(_) => shape.prose.push(OBJECT),
                _ => {}
            }
        }
        shape
    }

    fn begin(&mut self, tag: &Tag<'_>, is_inner: bool) {
        let block = match tag {
            Tag::Heading { level, .. } => {
                self.headings.push(*level as u8);
                Block::Heading
            }
            Tag::Table(columns) => {
                self.tables.push((columns.len(), 0));
                Block::Table
            }
            Tag::TableRow => {
                if let Some((_, rows)) = self.tables.last_mut() {
                    *rows += 1;
                }
                return;
            }
            Tag::CodeBlock(_) => {
                self.code_blocks += 1;
                Block::Code
            }
            Tag::Item => {
                self.items += 1;
                return;
            }
            Tag::FootnoteDefinition(_) => {
                self.footnotes += 1;
                Block::Other
            }
            Tag::Paragraph => {
                if !is_inner {
                    self.paragraphs += 1;
                }
                Block::Paragraph
            }
            Tag::List(_) | Tag::BlockQuote(_) | Tag::HtmlBlock => Block::Other,
            _ => return,
        };
        self.first.get_or_insert(block);
    }

    fn end(&mut self, tag: TagEnd) {
        let ends_block = matches!(
            tag,
            TagEnd::Paragraph
                | TagEnd::Heading(_)
                | TagEnd::Item
                | TagEnd::TableCell
                | TagEnd::CodeBlock
                | TagEnd::HtmlBlock
                | TagEnd::FootnoteDefinition
        );
        if ends_block {
            if self.opening.is_empty() {
                self.opening = self.prose.trim().to_owned();
            }
            self.prose.push('\n');
        }
    }

    /// Whether all of it stands in one block of code.
    pub fn is_fenced(&self) -> bool {
        self.first == Some(Block::Code) && self.code_blocks == 1 && self.prose.trim().is_empty()
    }

    /// Says what a translation of this has, lacks or has too much of.
    pub fn compare(&self, translation: &Self, faults: &mut Vec<String>) {
        if translation.is_fenced() && !self.is_fenced() {
            faults.push("all of it stands in a block of code".to_owned());
        }
        if matches!(self.first, Some(Block::Heading | Block::Table))
            && translation.first == Some(Block::Paragraph)
        {
            let first = if self.first == Some(Block::Table) { "table" } else { "heading" };
            faults.push(format!("it begins with a paragraph, and the original with a {first}"));
        }
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
            ("footnotes", self.footnotes, translation.footnotes),
            ("paragraphs", self.paragraphs, translation.paragraphs),
        ] {
            // Models join and split sentences now and then.
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

/// The beginning of a list, and its length.
fn shown(list: &[String]) -> String {
    match list.len() {
        0 => "none".to_owned(),
        count if count > SHOWN_MAX => format!("{}, … ({count})", list[..SHOWN_MAX].join(", ")),
        count => format!("{} ({count})", list.join(", ")),
    }
}
