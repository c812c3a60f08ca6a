//! The one form of the times that Keyward writes: RFC 3339, in UTC, with six digits after the second.
//!
//! All have the same length, so that they sort as text as they do as moments. Reading takes any RFC 3339.
//! Times that came from elsewhere as text stay as they were written.
//!
//! The functions are for fields of structures, `optional` for those that may be missing:
//!
//! ```
//! use jiff::Timestamp;
//! use keyward_engine::moment;
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Run {
//!     #[serde(with = "moment")]
//!     started: Timestamp,
//!     #[serde(with = "moment::optional", default, skip_serializing_if = "Option::is_none")]
//!     ended: Option<Timestamp>,
//! }
//!
//! let run: Run = serde_json::from_str(r#"{"started":"2026-02-05T11:00:00+01:00"}"#)?;
//! assert_eq!(serde_json::to_string(&run)?, r#"{"started":"2026-02-05T10:00:00.000000Z"}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```

use jiff::Timestamp;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// The text of a moment: `2026-02-05T10:00:00.000000Z`. What is finer than a microsecond is left out.
pub fn moment_text(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// Writes a moment.
pub fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{at:.6}"))
}

/// Reads a moment from any RFC 3339 text.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

/// Moments that may be missing.
pub mod optional {
    use super::*;

    /// Writes a moment, or null.
    pub fn serialize<S: Serializer>(
        at: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => super::serialize(at, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a moment, or null.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_has_six_digits_and_a_z() {
        for (given, text) in [
            ("2026-02-05T10:00:00Z", "2026-02-05T10:00:00.000000Z"),
            ("2026-02-05T10:00:00.5+01:00", "2026-02-05T09:00:00.500000Z"),
            ("2026-02-05T10:00:00.123456999Z", "2026-02-05T10:00:00.123456Z"),
            ("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(moment_text(given.parse().unwrap()), text);
        }
    }
}
