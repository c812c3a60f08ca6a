//! The coordinated engine: a value store without promises and an atomic coordinator, together one atomic engine.
//!
//! The value store (Cloudflare KV, Forge KVS) is what other programs read: the last writer wins, reads are late, and
//! nothing can be compared. The coordinator (embedded, PostgreSQL, any atomic engine) decides. A caller gets the
//! coordinator's promises; another program finds every value in the value store, under its plain key.
//!
//! # Rows
//!
//! | row of the coordinator | holds |
//! |---|---|
//! | `{key}`, the *head* | `{"hash":"…"}`, or `{"value":…}` for an entry that expires, or `{"kept":…}` for a lock catalog, or `{"adopted":"…"}` with the moment of the listing; the caller's metadata and expiry. Its version is the caller's version |
//! | `system:coordinator:pending:{key}` | the value itself and a mark (hash, times), until the value store is certain to show it; for a deleted key the mark alone |
//! | `system:coordinator:store` | which value store the coordinator belongs to, which first segments stay in the coordinator, and how far adoption has come |
//! | `system:coordinator:copied:{key}` | until adoption is complete: that it has copied this bookkeeping |
//! | keys that begin with `index`, `lock`, `queue`, `dead-letter`, `system` (and those of [`Options::keep`]) | Keyward's own bookkeeping, as it is. It never reaches the value store |
//!
//! # The protocol
//!
//! - **Commit**: one commit in the coordinator writes head and pending row of each key. Then the values are *pushed*
//!   in a task of their own. The commit waits for it at most a second, and a push that fails does not fail the commit:
//!   the pending row says what is left to do. A commit of bookkeeping alone pushes nothing.
//! - **Push**: send, wait for the answer, read the pending row again. If it has changed, push what it says now.
//! - **Read**: one read of the coordinator. With a pending row it has the value. Without one, the value store shows
//!   the value, and it counts only if it has the head's hash.
//! - **Settle**: some time after a push, read the entry back from the value store. If it has the hash, the metadata
//!   and the end, delete the pending row, in the version that was compared; else push again. Heads do not change, so
//!   neither do versions.
//!   Later commits take these deletions along. The background task of an open store, [`Coordinated::settle`] and
//!   opening do the same, and push what is left.
//!
//! # Why it is right
//!
//! *Reads are strong.* Whether a key exists, and which value it has, is read in one moment of the coordinator. A value
//! from the value store is identified by its hash, so it does not matter when it is read. The hash is of the meaning: a
//! value store that parses values may show the members of an object in another order.
//!
//! *The value store follows.* Take the last write of a key to land in the value store. If its sender lives, it reads
//! the row after that. The row says what was sent, or the sender would have sent again, and its write would not be
//! the last. If the sender died first, the row is still pending, and settling finds the difference. A row is deleted
//! only in the version whose value was found in the value store. Senders are tasks: they may overtake each other, and
//! one that ends half-way has died.
//!
//! *A pending row is deleted only when nothing older can land any more.* Older values are sent by processes that read
//! the row before it was last written. They send within a quarter of [`Options::grace`] after reading, or read again.
//! Whatever they sent has landed when the whole grace is over, and is visible after the value store's lag. Only a read
//! later than both confirms a row. Within a process that does not depend on the grace: a row is not confirmed while
//! another task of the process may send its key.
//!
//! # What remains
//!
//! - A write that is under way for longer than three quarters of the grace (of 10 minutes) can land on a settled value.
//!   It then looks like a write of another program, and is taken over. The same holds for a process that is stopped for that long between
//!   its look at the clock and its send, and for clocks that differ by more.
//! - One value store has one coordinator. Two of them would each take the other for another program.
//! - The value store shows the keys of one commit one after the other, and a little later.
//! - An entry that expires stays in the coordinator until its end. In the value store it has the same end; if its life
//!   is shorter than the value store allows, it is not there at all.
//!
//! # Other programs
//!
//! A program may also write into the value store. When a settled key is read and its value is another one, the engine
//! takes it over: the head gets the new hash, and so a new version, by compare-and-swap. A settled key that is gone was
//! deleted. New keys are found by listing ([`Coordinated::adopt_new`]). The first opening does that, and the value store
//! is listed once more after its lag, since the first listing may be late. A listed key whose value a read does not show
//! within the lag is late, not gone: reading it fails as unavailable. What is not
//! noticed: a change of the metadata alone, and changes of entries that expire. While a key has a pending row, the
//! store's value wins over that of the other program.

mod adopt;
mod capability;
mod catalog;
mod claim;
mod engine;
mod head;
mod layout;
mod meaning;
mod options;
mod pending;
mod push;
mod read;
mod settle;
mod shared;
mod takeover;
mod tasks;
mod work;
mod write;

pub use adopt::Adopted;
pub use engine::Coordinated;
pub use options::Options;
pub use settle::Settled;
pub use tasks::finish_pushes;
