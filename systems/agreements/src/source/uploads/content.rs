//! What an attachment holds, in pieces.

use std::time::Duration;

use bytes::Bytes;
use data_encoding::{BASE64, HEXLOWER};
use keyward_engine::{Commit, Expect, Expiry, Json, Outcome, Put, Scan, Version};
use keyward_key::{Key, KeyRange, Prefix};
use sha2::{Digest, Sha256};

use super::manifest::{Attached, kept, key};
use super::{Uploads, contended};
use crate::page::UPLOADS;
use crate::{Error, PageId, Result, SourceId};

/// The bytes of a piece, before it is put into base64.
const CHUNK_BYTES: usize = 512 << 10;
/// So many pieces are written, read or removed together.
const CHUNKS_TOGETHER: usize = 8;
/// Names to remove at once.
const DELETES_TOGETHER: usize = 100;
/// So often a reader begins anew, because what it reads was replaced.
const READS: usize = 8;
/// After so long without a step, an upload has been given up.
pub(super) const UNDER_WAY: Duration = Duration::from_secs(3_600);

const CONTENT: &str = "content";

/// `upload:{page}:content`.
pub(super) fn contents(page: &PageId) -> Prefix {
    Prefix::from_segments([UPLOADS, page.as_str(), CONTENT])
}

/// `upload:{page}:content:{content}`: the note that an upload is under way.
pub(super) fn note_key(page: &PageId, content: &str) -> Result<Key> {
    Ok(key(page)?.child(CONTENT).child(content))
}

fn chunk_key(page: &PageId, content: &str, n: usize) -> Result<Key> {
    Ok(note_key(page, content)?.child(&format!("{n:06}")))
}

/// A content that is in the store whole, and in no manifest yet.
pub(super) struct Written {
    pub content: String,
    pub chunks: usize,
    pub sha256: String,
    /// The version of the note that it is under way.
    pub note: Version,
}

impl Uploads {
    /// Writes a content, step by step.
    pub(super) async fn write(&self, page: &PageId, bytes: &[u8]) -> Result<Written> {
        let content = self.entropy.id()?;
        let size = self.chunk_bytes();
        // One at least, so that there is a note.
        let chunks: Vec<&[u8]> =
            if bytes.is_empty() { vec![bytes] } else { bytes.chunks(size).collect() };
        let mut expect = Expect::Absent;
        let mut hash = Sha256::new();
        let together = self.chunks_together(size);
        for (step, some) in chunks.chunks(together).enumerate() {
            let done = step * together;
            let there = Json::from_integer((done + some.len()) as i64);
            let note = Put::new(there).expiring(Expiry::After(UNDER_WAY));
            let at = note_key(page, &content)?;
            let mut commit = Commit::new().check(at.clone(), expect).put(at.clone(), note);
            for (n, chunk) in some.iter().enumerate() {
                hash.update(chunk);
                let text = format!("\"{}\"", BASE64.encode(chunk));
                let put = Put::new(Json::from_stored(text));
                commit = commit.put(chunk_key(page, &content, done + n)?, put);
            }
            expect = match self.store.commit(commit).await? {
                Outcome::Applied { versions, .. } => {
                    let version = versions.into_iter().next().flatten();
                    Expect::Version(version.ok_or_else(|| Error::damaged(at, "no version"))?)
                }
                Outcome::Conflicted { .. } => return Err(took_too_long()),
            };
        }
        let Expect::Version(note) = expect else { return Err(took_too_long()) };
        let sha256 = HEXLOWER.encode(&hash.finalize());
        Ok(Written { content, chunks: chunks.len(), sha256, note })
    }

    /// Bytes of a piece that fit into one value.
    fn chunk_bytes(&self) -> usize {
        let limits = self.store.limits();
        // In base64 three bytes take four, and a text has its quotes; a commit has keys besides.
        let room = limits.value_bytes_max.min(limits.commit_bytes_max.saturating_sub(4 << 10));
        CHUNK_BYTES.min(room.saturating_sub(2) / 4 * 3).max(3)
    }

    fn chunks_together(&self, size: usize) -> usize {
        let limits = self.store.limits();
        let one = size / 3 * 4 + (2 << 10);
        let fit = (limits.commit_bytes_max / one).min(limits.commit_keys_max.saturating_sub(1));
        fit.clamp(1, CHUNKS_TOGETHER)
    }

    /// Reads what an attachment holds: all of one upload, whatever is replaced meanwhile.
    pub(super) async fn read_attachment(
        &self,
        page: &PageId,
        source: &SourceId,
    ) -> Result<Option<Bytes>> {
        let mut missing = None;
        for _ in 0..READS {
            let Some(kept) = self.manifest(page).await? else { return Ok(None) };
            let Some(attached) = kept.manifest.find(source) else { return Ok(None) };
            if missing.as_ref() == Some(&attached.content) {
                let at = note_key(page, &attached.content)?;
                return Err(Error::damaged(at, "a piece of the attachment is missing"));
            }
            match self.assemble(page, attached).await? {
                Some(bytes) => return Ok(Some(bytes)),
                None => missing = Some(attached.content.clone()),
            }
        }
        Err(contended(page))
    }

    /// Puts a content together. `None` if a piece is not there.
    async fn assemble(&self, page: &PageId, attached: &Attached) -> Result<Option<Bytes>> {
        let at = note_key(page, &attached.content)?;
        let damaged = |reason: &str| Error::damaged(&at, reason);
        let most = self.limits.attachment_bytes_max.max(attached.bytes);
        let mut bytes = Vec::with_capacity(usize::try_from(attached.bytes).unwrap_or_default());
        let mut hash = Sha256::new();
        let mut n = 0;
        while n < attached.chunks {
            let end = attached.chunks.min(n + CHUNKS_TOGETHER);
            let keys: Result<Vec<Key>> =
                (n..end).map(|n| chunk_key(page, &attached.content, n)).collect();
            for entry in self.store.get_many(&keys?).await? {
                let Some(entry) = entry else { return Ok(None) };
                let text = entry.value.as_str();
                let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                let text = text.ok_or_else(|| damaged("a piece is no text"))?;
                let chunk = BASE64.decode(text.as_bytes());
                let chunk = chunk.map_err(|_| damaged("a piece is not in base64"))?;
                hash.update(&chunk);
                bytes.extend(chunk);
                if bytes.len() as u64 > most {
                    return Err(damaged("the attachment is longer than it was"));
                }
            }
            n = end;
        }
        if bytes.len() as u64 != attached.bytes {
            return Err(damaged("the attachment is not as long as it was"));
        }
        if HEXLOWER.encode(&hash.finalize()) != attached.sha256 {
            return Err(damaged("the attachment is not what it was: its SHA-256 is another"));
        }
        Ok(Some(bytes.into()))
    }

    /// Takes back a content that no manifest names, unless somebody has named it.
    pub(super) async fn discard(&self, page: &PageId, written: &Written) -> Result<()> {
        let at = note_key(page, &written.content)?;
        let expect = Expect::Version(written.note.clone());
        // Without its note nothing can name it any more, not even a commit that is still on its way.
        let commit = Commit::new().check(at.clone(), expect).delete(at);
        if self.store.commit(commit).await?.is_applied() {
            self.remove_chunks(page, &written.content).await?;
        }
        Ok(())
    }

    /// Removes a content that belongs to nobody: it has no note, and the manifest does not name it. Says
    /// how many pieces it had, or `None` if it belongs to somebody.
    pub(super) async fn remove_content(
        &self,
        page: &PageId,
        content: &str,
    ) -> Result<Option<usize>> {
        let keys = [key(page)?, note_key(page, content)?];
        // Seen at one moment: what has no note will never be named, unless it is already.
        let seen = self.store.get_many(&keys).await?;
        let [manifest, None] = &seen[..] else { return Ok(None) };
        if let Some(entry) = manifest
            && kept(&keys[0], entry)?.manifest.has(content)
        {
            return Ok(None);
        }
        self.remove_chunks(page, content).await.map(Some)
    }

    async fn remove_chunks(&self, page: &PageId, content: &str) -> Result<usize> {
        let range = KeyRange::under(&contents(page).child(content));
        let together = DELETES_TOGETHER.min(self.store.limits().commit_keys_max);
        let mut removed = 0;
        loop {
            let scan = Scan::new(range.clone()).limit(together).keys_only();
            let found = self.store.scan(&scan).await?;
            if found.rows.is_empty() && found.next.is_none() {
                return Ok(removed);
            }
            removed += found.rows.len();
            let commit =
                found.rows.into_iter().fold(Commit::new(), |commit, row| commit.delete(row.key));
            if !commit.writes.is_empty() {
                // Without checks, nothing can refuse it.
                let _ = self.store.commit(commit).await?;
            }
        }
    }
}

pub(super) fn took_too_long() -> Error {
    Error::Invalid(
        "the upload took too long between two steps, and was given up; begin anew".into(),
    )
}
