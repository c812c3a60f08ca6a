//! A user who has nothing to do with the attack: their requests are what is measured.

use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use keyward_attack::Latencies;
use rustix::process::Pid;

use crate::http::{self, Answer};
use crate::server::resident_bytes;

/// How long the bystander waits before a request has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// How fast an answer is when everything is normal.
const NORMAL: Duration = Duration::from_millis(500);

/// How long the return to normal is waited for before it has failed.
const RETURN_MAX: Duration = Duration::from_secs(60);

/// What a bystander asks for.
#[derive(Clone)]
pub struct Bystander {
    pub address: SocketAddr,
    pub key: Option<String>,
    /// An entry of theirs.
    pub entry: String,
}

impl Bystander {
    fn get(&self) -> (Duration, Result<Answer, String>) {
        let path = format!("/v1/stores/main/entries/{}", self.entry);
        timed(self.address, &http::head("GET", &path, self.key.as_deref()))
    }

    fn health(&self) -> (Duration, Result<Answer, String>) {
        timed(self.address, &http::head("GET", "/healthz", None))
    }

    fn ready(&self) -> (Duration, Result<Answer, String>) {
        timed(self.address, &http::head("GET", "/readyz", None))
    }

    fn is_normal(&self) -> bool {
        [Self::get, Self::health, Self::ready].iter().all(|ask| {
            let (time, answer) = ask(self);
            time < NORMAL && answer.is_ok()
        })
    }

    /// How long it takes until everything answers quickly, three times in a row.
    pub fn time_to_normal(&self) -> Option<Duration> {
        let began = Instant::now();
        let (mut since, mut in_a_row) = (Duration::ZERO, 0);
        while began.elapsed() < RETURN_MAX {
            let asked = began.elapsed();
            if !self.is_normal() {
                in_a_row = 0;
                thread::yield_now();
                continue;
            }
            if in_a_row == 0 {
                since = asked;
            }
            in_a_row += 1;
            if in_a_row == 3 {
                return Some(since);
            }
        }
        None
    }

    /// Begins to ask at intervals.
    pub fn watch(&self, server: Pid) -> Watch {
        let (one, other) = (self.clone(), self.clone());
        let record =
            |(time, answer): (Duration, Result<Answer, String>), to: &mut Latencies| match answer {
                Ok(_) => to.answered(time),
                Err(reason) => to.failed(time, reason),
            };
        Watch {
            gets: Repeated::start(Duration::from_millis(20), move |to| record(one.get(), to)),
            health: Repeated::start(Duration::from_millis(50), move |to| {
                record(other.health(), to)
            }),
            memory: Repeated::start(Duration::from_millis(50), move |most: &mut u64| {
                *most = resident_bytes(server).max(*most);
            }),
        }
    }
}

/// Asks, and fails unless the answer is 200.
fn timed(address: SocketAddr, head: &str) -> (Duration, Result<Answer, String>) {
    let began = Instant::now();
    let answer = http::send(address, head, None, PATIENCE);
    let answer = match answer {
        Ok(answer) if answer.status == 200 => Ok(answer),
        Ok(answer) => Err(format!("{}: {}", answer.status, answer.body)),
        Err(error) => Err(error.to_string()),
    };
    (began.elapsed(), answer)
}

/// A bystander at work.
pub struct Watch {
    gets: Repeated<Latencies>,
    health: Repeated<Latencies>,
    memory: Repeated<u64>,
}

impl Watch {
    /// Gets, health checks, and the most memory the server had.
    pub fn end(self) -> (Latencies, Latencies, u64) {
        (self.gets.end(), self.health.end(), self.memory.end())
    }
}

/// Something done at intervals on a thread of its own.
struct Repeated<T> {
    stop: Sender<()>,
    thread: JoinHandle<T>,
}

impl<T: Default + Send + 'static> Repeated<T> {
    fn start(interval: Duration, mut each: impl FnMut(&mut T) + Send + 'static) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut result = T::default();
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                each(&mut result);
            }
            result
        });
        Self { stop, thread }
    }

    fn end(self) -> T {
        let _ = self.stop.send(());
        self.thread.join().unwrap()
    }
}
