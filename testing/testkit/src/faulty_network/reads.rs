//! One fault while something is read.

use keyward_engine::{Entry, ErrorKind, Json, Put, Result};
use keyward_key::Key;

use super::network::{Network, key, rows};
use crate::NetworkFault;

const ROWS: usize = 12;
const PAGE: usize = 5;

/// A read of the whole store in one way or another, always in the same form.
#[derive(Debug, Clone, Copy)]
enum Read {
    Get,
    GetMany,
    Scan,
}

impl Read {
    async fn of(self, network: &Network, keys: &[Key]) -> Result<Vec<(Key, Entry)>> {
        let there = |(key, entry): (&Key, Option<Entry>)| Some((key.clone(), entry?));
        match self {
            Self::Get => {
                let entry = network.store.get(&keys[0]).await?;
                Ok(there((&keys[0], entry)).into_iter().collect())
            }
            Self::GetMany => {
                let entries = network.store.get_many(keys).await?;
                Ok(keys.iter().zip(entries).filter_map(there).collect())
            }
            Self::Scan => rows(&network.store, PAGE).await,
        }
    }
}

/// Fills the store; gives its rows.
pub(super) async fn fill(network: &Network) -> Vec<(Key, Entry)> {
    for n in 0..ROWS {
        let value = Json::parse(format!("{{\"n\":{n},\"text\":\"{}\"}}", "x".repeat(300))).unwrap();
        network.witness.put(key(&format!("row:{n:03}")), Put::new(value)).await.unwrap();
    }
    network.settle().await;
    let rows = rows(&network.witness, ROWS).await.unwrap();
    assert_eq!(rows.len(), ROWS);
    rows
}

/// Reads in every way; each answer is right, or there is none.
pub(super) async fn assert_right_or_unavailable(network: &Network, rows: &[(Key, Entry)]) {
    let keys: Vec<Key> = rows.iter().map(|(key, _)| key.clone()).collect();
    // Together, since each may use up its time.
    let (one, many, scanned) = tokio::join!(
        Read::Get.of(network, &keys),
        Read::GetMany.of(network, &keys),
        Read::Scan.of(network, &keys),
    );
    assert_right(network, Read::Get, one, &rows[..1]);
    assert_right(network, Read::GetMany, many, rows);
    assert_right(network, Read::Scan, scanned, rows);
}

fn assert_right(
    network: &Network,
    read: Read,
    answer: Result<Vec<(Key, Entry)>>,
    rows: &[(Key, Entry)],
) {
    match answer {
        Ok(answer) => assert_eq!(answer, rows, "{read:?}, after\n  {}", network.log()),
        Err(error) => {
            let kind = error.kind();
            assert_eq!(kind, ErrorKind::Unavailable, "{read:?}: {error}\n  {}", network.log());
        }
    }
}

pub async fn reads_are_right_or_fail_under_every_fault(network: Network) {
    let rows = fill(&network).await;
    let keys: Vec<Key> = rows.iter().map(|(key, _)| key.clone()).collect();
    for fault in NetworkFault::EACH {
        for read in [Read::Get, Read::GetMany, Read::Scan] {
            // Three are enough to meet each of the pages.
            for at in 0..3 {
                let awaited = network.fail_at(at, fault);
                let answer = read.of(&network, &keys).await;
                network.proxy.heal();
                let expected = if let Read::Get = read { &rows[..1] } else { &rows[..] };
                assert_right(&network, read, answer, expected);
                if !awaited.was_met() {
                    break;
                }
            }
        }
    }
}
