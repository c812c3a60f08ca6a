//! Beside an app: what Atlassian's own client writes is read, and the other way round.

use std::process::Stdio;

use keyward_engine::{ErrorKind, Json, Put, Scan, Want};
use keyward_key::{KeyRange, Prefix};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::installation::{Installation, key, put};

fn script(name: &str) -> Command {
    let tools = std::env::var("KEYWARD_TEST_FORGE_KVS_TOOLS")
        .expect("start the servers with ./test, or testing/services/run --only forge_kvs COMMAND");
    let mut command = Command::new("node");
    command.arg(format!("{tools}/{name}")).kill_on_drop(true);
    command
}

/// An app: Atlassian's client in a process of its own.
struct App {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl App {
    fn start(installation: &Installation) -> Self {
        let mut process = script("drive.js")
            .args([installation.base(), &installation.token(7)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node is installed");
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { input, output, _process: process }
    }

    async fn call(&mut self, call: Value) -> Value {
        self.input.write_all(format!("{call}\n").as_bytes()).await.unwrap();
        let answer = self.output.next_line().await.unwrap();
        let answer = answer.unwrap_or_else(|| panic!("the client failed at {call}"));
        serde_json::from_str(&answer).unwrap()
    }

    async fn set(&mut self, key: &str, value: &Value) {
        self.call(json!(["set", key, value])).await;
    }
}

/// What the app of storage-layout-v1.md and storage-layout-v2-locks.md writes.
fn agreements() -> Vec<(&'static str, Value)> {
    vec![
        (
            "abc123:policy:att789",
            json!({"title": "학칙", "language": "ko", "content": "# 1\n", "created": "2025-07-01T00:00:00Z"}),
        ),
        ("abc123:policy:att789:en", json!({"title": "Rules", "language": "en", "original": false})),
        (
            "abc123:issue:f47ac10b-58cc-4372-a567-0e02b2c3d479",
            json!({"severity": 2.5, "references": [{"source": "att789", "offset": 17}], "state": "open"}),
        ),
        (
            "abc123",
            json!({"version": 3, "locks": {"policy:att789": {"owner": "u1", "since": 1_767_225_600_000_u64}}}),
        ),
        ("job:task456", json!({"activity": "Translating"})),
        ("system:purged", json!(1_767_225_600_000_u64)),
    ]
}

#[tokio::test]
async fn atlassians_own_client_finds_the_server_to_be_as_documented() {
    let installation = Installation::new();
    let output = script("proof.js").arg(installation.base()).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"proven\n", "{said}");
}

#[tokio::test]
async fn what_an_app_writes_is_read_under_its_own_keys() {
    let installation = Installation::new();
    let mut app = App::start(&installation);
    for (name, value) in agreements() {
        app.set(name, &value).await;
    }
    let store = installation.store().await;
    for (name, value) in agreements() {
        let entry = store.get(&key(name)).await.unwrap().unwrap();
        assert_eq!(entry.value.as_str(), value.to_string(), "{name}");
        assert_eq!((entry.metadata, entry.expires), (None, None));
    }
    let page = Prefix::parse("abc123").unwrap();
    let scan = Scan::new(KeyRange::under(&page));
    let mut found: Vec<String> =
        store.scan(&scan).await.unwrap().rows.iter().map(|row| row.key.to_string()).collect();
    found.sort();
    let mut expected: Vec<&str> = agreements()
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| name.starts_with("abc123:"))
        .collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(installation.names().await.len(), agreements().len(), "reading writes nothing");
}

#[tokio::test]
async fn what_is_written_here_an_app_reads_and_lists_plainly() {
    let installation = Installation::new();
    let store = installation.store().await;
    for (name, value) in agreements() {
        let put = put(&value.to_string())
            .with_metadata(Json::parse(r#"{"by":"keyward"}"#.to_owned()).unwrap());
        store.put(key(name), put).await.unwrap();
    }
    let mut app = App::start(&installation);
    for (name, value) in agreements() {
        assert_eq!(app.call(json!(["get", name])).await, value, "{name}");
    }
    let listed = app.call(json!(["list", "abc123:"])).await;
    let expected: serde_json::Map<String, Value> = agreements()
        .into_iter()
        .filter(|(name, _)| name.starts_with("abc123:"))
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    assert_eq!(listed, Value::Object(expected), "and nothing of Keyward's among it");
}

#[tokio::test]
async fn a_value_that_an_app_overwrites_loses_its_metadata_and_has_a_new_version() {
    let installation = Installation::new();
    let store = installation.store().await;
    let metadata = Json::parse(r#"{"n":1}"#.to_owned()).unwrap();
    let slot = key("abc123:policy:att789");
    let ours = store.put(slot.clone(), put("1").with_metadata(metadata)).await.unwrap();
    let mut app = App::start(&installation);
    app.set("abc123:policy:att789", &json!({"by": "the app"})).await;
    let entry = store.get(&slot).await.unwrap().unwrap();
    assert_eq!(entry.value.as_str(), r#"{"by":"the app"}"#);
    assert_eq!(entry.metadata, None);
    assert_ne!(entry.version, ours);
    assert_eq!(store.get(&slot).await.unwrap().unwrap(), entry, "and keeps it");

    app.call(json!(["delete", "abc123:policy:att789"])).await;
    assert_eq!(store.get(&slot).await.unwrap(), None);
    let again = store.put(slot.clone(), put("1")).await.unwrap();
    assert!(again != ours && again != entry.version);
}

#[tokio::test]
async fn a_value_that_javascript_cannot_write_is_a_text_that_an_app_can_parse() {
    let installation = Installation::new();
    let store = installation.store().await;
    let mut app = App::start(&installation);
    for text in ["12345678901234567890", "null", "1.0", r#"{"n":0.10}"#] {
        store.put(key("odd"), put(text)).await.unwrap();
        assert_eq!(app.call(json!(["get", "odd"])).await, json!({"#keyward:json": text}));
        assert_eq!(store.get(&key("odd")).await.unwrap().unwrap().value.as_str(), text);
    }
}

#[tokio::test]
async fn random_values_of_an_app_come_back_as_javascript_writes_them() {
    let installation = Installation::new();
    let store = installation.store().await;
    let mut app = App::start(&installation);
    let mut rng = fastrand::Rng::with_seed(11);
    for _ in 0..200 {
        let number = f64::from_bits(rng.u64(..));
        let number = if number.is_finite() { number } else { 0.0 };
        let text: String = (0..rng.usize(..5)).map(|_| rng.char(..)).collect();
        let names = [rng.u8(..).to_string(), "b".to_owned(), text.clone()];
        let value = json!([number, text, {&names[0]: 1, &names[1]: 2, &names[2]: number}]);
        app.set("random", &value).await;
        let read = store.get(&key("random")).await.unwrap().unwrap().value;
        // What was read is what the app's JSON.stringify gives, so it is stored plainly.
        store.put(key("written"), Put::new(read.clone())).await.unwrap();
        let [random, written] = &installation.stored(&["random", "written"]).await[..] else {
            unreachable!("two were asked for")
        };
        assert_eq!(random, written, "{value}");
        assert_eq!(store.get(&key("written")).await.unwrap().unwrap().value, read);
    }
}

#[tokio::test]
async fn names_that_keyward_would_not_give_are_left_alone() {
    let installation = Installation::new();
    let store = installation.store().await;
    installation.write("a:b", json!(1)).await;
    // As long as Forge allows: there could be no sidecar.
    let long = "x".repeat(500);
    installation.write(&long, json!(2)).await;
    let mut scan = Scan::new(KeyRange::all());
    scan.want = Want::Keys;
    let rows = store.scan(&scan).await.unwrap().rows;
    let found: Vec<String> = rows.iter().map(|row| row.key.to_string()).collect();
    assert_eq!(found, ["a:b"]);
    let error = store.get(&key(&long)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
}
