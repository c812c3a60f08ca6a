use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};

use crate::docx::broken;
use crate::{Error, Limits, Result};

/// How many attributes an element may have. Those of office programs have some dozens.
const ATTRIBUTES_MAX: usize = 1_000;

/// The nodes of a part, one after the other.
pub(crate) struct Xml<'a> {
    part: &'static str,
    reader: Reader<&'a [u8]>,
    depth: usize,
    depth_max: usize,
}

/// What a part is made of. Names are without their prefixes.
#[derive(Debug)]
pub(crate) enum Node {
    Start(Element),
    End(String),
    Text(String),
}

#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) name: String,
    attributes: Vec<(String, String)>,
}

impl Element {
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The attribute `val`, which holds most of what a document says.
    pub(crate) fn val(&self) -> Option<&str> {
        self.attribute("val")
    }
}

impl<'a> Xml<'a> {
    pub(crate) fn new(part: &'static str, text: &'a str, limits: &Limits) -> Self {
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        Self { part, reader, depth: 0, depth_max: limits.depth_max }
    }

    /// The next node; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Node>> {
        loop {
            let event =
                self.reader.read_event().map_err(|error| self.broken(&error.to_string()))?;
            let node = match event {
                Event::Start(start) => {
                    self.depth += 1;
                    if self.depth > self.depth_max {
                        return Err(Error::too_large("the depth of its elements", self.depth_max));
                    }
                    Node::Start(element(&start).map_err(|problem| self.broken(&problem))?)
                }
                Event::End(end) => {
                    self.depth = self.depth.saturating_sub(1);
                    Node::End(String::from_utf8_lossy(end.local_name().as_ref()).into_owned())
                }
                Event::Text(text) => Node::Text(String::from_utf8_lossy(&text).into_owned()),
                Event::CData(text) => Node::Text(String::from_utf8_lossy(&text).into_owned()),
                Event::GeneralRef(reference) => {
                    let name = String::from_utf8_lossy(&reference).into_owned();
                    let letter = reference.resolve_char_ref().ok().flatten();
                    match (letter, resolve_xml_entity(&name)) {
                        (Some(letter), _) => Node::Text(letter.to_string()),
                        (None, Some(text)) => Node::Text(text.to_owned()),
                        (None, None) => return Err(self.broken(&format!("unknown entity {name}"))),
                    }
                }
                // No office program declares entities; who does wants them expanded.
                Event::DocType(_) => return Err(self.broken("it declares a document type")),
                Event::Eof if self.depth > 0 => return Err(self.broken("it ends too early")),
                Event::Eof => return Ok(None),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::Empty(_) => continue,
            };
            return Ok(Some(node));
        }
    }

    fn broken(&self, problem: &str) -> Error {
        let at = self.reader.buffer_position();
        broken(format!("its part {} is wrong at byte {at} ({problem})", self.part))
    }
}

fn element(start: &BytesStart<'_>) -> Result<Element, String> {
    let mut attributes = Vec::new();
    // Of two of one name the first counts. The parser would compare each with all before it.
    for attribute in start.attributes().with_checks(false) {
        let attribute = attribute.map_err(|error| error.to_string())?;
        if attributes.len() == ATTRIBUTES_MAX {
            return Err(format!("an element has more than {ATTRIBUTES_MAX} attributes"));
        }
        let name = String::from_utf8_lossy(attribute.key.local_name().as_ref()).into_owned();
        let value = String::from_utf8_lossy(&attribute.value);
        let value = quick_xml::escape::unescape(&value).map_err(|error| error.to_string())?;
        attributes.push((name, value.into_owned()));
    }
    Ok(Element {
        name: String::from_utf8_lossy(start.local_name().as_ref()).into_owned(),
        attributes,
    })
}
