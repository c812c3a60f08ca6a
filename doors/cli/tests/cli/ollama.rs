//! A server that speaks as Ollama does, and answers by rule.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use keyward::models::framed;
use serde_json::{Value, json};

/// How long an answer is held back at most.
const PATIENCE: Duration = Duration::from_secs(120);

/// It is asked on threads of its own, as long as the test runs.
pub struct Ollama {
    pub url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    asked: Mutex<Vec<String>>,
    told: Condvar,
    held: Mutex<bool>,
    released: Condvar,
}

impl Ollama {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared::default());
        let serving = shared.clone();
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let shared = serving.clone();
                thread::spawn(move || shared.serve(connection));
            }
        });
        Self { url, shared }
    }

    /// The settings of a workspace that asks it.
    pub fn settings(&self, workspace: &str) -> String {
        let url = &self.url;
        format!(
            "[agreements.{workspace}.models]\nprovider = \"ollama\"\nmodel = \"tiny\"\n\
             base_url = \"{url}\"\nattempts_max = 1\n"
        )
    }

    /// What it was asked, in the order of asking.
    pub fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// Waits until it was asked so often.
    pub fn wait_for(&self, count: usize) {
        let asked = self.shared.asked.lock().unwrap();
        let few = |asked: &mut Vec<String>| asked.len() < count;
        let (asked, timeout) = self.shared.told.wait_timeout_while(asked, PATIENCE, few).unwrap();
        assert!(!timeout.timed_out(), "it was asked {} times", asked.len());
    }

    /// From now on it gives no answers,
    pub fn hold(&self) {
        *self.shared.held.lock().unwrap() = true;
    }

    /// until this.
    pub fn release(&self) {
        *self.shared.held.lock().unwrap() = false;
        self.shared.released.notify_all();
    }
}

impl Shared {
    /// Answers requests on a connection until it is closed.
    fn serve(&self, connection: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(connection.try_clone().ok()?);
        loop {
            let body = request(&mut reader)?;
            let prompt = body["messages"].as_array()?.last()?["content"].as_str()?.to_owned();
            self.asked.lock().unwrap().push(prompt.clone());
            self.told.notify_all();
            let held = self.held.lock().unwrap();
            drop(self.released.wait_timeout_while(held, PATIENCE, |held| *held).unwrap());
            let answer = json!({
                "model": "tiny",
                "message": { "role": "assistant", "content": answer(&prompt) },
                "done": true,
                "done_reason": "stop",
            });
            let answer = answer.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            (&connection).write_all(format!("{head}{answer}").as_bytes()).ok()?;
        }
    }
}

/// The next request, as far as it matters.
fn request(reader: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// The policy that is to be compared, without the page and what is known.
fn policy(prompt: &str) -> &str {
    // In frames: the agreement's title and text, those of the policy, what is known.
    framed(prompt).get(3).copied().unwrap_or_default()
}

fn answer(prompt: &str) -> String {
    match prompt.strip_prefix("Translate into ") {
        Some(rest) => {
            let language = rest.split('.').next().unwrap();
            let text = framed(prompt)[1];
            let markdown = format!("{text}\n\nIn {language}.");
            json!({ "title": format!("Title in {language}"), "markdown": markdown }).to_string()
        }
        None if policy(prompt).contains("Payment is due") => {
            let issue = json!({
                "title": "When is payment due?",
                "severity": 3,
                "description": [
                    { "text": "The policy says:", "excerpt": null },
                    { "text": null, "excerpt": "Payment is due within ten days." },
                ],
                "known": null,
            });
            json!({ "issues": [issue] }).to_string()
        }
        None => json!({ "issues": [] }).to_string(),
    }
}
