//! Where the entries of an index are.

use std::borrow::Cow;
use std::collections::BTreeSet;

use keyward_engine::Json;
use keyward_key::{Key, Prefix};
use keyward_schema::{FieldPath, Index, IndexKind, Part, Scope};

use crate::field::{elements, find, quoted};
use crate::geo::{Point, Precision};
use crate::{Error, Result, ordered};

/// The first segment of every index entry.
pub(crate) const FIRST_SEGMENT: &str = "index";
/// How many segments stand before the owner or the values: that one, and the index's name.
const PREFIX_DEPTH: usize = 2;
/// How many elements of one array are indexed at most.
pub(crate) const ELEMENTS_MAX: usize = 1_000;

/// An index, and how its entries are written.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub index: Index,
    /// `index:{name}`.
    prefix: Prefix,
}

/// One entry of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub key: Key,
    pub value: Json,
    /// Whether no other record may have it.
    pub unique: bool,
}

impl Layout {
    pub fn new(index: Index) -> Self {
        let prefix = Prefix::from_segments([FIRST_SEGMENT, &index.name]);
        Self { index, prefix }
    }

    /// What all entries have in common that one owner's queries can see.
    pub fn prefix_of(&self, owner: Option<&str>) -> Prefix {
        match (self.index.scope, owner) {
            (Scope::Owner, Some(owner)) => self.prefix.child(owner),
            (Scope::Owner, None) | (Scope::Shared, _) => self.prefix.clone(),
        }
    }

    /// What all entries have in common.
    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    pub fn is_unique(&self) -> bool {
        matches!(self.index.kind, IndexKind::Values { unique: true, .. })
    }

    /// How many segments stand before the primary key.
    fn depth(&self, owned: bool) -> usize {
        let owner = usize::from(owned && self.index.scope == Scope::Owner);
        let values = match &self.index.kind {
            IndexKind::Values { parts, .. } => parts.len(),
            IndexKind::Geohash { .. } => 1,
        };
        PREFIX_DEPTH + owner + values
    }

    /// The record that an entry leads to. `owned` says whether the space has owners.
    pub fn primary(&self, entry: &Key, value: Option<&Json>, owned: bool) -> Option<Key> {
        if self.is_unique() {
            let text: String = serde_json::from_slice(value?.as_bytes()).ok()?;
            return Key::parse(&text).ok();
        }
        entry.tail(self.depth(owned))
    }

    /// Whether one record may have several entries.
    pub fn is_multi(&self) -> bool {
        match &self.index.kind {
            IndexKind::Values { parts, .. } => parts.iter().any(|part| part.multi),
            IndexKind::Geohash { .. } => false,
        }
    }

    /// Whether an entry is the one that a value has, in an index where it has one at most: the same
    /// as looking for it among [`Layout::entries`], but nothing is built for it. Owner and primary
    /// key are not looked at: they are how the entry was found, and where it led.
    pub fn is_entry_of(&self, entry: &Key, owned: bool, value: &Json) -> bool {
        let owner = usize::from(owned && self.index.scope == Scope::Owner);
        let mut segments = entry.segments().past(PREFIX_DEPTH + owner);
        match &self.index.kind {
            IndexKind::Values { parts, .. } => parts.iter().all(|part| {
                let text = present(value, &part.field);
                let segment = text.and_then(|text| ordered::segment(part.kind, text).ok()?);
                segment.is_some_and(|segment| segments.next_is(&segment))
            }),
            IndexKind::Geohash { lat, lon, precision } => {
                let degrees = |field| self.degrees(field, present(value, field)?).ok();
                let hash = || {
                    let point = Point::new(degrees(lat)?, degrees(lon)?).ok()?;
                    Some(point.geohash(Precision::new(*precision).ok()?))
                };
                hash().is_some_and(|hash| segments.next_is(&hash))
            }
        }
    }

    /// The entries of a record.
    pub fn entries(
        &self,
        owner: Option<&str>,
        primary: &Key,
        value: &Json,
    ) -> Result<Vec<IndexEntry>> {
        let prefix = self.prefix_of(owner);
        match &self.index.kind {
            IndexKind::Values { parts, unique } => {
                let prefixes = self.value_prefixes(prefix, parts, value)?;
                prefixes
                    .into_iter()
                    .map(|values| self.value_entry(&values, primary, *unique))
                    .collect()
            }
            IndexKind::Geohash { lat, lon, precision } => {
                let (Some(lat_text), Some(lon_text)) = (present(value, lat), present(value, lon))
                else {
                    return Ok(Vec::new());
                };
                let lat_degrees = self.degrees(lat, lat_text)?;
                let lon_degrees = self.degrees(lon, lon_text)?;
                let point = Point::new(lat_degrees, lon_degrees)
                    .map_err(|error| self.unindexable(lat, error.to_string()))?;
                let precision = Precision::new(*precision)
                    .map_err(|error| self.unindexable(lat, error.to_string()))?;
                let key = prefix.child(&point.geohash(precision)).join(primary);
                let value = Json::from_stored(format!("[{lat_degrees},{lon_degrees}]"));
                Ok(vec![IndexEntry { key, value, unique: false }])
            }
        }
    }

    fn value_entry(&self, values: &Prefix, primary: &Key, unique: bool) -> Result<IndexEntry> {
        if !unique {
            return Ok(IndexEntry { key: values.join(primary), value: null(), unique });
        }
        let key =
            values.to_key().ok_or_else(|| Error::Damaged("an index without a name".into()))?;
        Ok(IndexEntry { key, value: Json::from_stored(quoted(&primary.to_string())), unique })
    }

    /// The prefixes that the values of the fields make: one for each element of an array.
    fn value_prefixes(&self, prefix: Prefix, parts: &[Part], value: &Json) -> Result<Vec<Prefix>> {
        let mut prefixes = vec![prefix];
        for part in parts {
            let Some(text) = present(value, &part.field) else {
                return Ok(Vec::new());
            };
            if !part.multi {
                let Some(segment) = self.segment(part, text)? else {
                    return Ok(Vec::new());
                };
                for prefix in &mut prefixes {
                    *prefix = prefix.child(&segment);
                }
                continue;
            }
            let segments = self.element_segments(part, text)?;
            prefixes = prefixes
                .iter()
                .flat_map(|prefix| segments.iter().map(|segment| prefix.child(segment)))
                .collect();
        }
        Ok(prefixes)
    }

    fn element_segments(&self, part: &Part, text: &[u8]) -> Result<BTreeSet<String>> {
        let wrong = || self.unindexable(&part.field, "it must be an array".into());
        let text = std::str::from_utf8(text).map_err(|_| wrong())?;
        let elements = elements(text).ok_or_else(wrong)?;
        if elements.len() > ELEMENTS_MAX {
            let reason = format!("it has {} elements; at most {ELEMENTS_MAX} fit", elements.len());
            return Err(self.unindexable(&part.field, reason));
        }
        let mut segments = BTreeSet::new();
        for element in elements {
            segments.extend(self.segment(part, element.as_bytes())?.map(|s| s.into_owned()));
        }
        Ok(segments)
    }

    fn segment<'j>(&self, part: &Part, text: &'j [u8]) -> Result<Option<Cow<'j, str>>> {
        ordered::segment(part.kind, text)
            .map_err(|reason| self.unindexable(&part.field, reason.into()))
    }

    fn degrees(&self, field: &FieldPath, text: &[u8]) -> Result<f64> {
        std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| self.unindexable(field, "it must be a number of degrees".into()))
    }

    fn unindexable(&self, field: &FieldPath, reason: String) -> Error {
        Error::Unindexable { index: self.index.name.clone(), field: field.to_string(), reason }
    }
}

/// The JSON null.
pub(crate) fn null() -> Json {
    Json::from_stored("null")
}

/// A field's text, unless it is missing or null.
fn present<'j>(value: &'j Json, field: &FieldPath) -> Option<&'j [u8]> {
    find(value.as_bytes(), field).filter(|text| *text != b"null")
}
