//! API keys: who has one, and what it allows. Kept in the control store, below
//! `system:server:keys:{id}`, as a hash.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use keyward::records::Caller;
use keyward::{Clock, Code, Commit, Cursor, Entry, Expect, Json, Key, Outcome, Put, Scan, Store};
use serde::{Deserialize, Serialize};

use super::secret::Secret;
use super::{Identity, Need, Refusal, Scope, Scopes};
use crate::control::{place, range};
use crate::problem::Problem;

const KEYS: &str = "keys";
const USED: &str = "keys-used";
/// What is there as soon as a key was made, once: looked up faster than whether there are keys.
const MADE: &str = "keys-made";

/// How often a new id, or a change to a key, is tried when others are at it.
const TRIES: usize = 16;
/// The longest name, user, agent or role.
const TEXT_BYTES_MAX: usize = 256;
/// The most scopes, and the most roles, of one key.
const LIST_MAX: usize = 64;
/// The most keys that are looked up for a list at once.
const PAGE_MAX: usize = 1_000;

/// Why something could not be done to a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// What is asked for makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The control store.
    #[error(transparent)]
    Store(#[from] keyward::Error),
    /// What is kept of a key cannot be read.
    #[error("what is kept of the API key {id} cannot be read: {reason}")]
    Corrupt {
        /// The key's id.
        id: String,
        /// Why.
        reason: String,
    },
    /// Others kept changing the same key.
    #[error("others kept changing the API key {0} at the same time")]
    Contended(String),
    /// The system has no randomness to give.
    #[error("there is no randomness: {0}")]
    NoRandomness(String),
}

/// A key that is to be made.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// What people call it.
    pub name: String,
    /// Whose it is: its holder is this user, and reaches what is theirs. Without one its holder is
    /// an operator, held back by the scopes alone.
    #[serde(default)]
    pub user: Option<String>,
    /// The agent that acts for the user.
    #[serde(default)]
    pub agent: Option<String>,
    /// The roles that the user has.
    #[serde(default)]
    pub roles: Vec<String>,
    /// What it allows; `write:*`, if nothing is said.
    #[serde(default)]
    pub scopes: Option<Vec<Scope>>,
    /// When it ends.
    #[serde(default)]
    #[serde(serialize_with = "keyward::moment::optional::serialize")]
    pub expires: Option<Timestamp>,
}

impl NewKey {
    fn check(&self, now: Timestamp) -> Result<Scopes, KeyError> {
        let invalid = |text: String| Err(KeyError::Invalid(text));
        let texts = [("name", Some(&self.name)), ("user", self.user.as_ref())];
        let texts = texts.into_iter().chain([("agent", self.agent.as_ref())]);
        for (what, text) in texts.chain(self.roles.iter().map(|role| ("role", Some(role)))) {
            let Some(text) = text else { continue };
            if text.is_empty() || text.len() > TEXT_BYTES_MAX || text.contains(char::is_control) {
                return invalid(format!(
                    "the {what} of a key has 1 to {TEXT_BYTES_MAX} bytes and no control characters"
                ));
            }
        }
        let scopes = match &self.scopes {
            Some(scopes) => scopes.clone(),
            None => vec![Scope::write_everything()],
        };
        if scopes.is_empty() || scopes.len() > LIST_MAX || self.roles.len() > LIST_MAX {
            return invalid(format!("a key has 1 to {LIST_MAX} scopes and up to {LIST_MAX} roles"));
        }
        if self.user.is_none() && !(self.roles.is_empty() && self.agent.is_none()) {
            return invalid(
                "roles and agents are those of a user, and the key has none".to_owned(),
            );
        }
        if self.user.is_some()
            && let Some(scope) = scopes.iter().find(|scope| scope.need() == Need::Admin)
        {
            return invalid(format!(
                "a key of a user cannot have the scope {scope}: who runs things reaches everybody's"
            ));
        }
        if self.expires.is_some_and(|end| end <= now) {
            return invalid("the end of the key has passed".to_owned());
        }
        Ok(scopes.into())
    }
}

/// What is known of a key: everything but its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// What it is called everywhere: in lists, logs, and to revoke it.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Whose it is; an operator's, if nobody's.
    pub user: Option<String>,
    /// The agent that acts for the user.
    pub agent: Option<String>,
    /// The roles that the user has.
    pub roles: Vec<String>,
    /// What it allows.
    pub scopes: Scopes,
    /// When it was made.
    #[serde(serialize_with = "keyward::moment::serialize")]
    pub created: Timestamp,
    /// When it ends, or ended.
    #[serde(serialize_with = "keyward::moment::optional::serialize")]
    pub expires: Option<Timestamp>,
    /// When it was revoked.
    #[serde(serialize_with = "keyward::moment::optional::serialize")]
    pub revoked: Option<Timestamp>,
    /// When it was last used; up to half a minute late.
    #[serde(serialize_with = "keyward::moment::optional::serialize")]
    pub last_used: Option<Timestamp>,
}

/// What is kept of a key.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    /// The hash of the whole key, in hexadecimal.
    hash: String,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    roles: Vec<String>,
    scopes: Scopes,
    #[serde(serialize_with = "keyward::moment::serialize")]
    created: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "keyward::moment::optional::serialize")]
    expires: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "keyward::moment::optional::serialize")]
    revoked: Option<Timestamp>,
}

impl Kept {
    fn read(id: &str, entry: &Entry) -> Result<Self, KeyError> {
        serde_json::from_slice(entry.value.as_bytes())
            .map_err(|error| KeyError::Corrupt { id: id.to_owned(), reason: error.to_string() })
    }

    fn shown(self, id: String, last_used: Option<Timestamp>) -> ApiKey {
        let Self { name, user, agent, roles, scopes, created, expires, revoked, .. } = self;
        ApiKey { id, name, user, agent, roles, scopes, created, expires, revoked, last_used }
    }

    fn put(&self) -> Result<Put, KeyError> {
        let json = Json::from_value(self);
        json.map(Put::new).map_err(|error| KeyError::Invalid(error.to_string()))
    }
}

/// The API keys of a control store. Cheap to clone.
///
/// Every use of a key reads it from the store, so that one that was revoked, by this process or by
/// another, is refused from that moment on.
#[derive(Debug, Clone)]
pub struct Keys {
    store: Store,
    clock: Arc<dyn Clock>,
    /// Uses that the store has not been told of; as many as there are keys at most.
    used: Arc<Mutex<HashMap<String, Timestamp>>>,
}

impl Keys {
    /// The keys that are kept in a store.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, used: Arc::default() }
    }

    /// The clock by which keys end.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Makes a key. What is returned with it is shown to nobody again.
    pub async fn create(&self, new: NewKey) -> Result<(ApiKey, Secret), KeyError> {
        let now = self.clock.now();
        let scopes = new.check(now)?;
        let NewKey { name, user, agent, roles, expires, .. } = new;
        let hash = String::new();
        let mut kept =
            Kept { hash, name, user, agent, roles, scopes, created: now, expires, revoked: None };
        // First, so that no key is there without it.
        self.store.put(made(), Put::new(Json::from_integer(1))).await?;
        for _ in 0..TRIES {
            let secret = Secret::generate()?;
            kept.hash = secret.hash().to_hex().to_string();
            let key = place(KEYS, secret.id());
            let commit = Commit::new().check(key.clone(), Expect::Absent).put(key, kept.put()?);
            if let Outcome::Applied { .. } = self.store.commit(commit).await? {
                return Ok((kept.shown(secret.id().to_owned(), None), secret));
            }
        }
        Err(KeyError::NoRandomness("every id that came is taken".to_owned()))
    }

    /// Takes a key that was made elsewhere as an operator's with `admin:*`, if there is no key yet.
    pub async fn adopt_first(&self, secret: &Secret) -> Result<(), KeyError> {
        // Not by the mark: one that was set by somebody who died before the key is no key.
        let (there, _) = self.list(None, 1).await?;
        if !there.is_empty() {
            if self.store.get(&place(KEYS, secret.id())).await?.is_none() {
                tracing::warn!("the first key is not used: there are other API keys already");
            }
            return Ok(());
        }
        let kept = Kept {
            hash: secret.hash().to_hex().to_string(),
            name: "first key".to_owned(),
            user: None,
            agent: None,
            roles: Vec::new(),
            scopes: Scopes::all(),
            created: self.clock.now(),
            expires: None,
            revoked: None,
        };
        self.store.put(made(), Put::new(Json::from_integer(1))).await?;
        let key = place(KEYS, secret.id());
        let commit = Commit::new().check(key.clone(), Expect::Absent).put(key, kept.put()?);
        // If it is refused, another server was faster with the same key.
        let _ = self.store.commit(commit).await?;
        Ok(())
    }

    /// Up to `limit` keys by id, those after an id, and whether there are more.
    pub async fn list(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<ApiKey>, bool), KeyError> {
        let after = after.map(|id| Cursor::after_key(&place(KEYS, id)));
        let scan = Scan::new(range(KEYS)).after(after).limit(limit.clamp(1, PAGE_MAX));
        let page = self.store.scan(&scan).await?;
        let mut found = Vec::with_capacity(page.rows.len());
        for row in &page.rows {
            let (Some(entry), Some(id)) = (&row.entry, row.key.segments().last()) else { continue };
            found.push((id.to_string(), Kept::read(&id, entry)?));
        }
        let places: Vec<Key> = found.iter().map(|(id, _)| place(USED, id)).collect();
        let used = self.store.get_many(&places).await?;
        let keys = found.into_iter().zip(used).map(|((id, kept), used)| {
            let used = used.and_then(|entry| serde_json::from_slice(entry.value.as_bytes()).ok());
            kept.shown(id, used)
        });
        Ok((keys.collect(), page.next.is_some()))
    }

    /// Whether a key was made at any time.
    pub async fn any(&self) -> Result<bool, KeyError> {
        Ok(self.store.get(&made()).await?.is_some())
    }

    /// Ends a key at once. `None`, if there is none with this id; one that was revoked before stays
    /// as it is.
    pub async fn revoke(&self, id: &str) -> Result<Option<ApiKey>, KeyError> {
        let key = place(KEYS, id);
        for _ in 0..TRIES {
            let Some(entry) = self.store.get(&key).await? else { return Ok(None) };
            let mut kept = Kept::read(id, &entry)?;
            if kept.revoked.is_some() {
                return Ok(Some(kept.shown(id.to_owned(), None)));
            }
            kept.revoked = Some(self.clock.now());
            let check = Commit::new().check(key.clone(), Expect::Version(entry.version));
            let outcome = self.store.commit(check.put(key.clone(), kept.put()?)).await?;
            if outcome.is_applied() {
                return Ok(Some(kept.shown(id.to_owned(), None)));
            }
        }
        Err(KeyError::Contended(id.to_owned()))
    }

    /// The keys of a user, also those that have ended.
    pub async fn of_user(&self, user: &str) -> Result<Vec<ApiKey>, KeyError> {
        let mut theirs = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let (keys, more) = self.list(after.as_deref(), PAGE_MAX).await?;
            after = keys.last().map(|key| key.id.clone());
            theirs.extend(keys.into_iter().filter(|key| key.user.as_deref() == Some(user)));
            if !more || after.is_none() {
                return Ok(theirs);
            }
        }
    }

    /// Removes the keys of a user, and gives their number. From then on nobody can use them.
    pub async fn remove_user(&self, user: &str) -> Result<usize, KeyError> {
        let theirs = self.of_user(user).await?;
        for ApiKey { id, .. } in &theirs {
            self.store.delete(place(KEYS, id)).await?;
            self.used.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
            self.store.delete(place(USED, id)).await?;
        }
        Ok(theirs.len())
    }

    /// Who shows this key, or why nobody does. The store is asked once.
    pub async fn identify(&self, shown: &Secret) -> Result<Result<Identity, Refusal>, KeyError> {
        let hash = shown.hash();
        let Some(entry) = self.store.get(&place(KEYS, shown.id())).await? else {
            return Ok(Err(Refusal::Unknown));
        };
        let kept = Kept::read(shown.id(), &entry)?;
        let now = self.clock.now();
        // Hashes are compared in constant time.
        if blake3::Hash::from_hex(&kept.hash).ok() != Some(hash) {
            return Ok(Err(Refusal::Wrong));
        }
        if kept.revoked.is_some() {
            return Ok(Err(Refusal::Revoked));
        }
        if kept.expires.is_some_and(|end| end <= now) {
            return Ok(Err(Refusal::Expired));
        }
        let id = shown.id().to_owned();
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), now);
        let Kept { user, agent, roles, scopes, .. } = kept;
        let (tenant, mut caller) = match user {
            Some(user) => (format!("user/{user}"), Caller::user(user)),
            None => (format!("key/{id}"), Caller::operator()),
        };
        if let Some(agent) = agent {
            caller = caller.with_agent(agent);
        }
        caller = roles.into_iter().fold(caller, Caller::with_role);
        Ok(Ok(Identity::authenticated(&tenant, id, caller, scopes)))
    }

    /// Tells the store which keys were used. What could not be told is told the next time.
    pub async fn flush(&self) -> Result<(), KeyError> {
        let used = std::mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner));
        let mut failed = Ok(());
        for (id, at) in used {
            // Beside the key, not in it: a use must not bring back a key that is being revoked.
            let told = match Json::from_value(&at) {
                Ok(json) => self.store.put(place(USED, &id), Put::new(json)).await.map(drop),
                Err(_) => continue,
            };
            if let Err(error) = told {
                let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
                used.entry(id).or_insert(at);
                failed = Err(error.into());
            }
        }
        failed
    }
}

fn made() -> Key {
    place(MADE, "any")
}

impl From<KeyError> for Problem {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Invalid(detail) => Self::invalid(detail),
            KeyError::Store(error) => error.into(),
            KeyError::Corrupt { .. } => Self::new(Code::Corrupt, error.to_string()).hint(
                "Restore the control store from a backup, or revoke the key and make another.",
            ),
            KeyError::Contended(_) => Self::new(Code::Contended, error.to_string())
                .hint("Try again; nothing was done.")
                .retryable(),
            KeyError::NoRandomness(_) => Self::new(Code::Internal, error.to_string())
                .hint("Nothing was done. Please report this."),
        }
    }
}
