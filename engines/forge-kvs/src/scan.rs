//! Listings: pages of names from Forge, and then the entries of those that are in the range.

use keyward_engine::{Cursor, Error, ErrorKind, Page, Result, Row, Scan, Want};
use keyward_key::Key;

use crate::ForgeKvs;
use crate::name::{self, Prefixes, RESERVED};
use crate::wire::{Listed, QUERY_ROWS_MAX};

/// How many pages of names without a single row are read before the caller goes on with an empty page.
const EMPTY_PAGES_MAX: usize = 8;

/// Which names are being listed. Their prefixes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Encoded,
}

/// Where a listing is: in these names, after Forge's own cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Position {
    form: Form,
    after: Option<String>,
}

impl Position {
    fn begin(form: Form) -> Self {
        Self { form, after: None }
    }

    fn read(cursor: &Cursor) -> Result<Self> {
        let read = std::str::from_utf8(cursor.as_bytes()).ok().and_then(|text| {
            let (form, after) = text.split_at_checked(1)?;
            let form = match form {
                "p" => Form::Plain,
                "k" => Form::Encoded,
                _ => return None,
            };
            Some(Self { form, after: (!after.is_empty()).then(|| after.to_owned()) })
        });
        read.ok_or_else(|| Error::new(ErrorKind::Invalid, "the cursor is not one of this store"))
    }

    fn cursor(&self) -> Cursor {
        let form = match self.form {
            Form::Plain => 'p',
            Form::Encoded => 'k',
        };
        Cursor::new(format!("{form}{}", self.after.as_deref().unwrap_or_default()))
    }
}

impl ForgeKvs {
    pub(crate) async fn read_page(&self, scan: &Scan) -> Result<Page> {
        if scan.range.is_empty() {
            return Ok(Page::default());
        }
        let prefixes = Prefixes::of(&scan.range);
        let mut position = match &scan.after {
            Some(cursor) => Some(Position::read(cursor)?),
            None => Some(Position::begin(Form::Plain)),
        };
        let mut rows = Vec::new();
        let mut is_among_reserved = false;
        for _ in 0..EMPTY_PAGES_MAX {
            let Some(at) = position.take() else { break };
            let prefix = match at.form {
                Form::Plain => prefixes.plain.as_deref(),
                Form::Encoded => prefixes.encoded.as_deref(),
            };
            let next_form = match at.form {
                Form::Plain => prefixes.encoded.as_ref().map(|_| Position::begin(Form::Encoded)),
                Form::Encoded => None,
            };
            let Some(prefix) = prefix else {
                position = next_form;
                continue;
            };
            // Reserved names stand together; many of them, and few that are entries.
            let limit = if is_among_reserved { QUERY_ROWS_MAX } else { scan.limit };
            let (mut listed, mut keys) = self.list(prefix, limit, &at, scan).await?;
            if keys.len() > scan.limit {
                (listed, keys) = self.list(prefix, scan.limit, &at, scan).await?;
            }
            is_among_reserved = listed.data.last().is_some_and(|row| row.key.starts_with(RESERVED));
            position = match listed.cursor {
                Some(after) => Some(Position { form: at.form, after: Some(after) }),
                None => next_form,
            };
            rows = self.rows(keys, scan.want).await?;
            if !rows.is_empty() {
                break;
            }
        }
        Ok(Page { rows, next: position.map(|position| position.cursor()) })
    }

    /// One page of names, and the keys in the range that they stand for.
    async fn list(
        &self,
        prefix: &str,
        limit: usize,
        at: &Position,
        scan: &Scan,
    ) -> Result<(Listed, Vec<Key>)> {
        let limit = limit.min(QUERY_ROWS_MAX);
        let listed = self.client.list(prefix, limit, at.after.as_deref()).await?;
        let keys = listed.data.iter().filter_map(|row| name::key(&row.key));
        let keys = keys.filter(|key| scan.range.contains(key)).collect();
        Ok((listed, keys))
    }

    /// The rows of keys that were listed. Listings are late, so each is read; those that are gone are left out.
    async fn rows(&self, keys: Vec<Key>, want: Want) -> Result<Vec<Row>> {
        let entries = self.read_listed(&keys).await?;
        let rows = keys.into_iter().zip(entries).filter_map(|(key, entry)| {
            let entry = entry?;
            Some(Row { key, entry: (want == Want::Entries).then_some(entry) })
        });
        Ok(rows.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_come_back_from_their_cursors() {
        for form in [Form::Plain, Form::Encoded] {
            for after in [None, Some("abc==".to_owned())] {
                let position = Position { form, after };
                assert_eq!(Position::read(&position.cursor()).unwrap(), position);
            }
        }
        for foreign in [&b""[..], b"x", b"\xff", "학".as_bytes()] {
            let error = Position::read(&Cursor::new(foreign.to_vec())).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
        }
    }
}
