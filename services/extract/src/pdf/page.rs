use std::collections::HashMap;
use std::sync::Arc;

use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Document as Pdf, Object, ObjectId};

use crate::Result;
use crate::pdf::budget::Budget;
use crate::pdf::font::Font;
use crate::pdf::line::Piece;
use crate::pdf::matrix::Matrix;

/// Drawings inside drawings that are followed.
const DRAWINGS_MAX: usize = 12;
/// States and marks that are kept.
const STACK_MAX: usize = 256;
/// Levels of the tree of pages that resources are inherited through.
const ANCESTORS_MAX: usize = 32;

/// The fonts of a document that were read.
pub(crate) type Fonts = HashMap<ObjectId, Arc<Font>>;

/// The pieces of text on a page, in the order they are drawn.
pub(crate) fn read(
    pdf: &Pdf,
    id: ObjectId,
    fonts: &mut Fonts,
    budget: &mut Budget,
) -> Result<Vec<Piece>> {
    let Ok(page) = pdf.get_dictionary(id) else { return Ok(Vec::new()) };
    let mut content = Vec::new();
    for id in pdf.get_page_contents(id) {
        if let Ok(stream) = pdf.get_object(id).and_then(Object::as_stream) {
            content.extend(budget.expand(stream)?.unwrap_or_default());
            content.push(b'\n');
        }
    }
    let empty = Dictionary::new();
    let resources = resources(pdf, page).unwrap_or(&empty);
    let mut reader = Reader { pdf, fonts, budget, pieces: Vec::new(), marks: Vec::new() };
    reader.draw(&content, resources, State::new(Matrix::IDENTITY), 0)?;
    Ok(reader.pieces)
}

fn resources<'a>(pdf: &'a Pdf, page: &'a Dictionary) -> Option<&'a Dictionary> {
    let parent =
        |node: &&'a Dictionary| node.get_deref(b"Parent", pdf).and_then(Object::as_dict).ok();
    std::iter::successors(Some(page), parent)
        .take(ANCESTORS_MAX)
        .find_map(|node| node.get_deref(b"Resources", pdf).and_then(Object::as_dict).ok())
}

/// What decides where and how text is shown.
#[derive(Clone)]
struct State {
    page: Matrix,
    text: Matrix,
    line: Matrix,
    font: Option<Arc<Font>>,
    size: f32,
    letter_space: f32,
    word_space: f32,
    stretch: f32,
    leading: f32,
    rise: f32,
}

impl State {
    fn new(page: Matrix) -> Self {
        Self {
            page,
            text: Matrix::IDENTITY,
            line: Matrix::IDENTITY,
            font: None,
            size: 0.0,
            letter_space: 0.0,
            word_space: 0.0,
            stretch: 1.0,
            leading: 0.0,
            rise: 0.0,
        }
    }

    fn next_line(&mut self, x: f32, y: f32) {
        self.line = Matrix::translation(x, y).then(self.line);
        self.text = self.line;
    }

    fn advance(&mut self, x: f32) {
        self.text = Matrix::translation(x, 0.0).then(self.text);
    }
}

/// A marked part of the content.
struct Mark {
    /// A running title, a page number and the like.
    is_artifact: bool,
    /// What the part says, where that is not what it shows; empty once it was taken.
    says: Option<String>,
}

struct Reader<'a> {
    pdf: &'a Pdf,
    fonts: &'a mut Fonts,
    budget: &'a mut Budget,
    pieces: Vec<Piece>,
    marks: Vec<Mark>,
}

impl<'a> Reader<'a> {
    fn draw(
        &mut self,
        content: &[u8],
        resources: &'a Dictionary,
        mut state: State,
        depth: usize,
    ) -> Result<()> {
        let mut saved: Vec<State> = Vec::new();
        let marks_before = self.marks.len();
        // What comes after damage is not read, as in other readers.
        for operation in Content::decode_iter(content).map_while(Result::ok) {
            match operation.operator.as_str() {
                "q" if saved.len() < STACK_MAX => saved.push(state.clone()),
                "Q" => state = saved.pop().unwrap_or(state),
                "cm" => {
                    if let Some(matrix) = matrix(&operation.operands) {
                        state.page = matrix.then(state.page);
                    }
                }
                "Do" => self.draw_form(&operation, resources, &state, depth)?,
                "BMC" | "BDC" if self.marks.len() < STACK_MAX => {
                    let mark = self.mark(&operation, resources);
                    self.marks.push(mark);
                }
                "EMC" if self.marks.len() > marks_before => {
                    self.marks.pop();
                }
                "Tf" => {
                    if let [Object::Name(name), size] = operation.operands.as_slice() {
                        state.font = self.font(name, resources)?;
                        state.size = number(size);
                    }
                }
                _ => self.text_operation(&operation, &mut state)?,
            }
        }
        self.marks.truncate(marks_before);
        Ok(())
    }

    fn text_operation(&mut self, operation: &Operation, state: &mut State) -> Result<()> {
        let operands = operation.operands.as_slice();
        match (operation.operator.as_str(), operands) {
            ("BT", _) => (state.text, state.line) = (Matrix::IDENTITY, Matrix::IDENTITY),
            ("Tc", [space]) => state.letter_space = number(space),
            ("Tw", [space]) => state.word_space = number(space),
            ("Tz", [percent]) => state.stretch = number(percent) / 100.0,
            ("TL", [leading]) => state.leading = number(leading),
            ("Ts", [rise]) => state.rise = number(rise),
            ("Td", [x, y]) => state.next_line(number(x), number(y)),
            ("TD", [x, y]) => {
                state.leading = -number(y);
                state.next_line(number(x), number(y));
            }
            ("Tm", _) => {
                if let Some(matrix) = matrix(operands) {
                    (state.text, state.line) = (matrix, matrix);
                }
            }
            ("T*", _) => state.next_line(0.0, -state.leading),
            ("Tj", [Object::String(text, _)]) => self.show(text, state)?,
            ("'", [Object::String(text, _)]) => {
                state.next_line(0.0, -state.leading);
                self.show(text, state)?;
            }
            ("\"", [word_space, letter_space, Object::String(text, _)]) => {
                state.word_space = number(word_space);
                state.letter_space = number(letter_space);
                state.next_line(0.0, -state.leading);
                self.show(text, state)?;
            }
            ("TJ", [Object::Array(parts)]) => {
                for part in parts {
                    match part {
                        Object::String(text, _) => self.show(text, state)?,
                        other => {
                            state.advance(-number(other) / 1000.0 * state.size * state.stretch);
                        }
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn show(&mut self, bytes: &[u8], state: &mut State) -> Result<()> {
        let Some(font) = state.font.clone() else { return Ok(()) };
        let at =
            |state: &State| Matrix::translation(0.0, state.rise).then(state.text).then(state.page);
        let start = at(state);
        let mut text = String::new();
        for glyph in font.glyphs(bytes) {
            text.push_str(&glyph.text);
            let space = if glyph.is_space { state.word_space } else { 0.0 };
            let step = glyph.width * state.size + state.letter_space + space;
            state.advance(step * state.stretch);
        }
        if let Some(says) = self.marks.iter_mut().find_map(|mark| mark.says.as_mut()) {
            text = std::mem::take(says);
        }
        if self.marks.iter().any(|mark| mark.is_artifact) {
            return Ok(());
        }
        self.budget.take_text(&text)?;
        let size = state.size.abs() * start.scale_y();
        // Letters that the page does not space out by themselves may be spaced as a whole.
        let spaced = state.letter_space * state.stretch * start.scale_x();
        let piece = Piece::new(text, start, at(state), size, spaced, font.bold);
        self.pieces.extend(piece);
        Ok(())
    }

    fn draw_form(
        &mut self,
        operation: &Operation,
        resources: &'a Dictionary,
        state: &State,
        depth: usize,
    ) -> Result<()> {
        let Some(Object::Name(name)) = operation.operands.first() else { return Ok(()) };
        let pdf = self.pdf;
        let form = resources
            .get_deref(b"XObject", pdf)
            .and_then(Object::as_dict)
            .and_then(|objects| objects.get_deref(name, pdf))
            .and_then(Object::as_stream);
        let Ok(form) = form else { return Ok(()) };
        let is_form = form.dict.get_deref(b"Subtype", pdf).and_then(Object::as_name);
        if depth >= DRAWINGS_MAX || !matches!(is_form, Ok(b"Form")) {
            return Ok(());
        }
        let Some(content) = self.budget.expand(form)? else { return Ok(()) };
        let mut inner = state.clone();
        let placed = form.dict.get_deref(b"Matrix", pdf).and_then(Object::as_array);
        if let Some(placed) = placed.ok().and_then(|placed| matrix(placed)) {
            inner.page = placed.then(state.page);
        }
        let own = form.dict.get_deref(b"Resources", pdf).and_then(Object::as_dict);
        self.draw(&content, own.unwrap_or(resources), inner, depth + 1)
    }

    fn mark(&self, operation: &Operation, resources: &Dictionary) -> Mark {
        let tag = operation.operands.first().and_then(|tag| tag.as_name().ok());
        let properties = match operation.operands.get(1) {
            Some(Object::Dictionary(properties)) => Some(properties),
            Some(Object::Name(name)) => resources
                .get_deref(b"Properties", self.pdf)
                .and_then(Object::as_dict)
                .and_then(|known| known.get_deref(name, self.pdf))
                .and_then(Object::as_dict)
                .ok(),
            _ => None,
        };
        let says = properties
            .and_then(|properties| properties.get_deref(b"ActualText", self.pdf).ok())
            .and_then(|says| lopdf::decode_text_string(says).ok());
        Mark { is_artifact: tag == Some(b"Artifact"), says }
    }

    fn font(&mut self, name: &[u8], resources: &'a Dictionary) -> Result<Option<Arc<Font>>> {
        let pdf = self.pdf;
        let found = resources
            .get_deref(b"Font", pdf)
            .and_then(Object::as_dict)
            .and_then(|fonts| fonts.get(name))
            .and_then(|font| pdf.dereference(font));
        let Ok((id, Object::Dictionary(font))) = found else { return Ok(None) };
        if let Some(known) = id.and_then(|id| self.fonts.get(&id)) {
            return Ok(Some(known.clone()));
        }
        let font = Arc::new(Font::read(pdf, font, self.budget)?);
        if let Some(id) = id {
            self.fonts.insert(id, font.clone());
        }
        Ok(Some(font))
    }
}

fn number(object: &Object) -> f32 {
    object.as_float().ok().filter(|number| number.is_finite()).unwrap_or(0.0)
}

fn matrix(operands: &[Object]) -> Option<Matrix> {
    let numbers: Vec<f32> = operands.iter().map(number).collect();
    numbers.try_into().ok().map(Matrix)
}
