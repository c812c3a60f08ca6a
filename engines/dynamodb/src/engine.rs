use std::fmt;
use std::sync::Arc;

use futures_util::future::join;
use futures_util::stream;
use keyward_changes::Changes;
use keyward_engine::{
    BoxFuture, BoxStream, Capabilities, Clock, Commit, Engine, Entry, Error, ErrorKind, Event,
    Outcome, Page, Result, Revision, Scan, Stats, SystemClock, WatchSupport,
};
use keyward_key::{Key, KeyRange};

use crate::Options;
use crate::client::Client;
use crate::layout::Layout;
use crate::roots::KnownRoots;
use crate::scan::Count;
use crate::stream::{Stream, Unwatchable};
use crate::table::StoreTable;

/// A store in a DynamoDB table. Clones share it and its connections.
#[derive(Clone)]
pub struct DynamoDb {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    layout: Layout,
    roots: KnownRoots,
    capabilities: Capabilities,
    /// What changes, if the table had a stream when it was opened.
    changes: Result<Changes<Stream>, Unwatchable>,
}

impl DynamoDb {
    /// Opens the store in a table. If the table does not exist, it is created if [`Options::create`] says so;
    /// otherwise the error says what it would cost. An empty table with the right key becomes a store; one
    /// that holds something else is refused.
    ///
    /// Needs a Tokio runtime.
    pub async fn open(options: Options) -> Result<Self> {
        Self::open_with(options, SystemClock).await
    }

    /// The same, with the clock by which entries expire.
    pub async fn open_with(options: Options, clock: impl Clock) -> Result<Self> {
        let create = options.create;
        let client = Client::new(options, Arc::new(clock)).await?;
        let (table, stream) = join(client.prepare(create), client.table_stream()).await;
        let (table, stream) = (table?, stream?);
        let stream = match stream {
            // It may have been created meanwhile.
            Err(Unwatchable::NoTable) => client.table_stream().await?,
            Err(Unwatchable::NoStream) if create => client.table_stream().await?,
            stream => stream,
        };
        Ok(Self::new(client, table, stream.err()))
    }

    /// Opens the store in a table, unless there is none: then nothing is made.
    pub async fn open_existing(options: Options) -> Result<Option<Self>> {
        let client = Client::new(options, Arc::new(SystemClock)).await?;
        let (table, stream) = join(client.existing(), client.table_stream()).await;
        let Some(table) = table? else { return Ok(None) };
        Ok(Some(Self::new(client, table, stream?.err())))
    }

    fn new(client: Client, table: StoreTable, unwatchable: Option<Unwatchable>) -> Self {
        let mut capabilities = client.options.capabilities();
        let changes = match unwatchable {
            Some(why) => Err(why),
            None => {
                capabilities.watch = WatchSupport::Live;
                Ok(Changes::new(Stream::new(client.clone())))
            }
        };
        let layout = table.layout;
        let roots = KnownRoots::new(table, client.clock.now());
        Self { shared: Arc::new(Shared { client, layout, roots, capabilities, changes }) }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.shared.client
    }

    pub(crate) fn layout(&self) -> Layout {
        self.shared.layout
    }

    pub(crate) fn roots(&self) -> &KnownRoots {
        &self.shared.roots
    }
}

impl Engine for DynamoDb {
    fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    fn counts_by_reading(&self) -> bool {
        true
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Entry>>> {
        Box::pin(self.read(key))
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(async move {
            match keys {
                [] => Ok(Vec::new()),
                [key] => Ok(vec![self.read(key).await?]),
                keys => self.read_together(keys).await,
            }
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(self.page(scan))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move { self.apply(&commit).await })
    }

    fn watch(&self, range: KeyRange, since: Option<Revision>) -> BoxStream<'static, Result<Event>> {
        match &self.shared.changes {
            Ok(changes) => changes.watch(range, since),
            Err(why) => Box::pin(stream::iter([Err(why.error(&self.shared.client))])),
        }
    }

    /// Reads the whole table, which is billed as such, and counts without those that have expired: when their space is reclaimed is
    /// DynamoDB's affair.
    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(async move {
            let entries = self.count(Count::Present).await?;
            Ok(Stats { entries, ..Stats::default() })
        })
    }

    fn expired(&self) -> BoxFuture<'_, Result<Option<u64>>> {
        Box::pin(async move { self.count(Count::Expired).await.map(Some) })
    }

    fn backup<'a>(&'a self, file: &'a std::path::Path) -> BoxFuture<'a, Result<()>> {
        let _ = file;
        Box::pin(async {
            let message = "the dynamodb engine makes no backup files";
            Err(Error::new(ErrorKind::Unsupported, message)
                .advise("Use export, or DynamoDB's own backups and point-in-time recovery."))
        })
    }
}

impl fmt::Debug for DynamoDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.shared.client.options;
        f.debug_struct("DynamoDb")
            .field("region", &options.region)
            .field("table", &options.table)
            .finish_non_exhaustive()
    }
}
