//! Moments as rows and index keys have them: whole milliseconds.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A time in whole milliseconds.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A moment in whole milliseconds. In JSON it is text such as `2026-01-01T00:00:01.500000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Moment(Timestamp);

impl Moment {
    pub fn of(at: Timestamp) -> Self {
        Self(Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at))
    }

    /// Later by so much, or the last moment there is.
    pub fn after(self, time: Duration) -> Self {
        Self::of(self.0.saturating_add(time).unwrap_or(Timestamp::MAX))
    }

    pub fn time(self) -> Timestamp {
        self.0
    }

    /// Text of one width that sorts as moments do, from 1970 on.
    pub fn sortable(self) -> String {
        format!("{:015}", self.0.as_millisecond().max(0))
    }

    /// Takes back what [`Moment::sortable`] gave.
    pub fn from_sortable(text: &str) -> Option<Self> {
        text.parse().ok().and_then(|millis| Timestamp::from_millisecond(millis).ok()).map(Self)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        keyward_engine::moment::serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self::of).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_moments_sorts_as_they_do_and_comes_back() {
        let moments = [0, 1, 999, 1_767_225_600_001, 9_999_999_999_999].map(|millis| {
            let moment = Moment::of(Timestamp::from_millisecond(millis).unwrap());
            assert_eq!(Moment::from_sortable(&moment.sortable()), Some(moment));
            let json = serde_json::to_string(&moment).unwrap();
            assert_eq!(serde_json::from_str::<Moment>(&json).unwrap(), moment);
            moment.sortable()
        });
        assert!(moments.is_sorted(), "{moments:?}");
    }
}
