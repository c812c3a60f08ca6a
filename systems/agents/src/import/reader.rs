//! Splits an input into documents as it arrives.

use keyward_engine::Json;
use keyward_records::field::members;

use super::typed;
use crate::document::{Document, FIELDS};
use crate::{Error, Result};

/// A document, and where the input has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The document.
    pub document: Document,
    /// Its number in the input, counted from one. Skipped documents are counted too.
    pub number: usize,
    /// The line it begins in, counted from one; `None` if it was not read from a text.
    pub line: Option<usize>,
    /// The size of its text.
    pub bytes: usize,
}

/// Reads documents from an input that arrives in pieces. It holds one document at a time, so an input may
/// be of any length.
///
/// The input is a mix of any of these, with any white space:
///
/// - documents, one after the other or in an array;
/// - CouchDB's answer to `_all_docs?include_docs=true`: `{"rows":[{"id":…,"doc":{…}}]}`;
/// - DynamoDB's answer to a scan: `{"Items":[…]}`; lines of its exports: `{"Item":{…}}`.
///
/// Each document may be written as plain JSON or with DynamoDB's types (`{"S":"text"}`). Design documents
/// and rows of deleted documents are skipped and counted.
///
/// ```
/// use keyward_agents::DocumentReader;
///
/// let mut reader = DocumentReader::new(1 << 20);
/// let mut found = Vec::new();
/// reader.push(br#"{"rows":[{"id":"_design/x","doc":{"_id":"_design/x"}},{"id":"ada:n:aw==","#, &mut found)?;
/// reader.push(br#""doc":{"_id":"ada:n:aw==","value":1,"createdAt":"2026-02-05T10:00:00Z","#, &mut found)?;
/// reader.push(br#""updatedAt":"2026-02-05T10:00:00Z"}}]}"#, &mut found)?;
/// reader.finish()?;
/// assert_eq!((found[0].document.id.key.as_str(), reader.skipped()), ("k", 1));
/// # Ok::<(), keyward_agents::Error>(())
/// ```
#[derive(Debug)]
pub struct DocumentReader {
    bytes_max: usize,
    owner: Option<String>,
    state: State,
    list: Option<List>,
    /// The object around a list, without what is in the list: it is checked when it ends.
    around: Vec<u8>,
    object: Object,
    /// The line that is being read, and the one in which the object begins.
    line: usize,
    begins: usize,
    number: usize,
    skipped: usize,
    blank: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Outside of everything.
    Top,
    /// In a list, before an element or, if it `may_end`, the list's end.
    Element { may_end: bool },
    /// In a list, after an element.
    Separator,
    /// In an object: a document, a row, or one around a list.
    Object,
    /// In the object around a list, after the list.
    Around,
}

/// A list of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    /// An array that stands alone.
    Array,
    /// CouchDB's rows.
    Rows,
    /// DynamoDB's items.
    Items,
}

impl List {
    /// The list that a member of an object is, by its name in quotes.
    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"\"rows\"" => Some(Self::Rows),
            b"\"Items\"" => Some(Self::Items),
            _ => None,
        }
    }
}

/// An object that is read: its text so far, and where in it the reading is.
#[derive(Debug, Default)]
struct Object {
    text: Vec<u8>,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Where the last string began.
    string: usize,
    /// The list that the last string of the object itself names.
    named: Option<List>,
}

impl DocumentReader {
    /// A reader of documents of at most so many bytes each.
    pub fn new(document_bytes_max: usize) -> Self {
        Self {
            bytes_max: document_bytes_max,
            owner: None,
            state: State::Top,
            list: None,
            around: Vec::new(),
            object: Object::default(),
            line: 1,
            begins: 1,
            number: 0,
            skipped: 0,
            blank: true,
        }
    }

    /// The same, refusing documents of other users.
    #[must_use]
    pub fn only_of(mut self, user: impl Into<String>) -> Self {
        self.owner = Some(user.into());
        self
    }

    /// Reads the next piece of the input, and adds the documents that end in it to `found`. After an error,
    /// `found` has the documents before the bad one, and the reader must not be used any more.
    pub fn push(&mut self, piece: &[u8], found: &mut Vec<Incoming>) -> Result<()> {
        let mut rest = piece;
        while let Some(&byte) = rest.first() {
            if self.object.in_string {
                let (text, after) = rest.split_at(self.object.plain(rest));
                self.line += newlines(text);
                self.grow(text)?;
                self.object.end_string();
                rest = after;
                continue;
            }
            rest = &rest[1..];
            if byte == b'\n' {
                self.line += 1;
            }
            if let Some(incoming) = self.step(byte)? {
                found.push(incoming);
            }
        }
        Ok(())
    }

    /// Ends the input. An error says that it was cut off.
    pub fn finish(&mut self) -> Result<()> {
        match self.state {
            State::Top => Ok(()),
            State::Object => Err(self.bad("the input ends before the document does")),
            State::Element { .. } | State::Separator | State::Around => {
                self.begins = self.line;
                Err(self.bad("the input ends before the list of documents does"))
            }
        }
    }

    /// How many documents were skipped: design documents and deleted ones.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// How many bytes of the input the reader holds.
    pub fn held_bytes(&self) -> usize {
        self.object.text.len() + self.around.len()
    }

    /// Whether the input has had nothing but white space so far.
    pub fn is_blank(&self) -> bool {
        self.blank
    }

    fn step(&mut self, byte: u8) -> Result<Option<Incoming>> {
        self.blank &= byte.is_ascii_whitespace();
        match (self.state, byte) {
            (State::Object | State::Around, _) => return self.inside(byte),
            (_, b' ' | b'\t' | b'\r' | b'\n') => {}
            (State::Top | State::Element { .. }, b'{') => {
                self.begins = self.line;
                self.state = State::Object;
                return self.inside(byte);
            }
            (State::Top, b'[') => {
                self.list = Some(List::Array);
                self.state = State::Element { may_end: true };
            }
            (State::Separator, b',') => self.state = State::Element { may_end: false },
            (State::Separator | State::Element { may_end: true }, b']') => self.end_list(),
            (state, _) => {
                self.begins = self.line;
                let expected = match state {
                    State::Separator => "a comma or the end of the list",
                    _ => "a JSON object",
                };
                let found = char::from(byte).escape_default();
                return Err(self.bad(format!("expected {expected}, found '{found}'")));
            }
        }
        Ok(None)
    }

    fn end_list(&mut self) {
        match self.list.take() {
            Some(List::Rows | List::Items) => {
                self.begins = self.line;
                let text = std::mem::take(&mut self.around);
                self.object = Object { text, depth: 1, ..Object::default() };
                self.state = State::Around;
            }
            Some(List::Array) | None => self.state = State::Top,
        }
    }

    /// A byte of an object, outside of strings.
    fn inside(&mut self, byte: u8) -> Result<Option<Incoming>> {
        self.grow(&[byte])?;
        let object = &mut self.object;
        match byte {
            b'"' => {
                object.in_string = true;
                object.string = object.text.len() - 1;
            }
            b'[' if object.depth == 1 && self.list.is_none() && self.state == State::Object => {
                match object.named {
                    Some(list) => {
                        self.list = Some(list);
                        self.around = std::mem::take(object).text;
                        self.around.push(b']');
                        self.state = State::Element { may_end: true };
                    }
                    None => object.depth += 1,
                }
            }
            b'{' | b'[' => object.depth += 1,
            b'}' | b']' => {
                object.depth = object.depth.saturating_sub(1);
                if object.depth == 0 {
                    return self.end_object();
                }
            }
            _ => {}
        }
        Ok(None)
    }

    fn end_object(&mut self) -> Result<Option<Incoming>> {
        let text = std::mem::take(&mut self.object).text;
        let bytes = text.len();
        let text = String::from_utf8(text).map_err(|_| self.bad("it is not UTF-8"))?;
        if self.state == State::Around {
            self.state = State::Top;
            check_around(&text).map_err(|reason| self.bad(reason))?;
            return Ok(None);
        }
        let read = match self.list {
            Some(List::Rows) => row(&text),
            _ => document(&text),
        };
        let document = read.map_err(|reason| self.bad(reason))?;
        self.number += 1;
        self.state = if self.list.is_some() { State::Separator } else { State::Top };
        let Some(document) = document else {
            self.skipped += 1;
            return Ok(None);
        };
        let (number, line) = (self.number, Some(self.begins));
        if let Some(owner) = self.owner.as_ref().filter(|owner| **owner != document.id.user) {
            let (user, owner) = (document.id.user, owner.clone());
            return Err(Error::OtherUser { number, line, user, owner });
        }
        Ok(Some(Incoming { document, number, line, bytes }))
    }

    /// Adds to the object's text.
    fn grow(&mut self, text: &[u8]) -> Result<()> {
        let object = &mut self.object;
        if object.text.len() + text.len() > self.bytes_max {
            let (number, line, bytes_max) = (self.number + 1, self.begins, self.bytes_max);
            return Err(Error::LongDocument { number, line, bytes_max });
        }
        object.text.extend_from_slice(text);
        Ok(())
    }

    fn bad(&self, reason: impl Into<String>) -> Error {
        let line = Some(self.begins);
        Error::BadDocument { number: self.number + 1, line, reason: reason.into() }
    }
}

impl Object {
    /// How many bytes belong to the string that is being read, its closing quote included.
    fn plain(&mut self, bytes: &[u8]) -> usize {
        for (n, byte) in bytes.iter().enumerate() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => {
                    self.in_string = false;
                    return n + 1;
                }
                _ => {}
            }
        }
        bytes.len()
    }

    /// Notes which list the string names, once it has ended.
    fn end_string(&mut self) {
        if !self.in_string && self.depth == 1 {
            self.named = List::named(self.text.get(self.string..).unwrap_or_default());
        }
    }
}

fn newlines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}

/// Refuses what is no object around one list. A document's own field must not pass for such a list: what
/// else the document says would be lost.
fn check_around(text: &str) -> Result<(), String> {
    let json = Json::parse(text.to_owned()).map_err(|error| error.to_string())?;
    let members = members(json.as_str()).unwrap_or_default();
    if let Some((name, _)) = members.iter().find(|(name, _)| FIELDS.contains(&&**name)) {
        return Err(format!(
            "an object has a list of documents and a field {name:?}; it must be either a document or \
             what a database answered"
        ));
    }
    match members.iter().filter(|(name, _)| *name == "rows" || *name == "Items").count() {
        1 => Ok(()),
        _ => Err("an object has two lists of documents".to_owned()),
    }
}

/// The document of a row of CouchDB's; nothing if it is skipped.
fn row(text: &str) -> Result<Option<Document>, String> {
    let Some(row) = members(text) else { return Document::read(text).map(Some) };
    let member = |name: &str| row.iter().find(|(it, _)| it == name).map(|(_, json)| *json);
    match member("doc") {
        Some("null") => {
            let deleted = member("value").and_then(members).is_some_and(|value| {
                value.iter().any(|(name, json)| name == "deleted" && *json == "true")
            });
            match deleted {
                true => Ok(None),
                false => Err("the row's doc is null, and it is not deleted".to_owned()),
            }
        }
        Some(doc) => document(doc),
        None => Err("the row has no doc; get the rows with _all_docs?include_docs=true".to_owned()),
    }
}

/// A document, plain or with DynamoDB's types; nothing if it is skipped.
fn document(text: &str) -> Result<Option<Document>, String> {
    let Some(fields) = members(text) else { return Document::read(text).map(Some) };
    if let [(name, item)] = &*fields
        && name == "Item"
    {
        return Document::read(&typed::plain(item)?).map(Some);
    }
    let field = |name: &str| fields.iter().find(|(it, _)| it == name).map(|(_, json)| *json);
    match field("_id").or_else(|| field("userId")) {
        Some(id) if id.starts_with('{') => Document::read(&typed::plain(text)?).map(Some),
        // Some programs write a slash as an escape.
        Some(id) if id.starts_with("\"_design/") || id.starts_with("\"_design\\/") => Ok(None),
        _ => Document::read(text).map(Some),
    }
}
