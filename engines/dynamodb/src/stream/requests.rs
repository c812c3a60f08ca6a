//! Requests about a table's stream.

use std::sync::Arc;

use aws_sdk_dynamodbstreams::operation::get_records::GetRecordsOutput;
use aws_sdk_dynamodbstreams::types::{Shard, ShardIteratorType, StreamStatus};
use keyward_engine::{Error, ErrorKind, Result};

use super::shards::{Listed, ReadFrom, ShardCursor};
use crate::client::Client;
use crate::error::Failure;

const DOING: &str = "cannot watch";
/// How many pages of shards are listed at most, each of a hundred. A table with a thousand partitions has about 70: a
/// shard ends after four hours, and is listed for a day.
const PAGES_MAX: usize = 100;
/// The most records that one request can return.
const RECORDS_MAX: usize = 1_000;
/// A request returns up to a megabyte of records. After this many bytes, more are likely to follow.
const FULL_BYTES: i64 = 512 << 10;

/// Why a table cannot be watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unwatchable {
    NoTable,
    NoStream,
    /// This user may not describe the table. Holds what DynamoDB answered.
    Hidden(String),
}

impl Unwatchable {
    pub(crate) fn error(&self, client: &Client) -> Error {
        let table = &client.options.table;
        let (message, advice) = match self {
            Self::NoTable => return client.no_table(),
            Self::NoStream => (
                format!("cannot watch: the table {table:?} has no stream"),
                format!(
                    "Enable a stream on the table and open the store again. KEYS_ONLY is enough: aws dynamodb \
                     update-table --table-name {table} --stream-specification \
                     StreamEnabled=true,StreamViewType=KEYS_ONLY"
                ),
            ),
            Self::Hidden(answer) => (
                format!("cannot watch the table {table:?}: {answer}"),
                format!("{ALLOW} Then open the store again."),
            ),
        };
        Error::new(ErrorKind::Unsupported, message).advise(advice)
    }
}

const ALLOW: &str = "Allow dynamodb:DescribeTable on the table, and dynamodb:DescribeStream, \
                     dynamodb:GetShardIterator and dynamodb:GetRecords on its stream.";

/// The shards of a stream.
pub(super) struct Listing {
    pub(super) shards: Vec<Listed>,
    /// Whether the stream goes on. One that was switched off can be read to its end.
    pub(super) is_enabled: bool,
}

/// What one request gave of a shard.
pub(super) struct Records {
    pub(super) answer: GetRecordsOutput,
    /// Whether more records are likely to follow at once.
    pub(super) is_full: bool,
}

/// What became of an iterator.
pub(super) enum Read {
    Records(Records),
    Expired,
    /// What should be read is no longer kept.
    Lost,
}

impl Client {
    /// The name of the table's stream, or why it has none to read.
    pub(crate) async fn table_stream(&self) -> Result<Result<Arc<str>, Unwatchable>> {
        let request = || self.sdk.describe_table().table_name(&self.options.table).send();
        let table = match self.send("cannot describe the table", request).await {
            Ok(answer) => answer.table,
            Err(failure) if failure.is("ResourceNotFoundException") => None,
            Err(failure) if is_denied(&failure) => {
                return Ok(Err(Unwatchable::Hidden(failure.error.message().to_owned())));
            }
            Err(failure) => return Err(failure.into()),
        };
        let Some(table) = table else { return Ok(Err(Unwatchable::NoTable)) };
        // A stream that was switched off keeps its name for a day.
        let is_enabled = table.stream_specification.is_some_and(|stream| stream.stream_enabled);
        let stream = table.latest_stream_arn.filter(|_| is_enabled);
        Ok(stream.map(Arc::from).ok_or(Unwatchable::NoStream))
    }

    /// The shards of a stream; none if it is gone.
    pub(super) async fn shards(&self, stream: &str) -> Result<Option<Listing>> {
        let mut listing = Listing { shards: Vec::new(), is_enabled: true };
        let mut after = None;
        for _ in 0..PAGES_MAX {
            let request = || {
                let request = self.streams.describe_stream().stream_arn(stream);
                request.set_exclusive_start_shard_id(after.clone()).send()
            };
            let answer = match self.send(DOING, request).await {
                Ok(answer) => answer,
                Err(failure) if failure.is("ResourceNotFoundException") => return Ok(None),
                Err(failure) => return Err(error(failure)),
            };
            let Some(description) = answer.stream_description else { return Ok(None) };
            let off = [StreamStatus::Disabled, StreamStatus::Disabling];
            listing.is_enabled = !description.stream_status.is_some_and(|it| off.contains(&it));
            let shards = description.shards.unwrap_or_default();
            listing.shards.extend(shards.into_iter().filter_map(listed));
            after = description.last_evaluated_shard_id;
            if after.is_none() {
                return Ok(Some(listing));
            }
        }
        let message = format!(
            "cannot watch: the stream of the table {:?} has more than {} shards",
            self.options.table,
            listing.shards.len()
        );
        Err(Error::new(ErrorKind::LimitExceeded, message)
            .advise("Read the stream with a program of your own, such as AWS Lambda."))
    }

    /// A new iterator for a place in a shard; none if what follows the place is no longer kept.
    pub(super) async fn iterator(
        &self,
        stream: &str,
        shard: &ShardCursor,
    ) -> Result<Option<String>> {
        let (kind, after) = match &shard.from {
            ReadFrom::Beginning => (ShardIteratorType::TrimHorizon, None),
            ReadFrom::Latest => (ShardIteratorType::Latest, None),
            ReadFrom::After(number) => (ShardIteratorType::AfterSequenceNumber, Some(number)),
        };
        let request = || {
            let request = self.streams.get_shard_iterator().stream_arn(stream);
            let request = request.shard_id(&shard.id).shard_iterator_type(kind.clone());
            request.set_sequence_number(after.cloned()).send()
        };
        match self.send(DOING, request).await {
            Ok(answer) => Ok(answer.shard_iterator),
            Err(failure) if is_lost(&failure) => Ok(None),
            Err(failure) => Err(error(failure)),
        }
    }

    pub(super) async fn records(&self, iterator: &str) -> Result<Read> {
        let request = || {
            let limit = i32::try_from(RECORDS_MAX).unwrap_or(i32::MAX);
            self.streams.get_records().shard_iterator(iterator).limit(limit).send()
        };
        match self.send(DOING, request).await {
            Ok(answer) => {
                let sizes =
                    answer.records().iter().filter_map(|record| record.dynamodb()?.size_bytes);
                let is_full =
                    answer.records().len() >= RECORDS_MAX || sizes.sum::<i64>() >= FULL_BYTES;
                Ok(Read::Records(Records { answer, is_full }))
            }
            Err(failure) if failure.is("ExpiredIteratorException") => Ok(Read::Expired),
            Err(failure) if is_lost(&failure) => Ok(Read::Lost),
            Err(failure) => Err(error(failure)),
        }
    }
}

fn listed(shard: Shard) -> Option<Listed> {
    let range = shard.sequence_number_range;
    let has_ended = range.is_some_and(|range| range.ending_sequence_number.is_some());
    Some(Listed { id: shard.shard_id?, parent: shard.parent_shard_id, has_ended })
}

/// Whether the stream, the shard or the record is no longer kept.
fn is_lost(failure: &Failure) -> bool {
    failure.is("TrimmedDataAccessException") || failure.is("ResourceNotFoundException")
}

/// Whether the credentials are good, and what they allow is not enough.
fn is_denied(failure: &Failure) -> bool {
    failure.is("AccessDeniedException") || failure.is("AccessDenied")
}

fn error(failure: Failure) -> Error {
    match is_denied(&failure) {
        true => failure.error.advise(ALLOW),
        false => failure.error,
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodbstreams::types::SequenceNumberRange;

    use super::*;

    #[test]
    fn a_shard_with_a_last_number_has_ended() {
        let range = SequenceNumberRange::builder().starting_sequence_number("1");
        let shard = Shard::builder().shard_id("a").parent_shard_id("p");
        let open = shard.clone().sequence_number_range(range.clone().build()).build();
        let ended = shard.sequence_number_range(range.ending_sequence_number("2").build()).build();
        for (shard, has_ended) in [(open, false), (ended, true)] {
            let expected = Listed { id: "a".to_owned(), parent: Some("p".to_owned()), has_ended };
            assert_eq!(listed(shard), Some(expected));
        }
        assert_eq!(listed(Shard::builder().build()), None);
    }
}
