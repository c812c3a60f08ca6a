//! The cases, one file for each family.
//!
//! A new case is a function that returns rows, and a line in [`CASES`].

mod agents;
mod commit;
mod coordination;
mod copy;
mod databases;
mod growth;
mod http;
mod indexed;
mod load;
mod mcp;
mod postgres;
mod read;
mod registry;
#[cfg(test)]
mod tests;
mod waking;

pub use databases::Loaded;
pub use waking::plays_waiter;

use crate::Result;
use crate::bench::Bench;
use crate::report::Row;
use crate::server::Server;

/// Something to measure, and what to compare it with.
pub struct Case {
    /// What it is called on the command line and in the results.
    pub name: &'static str,
    /// What is compared.
    pub compares: &'static str,
    /// What has to be there.
    pub needs: Needs,
    /// Measures. The row with the case's own name has the goal; others inform.
    pub run: fn(&mut Bench) -> Result<Vec<Row>>,
}

/// What a case needs besides a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// A server.
    Server(Server),
}

/// Every case, in the order they run.
pub const CASES: &[Case] = &[
    Case {
        name: "get",
        compares: "random point gets: Store / raw heed on a copy of the same file",
        needs: Needs::Nothing,
        run: read::get,
    },
    Case {
        name: "get_hop",
        compares: "the same gets, each on another thread and back: Store / raw heed (no goal)",
        needs: Needs::Nothing,
        run: read::get_hop,
    },
    Case {
        name: "scan100",
        compares: "random pages of 100 rows: Store / raw heed on a copy of the same file",
        needs: Needs::Nothing,
        run: read::scan100,
    },
    Case {
        name: "get_growth",
        compares: "time of a point get through Store: 1 million records / 10 thousand",
        needs: Needs::Nothing,
        run: growth::get_growth,
    },
    Case {
        name: "load",
        compares: "bulk load in commits of 1,000 puts: Store / raw heed, the worse of two orders",
        needs: Needs::Nothing,
        run: load::load,
    },
    Case {
        name: "commit1_vs_log",
        compares: "durable single-put commits of 1 client: Store / append log (no goal)",
        needs: Needs::Nothing,
        run: |bench| commit::against_log(bench, 1, None),
    },
    Case {
        name: "commit16_vs_log",
        compares: "durable single-put commits of 16 clients: Store / append log (no goal)",
        needs: Needs::Nothing,
        run: |bench| commit::against_log(bench, 16, None),
    },
    Case {
        name: "commit64_vs_log",
        compares: "durable single-put commits of 64 clients: Store / append log, same batching",
        needs: Needs::Nothing,
        run: |bench| commit::against_log(bench, 64, Some(commit::LOG_GOAL)),
    },
    Case {
        name: "commit64_vs_commit1",
        compares: "durable single-put commits through Store: 64 clients / 1 client",
        needs: Needs::Nothing,
        run: commit::many_against_one,
    },
    Case {
        name: "lock_pair",
        compares: "a lock taken and released / two durable single-put commits",
        needs: Needs::Nothing,
        run: coordination::lock_pair,
    },
    Case {
        name: "record_write",
        compares: "durable writes of a record with two indexes / of the same three keys",
        needs: Needs::Nothing,
        run: indexed::write,
    },
    Case {
        name: "index_page",
        compares: "a page of 100 records by an index / a scan of the entries and gets",
        needs: Needs::Nothing,
        run: indexed::page,
    },
    Case {
        name: "paging",
        compares: "time of a page: at the end of an index / at its beginning",
        needs: Needs::Nothing,
        run: indexed::paging,
    },
    Case {
        name: "near",
        compares: "the 20 nearest places / one search each 5 ms",
        needs: Needs::Nothing,
        run: indexed::near,
    },
    Case {
        name: "index_build",
        compares: "adding an index to records / copying the records to another store",
        needs: Needs::Nothing,
        run: indexed::build,
    },
    Case {
        name: "queue",
        compares: "messages enqueued, claimed and done by 16 workers / durable commits of 16 clients",
        needs: Needs::Nothing,
        run: coordination::queue,
    },
    Case {
        name: "agent_get",
        compares: "random gets of agents' entries: counted as accesses / not counted",
        needs: Needs::Nothing,
        run: agents::get,
    },
    Case {
        name: "agent_list",
        compares: "all keys of a namespace in pages: the agent data store / scans (no goal)",
        needs: Needs::Nothing,
        run: agents::list,
    },
    Case {
        name: "registry_changed",
        compares: "a sync of one changed file / git diff-tree -r and one durable commit",
        needs: Needs::Nothing,
        run: registry::changed,
    },
    Case {
        name: "registry_first",
        compares: "the first sync of a repository / git cat-file --batch over the same blobs",
        needs: Needs::Nothing,
        run: registry::first,
    },
    Case {
        name: "cache_wake",
        compares: "how soon a computed result reaches callers in other processes / 50 ms",
        needs: Needs::Nothing,
        run: waking::wake,
    },
    Case {
        name: "pg_get",
        compares: "random point gets of 8 clients: Store / pgbench with the same statement",
        needs: Needs::Server(Server::Postgres),
        run: postgres::get,
    },
    Case {
        name: "pg_scan100",
        compares: "random pages of 100 rows, 8 clients: Store / pgbench with the same statement",
        needs: Needs::Server(Server::Postgres),
        run: postgres::scan100,
    },
    Case {
        name: "pg_commit",
        compares: "durable single-put commits of 8 clients: Store / pgbench, same statement",
        needs: Needs::Server(Server::Postgres),
        run: postgres::commit,
    },
    Case {
        name: "copy_pg",
        compares: "a copy from an embedded store to PostgreSQL / COPY FROM of the same rows",
        needs: Needs::Server(Server::Postgres),
        run: copy::to_postgres,
    },
    Case {
        name: "copy_pg_back",
        compares: "a copy from PostgreSQL to an embedded store / COPY TO and a load by raw heed",
        needs: Needs::Server(Server::Postgres),
        run: copy::from_postgres,
    },
    Case {
        name: "couchdb_get",
        compares: "random point gets of 8 clients: Store / reqwest with the same requests",
        needs: Needs::Server(Server::CouchDb),
        run: |bench| databases::get(bench, Server::CouchDb),
    },
    Case {
        name: "couchdb_commit",
        compares: "single-put commits of 8 clients: Store / reqwest with the same requests",
        needs: Needs::Server(Server::CouchDb),
        run: |bench| databases::commit(bench, Server::CouchDb),
    },
    Case {
        name: "dynamodb_get",
        compares: "random point gets of 8 clients: Store / the AWS SDK with the same requests",
        needs: Needs::Server(Server::DynamoDb),
        run: |bench| databases::get(bench, Server::DynamoDb),
    },
    Case {
        name: "dynamodb_commit",
        compares: "single-put commits of 8 clients: Store / the AWS SDK with the same requests",
        needs: Needs::Server(Server::DynamoDb),
        run: |bench| databases::commit(bench, Server::DynamoDb),
    },
    Case {
        name: "firestore_get",
        compares: "random point gets of 8 clients: Store / reqwest with the same requests",
        needs: Needs::Server(Server::Firestore),
        run: |bench| databases::get(bench, Server::Firestore),
    },
    Case {
        name: "firestore_commit",
        compares: "single-put commits of 8 clients: Store / reqwest with the same requests",
        needs: Needs::Server(Server::Firestore),
        run: |bench| databases::commit(bench, Server::Firestore),
    },
    Case {
        name: "cloudflare_kv_get",
        compares: "random point gets of 8 clients: Store / reqwest with the same requests",
        needs: Needs::Server(Server::CloudflareKv),
        run: |bench| databases::get(bench, Server::CloudflareKv),
    },
    Case {
        name: "cloudflare_kv_commit",
        compares: "single-put commits of 8 clients: Store / reqwest with the same requests",
        needs: Needs::Server(Server::CloudflareKv),
        run: |bench| databases::commit(bench, Server::CloudflareKv),
    },
    Case {
        name: "forge_kvs_get",
        compares: "random point gets of 8 clients: Store / reqwest with the same requests",
        needs: Needs::Server(Server::ForgeKvs),
        run: |bench| databases::get(bench, Server::ForgeKvs),
    },
    Case {
        name: "forge_kvs_commit",
        compares: "single-put commits of 8 clients: Store / reqwest with the same requests",
        needs: Needs::Server(Server::ForgeKvs),
        run: |bench| databases::commit(bench, Server::ForgeKvs),
    },
    Case {
        name: "http_get",
        compares: "GET of an entry over HTTP / a bare handler that gives the same bytes",
        needs: Needs::Nothing,
        run: http::http_get,
    },
    Case {
        name: "http_put64",
        compares: "durable PUTs of 64 clients over HTTP / the same commits in process",
        needs: Needs::Nothing,
        run: http::http_put64,
    },
    Case {
        name: "mcp_get",
        compares: "a get of an agent's entry by MCP / a bare tool that gives back what it is sent",
        needs: Needs::Nothing,
        run: mcp::get,
    },
];
