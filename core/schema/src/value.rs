//! What values look like.

use std::fmt;
use std::sync::Arc;

use jsonschema::Validator;
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

/// How many differences are told of one value.
const MISMATCHES_MAX: usize = 10;

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
    pub fn mismatches(&self, value: &Value) -> Vec<Mismatch> {
        if self.validator.is_valid(value) {
            return Vec::new();
        }
        self.validator
            .iter_errors(value)
            .take(MISMATCHES_MAX)
            .map(|error| Mismatch {
                path: error.instance_path().to_string(),
                message: error.to_string(),
            })
            .collect()
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
