use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::{Issue, Part, Severity, State};
use crate::{Error, Result, SourceId};

/// Bytes of a text to search for.
const TEXT_BYTES_MAX: usize = 1_000;

/// Which issues to list: those that everything here is true of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Filter {
    /// In one of these states; in any, if there are none.
    pub states: Vec<State>,
    /// Of one of these severities; of any, if there are none.
    pub severities: Vec<Severity>,
    /// With this text in the title, the description, an excerpt or the annotations, whatever the
    /// case; at most 1,000 bytes.
    pub text: Option<String>,
    /// That refer to this policy.
    pub source: Option<SourceId>,
    /// Archived or not.
    pub archived: Archived,
    /// Stale or not; either, if nothing is said.
    pub stale: Option<bool>,
}

/// Whether to list what is archived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Archived {
    /// No.
    #[default]
    Hidden,
    /// Yes.
    Included,
    /// Nothing else.
    Only,
}

impl Filter {
    pub(super) fn check(&self) -> Result<()> {
        match self.text.as_ref().is_some_and(|text| text.len() > TEXT_BYTES_MAX) {
            false => Ok(()),
            true => Err(Error::Invalid(format!(
                "a text to search for has at most {TEXT_BYTES_MAX} bytes"
            ))),
        }
    }

    /// Whether an issue is one of those.
    pub fn matches(&self, issue: &Issue) -> bool {
        (self.states.is_empty() || self.states.contains(&issue.state))
            && (self.severities.is_empty() || self.severities.contains(&issue.severity))
            && match self.archived {
                Archived::Hidden => !issue.archived,
                Archived::Included => true,
                Archived::Only => issue.archived,
            }
            && self.stale.is_none_or(|stale| issue.stale == stale)
            && self
                .source
                .as_ref()
                .is_none_or(|source| issue.references().any(|it| it.source == *source))
            && self.text.as_ref().is_none_or(|text| has_text(issue, text))
    }
}

fn has_text(issue: &Issue, text: &str) -> bool {
    let wanted = folded(text);
    let has = |text: &str| folded(text).contains(&wanted);
    has(&issue.title)
        || has(&issue.annotations)
        || issue.description.iter().any(|part| match part {
            Part::Text(text) => has(text),
            Part::Reference(reference) => has(&reference.excerpt),
        })
}

/// A text as it is compared: composed, and in lower case.
pub(super) fn folded(text: &str) -> String {
    text.nfc().flat_map(char::to_lowercase).collect()
}
