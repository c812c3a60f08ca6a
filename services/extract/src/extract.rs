use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crate::document::Document;
use crate::{
    Error, Extracted, Format, Language, Limits, Result, docx, html, markdown, pdf, text, title,
};

/// The stack of the thread that parses: parsers may recurse to the depths that they allow.
const STACK_BYTES: usize = 16 << 20;

/// Reads a document.
///
/// Blocks until it is done, and never panics. It is bounded by `limits`, but not in time: for files
/// from outside, use a [`Sandbox`](crate::Sandbox).
pub fn extract(bytes: &[u8], format: Format, limits: &Limits) -> Result<Extracted> {
    if bytes.is_empty() {
        return Err(Error::EmptyFile);
    }
    if bytes.len() > limits.bytes_max {
        return Err(Error::too_large("its size in bytes", limits.bytes_max));
    }
    let document = guarded(format, || match format {
        Format::Pdf => pdf::read(bytes, limits),
        Format::Docx => docx::read(bytes, limits),
        Format::Html => html::read(bytes, limits),
        Format::Markdown => markdown::read_markdown(bytes, limits),
        Format::Text => markdown::read_text(bytes, limits),
    })?;
    let markdown = text::normalized(&document.markdown);
    if markdown.is_empty() {
        return Err(Error::NoText { format, pages: document.pages });
    }
    Ok(Extracted {
        title: document.title.unwrap_or_else(|| title::of_markdown(&markdown)),
        language: Language::of_text(&markdown),
        markdown,
        format,
        pages: document.pages,
    })
}

/// Runs a parser so that its panics are errors, on a stack of known size.
fn guarded(format: Format, read: impl FnOnce() -> Result<Document> + Send) -> Result<Document> {
    thread::scope(|scope| {
        let parse = || catch_unwind(AssertUnwindSafe(read));
        let parser = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, parse);
        let Ok(parser) = parser else {
            return Err(Error::Sandbox { problem: "no thread could be started".to_owned() });
        };
        match parser.join() {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(Error::broken(format, "the parser gave up on it")),
        }
    })
}
