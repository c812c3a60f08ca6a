//! One user against another, through the routes: whatever keys, prefixes, cursors, filters, values and
//! headers are sent, nothing of the other user's is seen or changed.

mod agents;
mod ammunition;
mod attempt;
mod victim;

use fastrand::Rng;
use keyward::Data;
use keyward::schema::Schema;
use keyward_server::Config;
use keyward_testkit::{Replay, Test, seeds};
use reqwest::{Method, RequestBuilder};

use crate::fixture::{Running, configured};
use attempt::Attacker;
use victim::{SCHEMA, SECRET, Victim};

/// How many requests each attacker sends.
const ATTEMPTS: usize = 400;
const PATH: &str = "server::attack::nothing_of_another_user_is_seen_or_changed";

/// The origin of pages that may call the server: it gives an attacker nothing.
const ALLOWED_ORIGIN: &str = "https://app.example";

/// Somebody with a credential.
pub struct Holder<'s> {
    server: &'s Running,
    secret: String,
}

impl Holder<'_> {
    pub fn sent(&self, method: Method, path: &str, body: &str) -> RequestBuilder {
        self.server.sent(method, path, body).bearer_auth(&self.secret)
    }
}

#[tokio::test]
async fn nothing_of_another_user_is_seen_or_changed() {
    let (mut refused, mut answered) = (0, 0);
    for seed in seeds(3, 200) {
        let mut replay = Replay::new(Test { package: "keyward-server", path: PATH }, seed);
        let mut rng = Rng::with_seed(seed);
        let schema = Schema::parse(SCHEMA, "schema.toml").unwrap();
        let cors_origins = vec![ALLOWED_ORIGIN.to_owned()];
        let config = Config { cors_origins, ..configured() };
        let server = Running::start(&config, &Data::new(schema)).await;
        let victim = Victim::new(&server).await;
        let before = victim.everything().await;
        let mut attacker = Attacker::new(&victim).await;
        for _ in 0..ATTEMPTS {
            let (told, was_refused) = attacker.attempt(&mut rng, &mut replay).await;
            assert!(!told.contains(SECRET), "the attacker was told: {told}");
            if was_refused {
                refused += 1;
            } else {
                answered += 1;
            }
        }
        victim.check(&before).await;
        victim.still_finds_everything().await;
    }
    // An attacker to whom everything is refused, or nothing, would prove little.
    assert!(refused > answered / 20 && answered > refused / 20, "{refused} {answered}");
}
