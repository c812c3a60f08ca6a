//! Reading blobs: how large one is comes before what is in it, and what is in it must be what its id
//! says.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use bytes::Bytes;
use gix::ObjectId;
use gix::objs::Kind;

use super::error::told;
use super::{Blob, Error, NOT_ITSELF, Result};

/// The most threads that read at once.
const THREADS_MAX: usize = 4;
/// The fewest blobs that are worth a thread.
const BLOBS_PER_THREAD_MIN: usize = 8;

/// One who reads blobs of a repository.
pub(super) struct Reader<'a> {
    pub(super) repository: &'a gix::ThreadSafeRepository,
    pub(super) shown: &'a str,
    pub(super) blob_bytes_max: u64,
    pub(super) interrupt: &'a AtomicBool,
}

impl Reader<'_> {
    /// The blobs of these ids, in their order. One that is not there is an error.
    pub(super) fn all(&self, ids: &[ObjectId]) -> Result<Vec<Blob>> {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = (ids.len() / BLOBS_PER_THREAD_MIN).clamp(1, cores.min(THREADS_MAX));
        let part = ids.len().div_ceil(threads).max(1);
        if threads == 1 {
            return self.part(ids);
        }
        let parts: Vec<Result<Vec<Blob>>> = thread::scope(|scope| {
            let readers: Vec<_> =
                ids.chunks(part).map(|ids| scope.spawn(move || self.part(ids))).collect();
            readers
                .into_iter()
                .map(|reader| {
                    reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        });
        let mut blobs = Vec::with_capacity(ids.len());
        for part in parts {
            blobs.extend(part?);
        }
        Ok(blobs)
    }

    fn part(&self, ids: &[ObjectId]) -> Result<Vec<Blob>> {
        let repository = self.repository.to_thread_local();
        ids.iter()
            .map(|id| {
                self.read(&repository, *id)?.ok_or_else(|| self.unreadable(*id, "it is not there"))
            })
            .collect()
    }

    /// One blob, if it is there.
    pub(super) fn one(&self, id: ObjectId) -> Result<Option<Blob>> {
        self.read(&self.repository.to_thread_local(), id)
    }

    fn read(&self, repository: &gix::Repository, id: ObjectId) -> Result<Option<Blob>> {
        if self.interrupt.load(Relaxed) {
            return Err(Error::Cancelled);
        }
        let failed = |error: gix::Error| self.unreadable(id, &told(&error));
        let Some(header) = repository.try_find_header(id).map_err(failed)? else {
            return Ok(None);
        };
        if header.kind() != Kind::Blob {
            return Err(self.unreadable(id, &format!("it is a {}", header.kind())));
        }
        if header.size() > self.blob_bytes_max {
            return Ok(Some(Blob::TooLarge(header.size())));
        }
        let object = repository.find_object(id).map_err(failed)?.detach();
        let hash = gix::objs::compute_hash(id.kind(), Kind::Blob, &object.data).map_err(failed)?;
        if hash != id {
            return Err(self.unreadable(id, NOT_ITSELF));
        }
        Ok(Some(Blob::Content(Bytes::from(object.data))))
    }

    fn unreadable(&self, id: ObjectId, reason: &str) -> Error {
        let (repository, what) = (self.shown.to_owned(), format!("blob {id}"));
        Error::Unreadable { repository, what, reason: reason.to_owned() }
    }
}
