//! The segments of a pattern, one by one.

use keyward_key::{Key, Pattern, SegmentType, Variable};

/// What a pattern is made of. Read from the pattern's text, which the pattern has checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub segments: Vec<Segment>,
    /// The numbers of segments that a key may have, ascending.
    pub lengths: Vec<usize>,
}

/// One segment of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Where it stands in the pattern's text, in bytes.
    pub offset: usize,
    /// How it is written there.
    pub text: String,
    pub kind: SegmentKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    Literal(String),
    Variable(Variable),
}

/// The digits of a `u64` and the characters of a time, as keys hold them.
const U64_BYTES: usize = 20;
const TIME_BYTES: usize = "20261115T215951.000000000Z".len();

impl Shape {
    pub fn of(pattern: &Pattern) -> Self {
        let text = pattern.as_str();
        let mut shape = Self { segments: Vec::new(), lengths: Vec::new() };
        let mut variables = pattern.variables();
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            match c {
                ':' | ']' => at += 1,
                '[' => {
                    shape.lengths.push(shape.segments.len());
                    at += 1;
                }
                _ => {
                    let end = segment_end(text, at);
                    let written = &text[at..end];
                    let variable = if written.starts_with('{') { variables.next() } else { None };
                    let kind = match variable {
                        Some(variable) => SegmentKind::Variable(variable.clone()),
                        None => SegmentKind::Literal(unescaped(written)),
                    };
                    shape.segments.push(Segment { offset: at, text: written.to_owned(), kind });
                    at = end;
                }
            }
        }
        shape.lengths.push(shape.segments.len());
        shape
    }

    /// The first segment, if it is a literal.
    pub fn first_literal(&self) -> Option<&str> {
        self.segments.first().and_then(Segment::literal)
    }

    pub fn literals(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(Segment::literal)
    }

    /// The segments that every key of the pattern has.
    pub fn always(&self) -> &[Segment] {
        let shortest = self.lengths.first().copied().unwrap_or(self.segments.len());
        &self.segments[..shortest]
    }

    /// The bytes that the shortest key has: each text variable counted with one byte.
    pub fn bytes_min(&self) -> usize {
        let segments = self.always();
        let separators = segments.len().saturating_sub(1);
        segments.iter().map(Segment::bytes_min).sum::<usize>() + separators
    }

    /// How many text variables every key has.
    pub fn texts_min(&self) -> usize {
        let is_text = |segment: &&Segment| {
            segment.variable().is_some_and(|variable| variable.kind == SegmentType::Text)
        };
        self.always().iter().filter(is_text).count()
    }
}

impl Segment {
    pub fn literal(&self) -> Option<&str> {
        match &self.kind {
            SegmentKind::Literal(literal) => Some(literal),
            SegmentKind::Variable(_) => None,
        }
    }

    pub fn variable(&self) -> Option<&Variable> {
        match &self.kind {
            SegmentKind::Literal(_) => None,
            SegmentKind::Variable(variable) => Some(variable),
        }
    }

    fn bytes_min(&self) -> usize {
        match &self.kind {
            SegmentKind::Literal(literal) => {
                Key::from_segments([literal]).map_or(0, |key| key.as_bytes().len())
            }
            SegmentKind::Variable(variable) => match variable.kind {
                SegmentType::Text => 1,
                SegmentType::U64 => U64_BYTES,
                SegmentType::Time => TIME_BYTES,
            },
        }
    }
}

/// Where the segment that begins at `at` ends.
fn segment_end(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let length = if rest.starts_with('{') {
        rest.find('}').map(|end| end + 1)
    } else {
        rest.find([':', '[', ']'])
    };
    at + length.unwrap_or(rest.len())
}

fn unescaped(literal: &str) -> String {
    Key::parse(literal).map_or_else(|_| literal.to_owned(), |key| key.first().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_has_the_segments_and_lengths_of_its_pattern() {
        let pattern: Pattern = "{page}:a%3Ab:{n:u64}[:{language}[:r:{at:time}]]".parse().unwrap();
        let shape = Shape::of(&pattern);
        let written: Vec<(usize, &str)> =
            shape.segments.iter().map(|s| (s.offset, s.text.as_str())).collect();
        assert_eq!(
            written,
            [
                (0, "{page}"),
                (7, "a%3Ab"),
                (13, "{n:u64}"),
                (22, "{language}"),
                (34, "r"),
                (36, "{at:time}")
            ]
        );
        assert_eq!(shape.lengths, [3, 4, 6]);
        assert_eq!(shape.literals().collect::<Vec<_>>(), ["a:b", "r"]);
        assert_eq!(shape.bytes_min(), 1 + 1 + 3 + 1 + 20);
        assert_eq!(shape.texts_min(), 1);
    }

    #[test]
    fn the_shortest_key_is_as_long_as_one_that_is_built() {
        let pattern: Pattern = "a:{x}:{n:u64}:{at:time}[:{y}]".parse().unwrap();
        let values = keyward_key::Bindings::new()
            .with("x", "1")
            .with("n", 7)
            .with("at", jiff::Timestamp::UNIX_EPOCH);
        let built = pattern.build(&values).unwrap();
        assert_eq!(Shape::of(&pattern).bytes_min(), built.as_bytes().len());
    }
}
