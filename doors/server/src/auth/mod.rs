//! Who is asking: from a credential, never from what a request says about itself.

mod jwks;
mod local;
mod recheck;
mod start_token;
mod strangers;
mod token;

use keyward::Code;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::{HeaderMap, header};

pub use jwks::KeySource;
use keyward_operations::identity::MARK;
pub use keyward_operations::identity::{
    ApiKey, BadScope, BadSecret, Identity, KeyError, Keys, Need, NewKey, Scope, Scopes, Secret,
    Target, Tenant,
};
pub(crate) use keyward_operations::identity::{LOCAL, Refusal};
pub(crate) use recheck::Recheck;
pub(crate) use start_token::{FirstKey, StartToken};
pub(crate) use token::Tokens;
pub use token::{Issuer, TokenAlgorithm};

use recheck::Rechecks;
use strangers::{Lookup, Strangers};

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
    strangers: Strangers,
    rechecks: Rechecks,
}

/// The refusal of a credential, the same whatever is wrong with it.
pub(crate) fn unauthenticated() -> Problem {
    Problem::new(Code::Unauthenticated, "no credential was given, or none that is valid")
        .hint("Send a valid API key or token: Authorization: Bearer kw_…")
}

impl Auth {
    /// Tells callers apart by their keys and tokens. With a start token there is no key yet, and
    /// everybody is the local user until there is one.
    pub fn new(keys: Keys, tokens: Option<Tokens>, start_token: Option<StartToken>) -> Self {
        let strangers = Strangers::new(keys.clock().clone());
        let (local, rechecks) = (AtomicBool::new(start_token.is_some()), Rechecks::default());
        Self { keys, tokens, local, start_token, strangers, rechecks }
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
        self.identify_unless(headers, || false).await
    }

    /// The same for a request from an address that may have sent too many bad credentials: then a
    /// credential that was good of late is looked up, and few others.
    pub async fn identify_unless(
        &self,
        headers: &HeaderMap,
        too_many: impl FnOnce() -> bool,
    ) -> Result<Result<Identity, Refusal>> {
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
            Some(tokens) if !credential.starts_with(MARK) => Ok(tokens.identify(credential).await),
            _ => self.identify_key(credential, too_many).await,
        }
    }

    async fn identify_key(
        &self,
        credential: &str,
        too_many: impl FnOnce() -> bool,
    ) -> Result<Result<Identity, Refusal>> {
        let Some(secret) = Secret::parse(credential) else { return Ok(Err(Refusal::Malformed)) };
        let hash = secret.hash();
        match self.strangers.lookup(&hash) {
            Lookup::Refused(refusal) => return Ok(Err(refusal)),
            Lookup::Doubtful if too_many() && !self.strangers.spare_lookup() => {
                return Ok(Err(Refusal::Throttled));
            }
            Lookup::Doubtful | Lookup::Due => {}
        }
        let found = self.keys.identify(&secret).await?;
        self.strangers.remember(hash, found.as_ref().err().copied());
        Ok(found)
    }

    /// The check of a credential that has a watch open.
    pub fn recheck(&self, headers: &HeaderMap) -> Recheck {
        self.rechecks.of(headers)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::http::HeaderValue;
    use keyward::Store;
    use keyward_memory::Memory;
    use keyward_testkit::{Faults, FaultyEngine, TestClock};

    use super::*;

    fn auth() -> (Auth, FaultyEngine, TestClock) {
        let clock = TestClock::new();
        let engine = FaultyEngine::new(Arc::new(Memory::new()), Faults::none());
        let keys = Keys::new(Store::new(engine.clone()), Arc::new(clock.clone()));
        (Auth::new(keys, None, None), engine, clock)
    }

    fn showing(secret: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::try_from(format!("Bearer {secret}")).unwrap();
        headers.insert(header::AUTHORIZATION, value);
        headers
    }

    async fn refused(auth: &Auth, headers: &HeaderMap, too_many: bool) -> Option<Refusal> {
        auth.identify_unless(headers, || too_many).await.unwrap().err()
    }

    #[tokio::test]
    async fn a_refused_credential_is_looked_up_once_in_a_while() {
        let (auth, engine, clock) = auth();
        let unknown = showing(Secret::generate().unwrap().reveal());
        let before = engine.calls();
        for _ in 0..1_000 {
            assert_eq!(refused(&auth, &unknown, false).await, Some(Refusal::Unknown));
        }
        assert_eq!(engine.calls() - before, 1);
        clock.advance(std::time::Duration::from_secs(6));
        assert_eq!(refused(&auth, &unknown, false).await, Some(Refusal::Unknown));
        assert_eq!(engine.calls() - before, 2);
    }

    #[tokio::test]
    async fn a_new_credential_each_time_hardly_reaches_the_store_from_an_address_over_its_rate() {
        let (auth, engine, _) = auth();
        let new = NewKey { name: "mine".to_owned(), ..NewKey::default() };
        let (key, secret) = auth.keys().create(new).await.unwrap();
        let good = showing(secret.reveal());
        assert_eq!(refused(&auth, &good, false).await, None);
        let before = engine.calls();
        for _ in 0..1_000 {
            let made_up = showing(Secret::generate().unwrap().reveal());
            let refusal = refused(&auth, &made_up, true).await;
            assert!(matches!(refusal, Some(Refusal::Unknown | Refusal::Throttled)), "{refusal:?}");
        }
        let asked = engine.calls() - before;
        assert!(asked <= 24, "{asked} reads");
        // Whoever was let in of late goes on, until the key is revoked.
        assert_eq!(refused(&auth, &good, true).await, None);
        auth.keys().revoke(&key.id).await.unwrap();
        assert_eq!(refused(&auth, &good, true).await, Some(Refusal::Revoked));
    }

    #[tokio::test(start_paused = true)]
    async fn watches_of_one_credential_are_checked_together() {
        let (auth, engine, _) = auth();
        let new = NewKey { name: "watcher".to_owned(), ..NewKey::default() };
        let (key, secret) = auth.keys().create(new).await.unwrap();
        let (auth, headers) = (Arc::new(auth), showing(secret.reveal()));
        let interval = std::time::Duration::from_secs(5);
        let watches: Vec<_> = (0..100)
            .map(|_| {
                let (auth, headers) = (auth.clone(), headers.clone());
                tokio::spawn(async move {
                    auth.recheck(&headers).invalid(&auth, &headers, interval).await;
                })
            })
            .collect();
        let before = engine.calls();
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        let asked = engine.calls() - before;
        assert!((10..=25).contains(&asked), "{asked} reads in a minute");
        auth.keys().revoke(&key.id).await.unwrap();
        let revoked = tokio::time::Instant::now();
        for watch in watches {
            watch.await.unwrap();
        }
        assert!(revoked.elapsed() <= interval, "{:?}", revoked.elapsed());
    }
}
