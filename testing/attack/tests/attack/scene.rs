//! A server with users, and the frame that every attack runs in.

use std::time::{Duration, Instant};

use keyward_attack::{Figures, Scale};
use serde_json::{Value, json};

use crate::bystander::Bystander;
use crate::http::{self, Answer};
use crate::sandbox::Sandbox;
use crate::server::Server;

/// How long preparations may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server with an admin, a bystander and attackers.
pub struct Scene {
    pub sandbox: Sandbox,
    pub server: Server,
    pub admin: String,
    pub bystander: Bystander,
    /// Keys of users who attack. Several, since the rates of one are bounded.
    pub attackers: Vec<String>,
}

impl Scene {
    /// A server whose store has nothing but the bystander's entry.
    pub fn set(attackers: usize, arguments: &[&str]) -> Self {
        Self::set_in(Sandbox::new(), attackers, arguments)
    }

    /// A server in a sandbox that was prepared.
    pub fn set_in(sandbox: Sandbox, attackers: usize, arguments: &[&str]) -> Self {
        let admin = sandbox.create_key(&["admin", "--scope", "admin:*"]);
        let server = Server::start(&sandbox, arguments);
        let entry = "user:ada:notes:1".to_owned();
        let bystander = Bystander { address: server.address, key: None, entry };
        let mut scene = Self { sandbox, server, admin, bystander, attackers: Vec::new() };
        scene.put("user:ada:notes:1", &json!("a note"));
        scene.bystander.key = Some(scene.key(json!({"name": "ada", "user": "ada"})));
        scene.attackers = (0..attackers)
            .map(|n| scene.key(json!({"name": format!("eve{n}"), "user": format!("eve{n}")})))
            .collect();
        scene
    }

    /// Asks as the admin.
    pub fn admin(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let head = http::head(method, path, Some(&self.admin));
        let body = body.map(Value::to_string);
        http::send(self.server.address, &head, body.as_deref(), PATIENCE).unwrap()
    }

    /// Writes a record or an entry as the admin.
    #[track_caller]
    pub fn put(&self, key: &str, value: &Value) {
        let space = ["notes", "diary", "staff", "stations"]
            .into_iter()
            .find(|space| key.split(':').any(|part| part == *space));
        let path = match space {
            Some(space) => format!("/v1/spaces/{space}/records/{key}"),
            None => format!("/v1/stores/main/entries/{key}"),
        };
        let answer = self.admin("PUT", &path, Some(value));
        assert!(matches!(answer.status, 200 | 201), "{key}: {} {}", answer.status, answer.body);
    }

    /// Makes an API key.
    #[track_caller]
    pub fn key(&self, new: Value) -> String {
        let answer = self.admin("POST", "/v1/keys", Some(&new));
        assert_eq!(answer.status, 201, "{}", answer.body);
        let created: Value = serde_json::from_str(&answer.body).unwrap();
        created["secret"].as_str().unwrap().to_owned()
    }

    /// Runs an attack while the bystander is measured, prints the figures and holds them to the bounds.
    /// The attack ends by itself, and has closed its connections when it has ended.
    #[allow(clippy::print_stdout, reason = "the figures are the result")]
    #[track_caller]
    pub fn attack<F>(&self, name: &'static str, attack: F) -> Figures
    where
        F: Future<Output = Vec<(&'static str, u64)>>,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let watch = self.bystander.watch(self.server.pid());
        let notes = runtime.block_on(attack);
        runtime.shutdown_timeout(Duration::from_secs(1));
        let ended = Instant::now();
        let (gets, health, resident_bytes_max) = watch.end();
        // The bystander's last request may have been waiting when the attack ended.
        let waited = ended.elapsed();
        let normal_after = self.bystander.time_to_normal().map(|time| time + waited);
        let attack = name;
        let figures = Figures { attack, gets, health, resident_bytes_max, normal_after, notes };
        println!("{figures}");
        self.hold(&figures);
        figures
    }

    #[track_caller]
    fn hold(&self, figures: &Figures) {
        let bounds = Scale::from_env().bounds();
        let Figures { gets, health, .. } = figures;
        assert!(gets.count() > 0 && health.count() > 0, "the attack was too short to be measured");
        assert!(gets.failures().is_empty(), "gets failed: {}", first(gets.failures()));
        assert!(health.failures().is_empty(), "/healthz failed: {}", first(health.failures()));
        let p99 = gets.percentile(99);
        assert!(p99 < bounds.get_p99_max, "gets took {p99:?} at p99");
        let resident = figures.resident_bytes_max;
        assert!(resident < bounds.resident_bytes_max, "the server had {resident} bytes of memory");
        let normal = figures.normal_after.is_some_and(|time| time < bounds.normal_after_max);
        assert!(normal, "normal after {:?}", figures.normal_after);
        let log = self.server.log();
        assert!(!log.contains("panicked"), "{log}");
    }
}

fn first(failures: &[String]) -> String {
    let shown: Vec<&str> = failures.iter().take(3).map(String::as_str).collect();
    format!("{} of them: {}", failures.len(), shown.join("; "))
}
