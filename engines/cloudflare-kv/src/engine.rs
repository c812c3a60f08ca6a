use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{
    BoxFuture, Capabilities, Clock, Commit, Engine, Entry, Error, ErrorKind, Outcome, Page, Put,
    Result, Scan, Stats, SystemClock, Write,
};
use keyward_key::Key;
use serde_json::value::RawValue;

use crate::batch::{Batches, NameWrite};
use crate::client::{Client, Found, Pair};
use crate::metadata::{self, Beside};
use crate::name::{NAME_BYTES_MAX, name_of};
use crate::options::TTL_MIN;
use crate::{Options, value};

/// How far this machine's clock may be behind Cloudflare's, or a request be under way, without an end becoming too
/// near for it.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(60);
/// The last expiration that Workers KV takes: in January 2038.
const EXPIRATION_MAX: i64 = i32::MAX as i64;

/// A namespace of Workers KV. Clones share its connections.
#[derive(Clone)]
pub struct CloudflareKv {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    account: String,
    capabilities: Capabilities,
    batches: Arc<Batches>,
    clock: Arc<dyn Clock>,
}

impl CloudflareKv {
    /// Opens a namespace, which must exist: its id is made by Cloudflare.
    ///
    /// Fails as `Misplaced` if there is no such namespace, and as `Forbidden` if the token does not allow to read it.
    pub async fn open(options: Options) -> Result<Self> {
        Self::open_with(options, SystemClock).await
    }

    /// The same, going by a clock of the caller's.
    pub async fn open_with(options: Options, clock: impl Clock) -> Result<Self> {
        let missing = no_namespace(&options.namespace);
        Self::find(options, clock).await?.ok_or(missing)
    }

    /// Opens a namespace; `None` if there is no such namespace.
    pub async fn open_existing(options: Options) -> Result<Option<Self>> {
        Self::find(options, SystemClock).await
    }

    async fn find(options: Options, clock: impl Clock) -> Result<Option<Self>> {
        let client = Client::new(&options)?;
        if client.list("", None, 1).await?.is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            client,
            capabilities: options.capabilities(),
            namespace: options.namespace,
            account: options.account,
            batches: Arc::new(Batches::new()),
            clock: Arc::new(clock),
        }))
    }

    /// The entry of a pair; `None` if it has ended.
    pub(crate) fn entry(&self, found: Found) -> Option<Entry> {
        let Beside { metadata, ends } = Beside::read(found.metadata.as_deref());
        let value::Read { value, is_text } = found.value;
        let metadata = if is_text { Some(metadata::of_text(metadata)) } else { metadata };
        let expires = ends.or(moment_of(found.expiration));
        let version = value::version(&value, metadata.as_ref(), expires);
        let entry = Entry { value, metadata, version, expires };
        (!entry.is_expired(self.clock.now())).then_some(entry)
    }

    /// Whether a pair has ended.
    pub(crate) fn is_over(&self, metadata: Option<&RawValue>, expiration: Option<f64>) -> bool {
        let ends = Beside::read(metadata).ends.or(moment_of(expiration));
        ends.is_some_and(|ends| ends <= self.clock.now())
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>> {
        let names = keys.iter().map(name_in_limit).collect::<Result<Vec<String>>>()?;
        let mut asked: Vec<&str> = names.iter().map(String::as_str).collect();
        asked.sort_unstable();
        asked.dedup();
        let found = self.client.get(&asked).await?;
        let entries = found.into_iter().map(|(name, found)| (name, self.entry(found)));
        let entries: std::collections::HashMap<String, Option<Entry>> = entries.collect();
        Ok(names.iter().map(|name| entries.get(name).cloned().flatten()).collect())
    }

    async fn write(&self, commit: Commit) -> Result<Outcome> {
        let mut versions = Vec::with_capacity(commit.writes.len());
        // One, as the limits say.
        for write in commit.writes {
            let name = name_in_limit(write.key())?;
            let (write, version) = match write {
                Write::Put(_, put) => self.put(name, put)?,
                Write::Delete(_) => (NameWrite::Delete(name), None),
                Write::Add(key, _) => {
                    let message = format!("cannot add to {key}: Workers KV cannot add to numbers");
                    return Err(Error::new(ErrorKind::Unsupported, message));
                }
            };
            self.batches.write(&self.client, write).await?;
            versions.push(version);
        }
        Ok(Outcome::Applied { revision: None, versions })
    }

    /// What a put is in the namespace, and the version that it gives.
    fn put(&self, name: String, put: Put) -> Result<(NameWrite, Option<keyward_engine::Version>)> {
        let now = self.clock.now();
        let ends = put.expiry.map(|expiry| whole_second(expiry.moment(now)));
        let version = value::version(&put.value, put.metadata.as_ref(), ends);
        if ends.is_some_and(|ends| ends <= now) {
            return Ok((NameWrite::Delete(name), Some(version)));
        }
        // An end that Workers KV does not take is kept beside the value, and the pair itself a little longer, or
        // without an end.
        let nearest = now.saturating_add(TTL_MIN + CLOCK_DIFFERENCE_MAX).unwrap_or(Timestamp::MAX);
        let (expiration, own) = match ends {
            Some(ends) if ends < nearest => (Some(whole_second(nearest)), Some(ends)),
            Some(ends) if ends.as_second() > EXPIRATION_MAX => (None, Some(ends)),
            ends => (ends, None),
        };
        let text = metadata::asking_for_text(put.metadata.as_ref())
            .and_then(|rest| Some((value::plain_text(&put.value)?, rest)));
        let (value, metadata) = text.unwrap_or_else(|| (put.value.to_string(), put.metadata));
        let beside = Beside { metadata, ends: own };
        let metadata =
            beside.to_stored().map(RawValue::from_string).transpose().map_err(|error| {
                Error::new(ErrorKind::Internal, "metadata cannot be written").caused_by(error)
            })?;
        let most = self.capabilities.limits.metadata_bytes_max;
        if let Some(metadata) = metadata.as_ref().filter(|metadata| metadata.get().len() > most) {
            let message = format!(
                "the metadata takes {} bytes in Workers KV, which keeps {most}",
                metadata.get().len()
            );
            return Err(Error::new(ErrorKind::LimitExceeded, message).advise(
                "Make it smaller. Numbers such as 1.50 or 1e5, escapes that are not needed and an end within two \
                 minutes take more room than the text itself.",
            ));
        }
        let expiration = expiration.map(Timestamp::as_second);
        let pair = Pair { key: name, value, metadata, expiration };
        Ok((NameWrite::Put(pair), Some(version)))
    }
}

/// What a namespace that does not exist is told as.
pub(crate) fn no_namespace(namespace: &str) -> Error {
    let message = format!("there is no Workers KV namespace {namespace} in this account");
    Error::new(ErrorKind::Misplaced, message).advise(
        "Create one with `wrangler kv namespace create NAME`, and put the id that it prints into the store's URL.",
    )
}

fn name_in_limit(key: &Key) -> Result<String> {
    let name = name_of(key);
    if name.len() <= NAME_BYTES_MAX {
        return Ok(name);
    }
    let message = format!(
        "the name of {key} is {} bytes long in Workers KV, which takes {NAME_BYTES_MAX}",
        name.len()
    );
    Err(Error::new(ErrorKind::LimitExceeded, message))
}

/// The moment, or the next whole second: an entry never ends before its time.
fn whole_second(moment: Timestamp) -> Timestamp {
    let second = moment.as_second();
    let up = second + i64::from(moment.subsec_nanosecond() > 0);
    Timestamp::from_second(up).or_else(|_| Timestamp::from_second(second)).unwrap_or(moment)
}

fn moment_of(expiration: Option<f64>) -> Option<Timestamp> {
    // Whole seconds, as the API says; more than the calendar has never comes.
    Timestamp::from_second(expiration? as i64).ok()
}

impl fmt::Debug for CloudflareKv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudflareKv").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Engine for CloudflareKv {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// By its ids. The `api` option only says how to reach it.
    fn store_id(&self) -> Option<String> {
        Some(format!("cloudflare-kv://{}/{}", self.account, self.namespace))
    }

    fn counts_by_reading(&self) -> bool {
        true
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(self.read(keys))
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(self.page(scan))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(self.write(commit))
    }

    /// Lists all names: Workers KV counts nothing.
    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(async { Ok(Stats { entries: self.count().await?, ..Stats::default() }) })
    }
}
