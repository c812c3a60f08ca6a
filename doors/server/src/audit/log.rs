//! The log, as it is read.

use jiff::Timestamp;
use keyward::{Cursor, Error, ErrorKind, Json, Key, KeyRange, Prefix, Row, Scan, Store};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{AUDIT, SHEET_TIME_MAX, sortable};
use crate::control::place;

/// The most acts on a page.
const PAGE_MAX: usize = 1_000;
/// How many sheets are read at once.
const SHEETS_PER_READ: usize = 16;

/// What is asked of a log: acts from one moment to another.
#[derive(Debug, Clone, Default)]
pub struct AuditQuery {
    /// The first moment.
    pub since: Option<Timestamp>,
    /// The last moment.
    pub until: Option<Timestamp>,
    /// The cursor of the page before.
    pub after: Option<String>,
    /// How many acts.
    pub limit: usize,
}

/// The log of a control store, for reading.
#[derive(Debug, Clone)]
pub struct AuditLog {
    store: Store,
}

impl AuditLog {
    /// The log that is kept in a store.
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// A page of acts, oldest first, each a JSON object, and the cursor of the next page. Acts of
    /// several servers may stand up to a second out of order.
    pub async fn read(&self, query: &AuditQuery) -> keyward::Result<(Vec<Json>, Option<String>)> {
        let limit = query.limit.clamp(1, PAGE_MAX);
        let mut acts = Vec::new();
        let begin = query.after.as_deref().map(Place::parse).transpose()?;
        if let Some(Place { sheet: key, act }) = &begin
            && let Some(entry) = self.store.get(key).await?
            && let Some(act) = gather(&mut acts, query, limit, &entry.value, *act)?
        {
            return Ok((acts, Some(Place { sheet: key.clone(), act }.cursor())));
        }
        // A sheet has the time of its last act.
        let until = query.until.map(|until| until.saturating_add(SHEET_TIME_MAX));
        let until = until.transpose().map_err(|error| invalid(&error.to_string()))?;
        let range = KeyRange::between(
            &Prefix::from_segments(["system", "server", AUDIT]),
            query.since.map(sortable).as_deref(),
            until.map(sortable).as_deref(),
        );
        let after = begin.map(|place| Cursor::after_key(&place.sheet));
        let mut scan = Scan::new(range).limit(SHEETS_PER_READ).after(after);
        loop {
            let page = self.store.scan(&scan).await?;
            for Row { key, entry } in page.rows {
                let Some(entry) = entry else { continue };
                if let Some(act) = gather(&mut acts, query, limit, &entry.value, 0)? {
                    return Ok((acts, Some(Place { sheet: key, act }.cursor())));
                }
            }
            if page.next.is_none() {
                return Ok((acts, None));
            }
            scan.after = page.next;
        }
    }
}

/// Adds the acts of a sheet that are asked for, from one of them on. If there are too many, the first
/// that was not added.
fn gather(
    acts: &mut Vec<Json>,
    query: &AuditQuery,
    limit: usize,
    sheet: &Json,
    first: usize,
) -> keyward::Result<Option<usize>> {
    #[derive(Deserialize)]
    struct Timed {
        time: Timestamp,
    }
    let corrupt = |error: serde_json::Error| {
        Error::new(ErrorKind::Corrupt, format!("a sheet of the audit log cannot be read: {error}"))
    };
    let sheet: Vec<&RawValue> = serde_json::from_slice(sheet.as_bytes()).map_err(corrupt)?;
    for (number, act) in sheet.into_iter().enumerate().skip(first) {
        let Timed { time } = serde_json::from_str(act.get()).map_err(corrupt)?;
        if query.since.is_some_and(|since| time < since)
            || query.until.is_some_and(|until| time > until)
        {
            continue;
        }
        if acts.len() == limit {
            return Ok(Some(number));
        }
        acts.push(Json::from_stored(act.get().to_owned()));
    }
    Ok(None)
}

/// Where a page begins: with an act of a sheet.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    sheet: Key,
    act: usize,
}

impl Place {
    fn cursor(&self) -> String {
        let mut segments = self.sheet.segments().past(3);
        let mut next = || segments.next().unwrap_or_default();
        format!("{}~{}~{}", next(), next(), self.act)
    }

    fn parse(cursor: &str) -> keyward::Result<Self> {
        let mut parts = cursor.splitn(3, '~');
        let place = (|| {
            let (time, id, act) = (parts.next()?, parts.next()?, parts.next()?);
            Some(Self { sheet: place(AUDIT, time).child(id), act: act.parse().ok()? })
        })();
        place.ok_or_else(|| invalid("the cursor is not one of the audit log"))
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_names_its_place() {
        let place = Place { sheet: place(AUDIT, "20260101T000000.5").child("ab-1f"), act: 7 };
        assert_eq!(place.cursor(), "20260101T000000.5~ab-1f~7");
        assert_eq!(Place::parse(&place.cursor()).unwrap(), place);
        for bad in ["", "x", "x~y", "x~y~z", "x~y~-1"] {
            assert!(Place::parse(bad).is_err(), "{bad}");
        }
    }
}
