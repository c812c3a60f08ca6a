//! The start token: what stands for a credential on a server that has no API key yet.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::HeaderMap;
use data_encoding::BASE32_DNSSEC;

use super::{Identity, KeyError, MARK, Refusal, bearer};
use crate::problem::Problem;

const TOKEN_BYTES: usize = 32;

/// A random secret of one run of a server. Whoever has it may make the first API key, once; if the
/// server is told so, every request needs it until then. It is shown in no log.
pub(crate) struct StartToken {
    text: String,
    hash: blake3::Hash,
    required: bool,
    /// Whether a first key was made with it, or is being made.
    claimed: AtomicBool,
}

impl StartToken {
    /// A new one, from the system's randomness. If it is `required`, every request needs it.
    pub fn generate(required: bool) -> Result<Self, KeyError> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| KeyError::NoRandomness(error.to_string()))?;
        // Like an API key at first sight, and never one: their ids are longer.
        let text = format!("{}start_{}", MARK, BASE32_DNSSEC.encode(&bytes));
        let hash = blake3::hash(text.as_bytes());
        Ok(Self { text, hash, required, claimed: AtomicBool::new(false) })
    }

    /// The token itself: for the one who started the server.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Whether every request needs it.
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// The local user, or why it is not them who sends these headers.
    pub fn identify(&self, headers: &HeaderMap) -> Result<Identity, Refusal> {
        if self.required {
            self.check(headers)?;
        }
        Ok(Identity::local())
    }

    fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        // Hashes are compared in constant time.
        match blake3::hash(bearer(headers)?.as_bytes()) == self.hash {
            true => Ok(()),
            false => Err(Refusal::Wrong),
        }
    }

    /// The right to make the first key, if these headers carry the token and nobody used it before.
    pub fn claim(&self, headers: &HeaderMap) -> Option<FirstKey<'_>> {
        self.check(headers).ok()?;
        let was_claimed = self.claimed.swap(true, Ordering::AcqRel);
        (!was_claimed).then_some(FirstKey { claimed: Some(&self.claimed) })
    }
}

impl fmt::Debug for StartToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartToken").field("required", &self.required).finish_non_exhaustive()
    }
}

/// The right to make the first key. It is given back if no key comes of it.
#[derive(Debug)]
pub(crate) struct FirstKey<'t> {
    claimed: Option<&'t AtomicBool>,
}

impl FirstKey<'_> {
    /// The key is there: the token is used up.
    pub fn made(mut self) {
        self.claimed = None;
    }
}

impl Drop for FirstKey<'_> {
    fn drop(&mut self) {
        if let Some(claimed) = self.claimed {
            claimed.store(false, Ordering::Release);
        }
    }
}

/// What those are told who would make the first key without the token.
pub(super) fn first_key_refused() -> Problem {
    Problem::forbidden("the first API key of a server needs its start token").hint(
        "Make it on the server's machine with keyward key create NAME --scope 'admin:*'; or start the \
         server with --first-key-file or KEYWARD_FIRST_KEY; or send the start token, which the server \
         printed when it started and which works once, as Authorization: Bearer kw_start_….",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Secret;

    fn with(credential: &str) -> HeaderMap {
        let value = format!("Bearer {credential}").parse().unwrap();
        HeaderMap::from_iter([(axum::http::header::AUTHORIZATION, value)])
    }

    #[test]
    fn a_token_is_no_key_and_not_shown() {
        let token = StartToken::generate(false).unwrap();
        assert!(token.reveal().starts_with("kw_start_"));
        assert_eq!(Secret::parse(token.reveal()), None);
        assert!(!format!("{token:?}").contains(&token.reveal()[9..]));
        assert_ne!(StartToken::generate(false).unwrap().reveal(), token.reveal());
    }

    #[test]
    fn the_first_key_is_made_once_and_only_with_the_token() {
        let token = StartToken::generate(false).unwrap();
        let good = with(token.reveal());
        assert!(token.claim(&HeaderMap::new()).is_none());
        assert!(token.claim(&with("kw_start_")).is_none());
        let first = token.claim(&good).unwrap();
        assert!(token.claim(&good).is_none(), "another request is at it");
        drop(first);
        token.claim(&good).unwrap().made();
        assert!(token.claim(&good).is_none(), "it is used up");
    }

    #[test]
    fn requests_need_the_token_where_it_is_required() {
        let token = StartToken::generate(true).unwrap();
        assert!(token.identify(&with(token.reveal())).is_ok_and(|who| who.is_local()));
        assert_eq!(token.identify(&HeaderMap::new()).err(), Some(Refusal::Missing));
        assert_eq!(token.identify(&with("kw_start_0")).err(), Some(Refusal::Wrong));
        assert!(StartToken::generate(false).unwrap().identify(&HeaderMap::new()).is_ok());
    }
}
