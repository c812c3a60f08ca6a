//! Policies as files, in a folder or a bucket; or as entries of another store.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::bucket::Objects;
use super::folder::Folder;
use super::namespace::Namespace;

/// A policy is at `policies/{name}/policy.md`.
pub(super) const FOLDER: &str = "policies";
pub(super) const FILE: &str = "policy.md";

/// The longest name that file systems take.
const NAME_BYTES_MAX: usize = 255;
/// The most files that an export is looked through for.
const FILES_MAX: usize = 2_000_000;

/// A place that policies are exported to.
#[derive(Debug, Clone)]
pub(super) enum Export {
    Folder { folder: Folder, timeout: Duration },
    Bucket(Objects),
    Namespace(Namespace),
}

/// What a file was when it was written, by which it is known again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Written {
    /// The size.
    pub bytes: u64,
    /// In a folder and a store the SHA-256, in a bucket the entity tag.
    pub mark: Option<String>,
}

impl Written {
    /// What is written of a policy whose bytes are these.
    pub fn of(text: &str) -> Self {
        Self { bytes: text.len() as u64, mark: Some(digest(text.as_bytes())) }
    }
}

/// The files that are there.
pub(super) struct Files(HashMap<String, Written>);

impl Files {
    fn see(&mut self, name: String, written: Written) -> Result<(), String> {
        if self.0.len() == FILES_MAX {
            return Err(format!("there are more than {FILES_MAX} policies in the export"));
        }
        self.0.insert(name, written);
        Ok(())
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }
}

impl Export {
    /// Writes a policy, whole or not at all.
    pub async fn write(&self, name: &str, text: String) -> Result<Written, String> {
        let name = self.named(name)?;
        let bytes = text.len() as u64;
        let mark = match self {
            Self::Folder { folder, .. } => {
                let folder = folder.clone();
                let part = fresh()?;
                self.blocking(move || {
                    folder.write(&name, text.as_bytes(), &part)?;
                    Ok(Some(digest(text.as_bytes())))
                })
                .await?
            }
            Self::Bucket(objects) => objects.write(&name, Bytes::from(text)).await?,
            Self::Namespace(namespace) => {
                let mark = digest(text.as_bytes());
                namespace.write(&name, text).await?;
                Some(mark)
            }
        };
        Ok(Written { bytes, mark })
    }

    /// Removes a policy; one that is not there is removed already.
    pub async fn remove(&self, name: &str) -> Result<(), String> {
        let name = self.named(name)?;
        match self {
            Self::Folder { folder, .. } => {
                let folder = folder.clone();
                self.blocking(move || folder.remove(&name)).await
            }
            Self::Bucket(objects) => objects.remove(&name).await,
            Self::Namespace(namespace) => namespace.remove(&name).await,
        }
    }

    /// A policy's name, if the export can hold it.
    fn named(&self, name: &str) -> Result<String, String> {
        match self {
            Self::Namespace(_) => Ok(name.to_owned()),
            Self::Folder { .. } | Self::Bucket(_) => file_name(name).map(str::to_owned),
        }
    }

    /// What is there.
    pub async fn files(&self) -> Result<Files, String> {
        match self {
            Self::Folder { folder, .. } => {
                let folder = folder.clone();
                // As long as it takes: it is no telling.
                tokio::task::spawn_blocking(move || {
                    let mut files = Files(HashMap::new());
                    let mut seen = Ok(());
                    let listed = folder.list(|name, bytes| {
                        if seen.is_ok() {
                            seen = files.see(name, Written { bytes, mark: None });
                        }
                    });
                    listed.map_err(|error| error.to_string()).and(seen).map(|()| files)
                })
                .await
                .map_err(|error| error.to_string())?
            }
            Self::Bucket(objects) => {
                let mut files = Files(HashMap::new());
                objects.list(|name, bytes, mark| files.see(name, Written { bytes, mark })).await?;
                Ok(files)
            }
            Self::Namespace(namespace) => {
                let mut files = Files(HashMap::new());
                namespace.list(|name, value| files.see(name, Written::of(value))).await?;
                Ok(files)
            }
        }
    }

    /// Whether a policy's file is there as it was written.
    pub async fn has(&self, files: &Files, name: &str, written: &Written) -> Result<bool, String> {
        let Some(found) = files.0.get(name).filter(|found| found.bytes == written.bytes) else {
            return Ok(false);
        };
        match self {
            Self::Bucket(_) | Self::Namespace(_) => Ok(found.mark == written.mark),
            Self::Folder { folder, .. } => {
                let (folder, name, bytes) = (folder.clone(), name.to_owned(), written.bytes);
                let read = self.blocking(move || folder.read(&name, bytes)).await?;
                Ok(read.map(|bytes| digest(&bytes)) == written.mark)
            }
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let working = tokio::task::spawn_blocking(work);
        let worked = match self {
            // A folder may be on a disk that does not answer.
            Self::Folder { timeout, .. } => tokio::time::timeout(*timeout, working)
                .await
                .map_err(|_| format!("the folder did not answer in {} ms", timeout.as_millis()))?,
            Self::Bucket(_) | Self::Namespace(_) => working.await,
        };
        let worked = worked.map_err(|error| error.to_string())?;
        worked.map_err(|error| error.to_string())
    }
}

fn digest(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

/// A name that no other writer has.
fn fresh() -> Result<String, String> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| error.to_string())?;
    Ok(HEXLOWER.encode(&random))
}

/// A policy's name as one part of a path: as it is, so that no two names are one path, and none that
/// leads elsewhere.
fn file_name(name: &str) -> Result<&str, String> {
    let is_odd = |c: char| c.is_control() || matches!(c, '/' | '\\');
    if matches!(name, "" | "." | "..") || name.len() > NAME_BYTES_MAX || name.contains(is_odd) {
        return Err(format!("{name:?} cannot be the name of a folder; rename the file"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_part_of_a_path_as_they_are() {
        for name in
            ["a", "개인정보", "100%", "a:b", "a#b", "~", "a.", ".a", "...", "CON", "a b", "%2e%2e"]
        {
            assert_eq!(file_name(name), Ok(name));
        }
        let long = "가".repeat(86);
        for name in ["", ".", "..", "a/b", "/", "../a", "a\\b", "a\0", "a\n", &long] {
            assert!(file_name(name).is_err(), "{name:?}");
        }
    }
}
