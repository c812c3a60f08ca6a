use keyward_engine::Version;
use keyward_locks::Guard;

use super::IssueId;
use super::limits::{WHO_CHARS_MAX, WHY_CHARS_MAX, check_chars, one_line};
use crate::{Error, Result};

/// Who changes something, why, and what they have seen.
///
/// ```
/// use keyward_agreements::By;
///
/// let by = By::new("ada").because("the supplier agreed");
/// assert_eq!(by.who, "ada");
/// ```
#[derive(Debug, Clone)]
pub struct By<'g> {
    /// Who: 1 to 200 characters.
    pub who: String,
    /// Why: at most 2,000 characters.
    pub why: Option<String>,
    /// The version that they saw: if the issue has another, it is left alone.
    pub expected: Option<Version>,
    /// The id of what happens, for changes that may be asked for again by somebody who cannot know
    /// whether they were made: one that is in the history already is not made twice.
    pub event: Option<IssueId>,
    /// A lock on the issue, or above it, that the caller holds already: exclusively.
    pub under: Option<&'g Guard>,
}

impl<'g> By<'g> {
    /// Somebody, without a reason.
    pub fn new(who: impl Into<String>) -> Self {
        Self { who: who.into(), why: None, expected: None, event: None, under: None }
    }

    /// The same for a reason.
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// The same, if the issue is still at this version.
    #[must_use]
    pub fn expecting(mut self, version: Version) -> Self {
        self.expected = Some(version);
        self
    }

    /// The same under a lock that is held: on the page, on its issues, or on the issue itself. No other
    /// is taken then, and what is written is refused once that one is lost.
    #[must_use]
    pub fn under(mut self, guard: &'g Guard) -> Self {
        self.under = Some(guard);
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        if one_line(&self.who).is_empty() {
            return Err(Error::Invalid("a change says who makes it".to_owned()));
        }
        check_chars("a name", &self.who, WHO_CHARS_MAX)?;
        check_chars("a reason", self.why.as_deref().unwrap_or_default(), WHY_CHARS_MAX)
    }
}
