//! Strangers who try keys that do not exist, from many addresses.

use std::net::Ipv4Addr;
use std::time::Duration;

use fastrand::Rng;
use keyward_attack::{Figures, Scale};

use crate::flood::{flood, request};
use crate::scene::Scene;

/// How many keys the strangers try, again and again.
const KEYS: usize = 100;

/// Addresses of strangers: 127.0.1.1 and above.
fn addresses() -> Vec<Ipv4Addr> {
    (1..=4).flat_map(|net| (1..=50).map(move |host| Ipv4Addr::new(127, 0, net, host))).collect()
}

/// An API key that is well-formed, so that it has to be looked up: 256 bits in base32hex.
fn made_up_key(rng: &mut Rng) -> String {
    let mut text = |length| (0..length).map(|_| rng.digit(32)).collect::<String>();
    format!("kw_{}_{}0", text(8), text(51))
}

fn try_keys(scene: &Scene, name: &'static str) -> Figures {
    let time = Scale::from_env().choose(Duration::from_secs(2), Duration::from_secs(30));
    let address = scene.server.address;
    let mut rng = Rng::with_seed(1);
    let keys: Vec<String> = (0..KEYS).map(|_| made_up_key(&mut rng)).collect();
    scene.attack(name, async move {
        let sources = addresses();
        let counts = flood(address, &sources, 64, time, move |client, round| {
            let key = &keys[(client + round) % keys.len()];
            request("GET", "/v1/stores/main/entries/user:ada:notes:1", Some(key), "")
        });
        let counts = counts.await;
        assert!(!counts.contains_key(&200), "a made-up key was taken: {counts:?}");
        let count = |status| counts.get(&status).copied().unwrap_or_default();
        vec![("unauthenticated", count(401)), ("rate_limited", count(429))]
    })
}

#[test]
fn made_up_keys_are_refused_without_harm() {
    let scene = Scene::set(0, &["--stranger-rate", "none"]);
    try_keys(&scene, "strangers");
}

mod postgres {
    use std::env;
    use std::process;

    use tokio_postgres::NoTls;

    use super::*;
    use crate::sandbox::Sandbox;

    /// How many transactions a database has seen; counted a second or so late.
    async fn transactions(url: &str) -> i64 {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        let asked = "SELECT xact_commit + xact_rollback FROM pg_stat_database \
                     WHERE datname = current_database()";
        let row = client.query_one(asked, &[]).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
        row.get(0)
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(future)
    }

    /// Other suites use the same database meanwhile unless this one runs alone, as nextest does it.
    #[test]
    fn made_up_keys_cause_few_transactions() {
        let url = env::var("KEYWARD_TEST_POSTGRES")
            .expect("KEYWARD_TEST_POSTGRES is not set: run testing/services/run COMMAND");
        let sandbox = Sandbox::new();
        let store = format!("{url}?store=attack_{}", process::id());
        let schema = std::fs::read_to_string(sandbox.path("keyward.schema.toml")).unwrap();
        sandbox.write("keyward.schema.toml", &schema.replace("embedded:./data", &store));
        let scene = Scene::set_in(sandbox, 0, &["--stranger-rate", "none"]);
        let before = block_on(transactions(&url));
        let figures = try_keys(&scene, "strangers_postgres");
        // The server's connections tell their counts when they end, if not before.
        drop(scene);
        let caused = block_on(async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            transactions(&url).await - before
        });
        let refused = figures.notes.iter().map(|(_, count)| count).sum::<u64>();
        // The bystander's own gets are transactions too.
        let allowed = refused / 4 + 8 * figures.gets.count() as u64 + 200;
        let caused = u64::try_from(caused).unwrap();
        assert!(caused < allowed, "{refused} refused requests caused {caused} transactions");
    }
}
