//! The table `server.agents` of a config file.

use keyward::agents::Options;
use serde::{Deserialize, Serialize};

use super::{Count, Span};

/// How much agents may keep, and how what is gathered about it is written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSettings {
    pub value_bytes_max: Option<Count>,
    pub metadata_bytes_max: Option<Count>,
    pub flush_interval: Option<Span>,
    pub tracked_max: Option<Count>,
    pub logged_max: Option<Count>,
    pub log_life: Option<Span>,
    /// None at all, if it is 0.
    pub preview_chars_max: Option<u32>,
}

impl AgentSettings {
    pub fn options(&self) -> Options {
        let usual = Options::default();
        let count = |given: Option<Count>, usual| given.map_or(usual, |count| count.0);
        let span = |given: Option<Span>, usual| given.map_or(usual, |span| span.0);
        let preview = self.preview_chars_max.and_then(|chars| usize::try_from(chars).ok());
        Options {
            value_bytes_max: count(self.value_bytes_max, usual.value_bytes_max),
            metadata_bytes_max: count(self.metadata_bytes_max, usual.metadata_bytes_max),
            flush_interval: span(self.flush_interval, usual.flush_interval),
            tracked_max: count(self.tracked_max, usual.tracked_max),
            logged_max: count(self.logged_max, usual.logged_max),
            log_life: span(self.log_life, usual.log_life),
            preview_chars_max: preview.unwrap_or(usual.preview_chars_max),
            ..usual
        }
    }

    pub fn of(options: &Options) -> Self {
        Self {
            value_bytes_max: Some(Count(options.value_bytes_max)),
            metadata_bytes_max: Some(Count(options.metadata_bytes_max)),
            flush_interval: Some(Span(options.flush_interval)),
            tracked_max: Some(Count(options.tracked_max)),
            logged_max: Some(Count(options.logged_max)),
            log_life: Some(Span(options.log_life)),
            preview_chars_max: u32::try_from(options.preview_chars_max).ok(),
        }
    }
}
