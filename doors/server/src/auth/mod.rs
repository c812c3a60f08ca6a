//! Who is asking: from a credential, never from what a request says about itself.

mod identity;
mod jwks;
mod keys;
mod local;
mod scope;
mod secret;
mod start_token;
mod token;

use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::{HeaderMap, HeaderValue, header};

pub use identity::{Identity, Tenant};
pub use jwks::KeySource;
pub use keys::{ApiKey, KeyError, Keys, NewKey};
pub use scope::{BadScope, Need, Scope, Scopes, Target};
pub use secret::{BadSecret, Secret};
pub(crate) use start_token::{FirstKey, StartToken};
pub(crate) use token::Tokens;
pub use token::{Issuer, TokenAlgorithm};

use crate::problem::{Problem, Result};

/// How callers are told apart.
#[derive(Debug)]
pub(crate) struct Auth {
    keys: Keys,
    tokens: Option<Tokens>,
    /// Whether everybody who reaches the server is the one local user, who may do everything: on
    /// loopback addresses, until there is a key.
    local: AtomicBool,
    /// What the first key is made with, and the local user shows if that is required.
    start_token: Option<StartToken>,
}

/// Why a credential is not taken. Callers are not told which of these it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Refusal {
    /// There is none.
    Missing,
    /// It has not the form of any.
    Malformed,
    /// No key has its id.
    Unknown,
    /// Its secret is another one.
    Wrong,
    /// Its time is over.
    Expired,
    /// Its time has not come.
    Early,
    /// Somebody revoked it.
    Revoked,
}

impl Refusal {
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::Wrong => "wrong",
            Self::Expired => "expired",
            Self::Early => "early",
            Self::Revoked => "revoked",
        }
    }

    /// What the caller is told: the same for each.
    pub fn told() -> Problem {
        Problem::new("unauthenticated", "no credential was given, or none that is valid")
            .hint("Send a valid API key or token: Authorization: Bearer kw_…")
            .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }
}

impl Auth {
    /// Tells callers apart by their keys and tokens. With a start token there is no key yet, and
    /// everybody is the local user until there is one.
    pub fn new(keys: Keys, tokens: Option<Tokens>, start_token: Option<StartToken>) -> Self {
        Self { keys, tokens, local: AtomicBool::new(start_token.is_some()), start_token }
    }

    /// The start token, as long as there is no key, as far as is known.
    pub fn start_token(&self) -> Option<&StartToken> {
        self.start_token.as_ref().filter(|_| self.is_local())
    }

    /// The right of the local user to make the first key: for whoever sends the start token, once.
    pub fn claim_first_key(&self, headers: &HeaderMap) -> Result<FirstKey<'_>> {
        let claimed = self.start_token.as_ref().and_then(|token| token.claim(headers));
        claimed.ok_or_else(start_token::first_key_refused)
    }

    /// Takes a key that whoever runs the server brings along, if there is none yet.
    pub async fn adopt_first_key(&self, secret: &Secret) -> Result<(), KeyError> {
        self.keys.adopt_first(secret).await?;
        self.local.store(false, Ordering::Relaxed);
        Ok(())
    }

    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Keeps up with the keys of the issuer of tokens, if there is one. Never ends.
    pub async fn keep_fresh(&self) {
        match &self.tokens {
            Some(tokens) => tokens.keep_fresh().await,
            None => std::future::pending().await,
        }
    }

    /// Whose tokens are taken, if any are.
    pub fn issuer(&self) -> Option<&str> {
        self.tokens.as_ref().map(Tokens::issuer)
    }

    /// Whether no credential is asked for, as far as is known.
    pub fn is_local(&self) -> bool {
        self.local.load(Ordering::Relaxed)
    }

    /// Who sends these headers, or why nobody does. The control store is asked once.
    pub async fn identify(&self, headers: &HeaderMap) -> Result<Result<Identity, Refusal>> {
        if let Some(token) = self.start_token() {
            // Another process may have made the first key; from then on there is no way back.
            if !self.keys.any().await? {
                local::refuse_other_sites(headers)?;
                return Ok(token.identify(headers));
            }
            self.local.store(false, Ordering::Relaxed);
        }
        let credential = match bearer(headers) {
            Ok(credential) => credential,
            Err(refusal) => return Ok(Err(refusal)),
        };
        match &self.tokens {
            Some(tokens) if !credential.starts_with(secret::MARK) => {
                Ok(tokens.identify(credential).await)
            }
            _ => Ok(self.keys.identify(credential).await?),
        }
    }
}

/// The one credential of a request.
fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (given.next(), given.next()) else {
        return Err(match headers.contains_key(header::AUTHORIZATION) {
            true => Refusal::Malformed,
            false => Refusal::Missing,
        });
    };
    let value = value.to_str().map_err(|_| Refusal::Malformed)?;
    let (scheme, credential) = value.split_once(' ').ok_or(Refusal::Malformed)?;
    match scheme.eq_ignore_ascii_case("bearer") {
        true => Ok(credential.trim()),
        false => Err(Refusal::Malformed),
    }
}
