//! Records of a stream as changes of entries.

use aws_sdk_dynamodbstreams::types::{Identity, OperationType, Record};
use keyward_engine::{Change, ChangeKind};

use crate::layout::{self, PARTITION, SORT};

/// Who deletes items that have expired.
const TTL_SERVICE: (&str, &str) = ("Service", "dynamodb.amazonaws.com");

/// The change that a record tells of. None if its item is no entry, but one of those by which the table is kept.
pub(super) fn change(record: &Record) -> Option<Change> {
    let keys = record.dynamodb.as_ref()?.keys.as_ref()?;
    let bytes = |name| Some(keys.get(name)?.as_b().ok()?.as_ref());
    let key = layout::key(bytes(PARTITION)?, bytes(SORT)?)?;
    let kind = match &record.event_name {
        Some(OperationType::Remove) if is_ttl(record.user_identity.as_ref()) => ChangeKind::Expired,
        Some(OperationType::Remove) => ChangeKind::Deleted,
        // Also operations of other names, such as DynamoDB Local gives to deletions by TTL: who reads the key sees what
        // became of it.
        _ => ChangeKind::Put,
    };
    Some(Change { key, kind })
}

fn is_ttl(identity: Option<&Identity>) -> bool {
    let names =
        identity.and_then(|who| Some((who.r#type.as_deref()?, who.principal_id.as_deref()?)));
    names == Some(TTL_SERVICE)
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodbstreams::primitives::Blob;
    use aws_sdk_dynamodbstreams::types::{AttributeValue, StreamRecord};
    use keyward_key::Key;

    use super::*;
    use crate::layout::{HEADER, HEADER_SORT, Layout, ROOTS, root_sort};

    fn record(partition: &[u8], sort: &[u8], operation: OperationType) -> Record {
        let binary = |bytes: &[u8]| AttributeValue::B(Blob::new(bytes));
        let keys = StreamRecord::builder().keys("p", binary(partition)).keys("s", binary(sort));
        Record::builder().event_name(operation).dynamodb(keys.build()).build()
    }

    fn of_key(text: &str, operation: OperationType) -> Record {
        let place = Layout { segments: 1 }.place(&Key::parse(text).unwrap());
        record(&place.partition, &place.sort, operation)
    }

    #[test]
    fn operations_on_entries_are_changes_of_their_keys() {
        for (operation, kind) in [
            (OperationType::Insert, ChangeKind::Put),
            (OperationType::Modify, ChangeKind::Put),
            (OperationType::Remove, ChangeKind::Deleted),
            (OperationType::from("LATER"), ChangeKind::Put),
        ] {
            for text in ["a", "a:b", ":", "a%00:%01"] {
                let key = Key::parse(text).unwrap();
                assert_eq!(change(&of_key(text, operation.clone())), Some(Change { key, kind }));
            }
        }
    }

    #[test]
    fn what_dynamodb_deletes_has_expired() {
        let by = |kind: &str, who: &str| {
            let mut record = of_key("a", OperationType::Remove);
            record.user_identity = Some(Identity::builder().r#type(kind).principal_id(who).build());
            change(&record).unwrap().kind
        };
        assert_eq!(by("Service", "dynamodb.amazonaws.com"), ChangeKind::Expired);
        assert_eq!(by("Service", "replication.dynamodb.amazonaws.com"), ChangeKind::Deleted);
        assert_eq!(by("User", "dynamodb.amazonaws.com"), ChangeKind::Deleted);
        let mut written = of_key("a", OperationType::Modify);
        written.user_identity = Some(Identity::builder().r#type("Service").build());
        assert_eq!(change(&written).unwrap().kind, ChangeKind::Put);
    }

    #[test]
    fn items_that_are_no_entries_are_no_changes() {
        let insert = OperationType::Insert;
        assert_eq!(change(&record(ROOTS, &root_sort(b"a"), insert.clone())), None);
        assert_eq!(change(&record(HEADER, HEADER_SORT, insert.clone())), None);
        // What somebody else put into the table.
        assert_eq!(change(&record(b"ea", b"\x07", insert.clone())), None);
        assert_eq!(change(&Record::builder().event_name(insert).build()), None);
    }
}
