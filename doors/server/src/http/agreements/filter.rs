//! Which issues are asked for.

use keyward::agreements::{Archived, Filter, Severity, Sort, State};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api::agreements::issues::Listing;
use crate::api::agreements::source_id;
use crate::problem::{Problem, Result};

/// How many issues a page has, if nobody says, and at most.
const PAGE_DEFAULT: usize = 100;
const PAGE_MAX: usize = 200;

/// Which issues: those that everything here is true of.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FilterParameters {
    /// In one of these states, with commas between them: `pending`, `active`, `blocked`, `resolved`.
    state: Option<String>,
    /// Of one of these severities, with commas between them: `1` is low, `2` is medium, `3` is high.
    severity: Option<String>,
    /// With this text in the title, the description, an excerpt or the annotations, whatever the case.
    #[param(max_length = 1000)]
    text: Option<String>,
    /// That refer to this policy.
    source: Option<String>,
    /// What is archived: `hidden`, `included` or `only`; hidden, if it is left out.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    archived: Archived,
    /// Whether a policy that they refer to has changed since; either, if it is left out.
    stale: Option<bool>,
    /// In which order: `severity`, `created`, `updated`, `title` or `state`; by severity, if it is left out.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    sort: Sort,
    /// The `next` of the page before, in the same order.
    after: Option<String>,
    /// At most so many items.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

impl FilterParameters {
    /// What is to be listed.
    pub fn listing(self) -> Result<Listing> {
        let limit = match self.limit.unwrap_or(PAGE_DEFAULT) {
            limit @ 1..=PAGE_MAX => limit,
            limit => {
                let detail = format!("a page has 1 to {PAGE_MAX} issues, not {limit}");
                return Err(Problem::invalid(detail));
            }
        };
        let filter = Filter {
            states: several(self.state.as_deref(), "state", |word| {
                State::ALL.into_iter().find(|state| state.as_str() == word)
            })?,
            severities: several(self.severity.as_deref(), "severity", |word| {
                Severity::try_from(word.parse::<u8>().ok()?).ok()
            })?,
            text: self.text.filter(|text| !text.is_empty()),
            source: self.source.as_deref().map(source_id).transpose()?,
            archived: self.archived,
            stale: self.stale,
        };
        Ok(Listing { filter, sort: self.sort, after: self.after, limit })
    }
}

/// What stands between commas.
fn several<T>(given: Option<&str>, what: &str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
    let words = given.into_iter().flat_map(|words| words.split(',')).map(str::trim);
    let read = words.filter(|word| !word.is_empty()).map(|word| {
        let refused = || Problem::invalid(format!("{word:?} is no {what} of an issue"));
        read(word).ok_or_else(refused)
    });
    read.collect()
}
