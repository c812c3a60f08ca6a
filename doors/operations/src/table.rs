//! The table of all operations, in the order in which documentation shows them.

use crate::entries::{
    ClearEntries, DeleteEntry, GetEntries, GetEntry, ListEntries, PatchEntry, PutEntry,
};
use crate::operation::Declared;
use crate::records::{
    BatchRecords, ClearRecords, CreateRecord, DeleteRecord, ExplainQuery, GetRecord,
    GetRecordHistory, GetRecords, ListRecords, NearRecords, PatchRecord, PutRecord, QueryRecords,
    RestoreRecord, WithinRecords,
};

/// All operations, in the order in which documentation shows them.
pub static TABLE: &[Declared] = &[
    Declared::of::<GetEntry>(),
    Declared::of::<PutEntry>(),
    Declared::of::<PatchEntry>(),
    Declared::of::<DeleteEntry>(),
    Declared::of::<ListEntries>(),
    Declared::of::<ClearEntries>(),
    Declared::of::<GetEntries>(),
    Declared::of::<GetRecord>(),
    Declared::of::<PutRecord>(),
    Declared::of::<PatchRecord>(),
    Declared::of::<DeleteRecord>(),
    Declared::of::<CreateRecord>(),
    Declared::of::<ListRecords>(),
    Declared::of::<ClearRecords>(),
    Declared::of::<GetRecords>(),
    Declared::of::<BatchRecords>(),
    Declared::of::<QueryRecords>(),
    Declared::of::<ExplainQuery>(),
    Declared::of::<NearRecords>(),
    Declared::of::<WithinRecords>(),
    Declared::of::<GetRecordHistory>(),
    Declared::of::<RestoreRecord>(),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use schemars::generate::SchemaSettings;

    use super::*;
    use crate::facts::Body;

    #[test]
    fn every_operation_has_a_name_and_a_route_of_its_own() {
        let ids: BTreeSet<_> = TABLE.iter().map(|row| row.facts.id).collect();
        let routes: BTreeSet<_> =
            TABLE.iter().map(|row| (row.facts.method.name(), row.facts.path)).collect();
        assert_eq!((ids.len(), routes.len()), (TABLE.len(), TABLE.len()));
    }

    #[test]
    fn what_the_facts_name_are_documented_fields_of_the_request() {
        for row in TABLE {
            let mut generator = SchemaSettings::draft2020_12().into_generator();
            let schema = (row.request)(&mut generator);
            let id = row.facts.id;
            let fields = schema.get("properties").and_then(|it| it.as_object()).unwrap();
            let body = match row.facts.body {
                Body::Whole(field) | Body::MergePatch(field) => Some(field),
                Body::None | Body::Fields => None,
            };
            for field in row.facts.path_fields().chain(body) {
                assert!(fields.contains_key(field), "{id} has no field {field}");
            }
            assert!(schema.get("description").is_some(), "{id} has no description");
            for (name, field) in fields {
                let is_documented = field.get("description").is_some();
                assert!(is_documented, "{id}.{name} has no description");
            }
        }
    }
}
