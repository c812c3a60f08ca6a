//! What Keyward keeps beside a record: a member of the entry's metadata that callers never see.

use keyward_engine::Json;
use serde::{Deserialize, Serialize};

use crate::field::{members, object};
use crate::{Error, Result};

/// The member's name. Metadata that callers give cannot have it.
const MEMBER: &str = "$keyward";

/// What is kept beside a record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Bookkeeping {
    /// The number of the record's newest version in its history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The number of the oldest version that is kept; unknown after a move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<u64>,
    /// Until when all versions are kept at least, in milliseconds since 1970; nothing if they have
    /// no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub past_until_ms: Option<i64>,
    /// The record's own time to live, where reading prolongs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Whether there is no record yet: only the mark of a writer who is about to make one, where
    /// commits take one key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub marker: bool,
}

impl Bookkeeping {
    /// Takes stored metadata apart: what the caller said, and what is kept beside it.
    pub fn split(metadata: Option<Json>) -> Result<(Option<Json>, Self)> {
        let Some(stored) = metadata else {
            return Ok((None, Self::default()));
        };
        if !is_marked(&stored) {
            return Ok((Some(stored), Self::default()));
        }
        let damaged = || Error::Damaged(format!("the metadata {stored} makes no sense"));
        let all = members(stored.as_str()).ok_or_else(damaged)?;
        let Some((_, kept)) = all.iter().find(|(name, _)| name == MEMBER) else {
            return Ok((Some(stored), Self::default()));
        };
        let kept = serde_json::from_str(kept).map_err(|_| damaged())?;
        let mut said = all.iter().filter(|(name, _)| name != MEMBER).peekable();
        // An empty object cannot be told from none; nobody has missed the difference.
        let said = said.peek().is_some().then(|| {
            let said = all.iter().filter(|(name, _)| name != MEMBER);
            Json::from_stored(object(said.map(|(name, value)| (&**name, *value))))
        });
        Ok((said, kept))
    }

    /// The metadata to store.
    pub fn join(&self, said: Option<&Json>) -> Result<Option<Json>> {
        if *self == Self::default() {
            return Ok(said.cloned());
        }
        let kept =
            serde_json::to_string(self).map_err(|error| Error::Damaged(error.to_string()))?;
        let said = said.map(Json::as_str).and_then(members).unwrap_or_default();
        let said = said.iter().map(|(name, value)| (&**name, *value));
        Ok(Some(Json::from_stored(object([(MEMBER, kept.as_str())].into_iter().chain(said)))))
    }

    /// Refuses metadata that would be taken for ours.
    pub fn admit(said: &Json) -> Result<()> {
        let taken = members(said.as_str())
            .is_some_and(|members| members.iter().any(|(name, _)| name == MEMBER));
        if taken {
            return Err(Error::BadChange(format!("metadata cannot have a member {MEMBER:?}")));
        }
        Ok(())
    }
}

/// Whether stored metadata may have our member, also where its name is written with escapes.
fn is_marked(stored: &Json) -> bool {
    let text = stored.as_str();
    text.contains(MEMBER) || text.contains("\\u")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_apart_from_what_was_said() {
        let said = Json::parse(r#"{"a":1.50,"b":"x"}"#).unwrap();
        let kept = Bookkeeping { seq: Some(3), marker: true, ..Default::default() };
        let stored = kept.join(Some(&said)).unwrap();
        assert_eq!(Bookkeeping::split(stored).unwrap(), (Some(said.clone()), kept.clone()));
        assert_eq!(Bookkeeping::split(kept.join(None).unwrap()).unwrap(), (None, kept));
        let nothing = Bookkeeping::default();
        assert_eq!(nothing.join(Some(&said)).unwrap(), Some(said));
        assert_eq!(nothing.join(None).unwrap(), None);
    }

    #[test]
    fn a_caller_cannot_write_what_is_kept_for_us() {
        for text in [r#"{"$keyward":{"seq":9}}"#, r#"{"\u0024keyward":1}"#] {
            assert!(Bookkeeping::admit(&Json::parse(text).unwrap()).is_err(), "{text}");
        }
        Bookkeeping::admit(&Json::parse(r#"{"keyward":1,"x":"$keyward"}"#).unwrap()).unwrap();
    }
}
