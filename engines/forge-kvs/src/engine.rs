use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use jiff::Timestamp;
use keyward_engine::{
    BoxFuture, Capabilities, Clock, Commit, Engine, Entry, Error, ErrorKind, Outcome, Page, Put,
    Result, Scan, Stats, SystemClock, Version, Write,
};
use keyward_key::Key;
use serde_json::value::RawValue;

use crate::client::Client;
use crate::options::BATCH_KEYS_MAX;
use crate::sidecar::Sidecar;
use crate::value::Room;
use crate::wire::{Delete, QUERY_ROWS_MAX, Row, Set, SetOptions, Transaction, Ttl};
use crate::{Options, Sidecars, Token, TokenSource, name, value};

/// How often a value and its sidecar are read that do not fit together, before the sidecar counts as absent.
const ROUNDS_MAX: usize = 3;
/// The longest time to live that Forge takes.
const TTL_SECONDS_MAX: u64 = 365 * 86_400;

/// A store in Forge's key-value store. Clones share connections. The [crate] says what is where.
#[derive(Clone)]
pub struct ForgeKvs {
    pub(crate) client: Client,
    capabilities: Arc<Capabilities>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl ForgeKvs {
    /// Opens the store. Nothing is sent: with the token, the store is there.
    ///
    /// Fails as [`Misplaced`](ErrorKind::Misplaced) without a token, or with a file of one that cannot be read.
    pub async fn open(options: Options) -> Result<Self> {
        Self::open_with(options, SystemClock).await
    }

    /// Opens the store; the same as [`ForgeKvs::open`], since every installation has one.
    pub async fn open_existing(options: Options) -> Result<Option<Self>> {
        Self::open(options).await.map(Some)
    }

    /// Opens the store with another clock, which decides about expiry.
    pub async fn open_with(options: Options, clock: impl Clock) -> Result<Self> {
        let tokens = options.tokens()?;
        tokens.token(None).await?;
        let capabilities = Arc::new(options.capabilities());
        let client = Client::new(options, tokens)?;
        Ok(Self { client, capabilities, clock: Arc::new(clock) })
    }

    /// The same store for one call that brought its own token: an invocation by Forge Remote. The token also decides
    /// which installation it is. Connections are shared.
    #[must_use]
    pub fn with_token(&self, token: Token) -> Self {
        self.with_tokens(token)
    }

    /// The same store with tokens from elsewhere.
    #[must_use]
    pub fn with_tokens(&self, tokens: impl TokenSource) -> Self {
        Self { client: self.client.with_tokens(Arc::new(tokens)), ..self.clone() }
    }

    /// The entries of any number of keys, with several requests at once.
    async fn read_many(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
        let entries = match &self.client.options().entity {
            None => self.read_pairs(distinct(keys)).await?,
            Some(entity) => self.read_entities(entity, distinct(keys)).await?,
        };
        Ok(self.alive(keys, &entries))
    }

    /// The entries of keys that a listing showed. In a custom entity, they may be as late as the listing.
    pub(crate) async fn read_listed(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
        let entries = match &self.client.options().entity {
            None => self.read_pairs(distinct(keys)).await?,
            Some(entity) => self.read_listed_entities(entity, distinct(keys)).await?,
        };
        Ok(self.alive(keys, &entries))
    }

    /// The entries of keys, in their order, without those that have expired.
    fn alive(&self, keys: &[Key], entries: &HashMap<&Key, Entry>) -> Vec<Option<Entry>> {
        let now = self.clock.now();
        let entry = |key| entries.get(key).filter(|entry| !entry.is_expired(now)).cloned();
        keys.iter().map(entry).collect()
    }

    /// Values with their sidecars. Those that have expired are among them.
    async fn read_pairs<'k>(&self, mut unread: Vec<&'k Key>) -> Result<HashMap<&'k Key, Entry>> {
        let mut entries = HashMap::new();
        for round in 1..=ROUNDS_MAX {
            let batches = unread.chunks(BATCH_KEYS_MAX).map(|some| self.read_batch(some));
            let batches = try_join_all(batches).await?;
            let mut torn = Vec::new();
            for (key, Pair { name, row, sidecar }) in batches.into_iter().flatten() {
                let is_torn = match (&row, &sidecar) {
                    (Some(row), Some(sidecar)) => !sidecar.is_of(row.value.get()),
                    _ => false,
                };
                if is_torn && round < ROUNDS_MAX {
                    torn.push(key);
                    continue;
                }
                let sidecar = sidecar.filter(|_| !is_torn);
                if let Some(row) = row {
                    entries.insert(key, self.entry(&name, &row, sidecar)?);
                }
            }
            unread = torn;
            if unread.is_empty() {
                break;
            }
        }
        Ok(entries)
    }

    /// Reads values and sidecars in one request.
    async fn read_batch<'k>(&self, keys: &[&'k Key]) -> Result<Vec<(&'k Key, Pair)>> {
        let names: Vec<[String; 2]> = keys
            .iter()
            .map(|key| {
                let name = name::name(key);
                [name::sidecar(&name), name]
            })
            .collect();
        let asked: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
        let mut rows = self.client.rows(&asked, None).await?;
        let pairs = keys.iter().zip(names).map(|(key, [sidecar, name])| {
            let row = rows.remove(&name);
            let sidecar = rows.remove(&sidecar);
            let sidecar = sidecar.map(|row| Sidecar::read(&name, row.value.get())).transpose()?;
            Ok((*key, Pair { name, row, sidecar }))
        });
        pairs.collect()
    }

    fn entry(&self, name: &str, row: &Row, sidecar: Option<Sidecar>) -> Result<Entry> {
        let stored = row.value.get();
        if let Some(sidecar) = sidecar {
            return sidecar.entry(name, stored);
        }
        let expires = row.expire_time.as_deref().map(str::parse::<Timestamp>).transpose();
        let expires = expires.map_err(|error| {
            let message = format!("Forge tells an end of {name} that is no time");
            Error::new(ErrorKind::Internal, message).caused_by(error)
        })?;
        let version = match self.client.options().sidecars {
            Sidecars::Needed => value_version(stored),
            Sidecars::Always => {
                let time =
                    |time: &Option<Box<RawValue>>| time.as_ref().map(|time| time.to_string());
                let times = (time(&row.created_at), time(&row.updated_at));
                let hash = blake3::hash(format!("{times:?} {stored}").as_bytes());
                Version::parse(&format!("app-{}", &hash.to_hex()[..32]))
            }
        };
        Ok(Entry { value: value::read(stored), metadata: None, version, expires })
    }

    async fn write(&self, commit: Commit) -> Result<Outcome> {
        let now = self.clock.now();
        let unique = format!("{:x}-{:016x}", now.as_millisecond(), fastrand::u64(..));
        if let Some(entity) = &self.client.options().entity {
            return self.write_entity(entity, commit, unique, now).await;
        }
        let mut changes = Vec::with_capacity(commit.writes.len());
        let mut versions = Vec::with_capacity(commit.writes.len());
        for write in &commit.writes {
            let (change, version) = self.change(write, &unique, now)?;
            changes.push(change);
            versions.push(version);
        }
        let mut transaction = Transaction::default();
        for Change { name, sidecar, value, about, options } in &changes {
            for (key, value) in [(name, value), (sidecar, about)] {
                match value {
                    Some(value) => {
                        let (value, options) = (value.clone(), *options);
                        let (entity_name, conditions) = (None, None);
                        transaction.set.push(Set { key, entity_name, value, conditions, options });
                    }
                    None => {
                        transaction.delete.push(Delete { key, entity_name: None, conditions: None })
                    }
                }
            }
        }
        self.client.transact(&transaction).await?;
        Ok(Outcome::Applied { revision: None, versions })
    }

    fn change(
        &self,
        write: &Write,
        unique: &str,
        now: Timestamp,
    ) -> Result<(Change, Option<Version>)> {
        let name = name::name(write.key());
        let sidecar = name::sidecar(&name);
        let options = SetOptions::default();
        let mut change = Change { name, sidecar, value: None, about: None, options };
        let put = match write {
            Write::Put(_, put) => put,
            Write::Delete(_) => return Ok((change, None)),
            Write::Add(key, _) => {
                let message = format!("the forge-kvs engine cannot add to the number of {key}");
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        };
        let version = Version::parse(unique);
        let expires = put.expiry.map(|expiry| expiry.moment(now));
        if expires.is_some_and(|end| end <= now) {
            return Ok((change, Some(version)));
        }
        let stored = value::stored(&put.value, Room::WHOLE)?;
        let version = if self.has_sidecar(put) { version } else { value_version(&stored) };
        if self.has_sidecar(put) {
            let about = Sidecar {
                version: version.to_string(),
                value: value::fingerprint(&stored),
                metadata: put.metadata.as_ref().map(ToString::to_string),
                expires: expires.map(Timestamp::as_millisecond),
            };
            change.about = Some(serde_json::value::to_raw_value(&about).map_err(unwritable)?);
        }
        change.value = Some(RawValue::from_string(stored).map_err(unwritable)?);
        change.options.ttl = expires.and_then(|end| lifetime(end, now));
        Ok((change, Some(version)))
    }

    fn has_sidecar(&self, put: &Put) -> bool {
        match self.client.options().sidecars {
            Sidecars::Always => true,
            Sidecars::Needed => put.metadata.is_some() || put.expiry.is_some(),
        }
    }

    async fn count(&self) -> Result<Stats> {
        let mut entries = 0;
        let mut after = None;
        loop {
            let page = self.client.list("", QUERY_ROWS_MAX, after.as_deref()).await?;
            entries += page.data.iter().filter(|row| name::key(&row.key).is_some()).count() as u64;
            after = page.cursor;
            if after.is_none() {
                return Ok(Stats { entries, ..Stats::default() });
            }
        }
    }
}

fn distinct(keys: &[Key]) -> Vec<&Key> {
    let mut distinct: Vec<&Key> = keys.iter().collect();
    distinct.sort();
    distinct.dedup();
    distinct
}

/// What Forge has of one key.
struct Pair {
    name: String,
    row: Option<Row>,
    sidecar: Option<Sidecar>,
}

/// What becomes of the two rows of a key.
struct Change {
    name: String,
    sidecar: String,
    value: Option<Box<RawValue>>,
    about: Option<Box<RawValue>>,
    options: SetOptions,
}

/// The version of an entry that has no other than its value.
fn value_version(stored: &str) -> Version {
    Version::parse(&format!("value-{}", value::fingerprint(stored)))
}

/// How long Forge shall keep rows that end at a moment: to the next whole second, so that they never end before.
/// `None` if it is longer than Forge takes.
pub(crate) fn lifetime(end: Timestamp, now: Timestamp) -> Option<Ttl> {
    let left = Duration::try_from(end.duration_since(now)).unwrap_or_default();
    let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    let ttl = Ttl { value: seconds.max(1), unit: "SECONDS" };
    (seconds <= TTL_SECONDS_MAX).then_some(ttl)
}

pub(crate) fn unwritable(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Internal, "a value cannot be written as JSON").caused_by(error)
}

impl fmt::Debug for ForgeKvs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForgeKvs").field("options", self.client.options()).finish_non_exhaustive()
    }
}

impl Engine for ForgeKvs {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// By its name for people, since the token does not say which installation it is for, and the custom entity.
    fn store_id(&self) -> Option<String> {
        let Options { name, entity, .. } = self.client.options();
        Some(match entity {
            None => format!("forge-kvs://{name}"),
            Some(entity) => format!("forge-kvs://{name}?entity={entity}"),
        })
    }

    fn counts_by_reading(&self) -> bool {
        true
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(self.read_many(keys))
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(self.read_page(scan))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(self.write(commit))
    }

    /// Lists all keys, since Forge counts nothing.
    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(self.count())
    }
}
