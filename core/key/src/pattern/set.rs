use super::{Bindings, Pattern, PatternSegment};
use crate::{Key, is_reserved};

/// The patterns of one store, of which no two can claim the same key.
#[derive(Debug, Clone, Default)]
pub struct PatternSet {
    patterns: Vec<Pattern>,
}

/// Two patterns that could parse the same key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the patterns {first} and {second} could both mean the key {example}; make a literal segment \
     differ, or give a variable a type"
)]
pub struct AmbiguousPatterns {
    /// The pattern that was there first.
    pub first: Pattern,
    /// The pattern that clashes with it.
    pub second: Pattern,
    /// A key both would parse.
    pub example: Key,
}

impl PatternSet {
    /// Takes patterns together, unless two of them could claim one key.
    ///
    /// ```
    /// use keyward_key::PatternSet;
    ///
    /// let parse = |texts: [&str; 2]| texts.map(|text| text.parse().unwrap());
    /// assert!(PatternSet::new(parse(["{page}:issue:{id}", "job:{id}"])).is_ok());
    /// let error = PatternSet::new(parse(["{page}:{kind}", "user:{id}"])).unwrap_err();
    /// assert_eq!(error.example.to_string(), "user:id");
    /// ```
    pub fn new(
        patterns: impl IntoIterator<Item = Pattern>,
    ) -> Result<Self, Box<AmbiguousPatterns>> {
        let mut set = Self::default();
        for pattern in patterns {
            set.add(pattern)?;
        }
        Ok(set)
    }

    /// Adds one more pattern, unless it could claim a key of one that is there.
    pub fn add(&mut self, pattern: Pattern) -> Result<(), Box<AmbiguousPatterns>> {
        let clash = self.patterns.iter().find_map(|old| Some((old, common_key(old, &pattern)?)));
        if let Some((first, example)) = clash {
            return Err(Box::new(AmbiguousPatterns {
                first: first.clone(),
                second: pattern,
                example,
            }));
        }
        self.patterns.push(pattern);
        Ok(())
    }

    /// The one pattern that has the shape of `key`, and its values.
    pub fn parse_key(&self, key: &Key) -> Option<(&Pattern, Bindings)> {
        self.patterns.iter().find_map(|pattern| Some((pattern, pattern.parse_key(key)?)))
    }

    /// The patterns, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Pattern> {
        self.patterns.iter()
    }
}

/// A key that both patterns parse, if there is one.
fn common_key(one: &Pattern, other: &Pattern) -> Option<Key> {
    let length = *one.lengths.iter().find(|length| other.lengths.contains(length))?;
    let pairs = one.segments[..length].iter().zip(&other.segments[..length]).enumerate();
    let common: Option<Vec<String>> =
        pairs.map(|(at, (one, other))| common_segment(one, other, at == 0)).collect();
    Key::from_segments(common?).ok()
}

fn common_segment(one: &PatternSegment, other: &PatternSegment, first: bool) -> Option<String> {
    match (one, other) {
        (PatternSegment::Literal(a), PatternSegment::Literal(b)) => (a == b).then(|| a.clone()),
        (PatternSegment::Literal(literal), PatternSegment::Variable(variable))
        | (PatternSegment::Variable(variable), PatternSegment::Literal(literal)) => {
            let fits = variable.kind.parse(literal).is_some() && !(first && is_reserved(literal));
            fits.then(|| literal.clone())
        }
        (PatternSegment::Variable(a), PatternSegment::Variable(b)) => {
            let narrower = if a.kind == super::SegmentType::Text { b } else { a };
            let example = narrower.kind.example(&narrower.name);
            let example = if is_reserved(&example) { format!("my-{example}") } else { example };
            a.kind.overlaps(b.kind).then_some(example)
        }
    }
}
