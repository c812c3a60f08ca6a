//! How entries, log rows and ends are written. `docs/embedded-format.md` draws them.

use bytes::Bytes;
use jiff::Timestamp;
use keyward_engine::{Change, ChangeKind, Entry, Error, Json, Version};
use keyward_key::Key;

use crate::error::corrupt;

const HAS_EXPIRY: u8 = 1;
const HAS_METADATA: u8 = 2;

/// An entry as it lies in the `entries` table.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) version: u64,
    /// Milliseconds since 1970.
    pub(crate) expires: Option<i64>,
    pub(crate) metadata: Option<&'a [u8]>,
    pub(crate) value: &'a [u8],
}

impl<'a> Record<'a> {
    pub(crate) fn size(&self) -> usize {
        1 + size_of::<u64>()
            + self.expires.map_or(0, |_| size_of::<i64>())
            + self.metadata.map_or(0, |metadata| size_of::<u32>() + metadata.len())
            + self.value.len()
    }

    /// Hands over the parts of the record, in order.
    pub(crate) fn write<E>(&self, mut part: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let expiry_flag = self.expires.map_or(0, |_| HAS_EXPIRY);
        let metadata_flag = self.metadata.map_or(0, |_| HAS_METADATA);
        part(&[expiry_flag | metadata_flag])?;
        part(&self.version.to_be_bytes())?;
        if let Some(expires) = self.expires {
            part(&expires.to_be_bytes())?;
        }
        if let Some(metadata) = self.metadata {
            // Store has refused metadata anywhere near four gibibytes.
            part(&(metadata.len() as u32).to_be_bytes())?;
            part(metadata)?;
        }
        part(self.value)
    }

    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::split(bytes).ok_or_else(|| corrupt("an entry in the data file is damaged"))
    }

    /// The record of a key, which the error names.
    pub(crate) fn read_of(key: &[u8], bytes: &'a [u8]) -> Result<Self, Error> {
        Self::split(bytes).ok_or_else(|| {
            let key = Key::from_stored(key.to_vec());
            corrupt(format!("the entry {key} in the data file is damaged"))
        })
    }

    fn split(bytes: &'a [u8]) -> Option<Self> {
        let (&flags, rest) = bytes.split_first()?;
        if flags & !(HAS_EXPIRY | HAS_METADATA) != 0 {
            return None;
        }
        let (version, mut rest) = rest.split_first_chunk()?;
        // No commit has revision zero, but a page of zeros does.
        let version = Some(u64::from_be_bytes(*version)).filter(|version| *version > 0)?;
        let mut expires = None;
        if flags & HAS_EXPIRY != 0 {
            let (expiry, after) = rest.split_first_chunk()?;
            let expiry = i64::from_be_bytes(*expiry);
            let calendar = Timestamp::MIN.as_millisecond()..=Timestamp::MAX.as_millisecond();
            calendar.contains(&expiry).then_some(())?;
            (expires, rest) = (Some(expiry), after);
        }
        let mut metadata = None;
        if flags & HAS_METADATA != 0 {
            let (length, after) = rest.split_first_chunk()?;
            let (found, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
            (metadata, rest) = (Some(found), after);
        }
        let sound = metadata.is_none_or(|it| it.first() == Some(&b'{') && is_framed(it));
        (sound && is_framed(rest)).then_some(Self { version, expires, metadata, value: rest })
    }

    pub(crate) fn is_expired(&self, now: &Now) -> bool {
        self.expires.is_some_and(|expires| expires <= now.millisecond())
    }

    /// An entry that outlives the transaction, made of copies.
    pub(crate) fn to_entry(self, mut copy: impl FnMut(&[u8]) -> Bytes) -> Entry {
        Entry {
            value: Json::from_stored(copy(self.value)),
            metadata: self.metadata.map(|metadata| Json::from_stored(copy(metadata))),
            version: Version::from(self.version),
            expires: self
                .expires
                .map(|ms| Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)),
        }
    }
}

/// Whether the first and the last byte are those of JSON: all that a read can afford to look at.
fn is_framed(json: &[u8]) -> bool {
    match json {
        [b'{', .., b'}'] | [b'[', .., b']'] | [b'"', .., b'"'] => true,
        [first, ..] if first.is_ascii_digit() || *first == b'-' => {
            json.last().is_some_and(u8::is_ascii_digit)
        }
        _ => matches!(json, b"true" | b"false" | b"null"),
    }
}

/// Everything that can be checked of a row of `entries`; else what is wrong with it.
pub(crate) fn check<'r>(key: &[u8], bytes: &'r [u8]) -> Result<(Key, Record<'r>), String> {
    let shown = Key::from_stored(key.to_vec());
    let key = Key::from_bytes(key.to_vec())
        .map_err(|_| format!("the key {:?} is none", shown.to_string()))?;
    let record = Record::split(bytes).ok_or_else(|| format!("the entry {key} is damaged"))?;
    for (what, json) in [("value", Some(record.value)), ("metadata", record.metadata)] {
        let Some(json) = json else { continue };
        let stored = Bytes::copy_from_slice(json);
        // White space between tokens was taken out before it was stored.
        if Json::parse(stored.clone()).ok() != Some(Json::from_stored(stored)) {
            return Err(format!("the {what} of {key} is not JSON"));
        }
    }
    Ok((key, record))
}

/// The time of an operation, read only if something that can expire is met.
pub(crate) struct Now<'c> {
    clock: &'c dyn keyward_engine::Clock,
    read: std::cell::OnceCell<i64>,
}

impl<'c> Now<'c> {
    pub(crate) fn of(clock: &'c dyn keyward_engine::Clock) -> Self {
        Self { clock, read: std::cell::OnceCell::new() }
    }

    pub(crate) fn millisecond(&self) -> i64 {
        *self.read.get_or_init(|| self.clock.now().as_millisecond())
    }
}

/// The key of an end: soonest first, then by key.
pub(crate) fn end(expires: i64, key: &[u8]) -> Vec<u8> {
    let mut end = Vec::with_capacity(size_of::<i64>() + key.len());
    // With the sign bit flipped, byte order is time order.
    end.extend_from_slice(&(expires as u64 ^ 1 << 63).to_be_bytes());
    end.extend_from_slice(key);
    end
}

/// The time and key of an end.
pub(crate) fn split_end(end: &[u8]) -> Result<(i64, &[u8]), Error> {
    let (time, key) =
        end.split_first_chunk().ok_or_else(|| corrupt("an end in the data file is damaged"))?;
    Ok(((u64::from_be_bytes(*time) ^ 1 << 63) as i64, key))
}

/// Adds a change to a row of the log.
pub(crate) fn push_change(row: &mut Vec<u8>, kind: ChangeKind, key: &[u8]) {
    row.push(match kind {
        ChangeKind::Put => 1,
        ChangeKind::Deleted => 2,
        ChangeKind::Expired => 3,
    });
    // Keys are far shorter than 64 KiB: LMDB takes no longer ones.
    row.extend_from_slice(&(key.len() as u16).to_be_bytes());
    row.extend_from_slice(key);
}

/// The changes in a row of the log.
pub(crate) fn changes(mut row: &[u8]) -> Result<Vec<Change>, Error> {
    let mut changes = Vec::new();
    while !row.is_empty() {
        let (change, rest) =
            split_change(row).ok_or_else(|| corrupt("the log in the data file is damaged"))?;
        changes.push(change);
        row = rest;
    }
    Ok(changes)
}

fn split_change(row: &[u8]) -> Option<(Change, &[u8])> {
    let (&kind, rest) = row.split_first()?;
    let kind = match kind {
        1 => ChangeKind::Put,
        2 => ChangeKind::Deleted,
        3 => ChangeKind::Expired,
        _ => return None,
    };
    let (length, rest) = rest.split_first_chunk()?;
    let (key, rest) = rest.split_at_checked(u16::from_be_bytes(*length) as usize)?;
    Some((Change { key: Key::from_stored(key.to_vec()), kind }, rest))
}
