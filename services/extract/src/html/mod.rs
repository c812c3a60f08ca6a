//! Pages of the web.
//!
//! A page is read token by token, never as a tree: its depth costs nothing, and what is not known is
//! passed over.

mod inline;
mod table;
mod writer;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, State, Tokenizer};

use crate::document::Document;
use crate::html::writer::Writer;
use crate::{Limits, Result, block, charset, title};

pub(crate) use inline::safe_link;

pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<Document> {
    let mut writer = Writer::default();
    tokenize(&charset::decode(bytes), &mut writer);
    let (title, blocks) = writer.finish();
    Ok(Document {
        title: title::sensible(&title),
        markdown: block::render(&blocks, limits.text_bytes_max)?,
        pages: None,
    })
}

/// What is given the tokens of a page.
pub(crate) trait Sink {
    fn text(&mut self, text: &str);
    fn start(&mut self, tag: &Tag);
    fn end(&mut self, name: &str);
}

/// The start of an element.
#[derive(Debug, Default)]
pub(crate) struct Tag {
    pub(crate) name: String,
    pub(crate) self_closing: bool,
    /// Those of [`ATTRIBUTES`], each once.
    attributes: Vec<(&'static str, String)>,
}

/// The attributes that mean something here. Others are not kept, so that a tag costs no more than its length,
/// however many it has.
const ATTRIBUTES: [&str; 7] = ["alt", "colspan", "hidden", "href", "rowspan", "start", "title"];

impl Tag {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.attributes.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Adds an attribute, and says whether its value is of use: of two of one name, the first counts.
    fn name_attribute(&mut self, name: &[u8]) -> bool {
        let known = ATTRIBUTES.into_iter().find(|known| known.as_bytes() == name);
        match known.filter(|known| self.attribute(known).is_none()) {
            Some(known) => {
                self.attributes.push((known, String::new()));
                true
            }
            None => false,
        }
    }

    fn value_attribute(&mut self, value: &[u8]) {
        if let Some((_, last)) = self.attributes.last_mut() {
            last.push_str(&String::from_utf8_lossy(value));
        }
    }
}

/// Gives all tokens of a page to the sink.
pub(crate) fn tokenize(html: &str, sink: &mut impl Sink) {
    let mut tag = Tag::default();
    let mut takes_value = false;
    let emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<State> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                let name = String::from_utf8_lossy(name).into_owned();
                tag = Tag { name, ..Tag::default() };
                takes_value = false;
            }
            CallbackEvent::AttributeName { name } => takes_value = tag.name_attribute(name),
            CallbackEvent::AttributeValue { value } if takes_value => tag.value_attribute(value),
            CallbackEvent::CloseStartTag { self_closing } => {
                tag.self_closing = self_closing;
                sink.start(&tag);
                return raw_content(&tag.name);
            }
            CallbackEvent::EndTag { name } => sink.end(&String::from_utf8_lossy(name)),
            CallbackEvent::String { value } => sink.text(&String::from_utf8_lossy(value)),
            _ => {}
        }
        None
    });
    let mut tokenizer = Tokenizer::new_with_emitter(html, emitter);
    while let Some(Ok(state)) = tokenizer.next() {
        tokenizer.set_state(state);
    }
}

/// How the tokenizer must go on after the start of an element, if what it holds is no markup.
fn raw_content(name: &str) -> Option<State> {
    match name {
        "script" => Some(State::ScriptData),
        "style" | "iframe" | "noembed" | "noframes" | "xmp" => Some(State::RawText),
        "title" | "textarea" => Some(State::RcData),
        "plaintext" => Some(State::PlainText),
        _ => None,
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
