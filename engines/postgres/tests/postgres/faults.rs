//! What is said when something goes wrong, and that it is true.

use std::pin::pin;
use std::time::Duration;

use keyward_engine::{Commit, Error, ErrorKind, Expect, Store};
use keyward_postgres::{Options, Postgres, Tls};
use tokio::time::timeout;
use tokio_postgres::Client;

use crate::proxy::{Cut, Proxy};
use crate::server::{Fresh, address, config, connect, key, put, putting, runtime};

async fn held(store: &Store) -> Option<i64> {
    store.get(&key("a")).await.unwrap().map(|entry| entry.value.as_integer().unwrap())
}

/// A transaction around the engine that holds the key `a`; it ends with the connection.
pub async fn hold(fresh: &Fresh) -> Client {
    let client = connect(&config()).await;
    let number = fresh.number(&client).await;
    let hold = format!(
        "BEGIN; SELECT FROM keyward.entries WHERE store = {number} AND key = 'a' FOR UPDATE"
    );
    client.batch_execute(&hold).await.unwrap();
    client
}

#[test]
fn a_commit_whose_connection_ends_is_unknown_whether_it_arrived_or_not() {
    runtime().block_on(async {
        let (proxy, fresh) = (Proxy::start().await, Fresh::new());
        let mut options = fresh.options();
        options.pool_max = 1;
        let store = proxy.open(options).await;
        for (round, cut) in [Cut::Answer, Cut::Request, Cut::Answer].into_iter().enumerate() {
            store.put(key("a"), put("0")).await.unwrap();
            let value = (round + 1).to_string();
            let unknown = loop {
                proxy.cut(cut);
                // Applied if housekeeping, which follows some commits, was cut off in its stead.
                if let Err(error) = store.commit(putting("a", &value)).await {
                    break error;
                }
                store.put(key("a"), put("0")).await.unwrap();
            };
            assert_eq!(unknown.kind(), ErrorKind::OutcomeUnknown, "{unknown}");
            let expected = if matches!(cut, Cut::Answer) { round as i64 + 1 } else { 0 };
            // The engine goes on over another connection, without a word.
            assert_eq!(held(&store).await, Some(expected));
        }
    });
}

#[test]
fn a_read_whose_connection_ends_is_sent_again() {
    runtime().block_on(async {
        let (proxy, fresh) = (Proxy::start().await, Fresh::new());
        let store = proxy.open(fresh.options()).await;
        store.put(key("a"), put("1")).await.unwrap();
        for cut in [Cut::Request, Cut::Answer] {
            proxy.cut(cut);
            assert_eq!(held(&store).await, Some(1));
        }
    });
}

#[test]
fn a_starved_pool_says_so_and_recovers() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let store = fresh
            .with(|options| {
                options.pool_max = 1;
                options.connect_timeout = Duration::from_secs(2);
            })
            .await;
        store.put(key("a"), put("1")).await.unwrap();
        let holder = hold(&fresh).await;
        let waiting = tokio::spawn({
            let store = store.clone();
            async move { store.commit(putting("a", "2")).await }
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        let starved = store.get(&key("a")).await.unwrap_err();
        assert_eq!(starved.kind(), ErrorKind::Unavailable);
        assert!(starved.message().contains("raise pool_max"), "{starved}");
        let starved = store.commit(putting("a", "3")).await.unwrap_err();
        assert_eq!(starved.kind(), ErrorKind::Unavailable, "{starved}");
        drop(holder);
        assert!(waiting.await.unwrap().unwrap().is_applied());
        assert_eq!(held(&store).await, Some(2));
    });
}

#[test]
fn a_commit_that_takes_too_long_is_rolled_back() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let store =
            fresh.with(|options| options.statement_timeout = Duration::from_millis(500)).await;
        store.put(key("a"), put("1")).await.unwrap();
        let holder = hold(&fresh).await;
        let several = putting("a", "2").check(key("0"), Expect::Absent).put(key("0"), put("0"));
        for commit in [putting("a", "2"), several] {
            let late = store.commit(commit).await.unwrap_err();
            assert_eq!(late.kind(), ErrorKind::Unavailable, "{late}");
            assert!(late.message().contains("statement_timeout"), "{late}");
        }
        drop(holder);
        assert_eq!(held(&store).await, Some(1));
        assert!(store.get(&key("0")).await.unwrap().is_none());
    });
}

#[test]
fn a_commit_nobody_waits_for_leaves_its_connection_clean() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let store = fresh.with(|options| options.pool_max = 1).await;
        store.put(key("a"), put("1")).await.unwrap();
        store.put(key("b"), put("7")).await.unwrap();
        let holder = hold(&fresh).await;
        {
            let commit = pin!(store.commit(putting("a", "2")));
            assert!(timeout(Duration::from_millis(300), commit).await.is_err(), "it waits");
        }
        let reading = tokio::spawn({
            let store = store.clone();
            async move { store.get(&key("b")).await }
        });
        drop(holder);
        let read = reading.await.unwrap().unwrap().unwrap();
        assert_eq!(read.value.as_integer(), Some(7), "the answer is to this question");
        assert_eq!(held(&store).await, Some(2), "what was sent was applied whole");
    });
}

#[test]
fn a_connection_that_the_server_ends_in_mid_commit_leaves_it_unknown() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let store = fresh.with(|options| options.pool_max = 1).await;
        store.put(key("a"), put("1")).await.unwrap();
        let holder = hold(&fresh).await;
        let waiting = tokio::spawn({
            let store = store.clone();
            async move { store.commit(putting("a", "2")).await }
        });
        let administrator = connect(&config()).await;
        let process = fresh.waiting(&administrator).await;
        administrator.query_one("SELECT pg_terminate_backend($1)", &[&process]).await.unwrap();
        let unknown = waiting.await.unwrap().unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::OutcomeUnknown, "{unknown}");
        drop(holder);
        assert_eq!(held(&store).await, Some(1));
        assert!(store.commit(putting("a", "2")).await.unwrap().is_applied());
    });
}

async fn refused(address: &str, change: impl FnOnce(&mut Options)) -> Error {
    let mut options = Options { connect_timeout: Duration::from_secs(20), ..Options::default() };
    change(&mut options);
    Postgres::open(address, options).await.err().unwrap()
}

#[test]
fn a_place_that_cannot_be_opened_says_why() {
    runtime().block_on(async {
        let nobody = refused("postgres://nobody@127.0.0.1:1/none", |_| {}).await;
        assert_eq!(nobody.kind(), ErrorKind::Unavailable, "{nobody}");
        assert!(nobody.message().contains("refused"), "{nobody}");

        let server = address();
        let (server, _) = server.rsplit_once('/').unwrap();
        let missing = refused(&format!("{server}/keyward_missing"), |_| {}).await;
        assert_eq!(missing.kind(), ErrorKind::Misplaced, "{missing}");
        assert!(missing.message().contains("createdb"), "{missing}");

        let strange = refused("postgres://:80:80/x?y", |_| {}).await;
        assert_eq!(strange.kind(), ErrorKind::Invalid, "{strange}");

        let unencrypted = connect(&config()).await;
        let encrypts =
            unencrypted.query_one("SHOW ssl", &[]).await.unwrap().get::<_, &str>(0) == "on";
        if !encrypts {
            let plain = refused(&address(), |options| options.tls = Tls::Require).await;
            assert_eq!(plain.kind(), ErrorKind::Misplaced, "{plain}");
        }
    });
}

#[test]
fn a_user_who_may_not_create_the_schema_is_told_so() {
    let database = crate::sharing::Database::create("");
    runtime().block_on(async {
        let client = connect(&config()).await;
        let user = format!("keyward_poor_{:016x}", fastrand::u64(..));
        let create = format!("CREATE USER {user} PASSWORD 'poor'");
        client.batch_execute(&create).await.unwrap();
        let (_, place) = database.address.rsplit_once('@').unwrap();
        let poor = refused(&format!("postgres://{user}:poor@{place}"), |_| {}).await;
        client.batch_execute(&format!("DROP USER {user}")).await.unwrap();
        assert_eq!(poor.kind(), ErrorKind::Misplaced, "{poor}");
        assert!(poor.message().contains("GRANT CREATE"), "{poor}");
    });
}

#[test]
fn a_store_that_was_removed_is_not_written_to() {
    runtime().block_on(async {
        let fresh = Fresh::new();
        let store = fresh.store().await;
        let client = connect(&config()).await;
        let remove = "DELETE FROM keyward.stores WHERE name = $1";
        client.execute(remove, &[&fresh.name]).await.unwrap();
        for commit in [putting("a", "1"), Commit::new().add(key("a"), 1)] {
            let gone = store.commit(commit).await.unwrap_err();
            assert_eq!(gone.kind(), ErrorKind::Misplaced, "{gone}");
        }
    });
}
