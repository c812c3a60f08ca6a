//! That no change is skipped, whatever runs beside, and that watchers are woken.

use std::time::Duration;

use futures_util::StreamExt;
use keyward_engine::{BoxStream, Event, Outcome, Result, Revision, Store};
use keyward_key::KeyRange;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

use crate::proxy::Proxy;
use crate::server::{Fresh, config, connect, key, put, putting, runtime};

type Events = BoxStream<'static, Result<Event>>;

const SOON: Duration = Duration::from_secs(30);

async fn commit(store: &Store, text: &str) -> Revision {
    match store.commit(putting(text, "1")).await.unwrap() {
        Outcome::Applied { revision, .. } => revision.unwrap(),
        conflicted => panic!("{conflicted:?}"),
    }
}

async fn watch(store: &Store, since: Option<Revision>) -> (Events, Revision) {
    let mut events = store.watch(KeyRange::all(), since);
    let Event::Reached(at) = events.next().await.unwrap().unwrap() else { panic!() };
    (events, at)
}

async fn next(events: &mut Events) -> Revision {
    let event = timeout(SOON, events.next()).await.expect("an event in time");
    match event.unwrap().unwrap() {
        Event::Changed { revision, .. } => revision,
        other => panic!("{other:?}"),
    }
}

/// A put around the engine, in a transaction that stays open.
async fn unfinished(fresh: &Fresh) -> (Client, Revision) {
    let client = connect(&config()).await;
    let number = fresh.number(&client).await;
    client.batch_execute("BEGIN").await.unwrap();
    let put = "SELECT revision FROM keyward.put($1, ARRAY['slow'::bytea], ARRAY['1'::bytea],
        ARRAY[NULL::bytea], ARRAY[NULL::bigint], ARRAY[NULL::timestamptz])";
    let revision: i64 = client.query_one(put, &[&number]).await.unwrap().get(0);
    (client, Revision(revision as u64))
}

#[test]
fn a_transaction_that_ends_late_is_not_passed_over() {
    for end in ["COMMIT", "ROLLBACK"] {
        runtime().block_on(async {
            let fresh = Fresh::new();
            let store = fresh.store().await;
            let before = commit(&store, "a").await;
            let (mut events, at) = watch(&store, None).await;
            assert_eq!(at, before);
            let (client, slow) = unfinished(&fresh).await;
            let after = [commit(&store, "b").await, commit(&store, "c").await];
            assert!(before < slow && slow < after[0]);

            assert!(timeout(Duration::from_millis(500), events.next()).await.is_err());
            // Who begins now begins before it, too; and the end of a commit is no excuse.
            assert_eq!(store.stats().await.unwrap().revision, Some(before));
            let (mut late, at) = watch(&store, None).await;
            assert_eq!(at, before);
            let (mut resumed, _) = watch(&store, Some(before)).await;

            client.batch_execute(end).await.unwrap();
            let mut expected = after.to_vec();
            if end == "COMMIT" {
                expected.insert(0, slow);
            }
            for events in [&mut events, &mut late, &mut resumed] {
                for revision in &expected {
                    assert_eq!(next(events).await, *revision);
                }
            }
            assert_eq!(store.stats().await.unwrap().revision, Some(after[1]));
        });
    }
}

/// Writers over two engines, and among them transactions that stay open for a while and then end
/// either way.
#[test]
fn every_commit_is_told_once_in_order_whatever_ends_when() {
    const WRITERS: usize = 6;
    const EACH: usize = 50;
    runtime().block_on(async {
        let fresh = Fresh::new();
        let stores = [fresh.store().await, fresh.store().await];
        let mut watching = JoinSet::new();
        for store in &stores {
            let (mut events, _) = watch(store, None).await;
            watching.spawn(async move {
                let mut told = Vec::new();
                loop {
                    let event = timeout(SOON, events.next()).await.expect("an event in time");
                    let Event::Changed { revision, changes } = event.unwrap().unwrap() else {
                        panic!()
                    };
                    told.push(revision);
                    if changes[0].key == key("end") {
                        break told;
                    }
                }
            });
        }
        let mut writing = JoinSet::new();
        for writer in 0..WRITERS {
            let store = stores[writer % 2].clone();
            writing.spawn(async move {
                let mut made = Vec::new();
                for n in 0..EACH {
                    made.push(commit(&store, &format!("{writer}:{n}")).await);
                }
                made
            });
        }
        let mut made = Vec::new();
        for n in 0..30 {
            let (client, revision) = unfinished(&fresh).await;
            sleep(Duration::from_millis(n % 7 * 3)).await;
            if n % 3 == 0 {
                client.batch_execute("ROLLBACK").await.unwrap();
            } else {
                client.batch_execute("COMMIT").await.unwrap();
                made.push(revision);
            }
        }
        made.extend(writing.join_all().await.into_iter().flatten());
        made.push(commit(&stores[0], "end").await);
        made.sort_unstable();
        for told in watching.join_all().await {
            assert_eq!(told, made);
        }
    });
}

#[test]
fn a_long_transaction_elsewhere_holds_up_nobody() {
    runtime().block_on(async {
        let (fresh, elsewhere) = (Fresh::new(), Fresh::new());
        let store = fresh.store().await;
        elsewhere.store().await.put(key("a"), put("1")).await.unwrap();
        let (other_store, _) = unfinished(&elsewhere).await;
        let no_store = connect(&config()).await;
        no_store.batch_execute("BEGIN; SELECT pg_current_xact_id()").await.unwrap();

        let before = commit(&store, "a").await;
        assert_eq!(store.stats().await.unwrap().revision, Some(before));
        let (mut events, at) = watch(&store, None).await;
        assert_eq!(at, before);
        for _ in 0..5 {
            let revision = commit(&store, "a").await;
            assert_eq!(next(&mut events).await, revision);
        }
        drop((other_store, no_store));
    });
}

#[test]
fn history_is_kept_for_as_long_as_asked_and_then_told_as_too_old() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let store = fresh.with(|options| options.history = Duration::from_millis(50)).await;
        let begin = commit(&store, "a").await;
        let (mut behind, _) = watch(&store, Some(begin)).await;
        sleep(Duration::from_millis(100)).await;
        let mut made = Vec::new();
        let earliest = loop {
            made.push(commit(&store, "a").await);
            let stats = store.stats().await.unwrap();
            let earliest = stats.earliest_revision.unwrap();
            if earliest > begin {
                break earliest;
            }
            assert!(made.len() < 10_000, "nothing is trimmed");
        };
        let event = store.watch(KeyRange::all(), Some(begin)).next().await.unwrap().unwrap();
        assert!(matches!(event, Event::TooOld { earliest: told } if told >= earliest), "{event:?}");
        // One who was watching all the while is told so, too, if it has not read that far.
        let told = timeout(SOON, behind.next()).await.unwrap().unwrap().unwrap();
        assert!(matches!(told, Event::TooOld { .. }), "{told:?}");
        assert!(behind.next().await.is_none());
    });
}

#[test]
fn watchers_go_on_when_every_connection_was_cut() {
    runtime().block_on(async {
        let (proxy, fresh) = (Proxy::start().await, Fresh::new());
        let (watching, writing) = (proxy.open(fresh.options()).await, fresh.store().await);
        let (mut events, _) = watch(&watching, None).await;
        for _ in 0..3 {
            let revision = commit(&writing, "a").await;
            assert_eq!(next(&mut events).await, revision);
            proxy.sever();
            let revision = commit(&writing, "b").await;
            assert_eq!(next(&mut events).await, revision);
        }
    });
}
