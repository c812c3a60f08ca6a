//! The Forge KVS engine: the key-value store that Atlassian Forge hosts for an app, over the storage REST API of
//! Forge Remote.
//!
//! `forge-kvs://default?token_file=PATH`. The place is a name for people, and what a coordinator knows the store by; the
//! token decides which installation of which app it is. It is the app system token that Forge Remote sends with each invocation (`x-forge-oauth-system`,
//! valid for about an hour): in a file that is read for each request, in the environment variable `FORGE_KVS_TOKEN`,
//! or handed in per call ([`ForgeKvs::with_token`], [`TokenSource`]).
//!
//! # Rows
//!
//! | row in Forge | holds |
//! |---|---|
//! | `{key}`: the colon text of a key | the value, as the app itself would write it |
//! | `#keyward:key:{base64url}` | the value of a key that Forge does not take as a name: of one character, of white space only, or with other characters than `a-z A-Z 0-9 . _ - #` and white space in its segments |
//! | `#keyward:sidecar:{row}` | what Forge has no place for: version, metadata, the end in milliseconds, and the fingerprint of the value that they belong to |
//!
//! Both rows of an entry are written in one transaction. What an app wrote is read as it is; its version is made of
//! the times that Forge keeps and the value. If an app overwrites a value, the fingerprint no longer fits, and the
//! sidecar counts as absent. An app that lists keys by its own prefixes never meets the rows below `#keyward:`; one
//! that goes through all its keys does, and if it deletes a sidecar, the entry loses its metadata and version and
//! keeps its value. Under a coordinator, which keeps versions itself, open the store with
//! [`Sidecars::Needed`]: entries without metadata and end then have no second row.
//!
//! A value whose text JavaScript would not write exactly so (`1.0`, forty digits, `null`, nesting deeper than 31) is
//! stored as `{"#keyward:json":"…"}` with its text, so that nothing is rounded. Everything else an app reads plainly.
//!
//! # Promises
//!
//! The tier of plain keys is advisory: the last writer wins. Forge compares nothing on them.
//!
//! - *Versions never repeat* for what this engine writes: time and 64 random bits. An app that writes one value twice
//!   in the same millisecond gives it one version.
//! - *Reads* are in batches, of which Atlassian does not say how current they are (a read of one key is). Listings
//!   are late, without a bound that Atlassian names. The engine declares 60 s for both. A listing reads each key that it found, so its entries are as current
//!   as those of reads; new keys may be missing.
//! - *A read beside a delete or a create* of the same entry may show the value without its metadata, since Forge
//!   reads the rows of a batch in parallel. If the two rows do not fit together, they are read again.
//! - *Expiry* is exact: Forge deletes expired rows up to 48 hours late, and the engine hides them before. It goes by
//!   the clock of the process. Forge takes at most a year; an entry that lives longer has no end there, and keeps
//!   its space after it.
//! - *Cursors* of listings hold Forge's own, which Atlassian advises not to keep.
//! - *Commits* are sent again after a lost answer, since doing them twice changes nothing. A copy that is delayed on
//!   the way for longer than that can land on a later write.
//!
//! # In a custom entity
//!
//! Forge compares only in transactions on custom entities. `forge-kvs://default?entity=keyward` opens a store in one,
//! apart from the app's plain keys. Each key is an entity with the attributes `value`, `version`, `expires` and
//! `metadata`, and the app must declare it in its manifest:
//!
//! ```yaml
//! app:
//!   storage:
//!     entities:
//!       - name: keyward
//!         attributes:
//!           version: { type: string }
//!           expires: { type: float }
//!           value: { type: any }
//!           metadata: { type: any }
//! ```
//!
//! The tier is then recoverable: compare-and-swap of one key, expiry included, in one request. Only what is
//! documented is relied on: a condition on an attribute is met by an entity that has it so, a key is created once
//! by the policy `FAIL_IF_EXISTS`, and a read of one entity (`entity/get`) is current. When a condition failed, that
//! read tells whether another writer was first, or the engine itself, by an attempt whose answer was lost.
//!
//! | read | request | shows |
//! |---|---|---|
//! | of keys, one or many | `entity/get` for each key, 25 side by side | every acknowledged write: locks and unique values rest on it |
//! | a listing | `entity/query`, then `batch/get` of 25 keys each | the store as it was up to 60 s ago, as the engine declares |
//!
//! It is not the atomic tier. Listings and batches are late, or not said to be current; what a condition such as
//! `NOT_EXISTS` means for an entity that does not exist is not said, so a transaction of several keys could not
//! create; and no read shows several keys at one moment. Whoever finds by listing (indexes, queues) what was just
//! written should name a coordinator instead.
//!
//! # What was tried, and what was not
//!
//! There is no Forge to be had outside of Atlassian's cloud, and *this engine has never spoken to it*. It was tried
//! against a test server of the documented shapes and limits (`testing/services/forge_kvs`). That the server speaks
//! what Atlassian's client speaks is proven by driving it with that client, `@forge/kvs` 1.6.5: every operation that
//! the engine uses, the refusals, each limit from both sides, values that the client writes and the engine reads and
//! the other way round.
//!
//! Taken from the documentation and not tried: the tokens of Forge Remote and what a refused one is answered with,
//! real rate limits, how late queries are, how late expired rows are deleted. That an acknowledged write survives a
//! power loss is assumed. Not documented, and handled either way:
//! whether a batch tells absent keys as failed or leaves them out; in which order Forge keeps the names of an object
//! (if it changes them, the value is the same and its text is not); whether plain transactions that meet are refused
//! as `CONDITIONAL_CHECK_FAILED` (they are sent again).

mod client;
mod engine;
mod entity;
mod error;
mod javascript;
mod name;
mod options;
mod scan;
mod sidecar;
mod token;
mod value;
mod wire;

pub use engine::ForgeKvs;
pub use options::{Options, Sidecars};
pub use token::{Token, TokenFile, TokenSource};
