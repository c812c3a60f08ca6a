use std::time::Duration;

use keyward_engine::{Code, Coded};

/// The result of asking a model.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why there is no answer that can be used. No message ever has the key in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is missing, or cannot be as it is.
    #[error("set [models] {setting}: {reason}")]
    Unset {
        /// Which one.
        setting: &'static str,
        /// What to write there.
        reason: String,
    },
    /// The provider does not accept the key, or what it is used for.
    #[error("{message}")]
    Refused {
        /// The provider's status.
        status: u16,
        /// What the provider said, and which setting is about it.
        message: String,
    },
    /// The request cannot be answered as it is.
    #[error("{0}")]
    Invalid(String),
    /// The provider had too much to do, or failed for the moment, however often it was asked.
    #[error("the provider is overloaded, after {attempts} attempts: {last}")]
    Overloaded {
        /// How often it was asked.
        attempts: u32,
        /// What it said last.
        last: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The provider could not be reached, or the connection broke.
    #[error("the provider cannot be reached, after {attempts} attempts: {why}")]
    Unreachable {
        /// How often it was tried.
        attempts: u32,
        /// What was in the way.
        why: String,
    },
    /// The answer did not come, or did not end, in time.
    #[error("no whole answer came within {limit:?}, in {attempts} attempts")]
    TimedOut {
        /// How often it was tried.
        attempts: u32,
        /// The time that there was: for an answer, or for its next piece.
        limit: Duration,
    },
    /// The answer was cut before its end.
    #[error(
        "the answer was cut, with {output_tokens_max} output tokens allowed: raise [models] \
         output_tokens_max, or ask for less at once"
    )]
    Truncated {
        /// The limit that applied.
        output_tokens_max: u32,
    },
    /// The answer is not what was asked for.
    #[error("the model's answer cannot be used: {why}")]
    Malformed {
        /// What is wrong with it.
        why: String,
    },
    /// The model, or a filter of the provider, would not answer.
    #[error("the model declined to answer: {why}")]
    Declined {
        /// What was said about it.
        why: String,
    },
    /// The answer is larger than what is read.
    #[error("the provider's answer is larger than {bytes_max} bytes")]
    TooLarge {
        /// The most bytes that are read.
        bytes_max: usize,
    },
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Unset { .. } => Code::ModelUnset,
            Self::Refused { .. } => Code::ModelRefused,
            Self::Invalid(_) => Code::ModelRequestInvalid,
            Self::Overloaded { .. } => Code::ModelOverloaded,
            Self::Unreachable { .. } => Code::ModelUnreachable,
            Self::TimedOut { .. } => Code::ModelTimedOut,
            Self::Truncated { .. } => Code::ModelTruncated,
            Self::Malformed { .. } => Code::ModelMalformed,
            Self::Declined { .. } => Code::ModelDeclined,
            Self::TooLarge { .. } => Code::ModelTooLarge,
        }
    }

    fn retryable(&self) -> bool {
        matches!(self, Self::Overloaded { .. } | Self::Unreachable { .. } | Self::TimedOut { .. })
    }
}

impl Error {
    pub(crate) fn unset(setting: &'static str, reason: impl Into<String>) -> Self {
        Self::Unset { setting, reason: reason.into() }
    }

    pub(crate) fn unreachable(why: impl Into<String>) -> Self {
        Self::Unreachable { attempts: 1, why: why.into() }
    }

    pub(crate) fn malformed(why: impl Into<String>) -> Self {
        Self::Malformed { why: why.into() }
    }

    /// The same, told of after so many attempts.
    pub(crate) fn after(mut self, tried: u32) -> Self {
        if let Self::Overloaded { attempts, .. }
        | Self::Unreachable { attempts, .. }
        | Self::TimedOut { attempts, .. } = &mut self
        {
            *attempts = tried;
        }
        self
    }
}

/// A text as it is told in an error: on one line, and not longer than a few lines are.
pub(crate) fn told(text: &str) -> String {
    const CHARS_MAX: usize = 500;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_has_one_line_and_an_end() {
        assert_eq!(told(" a\n\tb\u{3000}c "), "a b c");
        let long = told(&"학".repeat(10_000));
        assert_eq!(long.chars().count(), 501);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn only_what_may_pass_is_retryable() {
        let passing = Error::unreachable("x").after(5);
        assert_eq!(passing, Error::Unreachable { attempts: 5, why: "x".to_owned() });
        assert!(passing.retryable());
        for lasting in [
            Error::unset("provider", "x"),
            Error::Refused { status: 401, message: String::new() },
            Error::Invalid(String::new()),
            Error::Truncated { output_tokens_max: 1 },
            Error::malformed("x"),
            Error::Declined { why: String::new() },
            Error::TooLarge { bytes_max: 1 },
        ] {
            assert!(!lasting.retryable(), "{lasting}");
            assert_eq!(lasting.clone().after(3), lasting);
        }
    }
}
