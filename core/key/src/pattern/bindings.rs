use std::collections::BTreeMap;

use super::SegmentValue;

/// Values for the variables of a pattern, by name: what [`Pattern::build`](super::Pattern::build)
/// takes and [`Pattern::parse_key`](super::Pattern::parse_key) gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bindings(BTreeMap<String, SegmentValue>);

impl Bindings {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    /// These values and one more; a second value for one name replaces the first.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<SegmentValue>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&SegmentValue> {
        self.0.get(name)
    }

    /// The value of a text variable.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            SegmentValue::Text(text) => Some(text),
            SegmentValue::U64(_) | SegmentValue::Time(_) => None,
        }
    }

    /// All names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SegmentValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
