//! The engines that a URL can name.

use keyward_engine::{Error, ErrorKind, Result, StoreUrl};

/// The engines that a URL can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Memory,
    Embedded,
    Postgres,
    Remote,
    CouchDb,
    DynamoDb,
    Firestore,
    CloudflareKv,
    ForgeKvs,
}

impl Family {
    pub fn of(url: &StoreUrl) -> Result<Self> {
        Ok(match url.engine() {
            "memory" => Self::Memory,
            "embedded" => Self::Embedded,
            "postgres" | "postgresql" => Self::Postgres,
            "keyward+http" | "keyward+https" => Self::Remote,
            "couchdb" | "couchdb+http" | "couchdb+https" => Self::CouchDb,
            "dynamodb" => Self::DynamoDb,
            "firestore" => Self::Firestore,
            "cloudflare-kv" => Self::CloudflareKv,
            "forge-kvs" => Self::ForgeKvs,
            other => return Err(unknown(other)),
        })
    }

    /// Whether its stores promise less than locks, queues and indexes need, so that a coordinator helps.
    pub fn takes_coordinator(self) -> bool {
        matches!(self, Self::CloudflareKv | Self::ForgeKvs)
    }

    /// Whether it has documents that other programs write too.
    pub fn has_documents(self) -> bool {
        matches!(self, Self::CouchDb | Self::DynamoDb | Self::Firestore)
    }
}

fn unknown(name: &str) -> Error {
    let message = format!(
        "there is no engine called {name:?}; there are embedded, postgres, couchdb, dynamodb, firestore, \
         cloudflare-kv, forge-kvs, keyward+http, keyward+https and memory"
    );
    Error::new(ErrorKind::Invalid, message)
}
