//! The public keys of an issuer of tokens, kept up to date with where it publishes them.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{Jwk, JwkSet, KeyAlgorithm};
use keyward::Clock;
use serde::Deserialize;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::sleep;

use crate::client::{Address, BYTES_MAX, fetch};

/// How soon after a look a key that nobody knows is looked for again.
const LOOK_PAUSE: Duration = Duration::from_secs(60);
/// How often keys are looked at where the issuer publishes them.
const URL_INTERVAL: Duration = Duration::from_secs(5 * 60);
/// How often it is looked whether the file has changed.
const FILE_INTERVAL: Duration = Duration::from_secs(5);
/// How long keys are used that cannot be looked at any more.
const AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How many requests wait for a look; more are refused at once.
const WAITING_MAX: usize = 64;

/// Where the public keys of an issuer are: a JSON Web Key Set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// In a file, which is read again when it changes.
    File(PathBuf),
    /// At a URL with https, or on a loopback address.
    Url(String),
    /// Where the issuer, whose name is a URL, says in `/.well-known/openid-configuration`.
    Discovered,
}

impl KeySource {
    /// What a text means: a URL, if it begins like one, else a file.
    pub fn named(text: &str) -> Self {
        match text.starts_with("https://") || text.starts_with("http://") {
            true => Self::Url(text.to_owned()),
            false => Self::File(text.into()),
        }
    }
}

impl From<PathBuf> for KeySource {
    fn from(file: PathBuf) -> Self {
        Self::File(file)
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => file.display().fmt(f),
            Self::Url(url) => f.write_str(url),
            Self::Discovered => f.write_str("what the issuer publishes"),
        }
    }
}

/// A key that checks signatures, and the one algorithm that it is for, if it says so.
pub(super) struct Verifier {
    pub key: DecodingKey,
    pub algorithm: Option<KeyAlgorithm>,
}

type Keys = HashMap<String, Arc<Verifier>>;

/// What tells whether a file has changed.
type Stamp = Option<(SystemTime, u64)>;

/// The public keys of an issuer.
pub(super) struct IssuerKeys {
    issuer: String,
    source: KeySource,
    clock: Arc<dyn Clock>,
    known: RwLock<Known>,
    /// When was looked last, for better or worse. Held while somebody looks.
    looked: Mutex<Looked>,
    waiting: Semaphore,
}

#[derive(Default)]
struct Known {
    keys: Keys,
    /// When they were seen last.
    seen: Option<Timestamp>,
}

struct Looked {
    at: Timestamp,
    stamp: Stamp,
    /// Whether keys were found.
    found: bool,
}

impl IssuerKeys {
    /// Looks at the keys for the first time; what is wrong with them is told as text. Keys that must
    /// be fetched and cannot be, are fetched later.
    pub async fn open(
        issuer: &str,
        source: KeySource,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        check(issuer, &source)?;
        let at = clock.now();
        let stamp = stamp(&source).await;
        let keys = Self {
            issuer: issuer.to_owned(),
            source,
            clock,
            known: RwLock::default(),
            looked: Mutex::new(Looked { at, stamp, found: true }),
            waiting: Semaphore::new(WAITING_MAX),
        };
        match keys.read().await {
            Ok(found) => keys.know(found),
            Err(reason) if matches!(keys.source, KeySource::File(_)) => return Err(reason),
            Err(reason) => tracing::warn!(reason, "the keys of the issuer cannot be had yet"),
        }
        Ok(keys)
    }

    /// The key with an id. If nobody knows it, it is looked for, once a minute at most.
    pub async fn find(&self, id: &str) -> Option<Arc<Verifier>> {
        if let Some(found) = self.known(id) {
            return Some(found);
        }
        let _waiting = self.waiting.try_acquire().ok()?;
        let mut looked = self.looked.lock().await;
        // Somebody may have looked meanwhile.
        if let Some(found) = self.known(id) {
            return Some(found);
        }
        let passed = self.clock.now().duration_since(looked.at).unsigned_abs();
        if passed < LOOK_PAUSE {
            return None;
        }
        self.look(&mut looked).await;
        self.known(id)
    }

    /// Looks at the keys now and then. Never ends.
    pub async fn keep_fresh(&self) {
        loop {
            match &self.source {
                KeySource::File(_) => {
                    sleep(FILE_INTERVAL).await;
                    let mut looked = self.looked.lock().await;
                    if stamp(&self.source).await != looked.stamp {
                        self.look(&mut looked).await;
                    } else if looked.found {
                        // It says what it said.
                        self.known.write().unwrap_or_else(PoisonError::into_inner).seen =
                            Some(self.clock.now());
                    }
                }
                KeySource::Url(_) | KeySource::Discovered => {
                    sleep(URL_INTERVAL).await;
                    self.look(&mut *self.looked.lock().await).await;
                }
            }
        }
    }

    fn known(&self, id: &str) -> Option<Arc<Verifier>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let age = self.clock.now().duration_since(known.seen?);
        (age.unsigned_abs() <= AGE_MAX).then(|| known.keys.get(id).cloned())?
    }

    fn know(&self, keys: Keys) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        *known = Known { keys, seen: Some(self.clock.now()) };
    }

    async fn look(&self, looked: &mut Looked) {
        let (at, stamp) = (self.clock.now(), stamp(&self.source).await);
        let read = self.read().await;
        *looked = Looked { at, stamp, found: read.is_ok() };
        match read {
            Ok(keys) => self.know(keys),
            Err(reason) => {
                tracing::warn!(reason, "the keys of the issuer cannot be read; the old ones stay");
            }
        }
    }

    async fn read(&self) -> Result<Keys, String> {
        match &self.source {
            KeySource::File(file) => {
                let file = file.clone();
                let read = tokio::task::spawn_blocking(move || read_file(&file)).await;
                usable_of(&read.map_err(|error| error.to_string())??)
            }
            KeySource::Url(url) => usable_of(&fetch(&Address::parse_guarded(url)?).await?),
            KeySource::Discovered => usable_of(&fetch(&self.discover().await?).await?),
        }
    }

    /// Asks the issuer where its keys are.
    async fn discover(&self) -> Result<Address, String> {
        #[derive(Deserialize)]
        struct Provider {
            issuer: String,
            jwks_uri: String,
        }
        let told = fetch(&Address::parse_guarded(&well_known(&self.issuer))?).await?;
        let told: Provider = serde_json::from_slice(&told).map_err(|error| error.to_string())?;
        if told.issuer != self.issuer {
            return Err(format!("the issuer calls itself {:?}", told.issuer));
        }
        Address::parse_guarded(&told.jwks_uri)
    }
}

fn well_known(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
}

/// What can be said against a source without looking at it.
pub(super) fn check(issuer: &str, source: &KeySource) -> Result<(), String> {
    match source {
        KeySource::File(_) => Ok(()),
        KeySource::Url(url) => Address::parse_guarded(url).map(drop),
        KeySource::Discovered => Address::parse_guarded(&well_known(issuer)).map(drop),
    }
}

async fn stamp(source: &KeySource) -> Stamp {
    let KeySource::File(file) = source else { return None };
    let file = file.clone();
    let look = move || {
        let data = std::fs::metadata(file).ok()?;
        Some((data.modified().ok()?, data.len()))
    };
    tokio::task::spawn_blocking(look).await.ok().flatten()
}

pub(super) fn read_file(file: &Path) -> Result<Vec<u8>, String> {
    let text = |error: &dyn Display| error.to_string();
    let bytes = std::fs::metadata(file).map_err(|error| text(&error))?.len();
    if bytes > BYTES_MAX as u64 {
        return Err(format!("it has more than {BYTES_MAX} bytes"));
    }
    std::fs::read(file).map_err(|error| text(&error))
}

/// The keys of a set that check signatures, by their ids.
pub(super) fn usable_of(set: &[u8]) -> Result<Keys, String> {
    let set: JwkSet = serde_json::from_slice(set).map_err(|error| error.to_string())?;
    let keys: Keys = set.keys.iter().filter_map(usable).collect();
    if keys.is_empty() {
        return Err("no key in it has a kid and is one to check signatures with".to_owned());
    }
    Ok(keys)
}

fn usable(jwk: &Jwk) -> Option<(String, Arc<Verifier>)> {
    use jsonwebtoken::jwk::{AlgorithmParameters as P, EllipticCurve, PublicKeyUse};
    let sound = match &jwk.algorithm {
        P::RSA(_) | P::EllipticCurve(_) => true,
        P::OctetKeyPair(pair) => pair.curve == EllipticCurve::Ed25519,
        // A secret that both sides know among them.
        _ => false,
    };
    let signs = jwk.common.public_key_use.as_ref().is_none_or(|it| *it == PublicKeyUse::Signature);
    if !(sound && signs) {
        return None;
    }
    let (key, algorithm) = (DecodingKey::from_jwk(jwk).ok()?, jwk.common.key_algorithm);
    Some((jwk.common.key_id.clone()?, Arc::new(Verifier { key, algorithm })))
}
