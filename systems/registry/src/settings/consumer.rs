//! Who is told of changes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use keyward_engine::StoreUrl;
use serde::{Deserialize, Serialize};

use super::{Secret, time};

/// One who is told of changes: exactly one of `export`, `store`, `post` and `command`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Declared", into = "Declared")]
pub struct Consumer {
    /// What is done with a change.
    pub kind: ConsumerKind,
    /// How long one telling may take.
    pub timeout: Duration,
}

/// What is done with a change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConsumerKind {
    /// The policy is written below a folder.
    Folder(PathBuf),
    /// The policy is put into a bucket.
    Bucket(Bucket),
    /// The policy's entry is copied into another store, named by its URL.
    Store(String),
    /// The change is posted to an address.
    Post {
        /// The address.
        url: String,
        /// What it is signed with, if it is.
        secret: Option<Secret>,
    },
    /// A program is run; the change is its input.
    Command(Vec<String>),
}

impl ConsumerKind {
    /// Whether it keeps policies, which can be put right.
    pub fn is_export(&self) -> bool {
        matches!(self, Self::Folder(_) | Self::Bucket(_) | Self::Store(_))
    }
}

/// A bucket of an S3-compatible service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Its name.
    pub name: String,
    /// What the names of objects begin with; may be empty.
    pub prefix: String,
    /// Where, and with what.
    pub s3: S3,
}

/// How an S3-compatible service is reached.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct S3 {
    /// Its address; by default that of AWS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Its region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The id of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key: Option<Secret>,
    /// The key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<Secret>,
    /// Whether an address without TLS is taken.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_http: bool,
}

impl Consumer {
    /// How long one telling may take, if nothing is said.
    pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);

    /// One with the time that is given by default.
    pub fn new(kind: ConsumerKind) -> Self {
        Self { kind, timeout: Self::TIMEOUT_DEFAULT }
    }

    pub(super) fn beside(&mut self, folder: &Path) {
        match &mut self.kind {
            ConsumerKind::Folder(path) => *path = folder.join(&*path),
            ConsumerKind::Bucket(bucket) => {
                let s3 = &mut bucket.s3;
                for secret in [&mut s3.access_key, &mut s3.secret_key].into_iter().flatten() {
                    secret.beside(folder);
                }
            }
            // A store's URL is read by whoever opens stores.
            ConsumerKind::Store(_) => {}
            ConsumerKind::Post { secret, .. } => {
                if let Some(secret) = secret {
                    secret.beside(folder);
                }
            }
            ConsumerKind::Command(command) => {
                // A name alone is looked for where programs are.
                if let Some(program) = command.first_mut().filter(|program| program.contains('/')) {
                    *program = folder.join(&*program).to_string_lossy().into_owned();
                }
            }
        }
    }
}

/// A consumer as it is written down.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    export: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    s3: Option<S3>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    store: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    post: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<Secret>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<Vec<String>>,
    #[serde(default = "timeout", with = "time")]
    timeout: Duration,
}

fn timeout() -> Duration {
    Consumer::TIMEOUT_DEFAULT
}

impl TryFrom<Declared> for Consumer {
    type Error = String;

    fn try_from(declared: Declared) -> Result<Self, String> {
        let Declared { export, s3, store, post, secret, command, timeout } = declared;
        if secret.is_some() && post.is_none() {
            return Err("secret is for consumers that are posted to".to_owned());
        }
        let in_bucket = export.as_deref().and_then(|to| to.strip_prefix("s3://"));
        if s3.is_some() && in_bucket.is_none() {
            return Err("s3 is for exports to s3://bucket/prefix".to_owned());
        }
        let kind = match (export, store, post, command) {
            (Some(to), None, None, None) => export_to(&to, s3)?,
            (None, Some(url), None, None) => ConsumerKind::Store(store_at(url)?),
            (None, None, Some(url), None) => ConsumerKind::Post { url, secret },
            (None, None, None, Some(command)) => ConsumerKind::Command(command),
            _ => {
                let message = "a consumer has exactly one of export, store, post and command";
                return Err(message.to_owned());
            }
        };
        Ok(Self { kind, timeout })
    }
}

fn export_to(to: &str, s3: Option<S3>) -> Result<ConsumerKind, String> {
    if let Some(place) = to.strip_prefix("s3://") {
        let (name, prefix) = place.split_once('/').unwrap_or((place, ""));
        if name.is_empty() {
            return Err("an export to a bucket is s3://bucket or s3://bucket/prefix".to_owned());
        }
        let (name, prefix) = (name.to_owned(), prefix.trim_matches('/').to_owned());
        return Ok(ConsumerKind::Bucket(Bucket { name, prefix, s3: s3.unwrap_or_default() }));
    }
    if to.contains("://") || to.is_empty() {
        return Err(format!("{to:?} is no place for an export: write a folder or s3://bucket"));
    }
    Ok(ConsumerKind::Folder(PathBuf::from(to)))
}

/// Refuses what is no URL of a store, and one with a password: settings are shown and logged.
fn store_at(url: String) -> Result<String, String> {
    let parsed = url.parse::<StoreUrl>().map_err(|error| error.to_string())?;
    let authority = parsed.place().trim_start_matches('/').split('/').next().unwrap_or_default();
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    if user.contains(':') {
        return Err(
            "the store's URL has a password in it: leave it out, and give it as the engine's \
                    environment variable"
                .to_owned(),
        );
    }
    Ok(url)
}

impl From<Consumer> for Declared {
    fn from(consumer: Consumer) -> Self {
        let mut declared = Self {
            export: None,
            s3: None,
            store: None,
            post: None,
            secret: None,
            command: None,
            timeout: consumer.timeout,
        };
        match consumer.kind {
            ConsumerKind::Folder(path) => {
                declared.export = Some(path.to_string_lossy().into_owned());
            }
            ConsumerKind::Bucket(Bucket { name, prefix, s3 }) => {
                declared.export = Some(match prefix.is_empty() {
                    true => format!("s3://{name}"),
                    false => format!("s3://{name}/{prefix}"),
                });
                declared.s3 = Some(s3);
            }
            ConsumerKind::Store(url) => declared.store = Some(url),
            ConsumerKind::Post { url, secret } => {
                declared.post = Some(url);
                declared.secret = secret;
            }
            ConsumerKind::Command(command) => declared.command = Some(command),
        }
        declared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Consumer, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_consumer_does_exactly_one_thing() {
        let bucket = parse(r#"{"export":"s3://b/some/prefix/","s3":{"region":"x"}}"#).unwrap();
        let ConsumerKind::Bucket(Bucket { name, prefix, s3 }) = &bucket.kind else { panic!() };
        assert_eq!((&**name, &**prefix, s3.region.as_deref()), ("b", "some/prefix", Some("x")));
        let written = serde_json::to_string(&bucket).unwrap();
        assert_eq!(parse(&written).unwrap(), bucket);
        let store = parse(r#"{"store":"cloudflare-kv://account/namespace"}"#).unwrap();
        let ConsumerKind::Store(url) = &store.kind else { panic!() };
        assert_eq!(url, "cloudflare-kv://account/namespace");
        assert_eq!(parse(&serde_json::to_string(&store).unwrap()).unwrap(), store);
        let command = parse(r#"{"command":["./x"],"timeout":"5s"}"#).unwrap();
        assert_eq!(command.timeout, Duration::from_secs(5));
        for text in [
            r#"{}"#,
            r#"{"export":"a","post":"https://example.org"}"#,
            r#"{"export":"a","secret":{"env":"A"}}"#,
            r#"{"export":"a","s3":{}}"#,
            r#"{"export":"ftp://a"}"#,
            r#"{"export":"s3://"}"#,
            r#"{"store":"a folder"}"#,
            r#"{"store":"couchdb://ada:secret@db.example.org/policies"}"#,
            r#"{"store":"memory:","export":"a"}"#,
            r#"{"post":"https://example.org","retries":1}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
