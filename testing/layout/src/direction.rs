//! Which crate of the workspace may use which.
//!
//! Doors → facade → systems → services → core ← engines: down only. Crates are named by their
//! folders; `core/*` is every crate of the layer.

/// How one crate uses another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Part of what is built for users: `[dependencies]` and `[build-dependencies]`.
    Build,
    /// Only in tests, examples and benchmarks: `[dev-dependencies]`.
    Test,
}

type Row = (&'static str, &'static [&'static str]);

/// Who may use whom.
const BUILD: &[Row] = &[
    // Edges between siblings: the contract and the schema speak of keys.
    ("core/engine", &["core/key"]),
    ("core/schema", &["core/key"]),
    // An adapter knows the contract, and nothing else of ours.
    ("engines/*", &["core/key", "core/engine"]),
    // Databases that speak HTTP are reached by one client, with one rule of what is sent again. Those whose feed of
    // changes has no revisions get them in one way.
    ("engines/couchdb", &["engines/http", "engines/changes"]),
    ("engines/firestore", &["engines/http"]),
    ("engines/cloudflare-kv", &["engines/http"]),
    ("engines/forge-kvs", &["engines/http"]),
    ("engines/dynamodb", &["engines/changes"]),
    // Services see stores, never a database.
    ("services/*", &["core/*"]),
    // Migrations change records while others write them, so they go through their service.
    ("services/migrate", &["services/records"]),
    // What is computed once is computed under a lock.
    ("services/cache", &["services/locks"]),
    ("systems/*", &["services/*", "core/*"]),
    // Only the facade names adapters.
    ("keyward", &["systems/*", "services/*", "engines/*", "core/*"]),
    ("doors/*", &["keyward"]),
    // What a door offers is declared once; the command also starts the server.
    ("doors/server", &["doors/operations"]),
    ("doors/cli", &["doors/operations", "doors/server"]),
    ("examples", &["keyward"]),
    ("testing/testkit", &["core/*"]),
    ("testing/stores", &["engines/*", "core/*", "testing/testkit"]),
    // Attackers know nothing but the command and its HTTP API: they use no crate of ours.
    ("testing/attack", &[]),
    ("testing/bench", &["doors/server", "keyward", "engines/*", "core/*", "testing/testkit"]),
];

/// What tests may use besides.
const TEST: &[Row] = &[
    ("*", &["testing/testkit"]),
    // An engine that speaks to a server is tried on a real one.
    ("engines/remote", &["doors/server", "keyward"]),
    // Two engines that make one: tried with those that it is made for.
    ("engines/coordinated", &["engines/memory", "engines/embedded", "engines/cloudflare-kv"]),
    ("engines/forge-kvs", &["engines/memory", "engines/coordinated"]),
    // What other programs read in a value store: tried with a coordinator, and on the real one.
    ("systems/registry", &["engines/coordinated", "engines/cloudflare-kv"]),
    ("systems/agreements", &["engines/coordinated"]),
    // Examples in the documentation need some engine.
    ("core/engine", &["engines/memory"]),
    ("testing/testkit", &["engines/memory"]),
    // The memory engine, where others would write a mock.
    ("services/*", &["engines/memory", "testing/stores"]),
    ("systems/*", &["engines/memory", "testing/stores"]),
    // The same, for what is kept for months: a test owns the engine's clock.
    ("doors/server", &["engines/memory"]),
    ("doors/operations", &["engines/memory"]),
];

/// Libraries that a crate must not use: operations know no wire and no command line.
const WIRELESS: &[(&str, &[&str])] =
    &[("doors/operations", &["axum", "hyper", "http", "reqwest", "rmcp", "clap", "utoipa"])];

/// Why the crate in folder `from` may not use a library, if it may not.
pub fn refused_library(from: &str, library: &str) -> Option<String> {
    let (_, refused) = WIRELESS.iter().find(|(folder, _)| *folder == from)?;
    refused.contains(&library).then(|| {
        format!("{from} uses {library}, which the table WIRELESS of testing/layout/src/direction.rs refuses")
    })
}

/// Why the crate in folder `from` may not use the one in folder `to`, if it may not.
pub fn refused_edge(from: &str, to: &str, how: Use) -> Option<String> {
    let allowed = match how {
        Use::Build => in_table(BUILD, from, to),
        Use::Test => in_table(BUILD, from, to) || in_table(TEST, from, to),
    };
    let (section, table) = match how {
        Use::Build => ("[dependencies]", "BUILD"),
        Use::Test => ("[dev-dependencies]", "TEST"),
    };
    (!allowed).then(|| {
        format!(
            "{from} has {to} in its {section}, an edge that the table {table} of \
             testing/layout/src/direction.rs does not list"
        )
    })
}

fn in_table(table: &[Row], from: &str, to: &str) -> bool {
    table
        .iter()
        .any(|(users, used)| matches(users, from) && used.iter().any(|folder| matches(folder, to)))
}

fn matches(pattern: &str, folder: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => folder.starts_with(start),
        None => pattern == folder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn down_is_allowed() {
        for (from, to) in [
            ("doors/cli", "keyward"),
            ("examples", "keyward"),
            ("keyward", "engines/embedded"),
            ("keyward", "services/locks"),
            ("systems/agents", "services/records"),
            ("services/records", "core/engine"),
            ("engines/memory", "core/engine"),
            ("core/engine", "core/key"),
        ] {
            assert_eq!(refused_edge(from, to, Use::Build), None);
            assert_eq!(refused_edge(from, to, Use::Test), None);
        }
    }

    #[test]
    fn up_and_sideways_and_around_the_facade_is_refused() {
        for (from, to) in [
            ("core/key", "core/engine"),
            ("core/engine", "keyward"),
            ("engines/memory", "engines/embedded"),
            ("engines/memory", "services/records"),
            ("services/records", "engines/embedded"),
            ("services/records", "services/locks"),
            ("services/records", "keyward"),
            ("systems/agents", "engines/embedded"),
            ("keyward", "doors/cli"),
            ("doors/cli", "engines/embedded"),
            ("doors/cli", "core/engine"),
            ("doors/server", "doors/cli"),
            ("examples", "services/records"),
        ] {
            assert!(refused_edge(from, to, Use::Build).is_some(), "{from} → {to}");
            assert!(refused_edge(from, to, Use::Test).is_some(), "{from} → {to}");
        }
    }

    #[test]
    fn operations_know_no_wire() {
        assert!(refused_library("doors/operations", "axum").is_some());
        assert_eq!(refused_library("doors/operations", "serde"), None);
        assert_eq!(refused_library("doors/server", "axum"), None);
    }

    #[test]
    fn what_only_tests_may_use_is_refused_elsewhere() {
        for (from, to) in [
            ("engines/memory", "testing/testkit"),
            ("core/engine", "engines/memory"),
            ("engines/remote", "doors/server"),
            ("services/records", "engines/memory"),
        ] {
            assert_eq!(refused_edge(from, to, Use::Test), None);
            assert!(refused_edge(from, to, Use::Build).is_some(), "{from} → {to}");
        }
    }
}
