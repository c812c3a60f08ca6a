//! Many at once.

use std::sync::Arc;

use keyward_engine::{Document, Documents, Swapped};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::super::Meaning;
use super::super::database::{Database, entry, is_applied};

const RACERS: usize = 16;
const ROUNDS: usize = 20;

/// What a racer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Put,
    Delete,
}

/// The clients of so many processes.
async fn clients(database: &Database) -> Vec<Arc<dyn Documents>> {
    let mut clients = Vec::with_capacity(RACERS);
    for _ in 0..RACERS {
        clients.push(database.another().await);
    }
    clients
}

/// Who wins when all swap the same document at once; exactly one may.
async fn race(
    clients: &[Arc<dyn Documents>],
    id: &str,
    seen: Option<&Document>,
    act: impl Fn(usize) -> Act,
) -> usize {
    let start = Arc::new(Barrier::new(clients.len()));
    let mut racers = JoinSet::new();
    for (n, client) in clients.iter().enumerate() {
        let (client, start, act) = (client.clone(), start.clone(), act(n));
        let (id, seen) = (id.to_owned(), seen.cloned());
        racers.spawn(async move {
            start.wait().await;
            let swapped = match (act, &seen) {
                (Act::Delete, Some(seen)) => client.delete(seen).await,
                (_, seen) => client.put(&id, &entry("u", "n", &n.to_string()), seen.as_ref()).await,
            };
            (n, swapped.unwrap())
        });
    }
    let outcomes = racers.join_all().await;
    let winners: Vec<usize> =
        outcomes.iter().filter(|(_, swapped)| is_applied(swapped)).map(|(n, _)| *n).collect();
    assert_eq!(winners.len(), 1, "{winners:?} all believe they won {id:?}");
    winners[0]
}

fn value(document: &Document) -> usize {
    let fields = Meaning::of(document.fields.as_str());
    fields.member("value").map(Meaning::to_json).unwrap().parse().unwrap()
}

pub async fn of_sixteen_racing_creates_exactly_one_wins(database: Database) {
    let clients = clients(&database).await;
    for round in 0..ROUNDS {
        let id = format!("u:n:{round}");
        let winner = race(&clients, &id, None, |_| Act::Put).await;
        assert_eq!(value(&database.present(&id).await), winner);
    }
}

pub async fn of_sixteen_racing_replacements_exactly_one_wins(database: Database) {
    let clients = clients(&database).await;
    let id = "u:n:aw==";
    let mut seen = database.create(id, &entry("u", "n", "99")).await;
    for _ in 0..ROUNDS {
        let winner = race(&clients, id, Some(&seen), |_| Act::Put).await;
        let now = database.present(id).await;
        assert_eq!(value(&now), winner);
        // To what no racer writes: a database that compares fields cannot tell what was written again.
        assert!(is_applied(&database.put(id, &entry("u", "n", "99"), Some(&now)).await));
        seen = database.present(id).await;
    }
}

pub async fn of_racing_replacements_and_deletes_exactly_one_wins(database: Database) {
    let clients = clients(&database).await;
    for round in 0..ROUNDS {
        let id = format!("u:n:{round}");
        let seen = database.create(&id, &entry("u", "n", "99")).await;
        let act = |n: usize| if n.is_multiple_of(2) { Act::Put } else { Act::Delete };
        let winner = race(&clients, &id, Some(&seen), act).await;
        match act(winner) {
            Act::Put => assert_eq!(value(&database.present(&id).await), winner),
            Act::Delete => assert_eq!(database.get(&id).await, None),
        }
    }
}

pub async fn racing_increments_lose_none(database: Database) {
    const INCREMENTS: usize = 6;
    let id = "u:n:aw==";
    database.create(id, &entry("u", "n", "0")).await;
    let mut racers = JoinSet::new();
    for client in clients(&database).await {
        racers.spawn(async move {
            for _ in 0..INCREMENTS {
                loop {
                    let found = client.get_many(&[id.to_owned()]).await.unwrap();
                    let seen = found.into_iter().next().flatten().unwrap();
                    let more = entry("u", "n", &(value(&seen) + 1).to_string());
                    match client.put(id, &more, Some(&seen)).await.unwrap() {
                        Swapped::Applied { .. } => break,
                        Swapped::Conflicted => {}
                    }
                }
            }
        });
    }
    racers.join_all().await;
    assert_eq!(value(&database.present(id).await), RACERS * INCREMENTS);
}
