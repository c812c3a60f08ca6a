//! What two engines can do together.

use std::time::Duration;

use keyward_engine::{
    Capabilities, Consistency, Durability, Error, ErrorKind, Limits, Result, ScanOrder, Sharing,
    Tier,
};

use crate::head::Head;
use crate::layout::PENDING_KEY_BYTES;

/// Rows of the coordinator for each key that a commit writes: the head, and the pending row.
const ROWS_PER_KEY: usize = 2;
/// More than the hash in a head and the mark of a pending row occupy.
const MARK_BYTES: usize = 384;

/// The capabilities of a value store with a coordinator. Promises are the coordinator's, limits the tighter of both.
pub(crate) fn combined(values: &Capabilities, coordinator: &Capabilities) -> Result<Capabilities> {
    let refused = |why: String| {
        let message = format!("the {} engine cannot be a coordinator: {why}", coordinator.engine);
        Err(Error::new(ErrorKind::Misplaced, message)
            .advise("Name an atomic engine as the coordinator, for example embedded:./coord."))
    };
    if coordinator.tier() != Tier::Atomic {
        return refused(format!(
            "its tier is {}, and a coordinator must be atomic",
            coordinator.tier()
        ));
    }
    if coordinator.consistency != Consistency::Strong {
        return refused(
            "its reads are late, and a coordinator must read what was written".to_owned(),
        );
    }
    if coordinator.scan_order != ScanOrder::Ordered {
        return refused("it keeps no key order, and a coordinator must".to_owned());
    }
    let limits = limits(&values.limits, &coordinator.limits);
    if limits.commit_keys_max < 2 {
        return refused(format!(
            "it takes {} keys in a commit, and a coordinator must take at least {}",
            coordinator.limits.commit_keys_max,
            2 * ROWS_PER_KEY
        ));
    }
    Ok(Capabilities {
        engine: values.engine,
        // A number that is in the value store cannot be added to where commits are decided.
        add: false,
        durability: weaker(values.durability, coordinator.durability),
        sharing: narrower(values.sharing, coordinator.sharing),
        limits,
        ..coordinator.clone()
    })
}

fn limits(values: &Limits, coordinator: &Limits) -> Limits {
    let both = coordinator.tightened(Limits {
        // How many keys or rows the value store takes at once is no limit: it is asked in several steps.
        commit_keys_max: usize::MAX,
        commit_bytes_max: usize::MAX,
        get_keys_max: usize::MAX,
        scan_rows_max: usize::MAX,
        ..*values
    });
    let key_bytes_max =
        values.key_bytes_max.min(coordinator.key_bytes_max.saturating_sub(PENDING_KEY_BYTES));
    // A key stands in both of its rows, and callers count it once.
    let overhead = key_bytes_max + PENDING_KEY_BYTES + MARK_BYTES;
    let commit_keys_max =
        (both.commit_keys_max / ROWS_PER_KEY).min(both.commit_bytes_max / ROWS_PER_KEY / overhead);
    let commit_bytes_max = both.commit_bytes_max.saturating_sub(commit_keys_max * overhead);
    let beside_value = key_bytes_max + both.metadata_bytes_max;
    let value_bytes_max = values
        .value_bytes_max
        .min(coordinator.value_bytes_max.saturating_sub(Head::WRAPPING_BYTES))
        .min(commit_bytes_max.saturating_sub(beside_value));
    Limits {
        key_bytes_max,
        value_bytes_max,
        commit_keys_max,
        commit_bytes_max,
        get_keys_max: (both.get_keys_max / ROWS_PER_KEY).max(1),
        ..both
    }
}

/// How late a read of a value store may be.
pub(crate) fn lag(values: &Capabilities) -> Duration {
    values.consistency.lag()
}

fn weaker(one: Durability, other: Durability) -> Durability {
    match (one, other) {
        (Durability::Volatile, _) | (_, Durability::Volatile) => Durability::Volatile,
        (Durability::Relaxed, _) | (_, Durability::Relaxed) => Durability::Relaxed,
        (Durability::Synced, Durability::Synced) => Durability::Synced,
    }
}

fn narrower(one: Sharing, other: Sharing) -> Sharing {
    match (one, other) {
        (Sharing::Process, _) | (_, Sharing::Process) => Sharing::Process,
        (Sharing::Machine, _) | (_, Sharing::Machine) => Sharing::Machine,
        (Sharing::Network, Sharing::Network) => Sharing::Network,
    }
}
