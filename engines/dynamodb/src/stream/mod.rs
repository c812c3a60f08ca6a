//! A table's stream as a feed of changes.
//!
//! DynamoDB writes every change of an item into the table's stream, if it has one, and keeps it for a day. The stream
//! has no order as a whole: its shards are read side by side, which keeps the changes of each key in their order, and
//! tells those of different keys in any. Nothing is read unless somebody watches.

mod record;
mod requests;
mod shards;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use jiff::{SignedDuration, Timestamp};
use keyward_changes::{ChangeSource, Slice, Wait};
use keyward_engine::{Change, Error, ErrorKind, Result};
use tokio::time::{Instant, sleep_until};

use crate::client::Client;
pub(crate) use requests::Unwatchable;
use requests::{Listing, Read};
use shards::{ReadFrom, ShardCursor, Shards};

/// The pause between two reads of a shard, which takes five reads a second of all its readers together.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
/// The same while nothing changes: twice as long each time, up to this. It is also how late a change may be told.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long one read waits for changes, after which the place that was reached is kept.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// How often the shards are listed, in case one descends from none that is known. An account may list ten times a
/// second, with all its processes.
const LIST_EVERY: Duration = Duration::from_secs(30);
/// How soon they are listed again while a shard has ended whose children are not listed yet. Twice as long each time.
const LIST_SOON: Duration = Duration::from_secs(1);
/// How many shards are read at the same time.
const TOGETHER_MAX: usize = 16;
/// After how many changes a read leaves the other shards to the next one.
const CHANGES_MAX: usize = 10_000;
/// For how long the stream certainly has what followed a place: DynamoDB keeps records for a day. At the beginning of a
/// shard, it does not say that the first records are gone.
const KEPT: SignedDuration = SignedDuration::from_hours(23);

/// The stream of a store's table.
pub(crate) struct Stream {
    client: Client,
}

/// A place in a stream.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    /// The stream's name. If it is switched off and on again, a table has another one.
    stream: Arc<str>,
    shards: Shards,
    /// When it was reached, by the process's clock.
    read_at: Timestamp,
    /// The pause after the last read, and its end.
    pause: Duration,
    next_read: Instant,
    /// The same for the list of the shards.
    list_pause: Duration,
    next_list: Instant,
}

/// What a read of the shards gave.
#[derive(Default)]
struct Round {
    changes: Vec<Change>,
    /// Whether there is more to read at once.
    more: bool,
}

/// What a read of one shard gave.
struct Part {
    changes: Vec<Change>,
    is_full: bool,
    shard: ShardCursor,
    has_ended: bool,
}

impl Stream {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// A shard with a new iterator; with none if what should be read is no longer kept.
    async fn with_iterator(&self, stream: &str, mut shard: ShardCursor) -> Result<ShardCursor> {
        shard.iterator = self.client.iterator(stream, &shard).await?;
        Ok(shard)
    }

    /// Lists the shards again, and starts to read the new ones. False if the stream has ended, and was read to the end.
    async fn list(&self, position: &mut Position) -> Result<bool> {
        let Some(listing) = self.client.shards(&position.stream).await? else { return Ok(false) };
        position.shards.update(&listing.shards);
        position.list_pause = match position.shards.awaits_children() {
            true => (position.list_pause * 2).clamp(LIST_SOON, LIST_EVERY),
            false => LIST_EVERY,
        };
        position.next_list = Instant::now() + position.list_pause;
        Ok(listing.is_enabled || !position.shards.reading.is_empty())
    }

    /// Reads each shard once. None if some changes are no longer kept.
    async fn round(&self, position: &mut Position) -> Result<Option<Round>> {
        let mut waiting = std::mem::take(&mut position.shards.reading).into_iter();
        let (mut round, mut read) = (Round::default(), Vec::new());
        while round.changes.len() < CHANGES_MAX && waiting.len() > 0 {
            let some = waiting.by_ref().take(TOGETHER_MAX);
            let parts = some.map(|shard| self.part(&position.stream, shard));
            for part in try_join_all(parts).await? {
                let Some(part) = part else { return Ok(None) };
                round.changes.extend(part.changes);
                round.more |= part.is_full || part.has_ended;
                if part.has_ended {
                    position.shards.finish(part.shard.id);
                    (position.list_pause, position.next_list) = (Duration::ZERO, Instant::now());
                } else {
                    read.push(part.shard);
                }
            }
        }
        round.more |= waiting.len() > 0;
        // Those that were left out are the first the next time.
        position.shards.reading = waiting.chain(read).collect();
        Ok(Some(round))
    }

    /// Reads a shard once. None if what should be read is no longer kept.
    async fn part(&self, stream: &str, mut shard: ShardCursor) -> Result<Option<Part>> {
        let mut kept = shard.iterator.take();
        loop {
            let is_kept = kept.is_some();
            let iterator = match kept.take() {
                Some(iterator) => iterator,
                None => match self.client.iterator(stream, &shard).await? {
                    Some(iterator) => iterator,
                    None => return Ok(None),
                },
            };
            let records = match self.client.records(&iterator).await? {
                Read::Records(records) => records,
                // Where a watch began has no other name than the iterator.
                Read::Expired if is_kept && shard.from != ReadFrom::Latest => continue,
                Read::Expired | Read::Lost => return Ok(None),
            };
            let changes = records.answer.records().iter().filter_map(record::change).collect();
            let last = records.answer.records().last().and_then(|last| last.dynamodb());
            if let Some(number) = last.and_then(|last| last.sequence_number()) {
                shard.from = ReadFrom::After(number.to_owned());
            }
            shard.iterator = records.answer.next_shard_iterator;
            let has_ended = shard.iterator.is_none();
            return Ok(Some(Part { changes, is_full: records.is_full, shard, has_ended }));
        }
    }
}

impl ChangeSource for Stream {
    type Position = Position;

    async fn now(&self) -> Result<Position> {
        let read_at = self.client.clock.now();
        let stream = self.client.table_stream().await?;
        let stream = stream.map_err(|why| why.error(&self.client))?;
        let listing = self.client.shards(&stream).await?;
        let Some(Listing { shards, is_enabled: true }) = listing else {
            let message = format!(
                "cannot watch: the stream of the table {:?} is being switched off",
                self.client.options.table
            );
            return Err(Error::new(ErrorKind::Unavailable, message));
        };
        let mut shards = Shards::latest(&shards);
        let mut found = Vec::new();
        let mut reading = std::mem::take(&mut shards.reading).into_iter();
        while reading.len() > 0 {
            let some = reading.by_ref().take(TOGETHER_MAX);
            let some = some.map(|shard| self.with_iterator(&stream, shard));
            found.extend(try_join_all(some).await?);
        }
        for shard in found {
            match shard.iterator {
                Some(_) => shards.reading.push(shard),
                // It ended meanwhile, and nothing of it is kept.
                None => shards.finish(shard.id),
            }
        }
        let now = Instant::now();
        let list_pause = if shards.awaits_children() { LIST_SOON } else { LIST_EVERY };
        Ok(Position {
            stream,
            shards,
            read_at,
            pause: PAUSE_FIRST,
            // A place that is lost again and again is not looked for without a pause.
            next_read: now + PAUSE_FIRST,
            list_pause,
            next_list: now + list_pause,
        })
    }

    async fn read(&self, after: &Position, wait: Wait) -> Result<Slice<Position>> {
        let mut position = after.clone();
        let until = Instant::now() + WAIT_MAX;
        loop {
            sleep_until(position.next_read).await;
            let began = self.client.clock.now();
            if began.duration_since(position.read_at) > KEPT {
                return Ok(Slice::Lost);
            }
            if position.next_list <= Instant::now() && !self.list(&mut position).await? {
                return Ok(Slice::Lost);
            }
            let Some(Round { changes, more }) = self.round(&mut position).await? else {
                return Ok(Slice::Lost);
            };
            let is_quiet = changes.is_empty() && !more;
            position.pause = match is_quiet {
                true => (position.pause * 2).min(PAUSE_MAX),
                false => PAUSE_FIRST,
            };
            position.read_at = began;
            position.next_read = Instant::now() + position.pause;
            if !is_quiet || wait == Wait::No || Instant::now() >= until {
                return Ok(Slice::Changes { changes, position, more });
            }
        }
    }
}
