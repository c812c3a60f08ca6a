//! The fields that a space's declarations speak of, checked against what its values look like.

use keyward_key::Pattern;

use super::report::Report;
use super::table::Text;
use crate::nearest::{listed, nearest};
use crate::property::{Lookup, Property};
use crate::{FieldPath, Scope, ValueSchema};

/// What is known of a space while its parts are read.
pub(super) struct Surroundings<'a> {
    /// The key, unless it is wrong.
    pub key: Option<&'a Pattern>,
    pub value: Described<'a>,
    /// The ownership, unless it is wrong.
    pub owned: Option<Owned>,
}

/// What is said about the values of a space.
#[derive(Clone, Copy)]
pub(super) enum Described<'a> {
    /// Nothing.
    Not,
    /// Something that is wrong, and has been told.
    Wrongly,
    /// This.
    By(&'a ValueSchema),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owned {
    ByUser,
    ByNobody,
    Hybrid,
}

impl Owned {
    /// The scope of an index or query that names none.
    pub fn scope(self) -> Scope {
        match self {
            Self::ByUser | Self::Hybrid => Scope::Owner,
            Self::ByNobody => Scope::Shared,
        }
    }
}

pub(super) fn path(text: &Text<'_>, report: &mut Report<'_>) -> Option<FieldPath> {
    match text.text.parse() {
        Ok(path) => Some(path),
        Err(_) => {
            let message = format!("{:?} names no field", text.text);
            let hint = format!(
                "write names with dots between them, at most {} deep, as in address.city",
                FieldPath::DEPTH_MAX
            );
            report.error("field", text.at.clone(), message, hint);
            None
        }
    }
}

impl<'a> Surroundings<'a> {
    /// What the value schema says about a field. A field that it does not have is an error.
    pub fn described(
        &self,
        path: &FieldPath,
        text: &Text<'_>,
        report: &mut Report<'_>,
    ) -> Option<Property<'a>> {
        match self.look_up(path) {
            Lookup::Found(property) => Some(property),
            Lookup::Unknown => None,
            Lookup::Absent { known } => {
                self.absent(path, text, &known, report);
                None
            }
        }
    }

    pub fn look_up(&self, path: &FieldPath) -> Lookup<'a> {
        match self.value {
            Described::By(schema) => Property::root(schema.definition()).look_up(path),
            Described::Not | Described::Wrongly => Lookup::Unknown,
        }
    }

    /// Whether a path names a variable of the key.
    pub fn is_variable(&self, path: &FieldPath) -> bool {
        let [name] = path.names() else {
            return false;
        };
        self.key.is_some_and(|key| key.variables().any(|variable| variable.name == *name))
    }

    fn absent(&self, path: &FieldPath, text: &Text<'_>, known: &[&str], report: &mut Report<'_>) {
        let last = path.names().last().map_or("", String::as_str);
        let hint = match nearest(last, known.iter().copied()) {
            _ if self.is_variable(path) => format!(
                "{{{path}}} is a variable of the key: records are listed by it without an index; an \
                 index is over fields of the value"
            ),
            Some(name) => format!("did you mean {name:?}?"),
            None if known.is_empty() => {
                "no field can be there: look at the value's schema".to_owned()
            }
            None => format!(
                "there are {}; or add it to the value's schema",
                listed(known.iter().copied())
            ),
        };
        let message = format!("values have no field {:?}", text.text);
        report.error("unknown-field", text.at.clone(), message, hint);
    }
}
