//! Identities, scopes and API keys. Each door authenticates credentials itself.

#[expect(clippy::module_inception, reason = "the type and its module have the concept's name")]
mod identity;
mod keys;
mod scope;
mod secret;

pub use identity::{Act, Identity, LOCAL, Tenant, Touched};
pub use keys::{ApiKey, KeyError, Keys, NewKey};
pub use scope::{BadScope, Need, Scope, Scopes, Target};
pub use secret::{BadSecret, MARK, Secret};

/// Why a credential was refused. Callers are not told which of these it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// There was none.
    Missing,
    /// It does not have the form of a credential.
    Malformed,
    /// No key has its id.
    Unknown,
    /// Its secret is wrong.
    Wrong,
    /// It has expired.
    Expired,
    /// It is not valid yet.
    Early,
    /// It was revoked.
    Revoked,
    /// It was not looked up: its address has sent too many bad credentials.
    Throttled,
}

impl Refusal {
    /// Its name, for metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::Wrong => "wrong",
            Self::Expired => "expired",
            Self::Early => "early",
            Self::Revoked => "revoked",
            Self::Throttled => "throttled",
        }
    }
}
