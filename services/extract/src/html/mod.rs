//! Pages of the web.
//!
//! A page is read token by token, never as a tree: its depth costs nothing, and what is not known is
//! passed over.

mod inline;
mod table;
mod writer;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

use crate::document::Document;
use crate::html::writer::Writer;
use crate::{Limits, Result, block, charset, title};

pub(crate) use inline::safe_link;

pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<Document> {
    let writer = tokenize(&charset::decode(bytes), Writer::default());
    let (title, blocks) = writer.finish();
    Ok(Document {
        title: title::sensible(&title),
        markdown: block::render(&blocks, limits.text_bytes_max)?,
        pages: None,
    })
}

/// Gives all tokens of a page to the sink.
pub(crate) fn tokenize<S: TokenSink>(html: &str, sink: S) -> S {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    // A sink that never asks for a script to be run gets everything at once.
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink
}

/// How the tokenizer must go on after the start of an element, for what it holds is no markup.
pub(crate) fn raw_content<H>(name: &str) -> TokenSinkResult<H> {
    match name {
        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
        "style" | "iframe" | "noembed" | "noframes" | "xmp" => {
            TokenSinkResult::RawData(RawKind::Rawtext)
        }
        "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
        "plaintext" => TokenSinkResult::Plaintext,
        _ => TokenSinkResult::Continue,
    }
}

/// Whether nothing inside the element is text to read.
pub(crate) fn is_dropped(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "noscript"
            | "template"
            | "svg"
            | "math"
            | "iframe"
            | "object"
            | "canvas"
            | "audio"
            | "video"
            | "select"
            | "textarea"
            | "button"
            | "noembed"
            | "noframes"
            | "plaintext"
            | "xmp"
            | "frameset"
    )
}

/// Whether the element has no end.
pub(crate) fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
    )
}
