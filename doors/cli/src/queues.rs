//! Queues and jobs as commands reach them.

use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use keyward::locks::Who;
use keyward::queue::{Jobs, Options, PastAttempt, Queue};
use keyward::{Json, Store, SystemClock};
use serde_json::value::RawValue;

use crate::failure::{Failure, Result};
use crate::output::{Output, note};

/// A queue of a store.
pub fn queue(store: Store, name: &str) -> Result<Queue> {
    Ok(Queue::new(store, name, SystemClock, options())?)
}

/// The jobs of a store.
pub fn jobs(store: Store) -> Result<Jobs> {
    Ok(Jobs::new(store, SystemClock, options())?)
}

/// What all commands work with.
pub fn options() -> Options {
    Options { holder: holder(), ..Options::default() }
}

/// Who is at this keyboard.
pub fn person() -> String {
    let who = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    who.unwrap_or_else(|| "keyward".to_owned())
}

/// Who works here, for those who list locks.
pub fn worker() -> Who {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Who::process(person(), host.trim())
}

/// Who works here: a person, a machine, a process.
fn holder() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let process = std::process::id();
    match host.trim() {
        "" => format!("{} process {process}", person()),
        host => format!("{}@{host} process {process}", person()),
    }
}

/// JSON as it stands in a line of output.
pub fn raw(json: &Json) -> Result<Box<RawValue>> {
    RawValue::from_string(json.as_str().to_owned())
        .map_err(|error| Failure::invalid(format!("the store holds what is not JSON: {error}")))
}

/// A page of a listing by id.
#[derive(Debug, Args)]
pub struct Paging {
    /// At most so many lines, up to 1000 [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    limit: Option<u16>,
    /// Only what comes after this id
    #[arg(long, value_name = "ID")]
    pub after: Option<String>,
    /// Everything, page after page
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl Paging {
    /// How many lines a page has.
    pub fn limit(&self) -> usize {
        match self.limit {
            Some(limit) => limit.into(),
            None if self.all => 1_000,
            None => 100,
        }
    }

    /// Goes on after a page, or says how to: whether there is another page to read.
    pub fn next(&mut self, rows: usize, last: Option<&str>, output: &mut Output) -> Result<bool> {
        self.go_on(last.filter(|_| rows == self.limit()), output)
    }

    /// The same after a page that says where the next one begins.
    pub fn go_on(&mut self, next: Option<&str>, output: &mut Output) -> Result<bool> {
        let Some(next) = next else { return Ok(false) };
        if !self.all && !output.json_lines() {
            output.flush()?;
            note(format_args!("there may be more: add --all, or go on with\n  --after {next}"));
        }
        self.after = Some(next.to_owned());
        Ok(self.all)
    }
}

/// How long something took or is ago, for people.
pub fn age(time: SignedDuration) -> String {
    let seconds = time.as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A time as JSON has it.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A past attempt on a line of its own.
pub fn past(attempt: &PastAttempt) -> String {
    let PastAttempt { attempt, by, claimed_at, error, .. } = attempt;
    format!("attempt {attempt} at {claimed_at} by {by}: {}", one_line(error))
}

/// The first line of a text, without what a terminal would obey.
pub fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_as_precise_as_a_person_needs() {
        let ages =
            [-5, 0, 119, 120, 7_199, 7_200, 172_800].map(|s| age(SignedDuration::from_secs(s)));
        assert_eq!(ages, ["0s", "0s", "119s", "2m", "119m", "2h", "2d"]);
    }
}
