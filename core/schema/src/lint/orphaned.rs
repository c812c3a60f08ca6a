//! Indexes kept by hand, whose entries outlive the records they point at.

use super::word::{folded, is_index_by_hand, singular};
use super::{Finding, Weight};
use crate::property::Property;
use crate::{Schema, Space};

pub(super) fn look(schema: &Schema, space: &Space, findings: &mut Vec<Finding>) {
    if !is_index_by_hand(space) {
        return;
    }
    let fix = match indexed(schema, space) {
        Some((target, field)) => format!(
            "remove this space and declare the index where the records are: [spaces.{}.indexes.{}] \
             field = {field:?}",
            target.name, space.name
        ),
        None => {
            "remove this space and declare an index on the space that holds the records".to_owned()
        }
    };
    let why = match space.lifetime {
        None => "whoever deletes or changes a record must remember its entries here; the first one \
                 forgotten points at nothing. Entries of a declared index change with their record"
            .to_owned(),
        Some(_) => "an entry with a lifetime of its own ends before its record, which is then not \
                    found, or after it, and then points at nothing. Entries of a declared index live \
                    as long as their record"
            .to_owned(),
    };
    findings.push(Finding {
        code: "orphaned-index",
        weight: Weight::Mistake,
        space: space.name.clone(),
        message: format!(
            "{} is an index kept by hand: its values only point at records",
            space.key
        ),
        why,
        fix,
    });
}

/// The space and its field that an index kept by hand is probably about.
fn indexed<'s>(schema: &'s Schema, by_hand: &'s Space) -> Option<(&'s Space, &'s str)> {
    let variables: Vec<String> =
        by_hand.key.variables().map(|variable| singular(&folded(&variable.name))).collect();
    let mut others = schema.spaces_of(&by_hand.store).filter(|other| !is_index_by_hand(other));
    others.find_map(|other| {
        let fields = Property::root(other.value.as_ref()?.definition()).fields();
        let about = |name: &str| variables.contains(&singular(&folded(name)));
        let (field, _) = fields.into_iter().find(|(name, _)| about(name))?;
        Some((other, field))
    })
}
