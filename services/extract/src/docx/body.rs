use std::collections::HashMap;

use crate::block::Block;
use crate::docx::numbering::Numbering;
use crate::docx::paragraph::{Kind, Paragraph};
use crate::docx::styles::Styles;
use crate::docx::xml::{Element, Node, Xml};
use crate::html::safe_link;
use crate::text::{escaped, single_line};
use crate::{Limits, Result, title};

/// What the body of a document says.
#[derive(Debug, Default)]
pub(crate) struct Body {
    /// The text of the first paragraph in the style of titles.
    pub(crate) title: Option<String>,
    pub(crate) blocks: Vec<Block>,
}

impl Body {
    pub(crate) fn read(
        part: &str,
        styles: Styles,
        numbering: Numbering,
        links: HashMap<String, String>,
        limits: &Limits,
    ) -> Result<Self> {
        let mut reader = Reader {
            styles,
            numbering,
            links,
            body: Self::default(),
            paragraphs: Vec::new(),
            tables: Vec::new(),
            link: None,
            in_text: false,
            passed_over: None,
        };
        let mut xml = Xml::new("document.xml", part, limits);
        while let Some(node) = xml.next()? {
            match node {
                Node::Start(element) => reader.start(&element),
                Node::End(name) => reader.end(&name),
                Node::Text(text) => reader.text(&text),
            }
        }
        let mut body = reader.body;
        if body.title.is_some() {
            // Titles are above all headings: they were given level 0.
            for block in &mut body.blocks {
                if let Block::Heading { level, .. } = block {
                    *level = level.saturating_add(1);
                }
            }
        }
        Ok(body)
    }
}

struct Reader {
    styles: Styles,
    numbering: Numbering,
    links: HashMap<String, String>,
    body: Body,
    /// Open paragraphs: a text box is inside one.
    paragraphs: Vec<Paragraph>,
    /// Open tables: a cell may hold one.
    tables: Vec<Vec<Vec<String>>>,
    /// Where the open link began, and what it points to.
    link: Option<(usize, String)>,
    in_text: bool,
    /// The element whose content is passed over, and how often it is open.
    passed_over: Option<(String, usize)>,
}

impl Reader {
    fn start(&mut self, element: &Element) {
        if let Some((name, open)) = &mut self.passed_over {
            *open += usize::from(element.is(name));
            return;
        }
        match element.name.as_str() {
            // What was deleted or moved away, the code of fields, and second versions for old
            // programs.
            "del" | "moveFrom" | "instrText" | "Fallback" | "delText" => {
                self.passed_over = Some((element.name.clone(), 1));
            }
            "p" => self.paragraphs.push(Paragraph::default()),
            "tbl" => self.tables.push(Vec::new()),
            "tr" => {
                if let Some(table) = self.tables.last_mut() {
                    table.push(Vec::new());
                }
            }
            "tc" => {
                if let Some(row) = self.tables.last_mut().and_then(|table| table.last_mut()) {
                    row.push(String::new());
                }
            }
            _ => self.start_in_paragraph(element),
        }
    }

    fn start_in_paragraph(&mut self, element: &Element) {
        let Some(paragraph) = self.paragraphs.last_mut() else { return };
        let value = element.val();
        match element.name.as_str() {
            "pStyle" => paragraph.style = value.unwrap_or_default().to_owned(),
            "outlineLvl" => paragraph.outline = value.and_then(|level| level.parse().ok()),
            "numId" => paragraph.list = value.map(str::to_owned),
            "ilvl" => {
                paragraph.list_level = value.and_then(|level| level.parse().ok()).unwrap_or(0);
            }
            "t" => self.in_text = true,
            "tab" | "ptab" => paragraph.push(" "),
            "noBreakHyphen" => paragraph.push("-"),
            "br" | "cr" if element.attribute("type").is_none() => paragraph.line_break(),
            "hyperlink" => {
                let target = element.attribute("id").and_then(|id| self.links.get(id));
                if let Some(target) = target.and_then(|target| safe_link(target)) {
                    self.link = Some((paragraph.position(), target));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((passed_over, open)) = &mut self.passed_over {
            *open -= usize::from(passed_over == name);
            if *open == 0 {
                self.passed_over = None;
            }
            return;
        }
        match name {
            "t" => self.in_text = false,
            "hyperlink" => {
                if let (Some((start, target)), Some(paragraph)) =
                    (self.link.take(), self.paragraphs.last_mut())
                {
                    paragraph.link(start, target);
                }
            }
            "p" => self.end_of_paragraph(),
            "tbl" => self.end_of_table(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(paragraph) = self.paragraphs.last_mut()
            && self.in_text
            && self.passed_over.is_none()
        {
            paragraph.push(text);
        }
    }

    fn end_of_paragraph(&mut self) {
        self.link = None;
        let Some(paragraph) = self.paragraphs.pop() else { return };
        let Some(kind) = paragraph.finish(&self.styles, &mut self.numbering) else { return };
        match kind {
            Kind::Title(text) => {
                if self.body.title.is_none() {
                    self.body.title = title::sensible(&text);
                }
                self.push(Block::Heading { level: 0, text: escaped(&single_line(&text)) });
            }
            Kind::Block(block) => self.push(block),
        }
    }

    /// Adds a block to the open cell, or to the body.
    fn push(&mut self, block: Block) {
        let cell = self.tables.iter_mut().rev().find_map(|table| table.last_mut()?.last_mut());
        match (cell, block) {
            (
                Some(cell),
                Block::Heading { text, .. } | Block::Paragraph(text) | Block::Item { text, .. },
            ) => {
                if !cell.is_empty() {
                    cell.push(' ');
                }
                cell.push_str(&text);
            }
            (_, block) => self.body.blocks.push(block),
        }
    }

    fn end_of_table(&mut self) {
        let Some(mut table) = self.tables.pop() else { return };
        table.retain(|row| row.iter().any(|cell| !cell.is_empty()));
        if !self.tables.is_empty() {
            let text = table.concat().join(" ");
            self.push(Block::Paragraph(text));
        } else if table.iter().all(|row| row.len() <= 1) {
            self.body.blocks.extend(table.into_iter().flatten().map(Block::Paragraph));
        } else {
            self.body.blocks.push(Block::Table(table));
        }
    }
}
