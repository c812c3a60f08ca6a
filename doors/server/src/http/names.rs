//! Pages of what has names, in their order.

use serde::Deserialize;
use utoipa::IntoParams;

use super::entries::page_limit;
use super::request::Parameters;
use crate::problem::{Problem, Result};

/// Where a page of names begins, and how long it is.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PageOfNames {
    /// At most so many items.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the page before.
    #[param(max_length = 500)]
    after: Option<String>,
}

/// The longest `after`, in characters.
const AFTER_MAX: usize = 500;

/// The parameters of a page of names.
pub(super) fn names(asked: PageOfNames) -> Result<(Option<String>, usize)> {
    Ok((after(asked.after)?, page_limit(asked.limit)?))
}

/// Where a page begins.
pub(super) fn after(given: Option<String>) -> Result<Option<String>> {
    match given {
        Some(text) if text.chars().nth(AFTER_MAX).is_some() => {
            Err(Problem::invalid(format!("after has at most {AFTER_MAX} characters"))
                .hint("Give the next of the page before."))
        }
        given => Ok(given),
    }
}

/// The parameters of a page of names, out of a request.
pub(super) type Names = Parameters<PageOfNames>;
