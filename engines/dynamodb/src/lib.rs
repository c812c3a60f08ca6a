//! The DynamoDB engine: stores in tables of Amazon DynamoDB, shared by every process that reaches them.
//!
//! One store is one table. Its keys are spread over partitions by their first segment, and lie in key order in
//! each; a partition of its own lists the first segments, so that scans over all keys are ordered as well. The
//! layout is drawn in `layout.rs`.
//!
//! What reads cost: a scan below a root is a query for each page. A scan over roots is one for each page of the list of
//! roots, and at least one for each root in its range, also for roots whose entries are all gone.
//! [`Engine::stats`](keyward_engine::Engine::stats) reads the whole table.
//!
//! Every commit is one `TransactWriteItems`, also a commit of one key: only transactions have a token by which
//! DynamoDB recognises a request that it has carried out already. So a commit whose answer was lost is sent again,
//! without a risk that it is applied twice, or a second time after somebody else's.
//!
//! Entries expire by the clock of the process. DynamoDB deletes them later, by an attribute of its own.
//!
//! A table that has a stream when it is opened can be watched
//! ([`WatchSupport::Live`](keyward_engine::WatchSupport::Live)), whatever the stream holds besides the keys. A table
//! that Keyward creates has one. A stream costs only while somebody watches: each process that does sends one to four
//! requests a second for each of the stream's shards, of which a table has one for every partition.
//!
//! [`DynamoDbDocuments`] is something else: a table of another program, with one item per document.

mod client;
mod commit;
mod credentials;
mod documents;
mod engine;
mod error;
mod item;
mod layout;
mod number;
mod options;
mod read;
mod roots;
mod scan;
mod steps;
mod stream;
mod table;
mod version;

pub use credentials::Credentials;
pub use documents::DynamoDbDocuments;
pub use engine::DynamoDb;
pub use options::Options;
