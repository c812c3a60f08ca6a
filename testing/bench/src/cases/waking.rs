//! How soon those who wait for a result have it, in other processes.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use keyward::cache::{Cache, Fetch, Options, Source};
use keyward_engine::{Json, Store, SystemClock};
use keyward_key::Key;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;

use crate::Result;
use crate::bench::Bench;
use crate::measure::Comparison;
use crate::report::{Goal, Row};

const PROCESSES: usize = 3;
const CALLERS: usize = 250;
/// How long a result may take to reach the last who waits.
const LAG: Duration = Duration::from_millis(50);
/// How long the waiting processes have to begin to wait.
const SETTLING: Duration = Duration::from_millis(300);
/// Names the directory of the store to a process that waits.
const DIRECTORY: &str = "KEYWARD_BENCH_WAITS_IN";

/// This process computes, others wait; measured is the time from the moment the result is durable to
/// the moment the last of them has it.
pub fn wake(bench: &mut Bench) -> Result<Vec<Row>> {
    let directory = bench.scratch();
    let store = bench.store_at(&directory)?;
    let runtime = Runtime::new()?;
    let mut waiters: Vec<Waiter> =
        (0..PROCESSES).map(|_| Waiter::start(&directory)).collect::<Result<_>>()?;
    let cache = Cache::new(store, SystemClock, Options::default())?;
    let mut pairs = Vec::new();
    for round in 0..bench.settings.commit_rounds {
        let key = key(round)?;
        let waiting = &mut waiters;
        let compute = || async move {
            for waiter in waiting {
                waiter.begin(round).map_err(|error| error.to_string())?;
            }
            tokio::time::sleep(SETTLING).await;
            Ok::<_, String>(Json::from_integer(7))
        };
        let durable = runtime.block_on(async {
            cache.get_or_compute(&key, &asked(), compute).await?;
            Ok::<u64, crate::Failure>(now())
        })?;
        let mut last = durable;
        for waiter in &mut waiters {
            last = last.max(waiter.finished()?);
        }
        let lag = Duration::from_nanos(last - durable).max(Duration::from_micros(1));
        pairs.push((1.0 / lag.as_secs_f64(), 1.0 / LAG.as_secs_f64()));
    }
    for waiter in waiters {
        waiter.end()?;
    }
    let callers = PROCESSES * CALLERS;
    Ok(vec![Row {
        case: "cache_wake".to_owned(),
        compares: format!(
            "results that reach {callers} callers in {PROCESSES} processes / one each {} ms",
            LAG.as_millis()
        ),
        comparison: Comparison::of(&pairs),
        unit: "results/s",
        goal: Some(Goal::AtLeast(1.0)),
    }])
}

/// If this process was started to wait, it does, and the answer is that it did.
pub fn plays_waiter() -> Result<bool> {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return Ok(false);
    };
    let directory = PathBuf::from(directory);
    let engine = keyward_embedded::Embedded::open(&directory, waiting_options())?;
    let cache = Cache::new(Store::new(engine), SystemClock, Options::default())?;
    let runtime = Runtime::new()?;
    for line in std::io::stdin().lines() {
        let round: usize = line?.parse()?;
        let last = runtime.block_on(all_wait(&cache, &key(round)?))?;
        writeln!(std::io::stdout(), "has {last}")?;
    }
    Ok(true)
}

fn waiting_options() -> keyward_embedded::Options {
    keyward_embedded::Options {
        map_bytes: crate::reference::MAP_BYTES,
        ..keyward_embedded::Options::default()
    }
}

async fn all_wait(cache: &Cache, key: &Key) -> Result<u64> {
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (cache, key) = (cache.clone(), key.clone());
            tokio::spawn(async move {
                let never = || async { Err::<Json, _>("the other process did not compute it") };
                cache.get_or_compute(&key, &asked(), never).await?;
                Ok::<u64, crate::Failure>(now())
            })
        })
        .collect();
    let mut last = 0;
    for caller in callers {
        last = last.max(caller.await??);
    }
    Ok(last)
}

fn asked() -> Fetch {
    Fetch::of(Source::version("1"))
}

fn key(round: usize) -> Result<Key> {
    Ok(Key::from_segments(["result", &round.to_string()])?)
}

/// The clock that all processes of a machine share.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// A process that waits for results.
struct Waiter {
    child: Child,
    tell: ChildStdin,
    told: BufReader<ChildStdout>,
}

impl Waiter {
    fn start(directory: &Path) -> Result<Self> {
        // In the benchmark's own tests this is the test binary, of which one test is meant.
        let mut child = Command::new(std::env::current_exe()?)
            .args(["cases::waking::tests::a_waiter_of_another_process", "--exact", "--nocapture"])
            .env(DIRECTORY, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let tell = child.stdin.take().ok_or("no standard input")?;
        let told = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        Ok(Self { child, tell, told })
    }

    fn begin(&mut self, round: usize) -> Result<()> {
        writeln!(self.tell, "{round}")?;
        Ok(self.tell.flush()?)
    }

    /// When its last caller had the result.
    fn finished(&mut self) -> Result<u64> {
        loop {
            let mut line = String::new();
            if self.told.read_line(&mut line)? == 0 {
                return Err("a process that waits has ended".into());
            }
            // The test harness says things of its own, and begins a line.
            if let Some((_, last)) = line.trim().rsplit_once("has ") {
                return Ok(last.parse()?);
            }
        }
    }

    fn end(mut self) -> Result<()> {
        drop(self.tell);
        self.child.wait()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    /// Only has something to do in a process that the case starts.
    #[test]
    fn a_waiter_of_another_process() {
        super::plays_waiter().unwrap();
    }
}
