//! Streams as DynamoDB tells of them. Those of DynamoDB Local have one shard, which ends only with the stream.

use std::sync::Arc;

use keyward_changes::{ChangeSource, Slice, Wait};
use keyward_engine::{ErrorKind, WatchSupport};
use keyward_testkit::{HttpProxy, NetworkFault, TestClock};

use super::{Position, Stream, Unwatchable};
use crate::client::Client;
use crate::{Credentials, Options};

const TABLE: &str =
    r#"{"Table":{"LatestStreamArn":"arn","StreamSpecification":{"StreamEnabled":true}}}"#;
const SWITCHED_OFF: &str = r#"{"Table":{"LatestStreamArn":"arn"}}"#;
const ONE_SHARD: &str =
    r#"{"StreamDescription":{"StreamStatus":"ENABLED","Shards":[{"ShardId":"1"}]}}"#;
const FIRST_PAGE: &str = r#"{"StreamDescription":{"StreamStatus":"ENABLED","Shards":[{"ShardId":"1","SequenceNumberRange":{"StartingSequenceNumber":"10","EndingSequenceNumber":"19"}}],"LastEvaluatedShardId":"1"}}"#;
const SECOND_PAGE: &str = r#"{"StreamDescription":{"StreamStatus":"ENABLED","Shards":[{"ShardId":"2","ParentShardId":"1","SequenceNumberRange":{"StartingSequenceNumber":"20"}}]}}"#;
const ALL_ENDED: &str = r#"{"StreamDescription":{"StreamStatus":"DISABLED","Shards":[{"ShardId":"1","SequenceNumberRange":{"StartingSequenceNumber":"10","EndingSequenceNumber":"19"}}]}}"#;
const ITERATOR: &str = r#"{"ShardIterator":"iterator"}"#;
/// The keys `a` and `b`, and the row of a root.
const LAST_RECORDS: &str = r#"{"Records":[{"eventName":"INSERT","dynamodb":{"Keys":{"p":{"B":"cg=="},"s":{"B":"AWE="}},"SequenceNumber":"18"}},{"eventName":"INSERT","dynamodb":{"Keys":{"p":{"B":"ZWE="},"s":{"B":"AA=="}},"SequenceNumber":"19"}}]}"#;
const RECORDS: &str = r#"{"Records":[{"eventName":"REMOVE","dynamodb":{"Keys":{"p":{"B":"ZWI="},"s":{"B":"AA=="}},"SequenceNumber":"20"}}],"NextShardIterator":"next"}"#;
const NOTHING: &str = r#"{"Records":[],"NextShardIterator":"next"}"#;
const GONE: &str = r#"{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"Requested resource not found: Stream: arn not found"}"#;
const EXPIRED: &str = r#"{"__type":"com.amazonaws.dynamodb.v20120810#ExpiredIteratorException","message":"Iterator expired"}"#;
const DENIED: &str = r#"{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"User: x is not authorized to perform: dynamodb:DescribeTable"}"#;

/// DynamoDB with answers that are given in advance. There is no server behind the proxy.
struct Script {
    proxy: HttpProxy,
    stream: Stream,
}

impl Script {
    async fn new() -> Self {
        let proxy = HttpProxy::start(([127, 0, 0, 1], 1).into()).await;
        let options = Options {
            endpoint: Some(format!("http://{}", proxy.address())),
            credentials: Some(Credentials::new("id", "secret")),
            ..Options::new("region", "table")
        };
        let client = Client::new(options, Arc::new(TestClock::new())).await.unwrap();
        Self { proxy, stream: Stream::new(client) }
    }

    fn answer(&self, answers: impl IntoIterator<Item = &'static str>) {
        for answer in answers {
            let status = if answer.contains("__type") { 400 } else { 200 };
            self.proxy.fail_next(NetworkFault::Refuse(status, answer));
        }
    }

    async fn now(&self) -> Position {
        self.answer([TABLE, ONE_SHARD, ITERATOR]);
        self.stream.now().await.unwrap()
    }

    /// The keys that changed, the place after them, and whether there is more; none if the place is lost.
    async fn read(&self, after: &Position) -> Option<(Vec<String>, Position, bool)> {
        match self.stream.read(after, Wait::No).await.unwrap() {
            Slice::Changes { changes, position, more } => {
                let keys = changes.iter().map(|change| change.key.to_string()).collect();
                Some((keys, position, more))
            }
            Slice::Lost => None,
        }
    }
}

#[tokio::test]
async fn the_children_of_a_shard_that_ends_are_read_next() {
    let script = Script::new().await;
    let begin = script.now().await;
    script.answer([LAST_RECORDS]);
    let (keys, after, more) = script.read(&begin).await.unwrap();
    assert_eq!((&keys[..], more), (&["a".to_owned()][..], true));
    // The list has two pages.
    script.answer([FIRST_PAGE, SECOND_PAGE, ITERATOR, RECORDS]);
    let (keys, after, more) = script.read(&after).await.unwrap();
    assert_eq!((&keys[..], more), (&["b".to_owned()][..], false));
    script.answer([NOTHING]);
    let (keys, _, more) = script.read(&after).await.unwrap();
    assert!(keys.is_empty() && !more);
    assert_eq!(script.proxy.requests(), 9, "no shard that ended is read again");
}

#[tokio::test]
async fn a_place_can_be_read_again() {
    let script = Script::new().await;
    let begin = script.now().await;
    for _ in 0..2 {
        script.answer([RECORDS]);
        let (keys, ..) = script.read(&begin).await.unwrap();
        assert_eq!(keys, ["b"]);
    }
}

#[tokio::test]
async fn an_iterator_that_expired_is_replaced_if_the_place_has_another_name() {
    let script = Script::new().await;
    let begin = script.now().await;
    script.answer([RECORDS]);
    let (_, after, _) = script.read(&begin).await.unwrap();
    script.answer([EXPIRED, ITERATOR, NOTHING]);
    assert!(script.read(&after).await.is_some());
    script.answer([EXPIRED]);
    assert!(script.read(&begin).await.is_none());
    // It expired again at once: not for ever.
    script.answer([EXPIRED, ITERATOR, EXPIRED]);
    assert!(script.read(&after).await.is_none());
}

#[tokio::test]
async fn a_stream_that_is_gone_or_was_switched_off_is_lost() {
    let script = Script::new().await;
    let begin = script.now().await;
    script.answer([GONE]);
    assert!(script.read(&begin).await.is_none());
    script.answer([LAST_RECORDS]);
    let (_, after, _) = script.read(&begin).await.unwrap();
    script.answer([ALL_ENDED]);
    assert!(script.read(&after).await.is_none());
    script.answer([GONE]);
    assert!(script.read(&after).await.is_none());

    script.answer([SWITCHED_OFF]);
    let error = script.stream.now().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.advice().unwrap().contains("KEYS_ONLY"), "{error}");
    // It was switched off between the two requests.
    for listed in [ALL_ENDED, GONE] {
        script.answer([TABLE, listed]);
        let error = script.stream.now().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}

#[tokio::test]
async fn a_list_of_shards_that_does_not_end_is_refused() {
    let script = Script::new().await;
    script.answer([TABLE]);
    script.proxy.fail_always(NetworkFault::Refuse(200, FIRST_PAGE));
    let error = script.stream.now().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
}

#[tokio::test]
async fn who_may_not_describe_the_table_is_told_what_to_allow() {
    let script = Script::new().await;
    let client = &script.stream.client;
    script.answer([DENIED]);
    let why = client.table_stream().await.unwrap().unwrap_err();
    assert!(matches!(why, Unwatchable::Hidden(_)), "{why:?}");
    let error = why.error(client);
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("AccessDenied"), "{error}");
    assert!(error.advice().unwrap().contains("dynamodb:DescribeTable"), "{error}");
    script.answer([GONE]);
    let why = client.table_stream().await.unwrap().unwrap_err();
    assert_eq!(why.error(client).kind(), ErrorKind::Misplaced);
    // Nothing is known before the table was looked at.
    assert_eq!(client.options.capabilities().watch, WatchSupport::Unsupported);
}
