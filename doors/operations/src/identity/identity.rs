//! A caller whom the server knows.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use keyward::Key;
use keyward::records::Caller;

use super::{Need, Scopes, Target};
use crate::problem::{Problem, Result};

/// Whose data it is. Only what has checked a credential can make one, so that nothing in a request
/// can name another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(Arc<str>);

impl Tenant {
    /// The name that quotas, limits and logs go by.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A caller whom the server knows, for one request: whose data they reach, and what they may do.
/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Identity(Arc<Known>);

#[derive(Debug)]
struct Known {
    tenant: Tenant,
    credential: String,
    caller: Caller,
    /// Whether they run the store even though they are a user: keys, queues, locks and registries that are
    /// no user's are theirs to use.
    runs_store: bool,
    scopes: Scopes,
    /// What the request asked for first, of what is more than to look.
    act: OnceLock<Act>,
    touched: Mutex<Touched>,
    sent_bytes: AtomicU64,
    /// What a request to write is told when the tenant has used up their quota.
    exhausted: OnceLock<Problem>,
}

/// The tenant and the credential of the one user of a server without credentials, and the name of that user.
pub const LOCAL: &str = "local";
/// How many keys of a request are remembered for the audit log.
const TOUCHED_MAX: usize = 100;
/// How many bytes these have together.
const TOUCHED_BYTES_MAX: usize = 8 * 1024;

/// The keys that a request asked to change.
#[derive(Debug, Default)]
pub struct Touched {
    /// The first of them.
    pub keys: Vec<Key>,
    /// How many there were.
    pub total: usize,
    bytes: usize,
}

/// Something that was asked for, allowed or not, of what is more than to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// What was to be done.
    pub need: Need,
    /// To what: `store/main`, `space/notes`, or `*` for the server.
    pub target: String,
}

impl Identity {
    /// The one user of a server without credentials.
    pub fn local() -> Self {
        Self::authenticated(LOCAL, LOCAL.to_owned(), Caller::operator(), Scopes::all())
    }

    /// A person on this machine who opened the stores themselves. Records and agents' entries are asked for
    /// as this user: what is another's is out of reach. What is no user's (locks, queues, jobs, registries,
    /// workspaces) is theirs to use, since the files of the store are theirs.
    pub fn local_user(caller: Caller) -> Self {
        Self::made(LOCAL, LOCAL.to_owned(), caller, true, Scopes::all())
    }

    /// Whether it is the one user of a server without credentials.
    pub fn is_local(&self) -> bool {
        // Ids of keys and names of tokens are never this.
        self.0.credential == LOCAL
    }

    /// A caller whose credential was checked. Only a door that has done so makes one.
    pub fn authenticated(tenant: &str, credential: String, caller: Caller, scopes: Scopes) -> Self {
        let runs_store = caller.user_id().is_none();
        Self::made(tenant, credential, caller, runs_store, scopes)
    }

    fn made(
        tenant: &str,
        credential: String,
        caller: Caller,
        runs_store: bool,
        scopes: Scopes,
    ) -> Self {
        let tenant = Tenant(tenant.into());
        Self(Arc::new(Known {
            tenant,
            credential,
            caller,
            runs_store,
            scopes,
            act: OnceLock::new(),
            touched: Mutex::default(),
            sent_bytes: AtomicU64::new(0),
            exhausted: OnceLock::new(),
        }))
    }

    /// The same caller through an agent, for one request of its own; through the agent of the
    /// credential, if that is bound to one.
    pub fn through(&self, agent: &str) -> Self {
        let caller = self.caller();
        self.acting(match caller.agent_id() {
            Some(_) => caller.clone(),
            None => caller.clone().with_agent(agent),
        })
    }

    /// The same caller for another act, without what was recorded of the previous one.
    pub fn for_new_act(&self) -> Self {
        self.acting(self.caller().clone())
    }

    /// The same identity with another caller, as whom records and agents' entries are asked for. What is no user's
    /// stays as much in reach as it was.
    pub fn asking_as(&self, caller: Caller) -> Self {
        self.acting(caller)
    }

    fn acting(&self, caller: Caller) -> Self {
        let Known { tenant, credential, scopes, runs_store, .. } = &*self.0;
        let (credential, scopes) = (credential.clone(), scopes.clone());
        let acting = Self::made(tenant.name(), credential, caller, *runs_store, scopes);
        acting.0.sent_bytes.store(self.sent_bytes(), Ordering::Relaxed);
        acting
    }

    /// Whose data it is.
    pub fn tenant(&self) -> &Tenant {
        &self.0.tenant
    }

    /// What was shown as proof: the id of a key, or the subject of a token. Never a secret.
    pub fn credential(&self) -> &str {
        &self.0.credential
    }

    /// As whom records are asked for.
    pub fn caller(&self) -> &Caller {
        &self.0.caller
    }

    /// The user whom they are bound to in a store: of its keys they reach this user's and the shared ones,
    /// and nothing that is the store's. None for those who run the store, even if records are asked for
    /// as a user.
    pub fn bound_to(&self) -> Option<&str> {
        self.0.caller.user_id().filter(|_| !self.0.runs_store)
    }

    /// What they may do.
    pub fn scopes(&self) -> &Scopes {
        &self.0.scopes
    }

    /// What the request asked for, if that is more than to look.
    pub fn act(&self) -> Option<&Act> {
        self.0.act.get()
    }

    /// Remembers how large the body of the request is.
    pub fn sends(&self, bytes: usize) {
        self.0.sent_bytes.store(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How large the body of the request is.
    pub fn sent_bytes(&self) -> u64 {
        self.0.sent_bytes.load(Ordering::Relaxed)
    }

    /// Has requests to write refused.
    pub fn exhaust(&self, problem: Problem) {
        // The first reason is as good as the second.
        let _ = self.0.exhausted.set(problem);
    }

    /// Remembers for the audit log that the request asks to change a key.
    pub fn touches(&self, key: &Key) {
        let mut touched = self.touched();
        touched.total += 1;
        let bytes = key.as_bytes().len();
        if touched.keys.len() < TOUCHED_MAX && touched.bytes + bytes <= TOUCHED_BYTES_MAX {
            touched.bytes += bytes;
            touched.keys.push(key.clone());
        }
    }

    /// Remembers for the audit log that the request asks to change so many more keys, which are not named.
    pub fn touches_more(&self, count: usize) {
        let mut touched = self.touched();
        touched.total += count;
    }

    /// The keys that the request asked to change.
    pub fn touched(&self) -> MutexGuard<'_, Touched> {
        self.0.touched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses what the scopes do not allow, and writes above the quota. What is more than to look goes into the audit log.
    pub fn require(&self, need: Need, target: &Target<'_>) -> Result<()> {
        if need > Need::Read {
            self.0.act.get_or_init(|| Act { need, target: target.to_string() });
        }
        if self.0.scopes.allow(need, target) {
            return match self.0.exhausted.get() {
                Some(problem) if need == Need::Write => Err(problem.clone()),
                _ => Ok(()),
            };
        }
        Err(Problem::forbidden(format!("this credential may not {need} {target}"))
            .with("needs", format!("{need}:{target}")))
    }
}
