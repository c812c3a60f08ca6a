//! Metrics of the process, under the names that Prometheus's client libraries use.
//!
//! Most are read from `/proc`. Where a system has none, they are absent.

use std::fs;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// How long what was read is used: counting open files takes a while if there are many.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// How Linux counts time in `/proc`: hundredths of a second for user space, whatever the kernel uses.
#[cfg(target_os = "linux")]
const TICKS_PER_SECOND: u64 = 100;

/// The process, as it was a moment ago.
#[derive(Debug, Default)]
pub(super) struct Process {
    usage: Mutex<Option<(Instant, Usage)>>,
    /// Seconds since 1970. Read once: the system's clock may be corrected.
    started: OnceLock<Option<u64>>,
}

/// What the process uses, as far as the system tells.
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    cpu_seconds: f64,
    resident_bytes: Option<u64>,
    threads: Option<u64>,
    open_files: Option<u64>,
    open_files_max: Option<u64>,
}

impl Process {
    /// Adds the metrics of now to a registry without a prefix.
    pub fn register(&self, registry: &mut Registry) {
        let (usage, started) = (self.usage(), *self.started.get_or_init(started));
        registry.register(
            "process_cpu_seconds",
            "Processor time used, in seconds",
            ConstCounter::new(usage.cpu_seconds),
        );
        for (name, about, value) in [
            ("process_resident_memory_bytes", "Memory in use, in bytes", usage.resident_bytes),
            ("process_threads", "Threads of the process", usage.threads),
            ("process_open_fds", "Open files and connections", usage.open_files),
            ("process_max_fds", "Open files and connections allowed", usage.open_files_max),
            ("process_start_time_seconds", "Start of the process, Unix time", started),
        ] {
            if let Some(value) = value {
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                registry.register(name, about, ConstGauge::new(value));
            }
        }
    }

    fn usage(&self) -> Usage {
        let mut latest = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        match *latest {
            Some((at, usage)) if at.elapsed() < READ_INTERVAL => usage,
            _ => latest.insert((Instant::now(), Usage::read())).1,
        }
    }
}

impl Usage {
    fn read() -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let files = fs::read_dir("/proc/self/fd").ok().map(Iterator::count);
        Self {
            cpu_seconds: Duration::try_from(cpu).unwrap_or_default().as_secs_f64(),
            resident_bytes: field(&status, "VmRSS").map(|kibibytes| kibibytes * 1024),
            threads: field(&status, "Threads"),
            // The listing has itself open.
            open_files: files.and_then(|count| u64::try_from(count.saturating_sub(1)).ok()),
            open_files_max: getrlimit(Resource::Nofile).current,
        }
    }
}

/// A number in a table of `Name: number unit` lines.
fn field(table: &str, name: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// When the process was started: not from `/proc/stat`, which services may be kept from reading.
#[cfg(target_os = "linux")]
fn started() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name, in parentheses, and may hold anything.
    let after_name = own.rsplit_once(')')?.1;
    let ticks: u64 = after_name.split_whitespace().nth(19)?.parse().ok()?;
    let seconds = |clock| u64::try_from(clock_gettime(clock).tv_sec).ok();
    let age = seconds(ClockId::Boottime)?.saturating_sub(ticks / TICKS_PER_SECOND);
    seconds(ClockId::Realtime)?.checked_sub(age)
}

#[cfg(not(target_os = "linux"))]
fn started() -> Option<u64> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_as_the_system_tells() {
        let usage = Usage::read();
        assert!(usage.cpu_seconds > 0.0 && usage.resident_bytes > Some(1 << 20), "{usage:?}");
        assert!(usage.threads >= Some(1) && usage.open_files >= Some(3), "{usage:?}");
        assert!(usage.open_files_max >= usage.open_files, "{usage:?}");
        // Some day after 2020.
        assert!(started() > Some(1_577_836_800), "{:?}", started());
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let table = "VmRSSX:\t1 kB\nVmRSS:\t  2048 kB\nThreads:\t7\n";
        assert_eq!(field(table, "VmRSS"), Some(2048));
        assert_eq!(field(table, "Threads"), Some(7));
        assert_eq!(field(table, "Vm"), None);
    }
}
