//! Reading a pattern's text.

use super::{Pattern, PatternSegment, SegmentType, Variable};
use crate::{ParseError, text};

pub(super) fn parse(text: &str) -> Result<Pattern, ParseError> {
    let mut reader = Reader { text, at: 0, segments: Vec::new(), lengths: Vec::new(), open: 0 };
    reader.pattern()?;
    let Reader { segments, lengths, .. } = reader;
    Ok(Pattern { text: text.to_owned(), segments, lengths })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    segments: Vec<PatternSegment>,
    lengths: Vec<usize>,
    /// How many optional parts are open.
    open: usize,
}

impl Reader<'_> {
    fn pattern(&mut self) -> Result<(), ParseError> {
        if self.text.is_empty() {
            return Err(self.error("a pattern cannot be empty"));
        }
        self.segment()?;
        loop {
            match self.peek() {
                Some(':') => {
                    self.at += 1;
                    self.segment()?;
                }
                Some('[') => self.open_optional()?,
                Some(']') | None => break,
                Some(other) => {
                    return Err(self.error(format!(
                        "expected \":\" here, not {other:?}: a segment is either a literal or one \
                         {{variable}}"
                    )));
                }
            }
        }
        self.lengths.push(self.segments.len());
        self.each_optional_part_has_a_variable()?;
        for _ in 0..self.open {
            if self.peek() != Some(']') {
                return Err(self.error("expected \"]\" to close the optional part"));
            }
            self.at += 1;
        }
        match self.peek() {
            None => Ok(()),
            Some('[') => Err(self.error(
                "an optional part can only follow another inside it: write [:{a}[:{b}]], since in \
                 [:{a}][:{b}] a single segment could be either",
            )),
            Some(']') => Err(self.error("this \"]\" closes nothing")),
            Some(_) => Err(self.error("an optional part can only stand at the end of a pattern")),
        }
    }

    /// Without a variable of its own, nothing in the values would say whether a part is there.
    fn each_optional_part_has_a_variable(&self) -> Result<(), ParseError> {
        let is_variable = |segment: &PatternSegment| matches!(segment, PatternSegment::Variable(_));
        let parts = self.lengths.windows(2).map(|ends| &self.segments[ends[0]..ends[1]]);
        if parts.into_iter().all(|part| part.iter().any(is_variable)) {
            return Ok(());
        }
        Err(self
            .error("an optional part needs a {variable} of its own; declare two patterns instead"))
    }

    fn open_optional(&mut self) -> Result<(), ParseError> {
        self.lengths.push(self.segments.len());
        self.open += 1;
        self.at += 1;
        if self.peek() != Some(':') {
            return Err(self.error("an optional part starts with \":\", as in [:{language}]"));
        }
        self.at += 1;
        self.segment()
    }

    fn segment(&mut self) -> Result<(), ParseError> {
        let segment = if self.peek() == Some('{') { self.variable()? } else { self.literal()? };
        self.segments.push(segment);
        Ok(())
    }

    fn variable(&mut self) -> Result<PatternSegment, ParseError> {
        let start = self.at;
        let Some(length) = self.text[start..].find('}') else {
            return Err(self.error("expected \"}\" to close the variable"));
        };
        let inside = &self.text[start + 1..start + length];
        let (name, kind) = match inside.split_once(':') {
            Some((name, kind)) => (name, Some(kind)),
            None => (inside, None),
        };
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !starts_well || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            self.at += 1;
            return Err(self.error(
                "a variable's name is made of letters, digits and _, and starts with no digit",
            ));
        }
        let known = self.segments.iter().any(
            |segment| matches!(segment, PatternSegment::Variable(known) if known.name == name),
        );
        if known {
            self.at += 1;
            return Err(self.error(format!("the variable {{{name}}} stands here twice")));
        }
        let kind = match kind {
            None => SegmentType::Text,
            Some(kind) => match SegmentType::named(kind) {
                Some(kind) => kind,
                None => {
                    self.at += 1 + name.len() + 1;
                    return Err(self.error("a variable's type is text, u64 or time"));
                }
            },
        };
        self.at = start + length + 1;
        Ok(PatternSegment::Variable(Variable { name: name.to_owned(), kind }))
    }

    fn literal(&mut self) -> Result<PatternSegment, ParseError> {
        let rest = &self.text[self.at..];
        let length = rest.find([':', '[', ']', '{', '}']).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.error("expected a segment here: a literal or a {variable}"));
        }
        let literal = text::unescape(&rest[..length], self.text, self.at)?.into_owned();
        self.at += length;
        Ok(PatternSegment::Literal(literal))
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError::new(self.text, self.at, message)
    }
}
