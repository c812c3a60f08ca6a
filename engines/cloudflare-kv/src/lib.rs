//! The Cloudflare KV engine: `cloudflare-kv://ACCOUNT/NAMESPACE`.
//!
//! Workers KV keeps values close to their readers and promises little: the last writer wins, a read may be a minute
//! late, nothing can be compared. The engine is of the advisory tier, and refuses what needs more. With a coordinator
//! (the coordinated engine), the same namespace becomes a store of the atomic tier.
//!
//! # What a Worker sees
//!
//! | in the namespace | is |
//! |---|---|
//! | name | the key's segments, joined by `:`, as they are. Only a `:` inside a segment is written `%3A` |
//! | value | the JSON text, byte for byte |
//! | metadata | the entry's metadata object; nothing of ours |
//! | expiration | the entry's end, in whole seconds |
//!
//! Two things do not fit Workers KV, and both are kept in the metadata as `{"keyward":{…}}`: metadata whose text
//! `JSON.stringify` would change (such as `1.50`), and an end that Workers KV does not take (within the next minute or
//! two, or after January 2038).
//!
//! # What other programs wrote
//!
//! Every name is a key. A value that is not JSON reads as a JSON string: text as it is, anything else as a `data:`
//! URL in base64. Metadata that is no object is not shown.
//!
//! # Versions
//!
//! Workers KV has none. A version is a fingerprint of value, metadata and end: another entry has another version, and
//! the same entry, written again, has the same.

mod batch;
mod client;
mod engine;
mod error;
mod list;
mod metadata;
mod name;
mod options;
mod value;

pub use engine::CloudflareKv;
pub use options::{Options, TOKEN_VARIABLE, Token};
