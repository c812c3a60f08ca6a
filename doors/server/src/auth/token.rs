//! Tokens of an issuer that the server trusts: JSON Web Tokens, as OpenID Connect gives them out.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use keyward::Clock;
use keyward::records::Caller;
use serde_json::{Map, Value};

use super::jwks::{self, IssuerKeys, KeySource};
use super::{Identity, Need, Refusal, Scope, Scopes};

/// How far the issuer's clock and this one may be apart.
const LEEWAY_SECONDS: i64 = 30;
/// The longest token that is looked at.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// The longest id of a user.
const USER_BYTES_MAX: usize = 256;
/// The most roles, and the most scopes, that are taken from a token.
const LIST_MAX: usize = 64;

/// How a token is signed. Only what needs a private key to sign can be named: a server that knows
/// the public keys cannot make tokens, and neither can whoever reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "they are the names of RFC 7518 and RFC 8037")]
pub enum TokenAlgorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

impl TokenAlgorithm {
    fn of(algorithm: Algorithm) -> Option<Self> {
        Some(match algorithm {
            Algorithm::RS256 => Self::Rs256,
            Algorithm::RS384 => Self::Rs384,
            Algorithm::RS512 => Self::Rs512,
            Algorithm::PS256 => Self::Ps256,
            Algorithm::PS384 => Self::Ps384,
            Algorithm::PS512 => Self::Ps512,
            Algorithm::ES256 => Self::Es256,
            Algorithm::ES384 => Self::Es384,
            Algorithm::EdDSA => Self::EdDsa,
            _ => return None,
        })
    }

    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// Its name in the header of a token: `RS256`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }
}

/// Whose tokens are taken, and what is read from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// What the claim `iss` must be.
    pub issuer: String,
    /// What the claim `aud` must be, or have among others.
    pub audience: String,
    /// Where the issuer's public keys are.
    pub keys: KeySource,
    /// How tokens may be signed.
    pub algorithms: Vec<TokenAlgorithm>,
    /// The claim that names the user.
    pub user_claim: String,
    /// The claim with the user's roles: a list of texts, or one with spaces between them.
    pub roles_claim: String,
    /// The claim with scopes: a list of texts, or one with spaces between them. Those that are none
    /// of Keyward's are passed over, and so are those for admins. A token without the claim allows
    /// `write:*`; it is bound to its user in any case.
    pub scopes_claim: String,
}

impl Issuer {
    /// An issuer with the usual algorithms and claims: RS256, ES256 and EdDSA; `sub`, `roles`,
    /// `scope`.
    pub fn new(
        issuer: impl Into<String>,
        audience: impl Into<String>,
        keys: impl Into<KeySource>,
    ) -> Self {
        use TokenAlgorithm::{EdDsa, Es256, Rs256};
        Self {
            issuer: issuer.into(),
            audience: audience.into(),
            keys: keys.into(),
            algorithms: vec![Rs256, Es256, EdDsa],
            user_claim: "sub".to_owned(),
            roles_claim: "roles".to_owned(),
            scopes_claim: "scope".to_owned(),
        }
    }

    /// What can be said against it without asking anybody but this machine, as text.
    pub(crate) fn check(&self) -> Result<(), String> {
        jwks::check(&self.issuer, &self.keys)?;
        match &self.keys {
            KeySource::File(file) => jwks::usable_of(&jwks::read_file(file)?).map(drop),
            KeySource::Url(_) | KeySource::Discovered => Ok(()),
        }
    }
}

/// What reads tokens.
pub(crate) struct Tokens {
    issuer: Issuer,
    keys: IssuerKeys,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("issuer", &self.issuer.issuer).finish_non_exhaustive()
    }
}

impl Tokens {
    /// Looks at the issuer's keys; what is wrong with them is told as text.
    pub async fn open(issuer: Issuer, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let keys = IssuerKeys::open(&issuer.issuer, issuer.keys.clone(), clock.clone()).await?;
        Ok(Self { issuer, keys, clock })
    }

    /// Whose tokens these are.
    pub fn issuer(&self) -> &str {
        &self.issuer.issuer
    }

    /// Keeps up with the issuer's keys. Never ends.
    pub async fn keep_fresh(&self) {
        self.keys.keep_fresh().await;
    }

    /// Who shows this token, or why nobody does.
    pub async fn identify(&self, token: &str) -> Result<Identity, Refusal> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Refusal::Malformed);
        }
        // Algorithms that are unknown here, `none` among them, cannot be read at all.
        let header = decode_header(token).map_err(|_| Refusal::Malformed)?;
        let allowed = TokenAlgorithm::of(header.alg);
        if !allowed.is_some_and(|algorithm| self.issuer.algorithms.contains(&algorithm)) {
            return Err(Refusal::Wrong);
        }
        // Nobody here understands what a token may call critical.
        if header.crit.is_some() {
            return Err(Refusal::Wrong);
        }
        // Only the keys of the issuer count: what a token says about its own (jwk, jku, x5c) does not.
        let kid = header.kid.as_deref().ok_or(Refusal::Unknown)?;
        let verifier = self.keys.find(kid).await.ok_or(Refusal::Unknown)?;
        if verifier.algorithm.is_some_and(|algorithm| algorithm != header.alg.into()) {
            return Err(Refusal::Wrong);
        }
        let mut validation = Validation::new(header.alg);
        validation.set_issuer(&[&self.issuer.issuer]);
        validation.set_audience(&[&self.issuer.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        // By this server's clock, below.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        let claims = decode::<Map<String, Value>>(token, &verifier.key, &validation);
        let claims = claims.map_err(|_| Refusal::Wrong)?.claims;
        self.check_time(&claims)?;
        self.identity(&claims)
    }

    fn check_time(&self, claims: &Map<String, Value>) -> Result<(), Refusal> {
        let now = self.clock.now();
        let moment = |name: &str| match claims.get(name) {
            None => Ok(None),
            // Seconds may have a fraction, which counts for nothing here.
            Some(value) => {
                let seconds = value.as_i64().or_else(|| value.as_f64().map(|it| it as i64));
                let moment = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
                moment.map(Some).ok_or(Refusal::Malformed)
            }
        };
        let end = moment("exp")?.ok_or(Refusal::Malformed)?;
        if now.as_second() - LEEWAY_SECONDS >= end.as_second() {
            return Err(Refusal::Expired);
        }
        let early = |begin: Timestamp| now.as_second() + LEEWAY_SECONDS < begin.as_second();
        if moment("nbf")?.is_some_and(early) {
            return Err(Refusal::Early);
        }
        Ok(())
    }

    fn identity(&self, claims: &Map<String, Value>) -> Result<Identity, Refusal> {
        let user = claims.get(&self.issuer.user_claim).and_then(Value::as_str);
        let plain = |user: &&str| {
            (1..=USER_BYTES_MAX).contains(&user.len()) && !user.contains(char::is_control)
        };
        let user = user.filter(plain).ok_or(Refusal::Malformed)?;
        let roles = claims.get(&self.issuer.roles_claim).map(words).unwrap_or_default();
        let scopes: Scopes = match claims.get(&self.issuer.scopes_claim) {
            None => vec![Scope::write_everything()].into(),
            Some(claim) => {
                let scopes = words(claim).into_iter().filter_map(|word| word.parse::<Scope>().ok());
                scopes.filter(|scope| scope.need() < Need::Admin).collect::<Vec<_>>().into()
            }
        };
        let caller = roles.into_iter().fold(Caller::user(user), Caller::with_role);
        Ok(Identity::authenticated(
            &format!("user/{user}"),
            format!("token/{user}"),
            caller,
            scopes,
        ))
    }
}

/// A list of texts, or one text with spaces between its words.
fn words(claim: &Value) -> Vec<String> {
    let words: Vec<&str> = match claim {
        Value::String(text) => text.split_whitespace().collect(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    words.into_iter().take(LIST_MAX).map(str::to_owned).collect()
}
