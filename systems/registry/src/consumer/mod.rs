//! Who is told of changes, and how.

mod bucket;
mod command;
mod done;
mod export;
mod folder;
mod front_matter;
mod namespace;
mod post;
mod repair;
mod tend;
mod tls;

use std::error::Error as StdError;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use keyward_engine::Json;
use serde::Serialize;
use sha2::{Digest, Sha256};

use self::command::Command;
pub(crate) use self::done::Done;
use self::export::Export;
pub(crate) use self::export::Written;
use self::folder::Folder;
pub(crate) use self::front_matter::FrontMatter;
use self::namespace::Namespace;
pub use self::namespace::OpenStore;
use self::post::Post;
pub use self::repair::Repaired;
pub(crate) use self::repair::{put_right, repair};
pub(crate) use self::tend::tend;
use crate::settings::{Consumer as Declared, ConsumerKind};
use crate::{Operation, Policy, Registry};

/// A change, as consumers are told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change {
    pub registry: String,
    pub operation: Operation,
    pub policy_name: String,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    pub sha: String,
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// The run that found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The document; a policy that is gone has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The policy's entry as it is stored; a policy that is gone has none.
    #[serde(skip)]
    pub entry: Option<Json>,
}

impl Change {
    /// The same for every telling of one change, and for no other.
    pub fn id(&self) -> String {
        let mut digest = Sha256::new();
        let run = self.run.as_deref().unwrap_or_default();
        let parts = [&self.registry, &self.policy_name, self.operation.as_str(), &self.sha, run];
        for part in parts {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        format!("msg_{}", HEXLOWER.encode(&digest.finalize()[..16]))
    }

    fn front_matter(&self) -> FrontMatter<'_> {
        FrontMatter {
            policy_name: &self.policy_name,
            title: &self.title,
            status: self.status.as_deref().unwrap_or_default(),
            sha: &self.sha,
            path: &self.path,
            last_updated: self.last_updated.as_deref().unwrap_or_default(),
        }
    }
}

impl<'a> From<&'a Policy> for FrontMatter<'a> {
    fn from(policy: &'a Policy) -> Self {
        Self {
            policy_name: &policy.policy_name,
            title: &policy.title,
            status: &policy.status,
            sha: &policy.sha,
            path: &policy.path,
            last_updated: &policy.last_updated,
        }
    }
}

/// One who is told of changes.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub name: String,
    /// What it is, or why it cannot be.
    kind: Result<Kind, String>,
}

#[derive(Debug)]
enum Kind {
    Command(Command),
    Post(Post),
    Export(Export),
}

impl Consumer {
    /// All of them. One that cannot be set up is there too: it refuses every change, and the others
    /// are told.
    pub fn all(registry: &Registry) -> Vec<Self> {
        let declared = registry.settings().consumers.iter();
        declared.map(|(name, declared)| Self::new(registry, name, declared)).collect()
    }

    pub fn new(registry: &Registry, name: &str, declared: &Declared) -> Self {
        let timeout = declared.timeout;
        let kind = match &declared.kind {
            ConsumerKind::Command(words) => {
                Ok(Kind::Command(Command { words: words.clone(), timeout }))
            }
            ConsumerKind::Post { url, secret } => {
                Post::new(url, secret.clone(), timeout).map(Kind::Post)
            }
            ConsumerKind::Folder(path) => {
                Ok(Kind::Export(Export::Folder { folder: Folder::new(path), timeout }))
            }
            ConsumerKind::Bucket(bucket) => bucket::Objects::new(bucket, timeout)
                .map(|objects| Kind::Export(Export::Bucket(objects))),
            ConsumerKind::Store(url) => {
                let open = registry.inner.open_store.clone();
                Ok(Kind::Export(Export::Namespace(Namespace::new(url, open, timeout))))
            }
        };
        Self { name: name.to_owned(), kind }
    }

    /// Tells of a change, and waits until it is accepted. An export says what it has written.
    pub async fn tell(&self, change: &Change, now: Timestamp) -> Result<Option<Written>, String> {
        match self.kind.as_ref()? {
            Kind::Command(command) => command.tell(change).await.map(|()| None),
            Kind::Post(post) => post.tell(change, now).await.map(|()| None),
            Kind::Export(export) => {
                let text = match (export, &change.content, &change.entry) {
                    (Export::Namespace(_), _, entry) => {
                        entry.as_ref().map(|entry| entry.as_str().to_owned())
                    }
                    (_, Some(content), _) => Some(change.front_matter().above(content)?),
                    (_, None, _) => None,
                };
                match text {
                    Some(text) => export.write(&change.policy_name, text).await.map(Some),
                    None => export.remove(&change.policy_name).await.map(|()| None),
                }
            }
        }
    }

    /// Whether it is told what documents say, and not only of their entries.
    pub fn wants_content(&self) -> bool {
        !matches!(self.kind, Ok(Kind::Export(Export::Namespace(_))))
    }

    /// Copies what is known of the last run, where an export has that; when everything else is there.
    pub async fn note_run(&self, registry: &Registry) -> Result<(), String> {
        match &self.kind {
            Ok(Kind::Export(Export::Namespace(namespace))) => namespace.note_run(registry).await,
            _ => Ok(()),
        }
    }

    /// Whether it keeps policies.
    pub fn is_export(&self) -> bool {
        self.export().is_ok()
    }

    fn export(&self) -> Result<&Export, String> {
        match self.kind.as_ref()? {
            Kind::Export(export) => Ok(export),
            _ => Err("only exports can be put right; requeue what others were not told".to_owned()),
        }
    }
}

/// What went wrong, and what was behind it.
fn said(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some say what their cause says too.
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    shown(&text)
}

/// A text of others on one line, without what terminals act on.
fn shown(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
