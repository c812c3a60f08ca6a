//! Agent data opened in place: the documents that another program keeps, as a store.
//!
//! [`DocumentLayout`] is an [`Engine`](keyward_engine::Engine) over a database of
//! [documents](keyward_engine::Documents) in the layout of the original agent data store: one document per
//! entry, with its id and its fields as that program writes them. So everything that works on a store of agent
//! data works there too, and both programs read what the other one wrote.
//!
//! The store has exactly these keys:
//!
//! | key | is |
//! |---|---|
//! | `agents:{user}:{namespace}:{key}` | the document `{user}:{namespace}:{key in URL-safe base64}`, without its access fields |
//! | `system:access:agents:{user}:{namespace}:{key}` | `accessCount`, `lastAccessedByAgent` and `lastAccessedAt` of that document |
//!
//! Everything else is absent, and writing it is refused: there is no field for it. What the agent data store asks a
//! store besides has an answer ([`places`](crate::places)): that it keeps no logs and no settings, which documents
//! lists left out, and that times
//! are written as the original program does: in whole seconds, unless two states of an entry would then look the same.

mod attempts;
mod bounded;
mod engine;
mod exact;
mod fields;
mod own_changes;
mod place;
mod recent;
mod scanning;
mod skips;
mod span;
mod swapping;
mod window;

use std::fmt;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use keyward_engine::{
    Capabilities, Clock, ClockSource, Consistency, Document, DocumentLimits, Documents, Durability,
    Error, ErrorKind, ExpirySupport, Json, Limits, Result, ScanOrder, Sharing, WatchSupport,
};

use attempts::Attempts;
pub(crate) use exact::admit;
use own_changes::OwnChanges;
use recent::Recent;
use skips::Skips;
use window::Windows;

/// How many rows a page of a scan has at most.
const SCAN_ROWS_MAX: usize = 1_000;
/// How much longer than a document's id the key of its access row can be, besides what escaping adds.
const KEY_BYTES_MORE: usize = 64;

/// Agent data in the documents of another program, as a store.
///
/// ```text
/// let layout = Arc::new(DocumentLayout::open(documents, SystemClock)?);
/// layout.prepare(true).await?;
/// let agents = Agents::alone(Store::from_arc(layout), Options::default(), SystemClock)?;
/// ```
///
/// An entry's version is made of its contents and times. So counting accesses never moves it, and a state that
/// comes back exactly, times included, has the version it had. The agent data store gives each write a time that this
/// process gave no earlier state of the entry.
///
/// Ids are never escaped, since the original program must find them. A document counts as an entry only if its
/// `userId`, `namespace` and `key` are those that were asked for; another's document under the same id is absent, and
/// is never overwritten. Entries of a user whose id has a colon can be read and not written.
pub struct DocumentLayout {
    documents: Arc<dyn Documents>,
    clock: Arc<dyn Clock>,
    capabilities: Capabilities,
    /// What cursors are made with, as the records above read it.
    cursor_secret: Json,
    recent: Recent,
    attempts: Attempts,
    windows: Windows,
    own_changes: OwnChanges,
    skips: Skips,
}

impl DocumentLayout {
    /// The agent data in these documents. Nothing is read or written yet.
    ///
    /// Cursors of listings are good in this process only, unless [`DocumentLayout::with_cursor_secret`] is used.
    pub fn open(documents: Arc<dyn Documents>, clock: impl Clock) -> Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| {
            Error::new(ErrorKind::Internal, format!("there is no randomness: {error}"))
        })?;
        let mut capabilities = capabilities(documents.limits());
        capabilities.compare = documents.compare();
        capabilities.consistency = match (documents.consistency(), documents.list_lag()) {
            (Consistency::Strong, Some(lag)) => Consistency::LateScans { lag },
            (consistency, _) => consistency,
        };
        Ok(Self {
            documents,
            clock: Arc::new(clock),
            capabilities,
            cursor_secret: secret_text(&secret),
            recent: Recent::default(),
            attempts: Attempts::default(),
            windows: Windows::default(),
            own_changes: OwnChanges::default(),
            skips: Skips::default(),
        })
    }

    /// The same, with cursors that are good in every process that gives the same text, such as the store's URL with its
    /// credentials. Nobody else should know the text: whoever does can make cursors, which only choose where a
    /// caller's own listing goes on.
    #[must_use]
    pub fn with_cursor_secret(mut self, text: &str) -> Self {
        let secret = blake3::derive_key("keyward agents in place: cursor secret", text.as_bytes());
        self.cursor_secret = secret_text(&secret);
        self
    }

    /// The indexes that the layout needs and the database does not have, each as a sentence. With `create`, they are
    /// created; without, nothing is changed.
    pub async fn prepare(&self, create: bool) -> Result<Vec<String>> {
        self.documents.prepare(create).await
    }

    /// The documents with these ids, in their order, in as many requests as that takes.
    async fn read(&self, ids: &[String]) -> Result<Vec<Option<Document>>> {
        let mut found = Vec::with_capacity(ids.len());
        for some in ids.chunks(self.documents.limits().get_ids_max.max(1)) {
            found.extend(self.documents.get_many(some).await?);
        }
        Ok(found)
    }

    async fn read_one(&self, id: &str) -> Result<Option<Document>> {
        let ids = [id.to_owned()];
        Ok(self.documents.get_many(&ids).await?.pop().flatten())
    }
}

impl fmt::Debug for DocumentLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("DocumentLayout");
        shown.field("engine", &self.capabilities.engine);
        shown.finish_non_exhaustive()
    }
}

fn secret_text(secret: &[u8; 32]) -> Json {
    Json::from_stored(format!("\"{}\"", HEXLOWER.encode(secret)))
}

/// The longest id of a document, by the limits of the store.
fn id_bytes_max(limits: &Limits) -> usize {
    limits.key_bytes_max.saturating_sub(KEY_BYTES_MORE) / 2
}

fn capabilities(limits: &DocumentLimits) -> Capabilities {
    // The exact bound is that of the id, which is checked when it is made. Escaping doubles a key at most.
    let key_bytes_max = limits.id_bytes_max.saturating_mul(2).saturating_add(KEY_BYTES_MORE);
    Capabilities {
        engine: limits.engine,
        scan_order: ScanOrder::Ordered,
        consistency: Consistency::Strong,
        compare: true,
        add: false,
        watch: WatchSupport::Unsupported,
        expiry: ExpirySupport::Unsupported,
        clock: ClockSource::Process,
        durability: Durability::Synced,
        sharing: Sharing::Network,
        limits: Limits {
            key_bytes_max,
            value_bytes_max: limits.document_bytes_max,
            metadata_bytes_max: limits.document_bytes_max,
            commit_keys_max: 1,
            commit_bytes_max: limits.document_bytes_max.saturating_add(2 * key_bytes_max),
            get_keys_max: limits.get_ids_max.max(1),
            scan_rows_max: SCAN_ROWS_MAX,
        },
    }
}
