//! Random swaps, against a simple map.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use keyward_engine::{Document, Documents, Json, Swapped};

use super::super::database::{Database, assert_same, entry};
use crate::{Replay, seeds};

const STEPS: usize = 150;
const IDS: usize = 4;

/// What is there, and documents as they were seen at any time.
#[derive(Default)]
struct Model {
    there: BTreeMap<String, (u64, Json)>,
    seen: Vec<(u64, Document)>,
    last: u64,
}

pub async fn random_swaps_agree_with_a_simple_map(database: Database) {
    let clients = [database.documents.clone(), database.another().await];
    for seed in seeds(3, 100) {
        let mut replay = Replay::new(database.test, seed);
        let mut rng = Rng::with_seed(seed);
        let mut model = Model::default();
        for _ in 0..STEPS {
            let client = &clients[rng.usize(..clients.len())];
            step(client, &mut model, &mut rng, &mut replay, seed).await;
        }
    }
}

async fn step(
    client: &Arc<dyn Documents>,
    model: &mut Model,
    rng: &mut Rng,
    replay: &mut Replay,
    seed: u64,
) {
    let id = format!("u:n:{seed}-{}", rng.usize(..IDS));
    if rng.u8(..3) == 0 || model.seen.is_empty() {
        let ids: Vec<String> = (0..IDS).map(|n| format!("u:n:{seed}-{n}")).collect();
        replay.step("read all".to_owned());
        for (id, found) in ids.iter().zip(client.get_many(&ids).await.unwrap()) {
            match (found, model.there.get(id)) {
                (None, None) => {}
                (Some(found), Some((state, fields))) => {
                    assert_same(&found.fields, fields);
                    model.seen.push((*state, found));
                }
                (found, there) => panic!("{id} should be {there:?}, and is {found:?}"),
            }
        }
    }
    let recent = model.seen.len().saturating_sub(6);
    let seen = rng.choice(model.seen.get(recent..).unwrap_or_default()).cloned();
    model.last += 1;
    let state = model.last;
    // No two states have the same fields, so that it does not matter what a database compares.
    let fields = entry("u", "n", &format!(r#"{{"seed":{seed},"state":{state}}}"#));
    let (id, expected, swapped) = match (rng.u8(..4), &seen) {
        (0 | 1, Some((state, document))) => {
            replay.step(format!("replace {} as of {state}", document.id));
            let swapped = client.put(&document.id, &fields, Some(document)).await.unwrap();
            (document.id.clone(), Some(*state), (swapped, true))
        }
        (2, Some((state, document))) => {
            replay.step(format!("delete {} as of {state}", document.id));
            let swapped = client.delete(document).await.unwrap();
            (document.id.clone(), Some(*state), (swapped, false))
        }
        _ => {
            replay.step(format!("create {id}"));
            let swapped = client.put(&id, &fields, None).await.unwrap();
            (id, None, (swapped, true))
        }
    };
    let holds = model.there.get(&id).map(|(state, _)| *state) == expected;
    let (swapped, is_put) = swapped;
    assert_eq!(matches!(swapped, Swapped::Applied { .. }), holds, "{id}: {swapped:?}");
    if holds && is_put {
        model.there.insert(id, (state, fields));
    } else if holds {
        model.there.remove(&id);
    }
}
