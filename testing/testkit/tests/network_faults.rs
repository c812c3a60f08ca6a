//! The tests of network faults, tried on an engine that is honest and on some that are not.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use keyward_engine::{
    BoxFuture, Capabilities, Commit, Engine, Entry, Error, ErrorKind, Outcome, Page, Result, Scan,
    Stats, Tier, Version, Write,
};
use keyward_key::Key;
use keyward_memory::{Memory, Options};
use keyward_testkit::faulty_network as suite;
use keyward_testkit::{NetworkPlace, Test, TestClock, network_faults};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What an engine says when it does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manners {
    /// That it does not know.
    Honest,
    /// Whatever the same commit gets when it is sent once more.
    SendsAgain,
    /// That nothing was done.
    CallsItUndone,
    /// That it was done.
    CallsItDone,
    /// Of commits the truth, of reads that nothing is there.
    ReadsNothing,
}

/// What goes over the network is only the place of an operation or of its answer in these lists.
#[derive(Default)]
struct Wire {
    operations: Mutex<Vec<Operation>>,
    answers: Mutex<Vec<Answer>>,
}

#[derive(Clone)]
enum Operation {
    GetMany(Vec<Key>),
    Scan(Scan),
    Commit(Commit),
}

#[derive(Clone)]
enum Answer {
    Entries(Vec<Option<Entry>>),
    Page(Page),
    Outcome(Outcome),
}

/// A memory engine behind HTTP, made when it is first opened.
#[derive(Default)]
struct Server {
    memory: OnceLock<Memory>,
    wire: Wire,
}

impl Server {
    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let place: usize = request.uri().path()[1..].parse().unwrap();
        let operation = self.wire.operations.lock().unwrap()[place].clone();
        let memory = self.memory.get().unwrap();
        let answer = match operation {
            Operation::GetMany(keys) => Answer::Entries(memory.get_many(&keys).await.unwrap()),
            Operation::Scan(scan) => Answer::Page(memory.scan(&scan).await.unwrap()),
            Operation::Commit(commit) => Answer::Outcome(memory.commit(commit).await.unwrap()),
        };
        let mut answers = self.wire.answers.lock().unwrap();
        answers.push(answer);
        Ok(Response::new(Full::from((answers.len() - 1).to_string())))
    }
}

/// Where such a server runs.
struct Behind {
    address: SocketAddr,
    server: Arc<Server>,
    tier: Tier,
    manners: Manners,
}

impl Behind {
    fn new(tier: Tier, manners: Manners) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let server = Arc::new(Server::default());
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = serving.clone();
                let service = service_fn(move |request| server.clone().answer(request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(client), service));
            }
        });
        Self { address, server, tier, manners }
    }
}

impl NetworkPlace for Behind {
    fn upstream(&self) -> SocketAddr {
        self.address
    }

    fn open(&self, through: SocketAddr, clock: TestClock) -> BoxFuture<'_, Arc<dyn Engine>> {
        let (server, manners) = (self.server.clone(), self.manners);
        let memory = server.memory.get_or_init(|| Memory::with(Options::tier(self.tier), clock));
        let capabilities = memory.capabilities().clone();
        let client = Client { address: through, server, capabilities, manners };
        Box::pin(async { Arc::new(client) as Arc<dyn Engine> })
    }
}

struct Client {
    address: SocketAddr,
    server: Arc<Server>,
    capabilities: Capabilities,
    manners: Manners,
}

/// Why an attempt got no answer.
enum Lost {
    Refused,
    Unanswered,
}

impl Client {
    const ATTEMPTS: usize = 3;
    const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

    async fn attempt(&self, operation: Operation) -> Result<Answer, Lost> {
        let place = {
            let mut operations = self.server.wire.operations.lock().unwrap();
            operations.push(operation);
            operations.len() - 1
        };
        let sent = timeout(Self::ANSWER_TIMEOUT, self.post(place)).await;
        let Ok(Ok((status, body))) = sent else { return Err(Lost::Unanswered) };
        match status {
            200 => {
                let place: usize = std::str::from_utf8(&body).unwrap().parse().unwrap();
                Ok(self.server.wire.answers.lock().unwrap()[place].clone())
            }
            429 => Err(Lost::Refused),
            _ => Err(Lost::Unanswered),
        }
    }

    async fn post(&self, place: usize) -> hyper::Result<(u16, Bytes)> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let stream = TokioIo::new(stream);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
        tokio::spawn(connection);
        let request = Request::post(format!("/{place}")).header("host", "memory");
        let response = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await?;
        Ok((response.status().as_u16(), response.into_body().collect().await?.to_bytes()))
    }

    async fn read(&self, operation: Operation) -> Result<Answer> {
        for _ in 0..Self::ATTEMPTS {
            match self.attempt(operation.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(_) if self.manners == Manners::ReadsNothing => {
                    return Ok(match operation {
                        Operation::GetMany(keys) => Answer::Entries(vec![None; keys.len()]),
                        _ => Answer::Page(Page::default()),
                    });
                }
                Err(_) => {}
            }
        }
        Err(Error::new(ErrorKind::Unavailable, "no answer"))
    }

    async fn write(&self, commit: Commit) -> Result<Outcome> {
        for _ in 0..Self::ATTEMPTS {
            match self.attempt(Operation::Commit(commit.clone())).await {
                Ok(Answer::Outcome(outcome)) => return Ok(outcome),
                Ok(_) => panic!("not the answer to a commit"),
                Err(Lost::Refused) => {}
                Err(Lost::Unanswered) => match self.manners {
                    Manners::SendsAgain => {}
                    Manners::CallsItDone => return Ok(made_up(&commit)),
                    Manners::CallsItUndone => break,
                    Manners::Honest | Manners::ReadsNothing => {
                        return Err(Error::new(ErrorKind::OutcomeUnknown, "no answer"));
                    }
                },
            }
        }
        Err(Error::new(ErrorKind::Unavailable, "refused"))
    }
}

fn made_up(commit: &Commit) -> Outcome {
    let version = |write: &Write| match write {
        Write::Delete(_) => None,
        Write::Put(..) | Write::Add(..) => Some(Version::from(7)),
    };
    Outcome::Applied { revision: None, versions: commit.writes.iter().map(version).collect() }
}

impl Engine for Client {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        Box::pin(async {
            match self.read(Operation::GetMany(keys.to_vec())).await? {
                Answer::Entries(entries) => Ok(entries),
                _ => panic!("not the answer to a read"),
            }
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async {
            match self.read(Operation::Scan(scan.clone())).await? {
                Answer::Page(page) => Ok(page),
                _ => panic!("not the answer to a scan"),
            }
        })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(self.write(commit))
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        Box::pin(async { Ok(Stats::default()) })
    }
}

network_faults!(atomic, Behind::new(Tier::Atomic, Manners::Honest));
network_faults!(recoverable, Behind::new(Tier::Recoverable, Manners::Honest));
network_faults!(advisory, Behind::new(Tier::Advisory, Manners::Honest));

/// Sees that a behaviour fails for an engine with these manners, and says why.
macro_rules! assert_caught {
    ($manners:expr, $behaviour:ident, $reason:literal) => {
        let test = Test { package: env!("CARGO_PKG_NAME"), path: module_path!() };
        let run = || suite::run(test, || Behind::new(Tier::Atomic, $manners), suite::$behaviour);
        let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("it should have been caught");
        let reason = panic.downcast_ref::<String>().expect("a reason");
        assert!(reason.contains($reason), "{reason}");
    };
}

#[test]
fn an_engine_that_takes_its_own_write_for_anothers_is_caught() {
    assert_caught!(
        Manners::SendsAgain,
        a_create_whose_answer_is_lost_is_no_conflict,
        "nobody else wrote"
    );
}

#[test]
fn an_engine_that_calls_a_lost_write_undone_is_caught() {
    assert_caught!(
        Manners::CallsItUndone,
        the_outcome_of_a_commit_cut_after_it_was_done_is_true,
        "called not done, and it was"
    );
    assert_caught!(
        Manners::CallsItUndone,
        the_outcome_of_a_commit_that_lands_late_is_true,
        "called not done, and it was"
    );
    // Which requests are lost is left to chance, so that one run need not show it.
    let is_caught = |_| {
        let test = Test { package: env!("CARGO_PKG_NAME"), path: module_path!() };
        let place = || Behind::new(Tier::Atomic, Manners::CallsItUndone);
        let behaviour = suite::nothing_acknowledged_is_lost_under_random_faults;
        let ended = catch_unwind(AssertUnwindSafe(|| suite::run(test, place, behaviour)));
        ended.is_err_and(|panic| {
            panic.downcast_ref::<String>().is_some_and(|reason| reason.contains("acknowledged"))
        })
    };
    assert!((0..10).any(is_caught), "it should have been caught");
}

#[test]
fn an_engine_that_calls_a_lost_write_done_is_caught() {
    assert_caught!(
        Manners::CallsItDone,
        the_outcome_of_a_commit_cut_before_it_arrives_is_true,
        "acknowledged and not there"
    );
    assert_caught!(
        Manners::CallsItDone,
        a_commit_that_conflicts_is_never_called_applied,
        "was not done"
    );
}

#[test]
fn an_engine_that_reads_nothing_where_it_gets_no_answer_is_caught() {
    assert_caught!(Manners::ReadsNothing, reads_are_right_or_fail_under_every_fault, "after");
}
