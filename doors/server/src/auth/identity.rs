//! A caller whom the server knows.

use std::fmt;
use std::sync::Arc;

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

/// A caller whom the server knows: whose data they reach, and what they may do. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Identity(Arc<Known>);

#[derive(Debug)]
struct Known {
    tenant: Tenant,
    credential: String,
    caller: Caller,
    scopes: Scopes,
}

impl Identity {
    /// The one user of a server without credentials.
    pub(super) fn local() -> Self {
        Self::new("local", "local".to_owned(), Caller::operator(), Scopes::all())
    }

    pub(super) fn new(tenant: &str, credential: String, caller: Caller, scopes: Scopes) -> Self {
        Self(Arc::new(Known { tenant: Tenant(tenant.into()), credential, caller, scopes }))
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

    /// What they may do.
    pub fn scopes(&self) -> &Scopes {
        &self.0.scopes
    }

    /// Refuses what the scopes do not allow.
    pub fn require(&self, need: Need, target: &Target<'_>) -> Result<()> {
        if self.0.scopes.allow(need, target) {
            return Ok(());
        }
        Err(Problem::forbidden(format!("this credential may not {need} {target}"))
            .with("needs", format!("{need}:{target}")))
    }
}
