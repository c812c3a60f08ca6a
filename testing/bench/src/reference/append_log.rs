use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::thread;

use tokio::sync::{mpsc, oneshot};

use super::{push_change, write_entry};
use crate::Result;
use crate::records::Record;

/// A file that one thread appends to, with one sync for all that is waiting: the least a durable
/// commit can cost.
///
/// Queue, groups and answers are those of the embedded engine's committer.
#[derive(Clone)]
pub struct AppendLog {
    requests: mpsc::Sender<Request>,
}

struct Request {
    bytes: Vec<u8>,
    answer: oneshot::Sender<io::Result<()>>,
}

// The embedded engine's bounds.
const QUEUE_MAX: usize = 1_024;
const GROUP_BYTES_MAX: usize = 16 << 20;

impl AppendLog {
    /// A new log in a file.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create_new(path)?;
        let (requests, queue) = mpsc::channel(QUEUE_MAX);
        // It ends with the last sender.
        thread::Builder::new()
            .name("append-log".to_owned())
            .spawn(move || append_all(file, queue))?;
        Ok(Self { requests })
    }

    /// Appends a record; when this returns, it is on disk.
    pub async fn append(&self, record: &Record) -> Result<()> {
        let (answer, done) = oneshot::channel();
        let bytes = frame(record)?;
        self.requests
            .send(Request { bytes, answer })
            .await
            .map_err(|_| "the log's writer has ended")?;
        Ok(done.await??)
    }
}

/// A record as it lies in the file: its length, its key and entry, and its row of the log of
/// changes.
fn frame(record: &Record) -> io::Result<Vec<u8>> {
    // The revision does not matter here, only that it takes its place.
    const REVISION: u64 = 1;
    let key = record.key.as_bytes();
    let mut bytes = Vec::with_capacity(2 * key.len() + record.value.len() + 64);
    bytes.extend_from_slice(&[0; size_of::<u32>()]);
    bytes.extend_from_slice(&(key.len() as u16).to_be_bytes());
    bytes.extend_from_slice(key);
    write_entry(&mut bytes, REVISION, record)?;
    bytes.extend_from_slice(&REVISION.to_be_bytes());
    push_change(&mut bytes, record);
    let length = (bytes.len() - size_of::<u32>()) as u32;
    bytes[..size_of::<u32>()].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}

fn append_all(mut file: File, mut queue: mpsc::Receiver<Request>) {
    let mut taken = Vec::new();
    while queue.blocking_recv_many(&mut taken, QUEUE_MAX) > 0 {
        let mut group = Vec::with_capacity(taken.len());
        let mut bytes = Vec::new();
        for request in taken.drain(..) {
            if !bytes.is_empty() && bytes.len() + request.bytes.len() > GROUP_BYTES_MAX {
                append_group(&mut file, &bytes, std::mem::take(&mut group));
                bytes.clear();
            }
            bytes.extend_from_slice(&request.bytes);
            group.push(request);
        }
        append_group(&mut file, &bytes, group);
    }
}

fn append_group(file: &mut File, bytes: &[u8], group: Vec<Request>) {
    let written = file.write_all(bytes).and_then(|()| file.sync_data());
    for request in group {
        let answer = match &written {
            Ok(()) => Ok(()),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        // A client that has gone needs no answer.
        let _ = request.answer.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::records;

    #[test]
    fn what_is_acknowledged_lies_in_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let log = AppendLog::create(&path).unwrap();
        let runtime = crate::bench::inline().unwrap();
        let mut expected = Vec::new();
        for record in records(0..3).unwrap() {
            runtime.block_on(log.append(&record)).unwrap();
            expected.extend(frame(&record).unwrap());
            assert_eq!(std::fs::read(&path).unwrap(), expected);
        }
    }

    #[test]
    fn a_frame_holds_the_key_twice_and_the_value_once() {
        let record = &records([7]).unwrap()[0];
        let (key, value) = (record.key.as_bytes().len(), record.value.len());
        let entry = 2 + key + 1 + 8 + value;
        let log_row = 8 + 1 + 2 + key;
        assert_eq!(frame(record).unwrap().len(), 4 + entry + log_row);
    }
}
