//! Tables that are carried to another server, and tables of another version.

use std::collections::HashSet;

use futures_util::StreamExt;
use keyward_engine::{ErrorKind, Event, Outcome, Revision, Store};
use keyward_key::KeyRange;
use keyward_postgres::Postgres;

use crate::proxy::Proxy;
use crate::server::{Fresh, config, connect, key, put, putting, runtime};
use crate::sharing::Database;

async fn commit(store: &Store, text: &str) -> Revision {
    match store.commit(putting(text, "1")).await.unwrap() {
        Outcome::Applied { revision, .. } => revision.unwrap(),
        conflicted => panic!("{conflicted:?}"),
    }
}

/// Lets a store look as if it came from a server whose transactions had far higher numbers.
async fn carry_over(fresh: &Fresh) {
    let client = connect(&config()).await;
    let number = fresh.number(&client).await;
    let ahead = format!(
        "BEGIN;
        UPDATE keyward.entries SET version = version + 1000000000 WHERE store = {number};
        UPDATE keyward.log SET revision = revision + 1000000000 WHERE store = {number};
        UPDATE keyward.stores SET trimmed = trimmed + 1000000000 WHERE id = {number};
        COMMIT"
    );
    client.batch_execute(&ahead).await.unwrap();
}

#[test]
fn revisions_go_on_after_tables_were_carried_to_another_server() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let store = fresh.store().await;
        commit(&store, "a").await;
        let last = commit(&store, "b").await;
        drop(store);

        let mut seen = HashSet::new();
        for round in 1..=2_u64 {
            carry_over(&fresh).await;
            let store = fresh.store().await;
            let before = store.stats().await.unwrap();
            seen.insert(store.get(&key("a")).await.unwrap().unwrap().version);
            let mut events = store.watch(KeyRange::all(), before.revision);
            assert_eq!(
                events.next().await.unwrap().unwrap(),
                Event::Reached(before.revision.unwrap())
            );
            let next = commit(&store, "a").await;
            assert!(next.0 > last.0 + round * 1_000_000_000, "{next} after {last}");
            assert!(Some(next) > before.revision);
            assert!(seen.insert(store.get(&key("a")).await.unwrap().unwrap().version));
            let told = events.next().await.unwrap().unwrap();
            assert!(matches!(told, Event::Changed { revision, .. } if revision == next));
            assert_eq!(store.stats().await.unwrap().revision, Some(next));

            let too_old = store.watch(KeyRange::all(), Some(last)).next().await.unwrap().unwrap();
            assert!(matches!(too_old, Event::TooOld { .. }), "{too_old:?}");
        }
    });
}

/// The server behind an address may be replaced while a store is open.
#[test]
fn revisions_go_on_when_the_server_was_replaced_meanwhile() {
    runtime().block_on(async {
        let (proxy, fresh) = (Proxy::start().await, Fresh::new());
        let store = proxy.open(fresh.options()).await;
        let last = commit(&store, "a").await;
        carry_over(&fresh).await;
        proxy.sever();
        assert!(store.get(&key("a")).await.unwrap().is_some(), "reads go on");
        assert!(commit(&store, "a").await.0 > last.0 + 1_000_000_000);
    });
}

#[test]
fn a_schema_of_a_newer_version_is_refused() {
    let database = Database::create("");
    runtime().block_on(async {
        let fresh = Fresh::at(database.address.clone());
        fresh.store().await.put(key("a"), put("1")).await.unwrap();
        let client = connect(&database.address.parse().unwrap()).await;
        client.batch_execute("UPDATE keyward.schema SET version = 99").await.unwrap();
        let refused = Postgres::open(&database.address, fresh.options()).await.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Misplaced);
        assert!(refused.message().contains("version 99"), "{refused}");
        client.batch_execute("UPDATE keyward.schema SET version = 1").await.unwrap();
        assert!(fresh.store().await.get(&key("a")).await.unwrap().is_some());
    });
}

#[test]
fn many_who_open_an_empty_database_at_once_prepare_it_once() {
    let database = Database::create("");
    runtime().block_on(async {
        let fresh = Fresh::at(database.address.clone());
        let mut opening = tokio::task::JoinSet::new();
        for _ in 0..12 {
            let (address, options) = (database.address.clone(), fresh.options());
            opening.spawn(async move { Postgres::open(&address, options).await.err() });
        }
        for failed in opening.join_all().await {
            assert!(failed.is_none(), "{failed:?}");
        }
        let client = connect(&database.address.parse().unwrap()).await;
        let stores = client.query("SELECT name FROM keyward.stores", &[]).await.unwrap();
        assert_eq!(stores.len(), 1);
    });
}

#[test]
fn asking_for_a_store_that_exists_makes_nothing() {
    let database = Database::create("");
    runtime().block_on(async {
        let fresh = Fresh::at(database.address.clone());
        let existing = async || Postgres::open_existing(&database.address, fresh.options()).await;
        let client = connect(&database.address.parse().unwrap()).await;
        assert!(existing().await.unwrap().is_none());
        let schemas = "SELECT nspname FROM pg_namespace WHERE nspname = 'keyward'";
        assert!(client.query(schemas, &[]).await.unwrap().is_empty(), "not even the tables");

        let another = Fresh::at(database.address.clone());
        another.store().await;
        assert!(existing().await.unwrap().is_none());
        fresh.store().await.put(key("a"), put("1")).await.unwrap();
        let found = Store::new(existing().await.unwrap().unwrap());
        assert!(found.get(&key("a")).await.unwrap().is_some());
    });
}
