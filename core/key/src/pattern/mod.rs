//! Key patterns: one text that both builds and parses the keys of one shape.

mod bindings;
mod grammar;
mod set;
mod value;

use std::fmt;
use std::str::FromStr;

pub use bindings::Bindings;
pub use set::{AmbiguousPatterns, PatternSet};
pub use value::{SegmentType, SegmentValue};

use crate::{BuildError, Key, KeyRange, ParseError, Prefix, is_reserved};

/// A key pattern such as `{page}:policy:{source}[:{language}]`.
///
/// - Segments are separated by `:`; each is a literal or one `{variable}`.
/// - A variable is text, or typed: `{n:u64}` and `{at:time}` have a fixed width and sort in order.
/// - `[:…]` at the end is optional; optional parts nest (`[:{language}[:{region}]]`).
/// - A variable in first position never takes a
///   [reserved segment](crate::RESERVED_FIRST_SEGMENTS), and no variable is ever empty.
///
/// [`Pattern::build`] and [`Pattern::parse_key`] are inverse to each other.
///
/// ```
/// use keyward_key::{Bindings, Pattern};
///
/// let policy: Pattern = "{page}:policy:{source}[:{language}]".parse()?;
/// let original = Bindings::new().with("page", "p1").with("source", "att:7");
/// assert_eq!(policy.build(&original)?.to_string(), "p1:policy:att%3A7");
/// let french = original.with("language", "fr");
/// assert_eq!(policy.parse_key(&policy.build(&french)?), Some(french));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern {
    text: String,
    segments: Vec<PatternSegment>,
    /// The lengths at which a key of this pattern may end, ascending; the last is all segments.
    lengths: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum PatternSegment {
    Literal(String),
    Variable(Variable),
}

/// A variable of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Variable {
    /// Its name, as written between the braces.
    pub name: String,
    /// The type of its values.
    pub kind: SegmentType,
}

impl Pattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        grammar::parse(text)
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.segments.iter().filter_map(|segment| match segment {
            PatternSegment::Variable(variable) => Some(variable),
            PatternSegment::Literal(_) => None,
        })
    }

    /// The key for these values. Every variable outside the optional parts needs one; an optional
    /// part is written when all its variables have one.
    pub fn build(&self, values: &Bindings) -> Result<Key, BuildError> {
        let (written, stopped_by) = self.write(values)?;
        match (self.longest_within(written.len()), stopped_by) {
            // Literals of an optional part that stopped at a missing variable are left out again.
            (Some(length), _) if self.uses_all(length, values) => {
                Key::from_segments(&written[..length])
                    .map_err(|error| self.value_error(self.first_variable(), error.to_string()))
            }
            (_, Some(missing)) => Err(BuildError::Missing {
                pattern: self.text.clone(),
                variable: missing.name.clone(),
            }),
            // Unreachable: everything was written, and the full length uses all values.
            (_, None) => {
                Err(self.value_error(self.first_variable(), "cannot be placed".to_owned()))
            }
        }
    }

    /// The prefix made of the literals and values up to the first variable without a value: what
    /// to list when only the leading values are known. Keys below it are found; the key that has
    /// exactly these values, where the rest of the pattern is optional, is not below it.
    ///
    /// ```
    /// use keyward_key::{Bindings, Pattern};
    /// let notes: Pattern = "user:{user}:notes:{note}".parse()?;
    /// assert_eq!(notes.prefix(&Bindings::new().with("user", "7"))?.to_string(), "user:7:notes:");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prefix(&self, values: &Bindings) -> Result<Prefix, BuildError> {
        let (mut written, stopped_by) = self.write(values)?;
        if !self.uses_all(written.len(), values) {
            let missing = stopped_by.map(|v| v.name.clone()).unwrap_or_default();
            return Err(BuildError::Missing { pattern: self.text.clone(), variable: missing });
        }
        if stopped_by.is_none() {
            // A prefix has keys below it: a whole key is not one.
            written.truncate(self.segments.len().saturating_sub(1));
        }
        Ok(Prefix::from_segments(written))
    }

    /// The range in which every key of this pattern with these leading values lies, and no key with
    /// others: those below the values and, where nothing more is needed, the key of the values
    /// itself.
    ///
    /// ```
    /// use keyward_key::{Bindings, Key, Pattern};
    /// let person: Pattern = "user:{user}".parse()?;
    /// let ada = person.range(&Bindings::new().with("user", "ada"))?;
    /// assert!(ada.contains(&Key::parse("user:ada")?));
    /// assert!(!ada.contains(&Key::parse("user:adam")?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn range(&self, values: &Bindings) -> Result<KeyRange, BuildError> {
        let (written, stopped_by) = self.write(values)?;
        if !self.uses_all(written.len(), values) {
            let missing = stopped_by.map(|v| v.name.clone()).unwrap_or_default();
            return Err(BuildError::Missing { pattern: self.text.clone(), variable: missing });
        }
        let leading = Prefix::from_segments(written);
        Ok(leading.to_key().map_or_else(KeyRange::all, |key| KeyRange::subtree(&key)))
    }

    /// The values of the variables in `key`, if it has the shape of this pattern.
    pub fn parse_key(&self, key: &Key) -> Option<Bindings> {
        let mut values = Bindings::new();
        let mut length = 0;
        for segment in key.segments() {
            match self.segments.get(length)? {
                PatternSegment::Literal(literal) if *literal == segment => {}
                PatternSegment::Literal(_) => return None,
                PatternSegment::Variable(variable) => {
                    if length == 0 && is_reserved(&segment) {
                        return None;
                    }
                    values = values.with(&variable.name, variable.kind.parse(&segment)?);
                }
            }
            length += 1;
        }
        self.lengths.contains(&length).then_some(values)
    }

    /// Whether `key` has the shape of this pattern.
    pub fn matches(&self, key: &Key) -> bool {
        self.parse_key(key).is_some()
    }

    /// If `key` does not have the shape of this pattern: a prefix of it, as short as possible, below
    /// which no key has. `None` when the key has the shape, or others below it may.
    ///
    /// ```
    /// use keyward_key::{Key, Pattern, Prefix};
    /// let issues: Pattern = "{page}:issue:{id}".parse()?;
    /// let below = |key: &str| issues.none_below(&Key::parse(key).unwrap());
    /// assert_eq!(below("p1:policy:a:fr"), Some(Prefix::parse("p1:policy")?));
    /// assert_eq!(below("p1:issue:7:votes:ada"), Some(Prefix::parse("p1:issue:7")?));
    /// assert_eq!(below("p1:issue"), None);
    /// # Ok::<(), keyward_key::ParseError>(())
    /// ```
    pub fn none_below(&self, key: &Key) -> Option<Prefix> {
        let mut prefix = Prefix::all();
        for (at, segment) in key.segments().enumerate() {
            let fits = match self.segments.get(at) {
                None => return Some(prefix),
                Some(PatternSegment::Literal(literal)) => *literal == segment,
                Some(PatternSegment::Variable(variable)) => {
                    variable.kind.parse(&segment).is_some() && !(at == 0 && is_reserved(&segment))
                }
            };
            prefix = prefix.child(&segment);
            if !fits {
                return Some(prefix);
            }
        }
        None
    }

    /// Segments up to the first variable without a value, and that variable.
    fn write(&self, values: &Bindings) -> Result<(Vec<String>, Option<&Variable>), BuildError> {
        for (name, _) in values.iter() {
            if !self.variables().any(|variable| variable.name == name) {
                return Err(BuildError::Unused {
                    pattern: self.text.clone(),
                    variable: name.to_owned(),
                    reason: "it has no such variable",
                });
            }
        }
        let mut written = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            match segment {
                PatternSegment::Literal(literal) => written.push(literal.clone()),
                PatternSegment::Variable(variable) => {
                    let Some(value) = values.get(&variable.name) else {
                        return Ok((written, Some(variable)));
                    };
                    let text = variable
                        .kind
                        .write(value)
                        .map_err(|reason| self.value_error(variable, reason))?;
                    if written.is_empty() && is_reserved(&text) {
                        let reason = format!(
                            "cannot be {text:?}: first segments named {} belong to Keyward",
                            crate::RESERVED_FIRST_SEGMENTS.join(", ")
                        );
                        return Err(self.value_error(variable, reason));
                    }
                    written.push(text);
                }
            }
        }
        Ok((written, None))
    }

    fn longest_within(&self, written: usize) -> Option<usize> {
        self.lengths.iter().copied().rev().find(|&length| length <= written)
    }

    fn uses_all(&self, length: usize, values: &Bindings) -> bool {
        let used = self.segments[..length]
            .iter()
            .filter(|segment| matches!(segment, PatternSegment::Variable(_)))
            .count();
        used == values.len()
    }

    fn first_variable(&self) -> &Variable {
        const NONE: &Variable = &Variable { name: String::new(), kind: SegmentType::Text };
        self.variables().next().unwrap_or(NONE)
    }

    fn value_error(&self, variable: &Variable, reason: String) -> BuildError {
        BuildError::Value { pattern: self.text.clone(), variable: variable.name.clone(), reason }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Pattern {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}
