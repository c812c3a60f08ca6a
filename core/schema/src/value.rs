//! What values look like.

use std::fmt::{self, Write};
use std::sync::Arc;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

/// A JSON Schema that values must satisfy. Cheap to clone.
#[derive(Clone)]
pub struct ValueSchema {
    definition: Arc<Value>,
    validator: Arc<Validator>,
}

/// How a value differs from its schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}{}{message}", if path.is_empty() { "" } else { ": " })]
pub struct Mismatch {
    /// Where in the value, as a JSON Pointer; empty for the whole value.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

/// How a value differs from its schema, as far as that is worth telling: neither the value itself nor a
/// long list comes back to whoever sent it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mismatches {
    /// The first of them.
    pub shown: Vec<Mismatch>,
    /// How many there are in all; counting ends at [`Mismatches::COUNTED_MAX`].
    pub total: usize,
}

impl Mismatches {
    /// The most that are shown.
    pub const SHOWN_MAX: usize = 10;
    /// The most that are counted.
    pub const COUNTED_MAX: usize = 1_000;

    /// Whether the value satisfies its schema.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }
}

impl fmt::Display for Mismatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, mismatch) in self.shown.iter().enumerate() {
            write!(f, "{}{mismatch}", if n == 0 { "" } else { "; " })?;
        }
        match self.total {
            total if total <= self.shown.len() => Ok(()),
            Self::COUNTED_MAX => write!(f, "; at least {} mismatches in all", Self::COUNTED_MAX),
            total => write!(f, "; {total} mismatches in all"),
        }
    }
}

/// How many bytes of a value one mismatch quotes.
const QUOTED_BYTES_MAX: usize = 100;
/// How many bytes one mismatch has: names of members, which it may list, come from the value too.
const MESSAGE_BYTES_MAX: usize = 400;
/// How many bytes of a path are shown.
const PATH_BYTES_MAX: usize = 200;

/// What is wrong with a JSON Schema.
pub(crate) struct Fault {
    /// Where in the schema, as a JSON Pointer.
    pub pointer: String,
    pub message: String,
}

/// How many faults are told of one schema.
const FAULTS_MAX: usize = 20;

impl ValueSchema {
    /// Compiles a JSON Schema. References to other documents are refused: a schema is whole.
    pub fn new(definition: Value) -> Result<Self, String> {
        Self::compile(definition).map_err(|faults| {
            let told = faults.into_iter().map(|fault| match fault.pointer.as_str() {
                "" => fault.message,
                pointer => format!("{pointer}: {}", fault.message),
            });
            told.collect::<Vec<_>>().join("; ")
        })
    }

    /// Compiles a JSON Schema, or tells everything that is wrong with it.
    pub(crate) fn compile(definition: Value) -> Result<Self, Vec<Fault>> {
        let faults = faults_of(&definition);
        if !faults.is_empty() {
            return Err(faults);
        }
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&definition)
            .map_err(|error| vec![Fault::of(&error)])?;
        Ok(Self { definition: Arc::new(definition), validator: Arc::new(validator) })
    }

    /// The JSON Schema as it was written.
    pub fn definition(&self) -> &Value {
        &self.definition
    }

    /// How `value` differs from the schema; nothing, if it satisfies it.
    pub fn mismatches(&self, value: &Value) -> Mismatches {
        if self.validator.is_valid(value) {
            return Mismatches::default();
        }
        let mut errors = self.validator.iter_errors(value).take(Mismatches::COUNTED_MAX);
        let shown: Vec<_> =
            errors.by_ref().take(Mismatches::SHOWN_MAX).map(|error| Mismatch::of(&error)).collect();
        let total = shown.len() + errors.count();
        Mismatches { shown, total }
    }
}

impl Mismatch {
    fn of(error: &jsonschema::ValidationError<'_>) -> Self {
        let quoted = Short::of(QUOTED_BYTES_MAX, error.instance());
        let message = match error.kind() {
            // The name is the value there, and the placeholder does not stand for it.
            ValidationErrorKind::PropertyNames { error } => {
                let name = Short::of(QUOTED_BYTES_MAX, error.instance());
                Short::of(MESSAGE_BYTES_MAX, error.masked_with(name))
            }
            _ => Short::of(MESSAGE_BYTES_MAX, error.masked_with(quoted)),
        };
        Self { path: Short::of(PATH_BYTES_MAX, error.instance_path()), message }
    }
}

/// The beginning of a text, cut between characters. What would follow is not even written.
struct Short {
    text: String,
    bytes_max: usize,
}

impl Short {
    fn of(bytes_max: usize, shown: impl fmt::Display) -> String {
        let mut short = Self { text: String::new(), bytes_max };
        if write!(short, "{shown}").is_err() {
            short.text.push('…');
        }
        short.text
    }
}

impl fmt::Write for Short {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let mut fits = more.len().min(self.bytes_max - self.text.len());
        while !more.is_char_boundary(fits) {
            fits -= 1;
        }
        self.text.push_str(&more[..fits]);
        if fits == more.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

/// What the meta-schema has against a schema.
fn faults_of(definition: &Value) -> Vec<Fault> {
    match jsonschema::meta::validator_for(definition) {
        Ok(meta) => meta.iter_errors(definition).take(FAULTS_MAX).map(|e| Fault::of(&e)).collect(),
        Err(error) => vec![Fault::of(&error)],
    }
}

impl Fault {
    fn of(error: &jsonschema::ValidationError<'_>) -> Self {
        Self { pointer: error.instance_path().to_string(), message: error.to_string() }
    }
}

impl fmt::Debug for ValueSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueSchema({})", self.definition)
    }
}

impl PartialEq for ValueSchema {
    fn eq(&self, other: &Self) -> bool {
        self.definition == other.definition
    }
}
