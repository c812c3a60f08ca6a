//! Signatures of what is posted, and of what forges post to us.
//!
//! What goes out is signed as [Standard Webhooks](https://www.standardwebhooks.com) say. What comes in
//! is one of the three ways in which forges prove that a push happened.

use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use hmac::{Hmac, KeyInit, Mac};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use sha2::Sha256;

/// How far the time in a signed request may be from ours.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(5);
/// How many signatures of one request are looked at: one is usual, two while secrets are changed.
const SIGNATURES_MAX: usize = 8;

/// The value of the header `webhook-signature`.
pub(crate) fn sign(secret: &str, id: &str, now: Timestamp, body: &[u8]) -> Result<String, String> {
    let key = key(secret).ok_or("the secret begins with whsec_ and is no base64 after it")?;
    let mac = standard(&key, id, &now.as_second().to_string(), body);
    Ok(format!("v1,{}", BASE64.encode(&mac.finalize().into_bytes())))
}

/// The bytes of a secret: those that `whsec_…` encodes, or the text itself.
fn key(secret: &str) -> Option<Vec<u8>> {
    match secret.strip_prefix("whsec_") {
        Some(encoded) => BASE64.decode(encoded.as_bytes()).ok(),
        None => Some(secret.as_bytes().to_vec()),
    }
}

fn standard(key: &[u8], id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = keyed(key);
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        mac.update(part);
    }
    mac
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    // A key of any length will do: longer ones are hashed.
    Hmac::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default()))
}

/// A push that a forge told of, and proved to be its own.
///
/// Three ways of proof are known, by the headers that a request has:
///
/// | header | who | proof |
/// |---|---|---|
/// | `X-Hub-Signature-256` | GitHub, Gitea, Forgejo | HMAC-SHA256 of the body |
/// | `X-Gitlab-Token` | GitLab | the secret itself |
/// | `webhook-signature` | Standard Webhooks | HMAC-SHA256 of id, time and body; within five minutes |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushHook {
    /// What was pushed to, such as `refs/heads/main`; `None` if the body does not say.
    pub reference: Option<String>,
}

/// Why a request was not taken for a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HookRefused {
    /// It has no signature at all.
    #[error(
        "the request is not signed: set the secret at the forge, which then sends \
         X-Hub-Signature-256, X-Gitlab-Token or webhook-signature"
    )]
    Unsigned,
    /// The signature is another's, or of another body.
    #[error(
        "the signature is not of this body with this secret: set the same secret on both sides"
    )]
    Mismatched,
    /// It was signed too long ago, or will be.
    #[error("the request was signed more than five minutes from now: look at both clocks")]
    Stale,
    /// Our own secret cannot be used.
    #[error(
        "the secret begins with whsec_ and is no base64 after it: write the secret as it was given"
    )]
    BadSecret,
}

impl PushHook {
    /// Checks who sent a request, and reads what it says.
    ///
    /// `header` looks up a header by its name in lower case; `body` is the body as it came, byte for
    /// byte. Comparisons take the same time whatever is wrong. A body that is no JSON, or says nothing
    /// of a reference, is a push of unknown place.
    pub fn check<'a>(
        secret: &str,
        header: impl Fn(&str) -> Option<&'a str>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Self, HookRefused> {
        if let Some(signature) = header("x-hub-signature-256") {
            check_hub(secret, signature, body)?;
        } else if let Some(token) = header("x-gitlab-token") {
            check_token(secret, token)?;
        } else if let Some(signatures) = header("webhook-signature") {
            let id = header("webhook-id").ok_or(HookRefused::Mismatched)?;
            let timestamp = header("webhook-timestamp").ok_or(HookRefused::Mismatched)?;
            check_standard(secret, id, timestamp, signatures, body, now)?;
        } else {
            return Err(HookRefused::Unsigned);
        }
        Ok(Self { reference: reference(body) })
    }

    /// Whether the push may be to this branch: it is, or nothing is said of where it was.
    pub fn concerns(&self, branch: &str) -> bool {
        let Some(reference) = &self.reference else { return true };
        reference.strip_prefix("refs/heads/").unwrap_or(reference) == branch
    }
}

fn check_hub(secret: &str, signature: &str, body: &[u8]) -> Result<(), HookRefused> {
    let encoded = signature.strip_prefix("sha256=").ok_or(HookRefused::Mismatched)?;
    let given =
        HEXLOWER_PERMISSIVE.decode(encoded.as_bytes()).map_err(|_| HookRefused::Mismatched)?;
    let mut mac = keyed(secret.as_bytes());
    mac.update(body);
    mac.verify_slice(&given).map_err(|_| HookRefused::Mismatched)
}

fn check_token(secret: &str, token: &str) -> Result<(), HookRefused> {
    // Their MACs are compared, so that not even the length shows.
    let mac = |text: &str| {
        let mut mac = keyed(secret.as_bytes());
        mac.update(text.as_bytes());
        mac
    };
    let given = mac(token).finalize().into_bytes();
    mac(secret).verify_slice(&given).map_err(|_| HookRefused::Mismatched)
}

fn check_standard(
    secret: &str,
    id: &str,
    timestamp: &str,
    signatures: &str,
    body: &[u8],
    now: Timestamp,
) -> Result<(), HookRefused> {
    let key = key(secret).ok_or(HookRefused::BadSecret)?;
    let mac = standard(&key, id, timestamp, body);
    let is_ours = |signature: &str| {
        let given = signature.strip_prefix("v1,").map(|text| BASE64.decode(text.as_bytes()));
        matches!(given, Some(Ok(given)) if mac.clone().verify_slice(&given).is_ok())
    };
    if !signatures.split(' ').take(SIGNATURES_MAX).any(is_ours) {
        return Err(HookRefused::Mismatched);
    }
    let signed = timestamp.parse().ok().and_then(|second| Timestamp::from_second(second).ok());
    match signed {
        Some(signed) if now.duration_since(signed).abs() <= TOLERANCE => Ok(()),
        _ => Err(HookRefused::Stale),
    }
}

/// What was pushed to.
fn reference(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Push {
        #[serde(rename = "ref")]
        reference: Option<String>,
    }
    serde_json::from_slice::<Push>(body).ok()?.reference
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn check(
        secret: &str,
        headers: &[(&str, &'static str)],
        body: &[u8],
        now: i64,
    ) -> Result<PushHook, HookRefused> {
        let find = |name: &str| headers.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
        PushHook::check(secret, find, body, at(now))
    }

    #[test]
    fn what_goes_out_is_signed_as_the_published_example() {
        assert_eq!(sign(SECRET, ID, at(1_614_265_330), BODY).unwrap(), SIGNATURE);
        assert!(sign("whsec_!", ID, at(0), BODY).is_err());
        // A secret without the prefix is taken as it is.
        assert!(sign("plain", ID, at(0), BODY).unwrap().starts_with("v1,"));
    }

    #[test]
    fn a_push_of_github_is_known_by_its_published_example() {
        let secret = "It's a Secret to Everybody";
        let good = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let pushed = check(secret, &[("x-hub-signature-256", good)], b"Hello, World!", 0);
        assert_eq!(pushed, Ok(PushHook { reference: None }));
        let refused = Err(HookRefused::Mismatched);
        assert_eq!(check(secret, &[("x-hub-signature-256", good)], b"Hello, World", 0), refused);
        assert_eq!(check("other", &[("x-hub-signature-256", good)], b"Hello, World!", 0), refused);
        for bad in ["", "sha256=", "sha256=zz", "sha1=757107ea", "sha256=757107ea"] {
            let checked = check(secret, &[("x-hub-signature-256", bad)], b"Hello, World!", 0);
            assert_eq!(checked, refused, "{bad}");
        }
    }

    #[test]
    fn a_token_of_gitlab_must_be_the_secret_itself() {
        let body = br#"{"object_kind":"push","ref":"refs/heads/main"}"#;
        let pushed = check("s3cret", &[("x-gitlab-token", "s3cret")], body, 0).unwrap();
        assert_eq!(pushed.reference.as_deref(), Some("refs/heads/main"));
        assert!(pushed.concerns("main") && !pushed.concerns("mai") && !pushed.concerns("other"));
        for bad in ["", "s3cre", "s3crets", "S3CRET"] {
            let checked = check("s3cret", &[("x-gitlab-token", bad)], body, 0);
            assert_eq!(checked, Err(HookRefused::Mismatched), "{bad}");
        }
    }

    #[test]
    fn a_standard_webhook_is_good_for_five_minutes() {
        let headers = |signature| {
            [
                ("webhook-id", ID),
                ("webhook-timestamp", "1614265330"),
                ("webhook-signature", signature),
            ]
        };
        for now in [1_614_265_330, 1_614_265_330 - 300, 1_614_265_330 + 300] {
            assert!(check(SECRET, &headers(SIGNATURE), BODY, now).is_ok(), "{now}");
        }
        for now in [1_614_265_330 - 301, 1_614_265_330 + 301, 0] {
            let checked = check(SECRET, &headers(SIGNATURE), BODY, now);
            assert_eq!(checked, Err(HookRefused::Stale), "{now}");
        }
        let two = "v1a,x v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert!(check(SECRET, &headers(two), BODY, 1_614_265_330).is_ok());
        for bad in ["v1,AAAA", "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", ""] {
            let checked = check(SECRET, &headers(bad), BODY, 1_614_265_330);
            assert_eq!(checked, Err(HookRefused::Mismatched), "{bad}");
        }
        // The time is signed too.
        let later =
            [("webhook-id", ID), ("webhook-timestamp", "1614265331"), headers(SIGNATURE)[2]];
        assert_eq!(check(SECRET, &later, BODY, 1_614_265_330), Err(HookRefused::Mismatched));
        assert_eq!(check("whsec_!", &headers(SIGNATURE), BODY, 0), Err(HookRefused::BadSecret));
    }

    #[test]
    fn what_is_not_signed_is_refused() {
        assert_eq!(check("s", &[], b"{}", 0), Err(HookRefused::Unsigned));
        let checked = check("s", &[("webhook-signature", "v1,AAAA")], b"{}", 0);
        assert_eq!(checked, Err(HookRefused::Mismatched));
    }

    #[test]
    fn a_push_of_unknown_place_concerns_every_branch() {
        for body in [&b"payload=%7B%7D"[..], b"", b"[]", br#"{"ref":null}"#, br#"{"ref":5}"#] {
            let pushed = check("s", &[("x-gitlab-token", "s")], body, 0).unwrap();
            assert!(pushed.reference.is_none() && pushed.concerns("main"));
        }
        let tag =
            check("s", &[("x-gitlab-token", "s")], br#"{"ref":"refs/tags/main"}"#, 0).unwrap();
        assert!(!tag.concerns("main"));
    }
}
