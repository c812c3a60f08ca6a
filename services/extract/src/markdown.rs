//! Markdown and plain text.

use crate::document::Document;
use crate::text::{escaped, normalized};
use crate::{Error, Limits, Result, charset, title};

pub(crate) fn read_markdown(bytes: &[u8], limits: &Limits) -> Result<Document> {
    let text = normalized(&charset::decode(bytes));
    within(&text, limits)?;
    let (front, body) = front_matter(&text);
    let title = front.and_then(|front| {
        front
            .lines()
            .find_map(|line| line.strip_prefix("title:"))
            .and_then(|title| title::sensible(title.trim().trim_matches(['"', '\''])))
    });
    Ok(Document { title, markdown: normalized(body), pages: None })
}

/// Plain text as Markdown. Its lines stay; what Markdown would take for headings, code or HTML is
/// shown as it is, while lists, which look the same in both, become lists.
pub(crate) fn read_text(bytes: &[u8], limits: &Limits) -> Result<Document> {
    let text = normalized(&charset::decode(bytes));
    let mut markdown = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim();
        let (mark, rest) = list_mark(line);
        markdown.push_str(mark);
        if rest.starts_with(['#', '>', '|', '=', '~']) || (mark.is_empty() && is_rule(rest)) {
            markdown.push('\\');
        }
        markdown.push_str(&escaped(rest));
        markdown.push('\n');
    }
    within(&markdown, limits)?;
    Ok(Document { title: None, markdown: normalized(&markdown), pages: None })
}

/// Whether a line of dashes would make a heading of the line before it.
fn is_rule(line: &str) -> bool {
    line.len() > 1 && line.bytes().all(|mark| mark == b'-')
}

fn list_mark(line: &str) -> (&str, &str) {
    for mark in ["- ", "* ", "+ "] {
        if let Some(rest) = line.strip_prefix(mark) {
            return (mark, rest);
        }
    }
    ("", line)
}

fn within(text: &str, limits: &Limits) -> Result<()> {
    if text.len() > limits.text_bytes_max {
        return Err(Error::too_large("its text in bytes", limits.text_bytes_max));
    }
    Ok(())
}

/// The lines between `---` at the very beginning, and what follows them.
fn front_matter(text: &str) -> (Option<&str>, &str) {
    let split = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    match split {
        Some((front, body)) if front.lines().any(|line| line.contains(':')) => (Some(front), body),
        _ => (None, text),
    }
}
