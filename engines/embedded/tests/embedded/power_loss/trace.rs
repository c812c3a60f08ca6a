//! What a process did to its files, in order, as `shim.c` records it.

use std::fmt;
use std::fs;
use std::path::Path;

use bytes::{Buf, Bytes};

use crate::workload::Ack;

/// The file into which a child writes what was acknowledged, so that it has its place in the order.
pub const ACKS: &str = "acks";

/// One thing that was done. Paths are relative to the directory that is watched.
#[derive(Clone)]
pub enum Step {
    /// A file came into being, empty.
    Created(String),
    /// A directory came into being, empty.
    CreatedDirectory(String),
    Renamed {
        from: String,
        to: String,
    },
    Removed(String),
    Wrote {
        path: String,
        offset: usize,
        data: Bytes,
        durable: bool,
    },
    Resized {
        path: String,
        bytes: usize,
    },
    /// What was done before to a file's contents, or a directory's names, is durable.
    Synced(String),
    /// A commit was acknowledged.
    Acknowledged(Ack),
}

impl Step {
    /// Whether something becomes durable by this step.
    pub fn makes_durable(&self) -> bool {
        matches!(self, Self::Synced(_) | Self::Wrote { durable: true, .. })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created(path) => write!(f, "create {path}"),
            Self::CreatedDirectory(path) => write!(f, "create directory {path}"),
            Self::Renamed { from, to } => write!(f, "rename {from} to {to}"),
            Self::Removed(path) => write!(f, "remove {path}"),
            Self::Wrote { path, offset, data, durable } => {
                let how = if *durable { "durably write" } else { "write" };
                write!(f, "{how} {path} from {offset}, {} bytes", data.len())
            }
            Self::Resized { path, bytes } => write!(f, "resize {path} to {bytes}"),
            Self::Synced(path) => write!(f, "sync {path:?}"),
            Self::Acknowledged(ack) => write!(f, "{ack}"),
        }
    }
}

/// Reads a trace. What could not be recorded faithfully fails the test.
pub fn read(file: &Path) -> Vec<Step> {
    let mut bytes = Bytes::from(fs::read(file).unwrap());
    let mut steps = Vec::new();
    while bytes.has_remaining() {
        let (kind, durable) = (bytes.get_u8(), bytes.get_u8() != 0);
        let (path_bytes, other_bytes) = (bytes.get_u16_ne(), bytes.get_u16_ne());
        bytes.advance(2);
        let (offset, data_bytes) = (bytes.get_u64_ne() as usize, bytes.get_u64_ne() as usize);
        let mut text =
            |bytes_of: u16| String::from_utf8(bytes.split_to(bytes_of.into()).to_vec()).unwrap();
        let (path, other) = (text(path_bytes), text(other_bytes));
        let data = bytes.split_to(data_bytes);
        match kind {
            b'E' => panic!("{other} of {path:?} cannot be recorded"),
            // Nobody will find this file again, whatever is done to it.
            _ if path.ends_with(" (deleted)") => {}
            b'W' if path == ACKS => {
                let line = String::from_utf8(data.to_vec()).unwrap();
                steps.push(Step::Acknowledged(Ack::parse(line.trim_end()).unwrap()));
            }
            _ if path == ACKS => {}
            b'C' => steps.push(Step::Created(path)),
            b'M' => steps.push(Step::CreatedDirectory(path)),
            b'R' => steps.push(Step::Renamed { from: path, to: other }),
            b'U' => steps.push(Step::Removed(path)),
            b'W' => steps.push(Step::Wrote { path, offset, data, durable }),
            b'T' => steps.push(Step::Resized { path, bytes: offset }),
            b'S' => steps.push(Step::Synced(path)),
            _ => panic!("a record of kind {kind}"),
        }
    }
    steps
}
