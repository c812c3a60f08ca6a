//! The mistakes that schemas of key-value stores commonly have.
//!
//! A schema with these is usable, so they are no problems of loading; each is advice with its
//! reason.

mod isolation;
mod missing;
mod orphaned;
mod owner;
mod structure;
mod word;

use std::fmt;

use serde::Serialize;

use crate::Schema;

/// Something that a schema should not do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which mistake it is: `no-isolation`, `owner-in-value`, `inconsistent-keys`, `missing-index`
    /// or `orphaned-index`.
    pub code: &'static str,
    /// How sure it is.
    pub weight: Weight,
    /// The space it is about.
    pub space: String,
    /// What is wrong here.
    pub message: String,
    /// Why that is a mistake.
    pub why: String,
    /// What to do about it.
    pub fix: String,
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// The declaration contradicts itself or the way keys work.
    Mistake,
    /// It looks like a mistake, but only its author can tell.
    Hint,
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mistake => "mistake",
            Self::Hint => "hint",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}[{}] in {}: {}", self.weight, self.code, self.space, self.message)?;
        writeln!(f, "  = why: {}", self.why)?;
        write!(f, "  = fix: {}", self.fix)
    }
}

/// Looks for the common mistakes of storage schemas: keys without a namespace, an owner who stands
/// in the value only, keys built in several ways, queries without an index, and indexes kept by
/// hand. Findings come in the order of the spaces.
pub fn lint(schema: &Schema) -> Vec<Finding> {
    let mut findings = Vec::new();
    for space in &schema.spaces {
        let before = findings.len();
        isolation::look(schema, space, &mut findings);
        owner::look(schema, space, &mut findings);
        structure::look(schema, space, &mut findings);
        missing::look(schema, space, &mut findings);
        orphaned::look(schema, space, &mut findings);
        findings[before..].sort_by_key(|finding: &Finding| finding.weight);
    }
    findings
}
