//! The servers that some cases need: where they are, and how to have them.

use crate::Result;

/// What a variable says in place of an address where a server was looked for in vain:
/// `testing/services/firestore.sh`.
const ABSENT: &str = "absent";

/// A server that cases need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Server {
    /// PostgreSQL.
    Postgres,
    /// CouchDB, or what speaks its protocol.
    CouchDb,
    /// DynamoDB Local.
    DynamoDb,
    /// Google's Firestore emulator.
    Firestore,
    /// The REST API of Workers KV.
    CloudflareKv,
    /// The storage API of Forge.
    ForgeKvs,
}

impl Server {
    /// Its name in `testing/services`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::CouchDb => "couchdb",
            Self::DynamoDb => "dynamodb",
            Self::Firestore => "firestore",
            Self::CloudflareKv => "cloudflare_kv",
            Self::ForgeKvs => "forge_kvs",
        }
    }

    /// What its cases need, in words.
    pub fn needed(self) -> &'static str {
        match self {
            Self::Postgres => "a PostgreSQL server and pgbench",
            Self::CouchDb => "a CouchDB server",
            Self::DynamoDb => "DynamoDB Local",
            Self::Firestore => "the Firestore emulator",
            Self::CloudflareKv => "the test server of Workers KV",
            Self::ForgeKvs => "the test server of Forge KVS",
        }
    }

    /// The environment variable with its address.
    fn variable(self) -> &'static str {
        match self {
            Self::Postgres => "KEYWARD_TEST_POSTGRES",
            Self::CouchDb => "KEYWARD_TEST_COUCHDB",
            Self::DynamoDb => "KEYWARD_TEST_DYNAMODB",
            Self::Firestore => "KEYWARD_TEST_FIRESTORE",
            Self::CloudflareKv => "KEYWARD_TEST_CLOUDFLARE_KV",
            Self::ForgeKvs => "KEYWARD_TEST_FORGE_KVS",
        }
    }

    /// What its address looks like.
    fn example(self) -> &'static str {
        match self {
            // The user must be allowed to create databases.
            Self::Postgres => "postgres://user@host/database",
            Self::CouchDb => "http://user:password@host:5984",
            Self::DynamoDb => "http://127.0.0.1:8000",
            Self::Firestore => "127.0.0.1:8080",
            Self::CloudflareKv => "http://127.0.0.1:8787/client/v4",
            Self::ForgeKvs => "http://127.0.0.1:8788/forge/storage/kvs",
        }
    }

    fn find(self) -> Option<String> {
        std::env::var(self.variable()).ok()
    }

    /// Whether it can be measured with.
    pub fn is_there(self) -> bool {
        self.find().is_some_and(|address| address != ABSENT)
    }

    /// Whether it was looked for in vain.
    #[cfg(test)]
    pub fn is_absent(self) -> bool {
        self.find().is_some_and(|address| address == ABSENT)
    }

    /// Its address, as its variable has it.
    pub fn address(self) -> Result<String> {
        let address = self.find().filter(|address| address != ABSENT);
        let missing = || format!("this needs {}.\n\n{}", self.needed(), how_to_have(&[self]));
        Ok(address.ok_or_else(missing)?)
    }
}

/// How to have servers for a run.
pub fn how_to_have(servers: &[Server]) -> String {
    let names: Vec<_> = servers.iter().map(|server| server.name()).collect();
    let own: String = servers
        .iter()
        .map(|server| format!("  {}={}\n", server.variable(), server.example()))
        .collect();
    format!(
        "To have what testing/services can start, for the run only:\n\n  testing/services/run \
         --only {} cargo run --release -p keyward-bench -- CASE\n\nTo use a server of yours, on \
         which the case may create and remove databases, set:\n\n{own}",
        names.join(",")
    )
}
