use std::pin::pin;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt, TryStreamExt, stream};
use keyward_engine::Json;
use keyward_key::Key;
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyOutStream;
use tokio_postgres::types::Type;

use super::RawHeed;
use crate::Result;
use crate::records::Record;

const IN: &str = "COPY keyward.entries (store, key, version, value, metadata, expires)
    FROM STDIN (FORMAT binary)";
/// How much is handed to the connection at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Rows of the table of entries as `COPY FROM` takes them.
pub struct Rows(Vec<Bytes>);

impl Rows {
    /// The rows of some records in a store.
    pub fn of(store: i32, records: &[Record]) -> Self {
        // The format's signature, no flags, no extension.
        let mut bytes = BytesMut::from(&b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0"[..]);
        let mut chunks = Vec::new();
        for record in records {
            let fields: [Option<&[u8]>; 6] = [
                Some(&store.to_be_bytes()),
                Some(record.key.as_bytes()),
                Some(&1_i64.to_be_bytes()),
                Some(record.value.as_bytes()),
                None,
                None,
            ];
            bytes.put_i16(fields.len() as i16);
            for field in fields {
                match field {
                    Some(field) => {
                        bytes.put_i32(field.len() as i32);
                        bytes.put_slice(field);
                    }
                    None => bytes.put_i32(-1),
                }
            }
            if bytes.len() >= CHUNK_BYTES {
                chunks.push(bytes.split().freeze());
            }
        }
        bytes.put_i16(-1);
        chunks.push(bytes.freeze());
        Self(chunks)
    }

    /// Writes the rows into the table of entries, in one transaction; gives how many there were.
    pub async fn copy_in(&self, client: &Client) -> Result<u64> {
        let mut sink = pin!(client.copy_in::<_, Bytes>(IN).await?);
        let mut chunks = stream::iter(self.0.iter().cloned().map(Ok));
        sink.send_all(&mut chunks).await?;
        Ok(sink.finish().await?)
    }
}

/// Reads every entry of a store with one `COPY TO`, in the order of the keys, and writes them as they
/// come, so many in each durable transaction; gives how many there were.
pub async fn copy_out(
    client: &Client,
    store: i32,
    raw: &mut RawHeed,
    commit_puts: usize,
) -> Result<u64> {
    let out = format!(
        "COPY (SELECT key, version, value, metadata, expires FROM keyward.entries
            WHERE store = {store} ORDER BY key) TO STDOUT (FORMAT binary)"
    );
    let types = [Type::BYTEA, Type::INT8, Type::BYTEA, Type::BYTEA, Type::TIMESTAMPTZ];
    let rows = BinaryCopyOutStream::new(client.copy_out(&out).await?, &types);
    let records = rows.map(|row| -> Result<Record> {
        let row = row?;
        let bytes = |column| row.try_get::<&[u8]>(column).map(Bytes::copy_from_slice);
        Ok(Record { key: Key::from_stored(bytes(0)?), value: Json::from_stored(bytes(2)?) })
    });
    let mut commits = pin!(records.try_chunks(commit_puts));
    let mut count = 0;
    while let Some(records) = commits.next().await {
        let records = records.map_err(|error| error.1)?;
        raw.put_all(&records)?;
        count += records.len() as u64;
    }
    Ok(count)
}
