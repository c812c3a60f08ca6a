//! What answers a declared query.

use crate::shape::Shape;
use crate::{DeclaredQuery, FieldPath, Index, IndexKind, Scope, Space};

/// What answers a declared query without reading a whole space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<'s> {
    /// The key's leading variables: one range of keys, or one key.
    Key {
        /// The part of the pattern that is known: `user:{user}:notes:`, or a whole key.
        known: String,
    },
    /// An index.
    Index(&'s Index),
}

impl Space {
    /// What answers a query: the leading variables of the key, or an index whose first fields are
    /// asked for, with the scope of the question. Nothing, if every record would have to be read.
    ///
    /// A question about one owner's records knows the owner, so `by` need not name it; naming it
    /// first makes the question one about that owner's records.
    pub fn answer(&self, query: &DeclaredQuery) -> Option<Answer<'_>> {
        let owner = self.ownership.owner();
        let names_owner = owner.is_some() && query.by.first().and_then(only_name) == owner;
        let (scope, rest) = match query.by.split_first() {
            Some((_, rest)) if names_owner => (Scope::Owner, rest),
            _ => (query.scope, &query.by[..]),
        };
        self.by_key(scope, rest, names_owner).or_else(|| self.by_index(scope, rest))
    }

    fn by_key(&self, scope: Scope, by: &[FieldPath], names_owner: bool) -> Option<Answer<'_>> {
        let has_owner = self.ownership.owner().is_some();
        let implied = usize::from(has_owner && scope == Scope::Owner);
        if by.is_empty() && !names_owner {
            return None;
        }
        let variables: Vec<&str> =
            self.key.variables().skip(implied).map(|variable| variable.name.as_str()).collect();
        let leading = variables.get(..by.len())?;
        let asked = by.iter().map(only_name);
        if !asked.eq(leading.iter().map(|name| Some(*name))) {
            return None;
        }
        Some(Answer::Key { known: known_part(&Shape::of(&self.key), implied + by.len()) })
    }

    fn by_index(&self, scope: Scope, by: &[FieldPath]) -> Option<Answer<'_>> {
        let fits = |index: &&Index| match &index.kind {
            IndexKind::Values { parts, .. } => {
                let fields: Vec<&FieldPath> = parts.iter().map(|part| &part.field).collect();
                !by.is_empty()
                    && by.len() <= fields.len()
                    && by.iter().eq(fields[..by.len()].iter().copied())
            }
            IndexKind::Geohash { lat, lon, .. } => {
                matches!(by, [a, b] if (a, b) == (lat, lon) || (a, b) == (lon, lat))
            }
        };
        self.indexes.iter().filter(|index| index.scope == scope).find(fits).map(Answer::Index)
    }
}

fn only_name(path: &FieldPath) -> Option<&str> {
    match path.names() {
        [name] => Some(name),
        _ => None,
    }
}

/// The pattern up to the first variable that is not among the first `count`.
fn known_part(shape: &Shape, count: usize) -> String {
    let mut seen = 0;
    let mut known = Vec::new();
    for segment in &shape.segments {
        if segment.variable().is_some() {
            if seen == count {
                let whole = shape.lengths.contains(&known.len());
                return known.join(":") + if whole { "" } else { ":" };
            }
            seen += 1;
        }
        known.push(segment.text.as_str());
    }
    known.join(":")
}
