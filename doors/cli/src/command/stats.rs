use std::time::Duration;

use clap::Args;
use indicatif::HumanCount;
use keyward::{
    Capabilities, ClockSource, Consistency, Durability, ErrorKind, ExpirySupport, Limits,
    ScanOrder, Sharing, Tier, WatchSupport,
};
use serde::Serialize;

use crate::args::{self, Target};
use crate::failure::Result;
use crate::output::{Output, size};
use crate::store_choice::Choice;

/// Show what a store is, holds and can do
///
/// The tier says what holds there: atomic (commits of several keys), recoverable (compare-and-swap of one key) or
/// advisory (the last writer wins). Entries that have expired count until their space is reclaimed. To count entries,
/// DynamoDB reads and bills the whole table, and CouchDB, Cloudflare KV and Forge KVS list all keys. When a program
/// reads it, or with --json, one JSON object for each store.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward stats
  keyward stats --json | jq .entries
  keyward stats --all
  keyward stats -s dynamodb://eu-west-1/app"#)]
pub struct Arguments {
    /// All stores that the schema declares, one after the other
    #[arg(long)]
    all: bool,
}

#[derive(Serialize)]
struct Report {
    /// Where the store is, without a password.
    store: String,
    /// What says so.
    named_by: String,
    engine: &'static str,
    tier: String,
    /// What the tier promises.
    guarantee: &'static str,
    /// `null`, if the store cannot count them.
    entries: Option<u64>,
    bytes: Option<u64>,
    revision: Option<u64>,
    earliest_revision: Option<u64>,
    capabilities: Able,
    limits: Most,
}

/// [`Capabilities`] as others script against them.
#[derive(Serialize)]
struct Able {
    ordered: bool,
    /// How long a read may be behind, listings included; 0 when every read sees every write.
    lag_ms: u128,
    /// How long a read of keys may be behind.
    get_lag_ms: u128,
    compare: bool,
    add: bool,
    watch: bool,
    expiry: bool,
    ttl_ms_min: Option<u128>,
    clock: &'static str,
    durability: &'static str,
    sharing: &'static str,
}

#[derive(Serialize)]
struct Most {
    key_bytes_max: usize,
    value_bytes_max: usize,
    metadata_bytes_max: usize,
    commit_keys_max: usize,
    commit_bytes_max: usize,
    get_keys_max: usize,
    scan_rows_max: usize,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    if arguments.all {
        return every(target, output).await;
    }
    let (url, named_by) = match target.server()? {
        Some(server) => (server.url()?, "--server".to_owned()),
        None => {
            let choice = Choice::of(target)?;
            (choice.url()?, choice.source.to_string())
        }
    };
    one(&url, named_by, output).await
}

/// All stores of the schema.
async fn every(target: &Target, output: &mut Output) -> Result {
    let data = target.data_or_store().await?;
    for (n, store) in data.schema().stores.iter().enumerate() {
        if n > 0 && !output.json_lines() {
            writeln!(output)?;
        }
        let told = one(&data.url(&store.name)?, store.name.clone(), output).await;
        told.map_err(|failure| failure.at(&store.name))?;
    }
    Ok(())
}

async fn one(url: &str, named_by: String, output: &mut Output) -> Result {
    let has_layout = keyward::has_document_layout(url);
    let store = args::open_existing(url).await?;
    let stats = match store.stats().await {
        Ok(stats) => Some(stats),
        Err(error) if error.kind() == ErrorKind::Unsupported => None,
        Err(error) => return Err(error.into()),
    };
    let capabilities = store.capabilities();
    let entries = stats.as_ref().map(|stats| stats.entries);
    let stats = stats.unwrap_or_default();
    let report = Report {
        store: args::shown(url),
        named_by,
        engine: capabilities.engine,
        tier: capabilities.tier().to_string(),
        guarantee: guarantee(capabilities.tier(), has_layout),
        entries,
        bytes: stats.bytes,
        revision: stats.revision.map(|revision| revision.0),
        earliest_revision: stats.earliest_revision.map(|revision| revision.0),
        capabilities: Able::of(capabilities),
        limits: Most::of(store.limits()),
    };
    if output.json_lines() { output.write_json(&report) } else { report.show(capabilities, output) }
}

/// What holds in a store of a tier.
fn guarantee(tier: Tier, has_layout: bool) -> &'static str {
    if has_layout {
        return match tier {
            Tier::Advisory => "agent entries only; the last writer wins",
            Tier::Atomic | Tier::Recoverable => {
                "agent entries only; each document by compare-and-swap"
            }
        };
    }
    match tier {
        Tier::Atomic => "commits of several keys: indexes, history, locks and queues are exact",
        Tier::Recoverable => {
            "compare-and-swap of one key: locks and unique indexes hold, indexes recover; no queues"
        }
        Tier::Advisory => {
            "the last writer wins: no locks, queues or unique indexes unless the store names a coordinator"
        }
    }
}

impl Report {
    fn show(&self, capabilities: &Capabilities, output: &mut Output) -> Result {
        let mut row = |name: &str, value: String| writeln!(output, "{name:<12}{value}");
        row("store", format!("{} (from {})", self.store, self.named_by))?;
        row("engine", self.engine.to_owned())?;
        row("tier", self.tier.clone())?;
        row("guarantee", self.guarantee.to_owned())?;
        match self.entries {
            Some(entries) => row("entries", HumanCount(entries).to_string())?,
            None => row("entries", "not counted".to_owned())?,
        }
        if let Some(bytes) = self.bytes {
            row("size", size(bytes))?;
        }
        if let Some(revision) = self.revision {
            row("revision", HumanCount(revision).to_string())?;
        }
        let watch = match self.earliest_revision {
            Some(earliest) if self.capabilities.watch => {
                format!("yes, from revision {} on", HumanCount(earliest))
            }
            None if capabilities.watch == WatchSupport::Live => {
                "yes; one process can resume its own".to_owned()
            }
            _ => yes(self.capabilities.watch).to_owned(),
        };
        row("watch", watch)?;
        row("commits", commits(capabilities).to_owned())?;
        row("numbers", if capabilities.add { "can be added to" } else { "no" }.to_owned())?;
        row("order", if self.capabilities.ordered { "by key" } else { "none" }.to_owned())?;
        row("reads", reads(capabilities.consistency))?;
        row("expiry", expiry(capabilities))?;
        row("durability", durability(capabilities.durability).to_owned())?;
        row("sharing", sharing(capabilities.sharing).to_owned())?;
        let limits = &self.limits;
        let bytes = |bytes: usize| size(bytes as u64);
        let count = |count: usize| HumanCount(count as u64).to_string();
        row("limits", format!("key {} bytes", count(limits.key_bytes_max)))?;
        row(
            "",
            format!(
                "value {}, metadata {}",
                bytes(limits.value_bytes_max),
                bytes(limits.metadata_bytes_max)
            ),
        )?;
        row(
            "",
            format!(
                "commit {} keys, {}",
                count(limits.commit_keys_max),
                bytes(limits.commit_bytes_max)
            ),
        )?;
        row(
            "",
            format!(
                "read {} keys, page {} rows",
                count(limits.get_keys_max),
                count(limits.scan_rows_max)
            ),
        )
    }
}

impl Able {
    fn of(capabilities: &Capabilities) -> Self {
        Self {
            ordered: capabilities.scan_order == ScanOrder::Ordered,
            lag_ms: capabilities.consistency.lag().as_millis(),
            get_lag_ms: capabilities.consistency.get_lag().as_millis(),
            compare: capabilities.compare,
            add: capabilities.add,
            watch: capabilities.watch.is_supported(),
            expiry: capabilities.expiry != ExpirySupport::Unsupported,
            ttl_ms_min: ttl_min(capabilities).map(|ttl| ttl.as_millis()),
            clock: match capabilities.clock {
                ClockSource::Server => "server",
                ClockSource::Machine => "machine",
                ClockSource::Process => "process",
            },
            durability: match capabilities.durability {
                Durability::Synced => "synced",
                Durability::Relaxed => "relaxed",
                Durability::Volatile => "volatile",
            },
            sharing: match capabilities.sharing {
                Sharing::Process => "process",
                Sharing::Machine => "machine",
                Sharing::Network => "network",
            },
        }
    }
}

impl Most {
    fn of(limits: &Limits) -> Self {
        Self {
            key_bytes_max: limits.key_bytes_max,
            value_bytes_max: limits.value_bytes_max,
            metadata_bytes_max: limits.metadata_bytes_max,
            commit_keys_max: limits.commit_keys_max,
            commit_bytes_max: limits.commit_bytes_max,
            get_keys_max: limits.get_keys_max,
            scan_rows_max: limits.scan_rows_max,
        }
    }
}

fn yes(able: bool) -> &'static str {
    if able { "yes" } else { "no" }
}

fn commits(capabilities: &Capabilities) -> &'static str {
    match (capabilities.compare, capabilities.limits.commit_keys_max) {
        (true, 2..) => "many keys together, with conditions",
        (true, _) => "one key at a time, with conditions",
        (false, 2..) => "many keys together, the last writer wins",
        (false, _) => "one key at a time, the last writer wins",
    }
}

fn reads(consistency: Consistency) -> String {
    match consistency {
        Consistency::Strong => "see every write".to_owned(),
        Consistency::LateScans { lag } => format!("see every write; listings may be {lag:?} late"),
        Consistency::Eventual { lag } => format!("may be {lag:?} late"),
    }
}

fn ttl_min(capabilities: &Capabilities) -> Option<Duration> {
    match capabilities.expiry {
        ExpirySupport::Supported { ttl_min, .. } => Some(ttl_min),
        ExpirySupport::Unsupported => None,
    }
}

fn expiry(capabilities: &Capabilities) -> String {
    let Some(ttl_min) = ttl_min(capabilities) else {
        return "no".to_owned();
    };
    let clock = match capabilities.clock {
        ClockSource::Server => "the server's clock",
        ClockSource::Machine => "this machine's clock",
        ClockSource::Process => "each process's clock",
    };
    format!("from {ttl_min:?} on, by {clock}")
}

fn durability(durability: Durability) -> &'static str {
    match durability {
        Durability::Synced => "survives kill and power loss",
        Durability::Relaxed => "survives kill; a power loss may undo the last commits",
        Durability::Volatile => "none: gone with the process",
    }
}

fn sharing(sharing: Sharing) -> &'static str {
    match sharing {
        Sharing::Process => "one process",
        Sharing::Machine => "processes of this machine",
        Sharing::Network => "processes of any machine",
    }
}
