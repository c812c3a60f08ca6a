use crate::pdf::matrix::Matrix;
use crate::text::{is_dropped, single_line};

/// In units of the size of letters: gaps from here on are spaces.
const SPACE_MIN: f32 = 0.16;
/// Gaps from here on separate columns and cells.
const COLUMN_MIN: f32 = 1.4;
/// Gaps from here on may separate cells, where other rows show that there are some.
const CELL_MIN: f32 = 0.5;
/// Letters that are lower or higher by less are on the same line, as indices are.
const SAME_LINE_MAX: f32 = 0.4;

/// A text shown at once, at its place. Coordinates are turned so that lines run to the right.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    text: String,
    x: f32,
    end: f32,
    y: f32,
    size: f32,
    bold: bool,
    quarter: u8,
}

impl Piece {
    /// `None` if it is nowhere.
    pub(crate) fn new(
        text: String,
        start: Matrix,
        end: Matrix,
        size: f32,
        spaced: f32,
        bold: bool,
    ) -> Option<Self> {
        let quarter = start.quarter();
        let turn = |(x, y): (f32, f32)| match quarter {
            0 => (x, y),
            1 => (y, -x),
            2 => (-x, -y),
            _ => (-y, x),
        };
        let ((x, y), (end, _)) = (turn(start.origin()), turn(end.origin()));
        let placed =
            [x, y, end, size].iter().all(|number| number.is_finite() && number.abs() < 1e6);
        // The space after the last letter is not part of the text.
        (placed && size > 0.01).then(|| Self {
            text: readable(&text),
            x: x.min(end),
            end: (end - spaced.max(0.0)).max(x),
            y,
            size,
            bold,
            quarter,
        })
    }
}

/// Letters joined by fonts are taken apart, bullets of old symbol fonts are bullets.
fn readable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars().filter(|letter| !is_dropped(*letter)) {
        match letter {
            '\u{fb00}' => out.push_str("ff"),
            '\u{fb01}' => out.push_str("fi"),
            '\u{fb02}' => out.push_str("fl"),
            '\u{fb03}' => out.push_str("ffi"),
            '\u{fb04}' => out.push_str("ffl"),
            '\u{fb05}' | '\u{fb06}' => out.push_str("st"),
            '\u{f0b7}' | '\u{f0a7}' | '\u{f0d8}' | '\u{e00c}' => out.push('•'),
            '\u{e000}'..='\u{f8ff}' => {}
            '\n' | '\t' | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' => out.push(' '),
            '\u{200b}'..='\u{200d}' | '\u{2060}' => {}
            letter => out.push(letter),
        }
    }
    out
}

/// Text on one line without large gaps.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) text: String,
    pub(crate) x: f32,
    pub(crate) end: f32,
    pub(crate) y: f32,
    pub(crate) size: f32,
    pub(crate) bold: bool,
    pub(crate) quarter: u8,
    /// The same text, divided where cells may be: where each begins, and what it says.
    pub(crate) parts: Vec<(f32, String)>,
    letters: usize,
    bold_letters: usize,
}

impl Segment {
    fn new(piece: Piece) -> Self {
        let letters = count(&piece.text);
        Self {
            letters,
            bold_letters: if piece.bold { letters } else { 0 },
            parts: vec![(piece.x, piece.text.clone())],
            text: piece.text,
            x: piece.x,
            end: piece.end,
            y: piece.y,
            size: piece.size,
            bold: piece.bold,
            quarter: piece.quarter,
        }
    }

    /// Whether the other begins where this ends.
    fn is_followed_by(&self, other: &Self) -> bool {
        let size = self.size.max(other.size);
        let gap = other.x - self.end;
        self.quarter == other.quarter
            && (self.y - other.y).abs() < SAME_LINE_MAX * size
            && gap > -0.5 * size
            && gap < COLUMN_MIN * size
    }

    /// Adds what follows on the same line.
    pub(crate) fn append(&mut self, other: Self) {
        let gap = other.x - self.end;
        let size = self.size.min(other.size);
        let spaced = self.text.ends_with(' ') || other.text.starts_with(' ');
        let space =
            if gap > SPACE_MIN * size && !spaced && !self.text.is_empty() { " " } else { "" };
        self.text.push_str(space);
        self.text.push_str(&other.text);
        let mut parts = other.parts.into_iter();
        if gap < CELL_MIN * size
            && let (Some((_, last)), Some((_, first))) = (self.parts.last_mut(), parts.next())
        {
            last.push_str(space);
            last.push_str(&first);
        }
        self.parts.extend(parts);
        self.end = self.end.max(other.end);
        // The place and the size are those of most letters: an index is smaller and higher.
        if other.letters > self.letters {
            (self.y, self.size) = (other.y, other.size);
        }
        self.letters += other.letters;
        self.bold_letters += other.bold_letters;
        self.bold = self.letters > 0 && self.bold_letters == self.letters;
    }
}

fn count(text: &str) -> usize {
    text.chars().filter(|letter| letter.is_alphanumeric()).count()
}

/// Pieces joined where one follows the other. The order is that in which they were drawn.
pub(crate) fn segments(pieces: Vec<Piece>) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    for piece in pieces {
        let segment = Segment::new(piece);
        match segments.last_mut() {
            Some(last) if last.is_followed_by(&segment) => last.append(segment),
            _ => segments.push(segment),
        }
    }
    segments.retain(|segment| !segment.text.trim().is_empty());
    for segment in &mut segments {
        segment.text = single_line(&segment.text);
    }
    segments
}

/// Segments on one line, from left to right, joined where there is no large gap.
pub(crate) fn joined(mut row: Vec<Segment>) -> Vec<Segment> {
    row.sort_by(|one, other| one.x.total_cmp(&other.x));
    let mut out: Vec<Segment> = Vec::new();
    for segment in row {
        match out.last_mut() {
            Some(last) if last.is_followed_by(&segment) => last.append(segment),
            _ => out.push(segment),
        }
    }
    out
}
