//! Pauses in long runs of reads.
//!
//! Engines such as the embedded one read on the calling thread and are ready at once, so a loop over
//! pages would never let the runtime run anything else. [`pause_after`] counts what a thread has read
//! and yields to the runtime once in a while. A single read, or a page of usual size, costs one
//! addition.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

use crate::{Entry, Json, Page};

/// After how much work, in rows of usual size, a thread yields: about a millisecond of reading.
const WORK_MAX: usize = 512;
/// How many bytes of values count as much as one more row.
const BYTES_PER_ROW: usize = 4 * 1024;

thread_local! {
    /// What this thread has read since it last yielded. Tasks of one thread share it: what matters is
    /// how long the thread did nothing else.
    static WORK: Cell<usize> = const { Cell::new(0) };
}

/// Counts work that was done, and yields to the runtime if this thread has done much since it last did.
pub(super) async fn pause_after(work: usize) {
    let done = WORK.get().saturating_add(work);
    if done < WORK_MAX {
        WORK.set(done);
        return;
    }
    WORK.set(0);
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// How much work it was to read a page.
pub(super) fn of_page(page: &Page) -> usize {
    of_entries(page.rows.len(), page.rows.iter().filter_map(|row| row.entry.as_ref()))
}

/// How much work it was to look for so many keys and to read these entries.
pub(super) fn of_entries<'e>(keys: usize, entries: impl Iterator<Item = &'e Entry>) -> usize {
    let bytes: usize =
        entries.map(|entry| entry.value.len() + entry.metadata.as_ref().map_or(0, Json::len)).sum();
    keys + bytes / BYTES_PER_ROW
}
