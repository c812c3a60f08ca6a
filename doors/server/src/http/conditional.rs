//! Versions as entity tags, and conditions on them.

use axum::http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use keyward::{Code, Version};

use crate::api::entries::Precondition;
use crate::problem::{Problem, Result};

/// The most tags that are looked at.
const TAGS_MAX: usize = 64;

/// The entity tag of a version: strong, since a version stands for one value.
pub(crate) fn etag(version: &Version) -> Result<(HeaderName, HeaderValue)> {
    let value = HeaderValue::try_from(format!("\"{version}\""))
        .map_err(|_| Problem::new(Code::Internal, "this version cannot be an entity tag"))?;
    Ok((ETAG, value))
}

/// What a header of entity tags names.
pub(super) enum Tags {
    Any,
    These(Vec<Version>),
}

pub(super) fn tags(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Tags>> {
    let mut versions = Vec::new();
    let mut found = false;
    for value in headers.get_all(name) {
        found = true;
        let text = value.to_str().map_err(|_| unreadable(name))?.trim();
        if text == "*" {
            return Ok(Some(Tags::Any));
        }
        for tag in text.split(',') {
            let tag = tag.trim();
            // A weak tag never matches strongly, and versions are compared strongly.
            if tag.starts_with("W/") {
                continue;
            }
            let tag = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
            versions.push(Version::parse(tag.ok_or_else(|| unreadable(name))?));
            if versions.len() > TAGS_MAX {
                return Err(Problem::invalid(format!("{name} has more than {TAGS_MAX} tags")));
            }
        }
    }
    Ok(found.then_some(Tags::These(versions)))
}

fn unreadable(name: &HeaderName) -> Problem {
    Problem::invalid(format!("the header {name} cannot be read"))
        .hint("Write * or entity tags as ETag gives them, in double quotes.")
}

/// What must be so for a change to be made, as `If-Match` and `If-None-Match` say.
pub(crate) fn precondition(headers: &HeaderMap) -> Result<Precondition> {
    let (matching, other) = (tags(headers, &IF_MATCH)?, tags(headers, &IF_NONE_MATCH)?);
    match (matching, other) {
        (None, None) => Ok(Precondition::None),
        (Some(Tags::Any), None) => Ok(Precondition::Present),
        (Some(Tags::These(versions)), None) => Ok(Precondition::OneOf(versions)),
        (None, Some(Tags::Any)) => Ok(Precondition::Absent),
        (None, Some(Tags::These(_))) => {
            Err(Problem::invalid("a change can have If-None-Match: *, but no tags in it"))
        }
        (Some(_), Some(_)) => {
            Err(Problem::invalid("a change has If-Match or If-None-Match, not both"))
        }
    }
}

/// Whether the client has this version already.
pub(crate) fn is_known(headers: &HeaderMap, version: &Version) -> Result<bool> {
    Ok(match tags(headers, &IF_NONE_MATCH)? {
        None => false,
        Some(Tags::Any) => true,
        Some(Tags::These(versions)) => versions.contains(version),
    })
}
