use crate::block::Block;
use crate::docx::numbering::Numbering;
use crate::docx::styles::Styles;
use crate::text::{escaped, escaped_block, is_dropped};

/// A paragraph while it is read.
#[derive(Debug, Default)]
pub(crate) struct Paragraph {
    pub(crate) style: String,
    pub(crate) outline: Option<u8>,
    pub(crate) list: Option<String>,
    pub(crate) list_level: usize,
    /// Text, with the targets of links.
    runs: Vec<Run>,
}

#[derive(Debug)]
enum Run {
    Text(String),
    Break,
    Link { start: usize, target: String },
}

/// What a paragraph is.
pub(crate) enum Kind {
    Title(String),
    Block(Block),
}

impl Paragraph {
    pub(crate) fn push(&mut self, text: &str) {
        let text: String = text.chars().filter(|letter| !is_dropped(*letter)).collect();
        match self.runs.last_mut() {
            Some(Run::Text(last)) => last.push_str(&text),
            _ => self.runs.push(Run::Text(text)),
        }
    }

    pub(crate) fn line_break(&mut self) {
        self.runs.push(Run::Break);
    }

    /// Where a link may begin.
    pub(crate) fn position(&mut self) -> usize {
        self.runs.push(Run::Text(String::new()));
        self.runs.len() - 1
    }

    /// Makes a link of what came since `start`.
    pub(crate) fn link(&mut self, start: usize, target: String) {
        self.runs.push(Run::Link { start, target });
    }

    pub(crate) fn finish(self, styles: &Styles, numbering: &mut Numbering) -> Option<Kind> {
        if self.plain().trim().is_empty() {
            return None;
        }
        if styles.is_title(&self.style) {
            return Some(Kind::Title(self.plain()));
        }
        let outline = self.outline.filter(|level| *level < 9).map(|level| level + 1);
        if let Some(level) = outline.or_else(|| styles.heading_level(&self.style)) {
            return Some(Kind::Block(Block::Heading { level, text: escaped(&self.plain()) }));
        }
        let from_style = styles.list(&self.style);
        let list = match &self.list {
            // List 0 takes a paragraph out of the list of its style.
            Some(list) => (list != "0").then(|| (list.clone(), self.list_level)),
            None => from_style.filter(|(list, _)| list != "0"),
        };
        let text = self.markdown();
        Some(Kind::Block(match list {
            Some((list, level)) => {
                Block::Item { depth: level + 1, number: numbering.next(&list, level), text }
            }
            None => Block::Paragraph(text),
        }))
    }

    fn plain(&self) -> String {
        let part = |run: &Run| match run {
            Run::Text(text) => text.clone(),
            Run::Break => " ".to_owned(),
            Run::Link { .. } => String::new(),
        };
        self.runs.iter().map(part).collect()
    }

    fn markdown(&self) -> String {
        let mut parts: Vec<String> = Vec::with_capacity(self.runs.len());
        let mut begun = false;
        for (at, run) in self.runs.iter().enumerate() {
            match run {
                Run::Text(text) if begun => parts.push(escaped(text)),
                Run::Text(text) => {
                    begun = !text.trim().is_empty();
                    let space = if text.ends_with(' ') && begun { " " } else { "" };
                    parts.push(escaped_block(text) + space);
                }
                Run::Break => parts.push(if begun { "\\\n".to_owned() } else { String::new() }),
                Run::Link { start, target } => {
                    let text = parts.split_off((*start).min(at)).concat();
                    let (label, space) = (text.trim_end(), &text[text.trim_end().len()..]);
                    let linked = format!("[{label}]({target}){space}");
                    parts.push(if label.is_empty() { text } else { linked });
                    // One part for each run, so that the starts of later links stay right.
                    parts.resize(at + 1, String::new());
                }
            }
        }
        parts.concat().trim_end_matches(['\\', '\n', ' ']).to_owned()
    }
}
