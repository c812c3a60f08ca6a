//! What goes wrong in a round, and how it is made good again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use super::crowd::{Round, SOON};
use super::until;
use crate::own_server::OwnServer;
use crate::proxy::{Cut, Proxy};

/// After how long the server gives up on a statement, and how long an engine waits for its answer.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(3 + 5);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The server is stopped in good order, and started again.
    Restart,
    /// The server's first process is killed, which ends the others, and the server started again.
    Kill,
    /// All processes of the server are killed in the middle of what they do.
    Crash,
    /// A process of the server that serves one connection is killed; the server recovers by itself.
    KillBackend,
    /// Connections are cut before what is sent arrives.
    CutRequests,
    /// Connections are cut after it has arrived, before the answer does.
    CutAnswers,
    /// The server cannot be reached for a while.
    Unreachable,
    /// The network is slow.
    Slow,
    /// The network holds everything back for longer than anybody waits.
    Stuck,
    /// All connections wait for a lock.
    Starved,
    /// The server's disk is full: it finds no room for entries.
    DiskFull,
    /// The server's disk is full: it finds no room for its log, and gives up.
    LogFull,
}

impl Fault {
    pub const ALL: [Self; 12] = [
        Self::Restart,
        Self::Kill,
        Self::Crash,
        Self::KillBackend,
        Self::CutRequests,
        Self::CutAnswers,
        Self::Unreachable,
        Self::Slow,
        Self::Stuck,
        Self::Starved,
        Self::DiskFull,
        Self::LogFull,
    ];

    /// Lets it happen while the crowd goes on, waits until the crowd has felt it, and makes it good.
    pub async fn happen(self, server: &mut OwnServer, proxy: &Proxy, round: &Round, rng: &mut Rng) {
        let failed = |more: usize| {
            let enough = round.failed() + more;
            move || round.failed() >= enough
        };
        let unknown = |least: usize| move || round.unknown.load(Ordering::SeqCst) >= least;
        match self {
            Self::Restart => {
                server.stop().await;
                until("the stop is felt", failed(rng.usize(1..10))).await;
                server.start().await;
            }
            Self::Kill => {
                server.kill();
                until("the kill is felt", failed(rng.usize(1..10))).await;
                server.start().await;
            }
            Self::Crash => {
                server.crash();
                until("the crash is felt", failed(rng.usize(1..10))).await;
                server.start().await;
            }
            Self::KillBackend => kill_backend(server).await,
            Self::CutRequests => cut(proxy, Cut::Request, rng, unknown(5)).await,
            Self::CutAnswers => cut(proxy, Cut::Answer, rng, unknown(5)).await,
            Self::Unreachable => {
                proxy.close();
                until("it is felt", failed(rng.usize(5..20))).await;
                proxy.reopen();
            }
            Self::Slow => {
                let mut delay = || Duration::from_millis(rng.u64(1..60));
                proxy.delay(delay(), delay());
                let enough = round.made.load(Ordering::SeqCst) + 20;
                until("commits are made", || round.made.load(Ordering::SeqCst) >= enough).await;
                proxy.delay(Duration::ZERO, Duration::ZERO);
            }
            Self::Stuck => {
                // What is sent arrives when its sender has given up; or the answer does.
                let late = PATIENCE + Duration::from_millis(rng.u64(100..500));
                if rng.bool() {
                    proxy.delay(late, Duration::ZERO);
                } else {
                    proxy.delay(Duration::ZERO, late);
                }
                // Those whose commit was just sent give up on it; there may be none of them.
                let end = Instant::now() + late + Duration::from_secs(1);
                until("some give up", || unknown(2)() || Instant::now() > end).await;
                // Half of the time it is let through, and else lost on the way.
                if rng.bool() {
                    sleep(Duration::from_secs(1)).await;
                }
                proxy.delay(Duration::ZERO, Duration::ZERO);
                proxy.sever();
            }
            Self::Starved => {
                let holder = server.administrator().await;
                // Alone in the store: every commit waits, over its connection.
                let alone = "BEGIN; SELECT pg_advisory_xact_lock(1801812343, id)
                    FROM keyward.stores";
                holder.batch_execute(alone).await.unwrap();
                let starved = || round.starved.load(Ordering::SeqCst) >= 3;
                until("the pools are starved", starved).await;
                // Also until the server gives up what waits.
                until("commits fail", failed(rng.usize(1..12))).await;
                drop(holder);
            }
            Self::DiskFull => fill_disk(server, round).await,
            Self::LogFull => fill_log(server).await,
        }
    }
}

/// Cuts one connection after another.
async fn cut(proxy: &Proxy, cut: Cut, rng: &mut Rng, enough: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if enough() {
            return proxy.cut_no_more();
        }
        proxy.cut(cut);
        sleep(Duration::from_millis(rng.u64(1..10))).await;
    }
    panic!("nobody feels that connections are cut");
}

async fn kill_backend(server: &mut OwnServer) {
    const ANY: &str = "SELECT pid FROM pg_stat_activity
        WHERE application_name = 'keyward' AND usename <> 'witness'
        ORDER BY state = 'active' DESC, random() LIMIT 1";
    let administrator = server.administrator().await;
    let victim: i32 = administrator.query_one(ANY, &[]).await.unwrap().get(0);
    kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
    // The server ends everybody's connection.
    until("the server begins again", || administrator.is_closed()).await;
    server.revive().await;
}

/// Until commits fail for lack of space.
async fn fill_disk(server: &mut OwnServer, round: &Round) {
    // Again and again: the server may give back some space.
    let is_full = || {
        server.disk().fill();
        round.full.load(Ordering::SeqCst) >= 3
    };
    until("commits find the disk full", is_full).await;
    server.disk().clear();
    server.revive().await;
}

/// Until the server has no room for its log, and gives up in the middle of what it does.
async fn fill_log(server: &mut OwnServer) {
    // Goes on to the next file of the log, and the next, until there is none left that was made
    // before.
    const GO_ON: &str = "SELECT pg_logical_emit_message(false, 'keyward', ''), pg_switch_wal()";
    let administrator = server.administrator().await;
    let end = Instant::now() + SOON;
    while !server.said("PANIC") {
        assert!(Instant::now() < end, "the server has room for its log");
        server.disk().fill();
        // How this ends is not the question.
        let _ = administrator.batch_execute(GO_ON).await;
        sleep(Duration::from_millis(5)).await;
    }
    server.disk().clear();
    server.revive().await;
}
