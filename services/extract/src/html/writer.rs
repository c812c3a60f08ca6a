use crate::block::Block;
use crate::html::inline::{Inline, Span, safe_link};
use crate::html::table::Table;
use crate::html::{Sink, Tag, is_dropped, is_void};
use crate::text::{is_dropped as is_dropped_letter, unmarked};

/// Lists inside lists that are counted.
const LISTS_MAX: usize = 64;

/// Writes blocks while a page is read.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    title: String,
    blocks: Vec<Block>,
    line: Inline,
    /// The element whose content is passed over, and how often it is open.
    dropped: Option<(String, usize)>,
    in_title: bool,
    heading: Option<u8>,
    /// Text kept as it stands, inside `pre`.
    code: Option<String>,
    quotes: usize,
    /// The next number of each open list, if it is ordered.
    lists: Vec<Option<u64>>,
    /// Whether the next text begins an item.
    at_item: bool,
    table: Option<Table>,
}

impl Writer {
    /// The title, and what was written.
    pub(crate) fn finish(mut self) -> (String, Vec<Block>) {
        self.flush();
        if let Some(table) = self.table.take() {
            self.blocks.extend(table.into_blocks());
        }
        (self.title, self.blocks)
    }
}

impl Sink for Writer {
    fn text(&mut self, text: &str) {
        if self.dropped.is_some() {
        } else if self.in_title {
            self.title.push_str(text);
        } else if let Some(code) = &mut self.code {
            code.extend(text.chars().filter(|letter| !is_dropped_letter(*letter)));
        } else {
            self.line.push(text);
        }
    }

    fn start(&mut self, tag: &Tag) {
        let name = tag.name.as_str();
        if let Some((dropped, open)) = &mut self.dropped {
            *open += usize::from(dropped == name && !tag.self_closing);
            return;
        }
        let hidden = tag.attribute("hidden").is_some() && !is_void(name);
        if (is_dropped(name) || hidden) && !tag.self_closing {
            self.flush();
            self.dropped = Some((name.to_owned(), 1));
            return;
        }
        match name {
            // Titles of drawings are not that of the page; drawings are dropped before.
            "title" => self.in_title = self.title.is_empty(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.flush();
                self.heading = name[1..].parse().ok();
            }
            "pre" => {
                self.flush();
                self.code = Some(String::new());
            }
            "blockquote" => {
                self.flush();
                self.quotes += 1;
            }
            "ul" | "ol" | "menu" => {
                self.flush();
                if self.lists.len() < LISTS_MAX {
                    let first = tag.attribute("start").and_then(|start| start.trim().parse().ok());
                    self.lists.push((name == "ol").then(|| first.unwrap_or(1)));
                }
            }
            "li" => {
                self.flush();
                self.at_item = true;
            }
            "table" | "tr" | "td" | "th" => self.start_of_table(name),
            "br" => match &mut self.code {
                Some(code) => code.push('\n'),
                None => self.line.line_break(),
            },
            "b" | "strong" => self.line.open(Span::Strong),
            "i" | "em" | "cite" => self.line.open(Span::Emphasis),
            "code" | "kbd" | "samp" | "tt" => self.line.open(Span::Code),
            "a" => {
                if let Some(target) = tag.attribute("href").and_then(safe_link) {
                    self.line.open(Span::Link(target));
                }
            }
            "img" => self.line.push(tag.attribute("alt").unwrap_or_default()),
            name if is_block(name) => self.flush(),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((dropped, open)) = &mut self.dropped {
            *open -= usize::from(dropped == name);
            if *open == 0 {
                self.dropped = None;
            }
            return;
        }
        match name {
            "title" => self.in_title = false,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.flush();
                self.heading = None;
            }
            "blockquote" => {
                self.flush();
                self.quotes = self.quotes.saturating_sub(1);
            }
            "ul" | "ol" | "menu" => {
                self.flush();
                self.lists.pop();
                self.at_item = false;
            }
            "table" => {
                self.flush();
                if self.table.as_mut().is_some_and(|table| !table.unnest())
                    && let Some(table) = self.table.take()
                {
                    self.blocks.extend(table.into_blocks());
                }
            }
            "b" | "strong" => self.line.close(&Span::Strong),
            "i" | "em" | "cite" => self.line.close(&Span::Emphasis),
            "code" | "kbd" | "samp" | "tt" => self.line.close(&Span::Code),
            "a" => self.line.close(&Span::Link(String::new())),
            "li" | "pre" | "tr" | "td" | "th" => self.flush(),
            name if is_block(name) => self.flush(),
            _ => {}
        }
    }
}

impl Writer {
    fn start_of_table(&mut self, name: &str) {
        self.flush();
        match (&mut self.table, name) {
            (None, "table") => self.table = Some(Table::default()),
            (Some(table), "table") => table.nest(),
            (Some(table), "tr") if !table.is_nested() => table.row(),
            (Some(table), "td" | "th") if !table.is_nested() => table.cell(),
            _ => {}
        }
    }

    /// Ends the block that is being written.
    fn flush(&mut self) {
        if let Some(code) = self.code.take() {
            self.block_of_code(code);
            return;
        }
        let text = self.line.take();
        if text.is_empty() {
            return;
        }
        if let Some(table) = &mut self.table
            && table.push(&text)
        {
            return;
        }
        let depth = self.lists.len();
        let block = if let Some(level) = self.heading {
            Block::Heading { level, text }
        } else if self.at_item && depth > 0 {
            self.at_item = false;
            let text = unmarked(&text);
            let number = self.lists.last_mut().and_then(Option::as_mut);
            let number = number.map(|next| std::mem::replace(next, next.saturating_add(1)));
            Block::Item { depth, number, text }
        } else if depth > 0 {
            Block::Continuation { depth, text: unmarked(&text) }
        } else if self.quotes > 0 {
            Block::Quote(unmarked(&text))
        } else {
            Block::Paragraph(unmarked(&text))
        };
        self.blocks.push(block);
    }

    fn block_of_code(&mut self, code: String) {
        match &mut self.table {
            Some(table) => {
                let mut line = Inline::default();
                line.push(&code);
                table.push(&line.take());
            }
            None => self.blocks.push(Block::Code(code)),
        }
    }
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "body"
            | "caption"
            | "center"
            | "dd"
            | "details"
            | "dialog"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "head"
            | "header"
            | "hr"
            | "html"
            | "legend"
            | "main"
            | "nav"
            | "p"
            | "section"
            | "summary"
            | "tbody"
            | "tfoot"
            | "thead"
    )
}
