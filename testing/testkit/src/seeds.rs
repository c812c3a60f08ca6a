//! Random tests that can be run again: which seeds to run, and what to say when one fails.

use std::collections::VecDeque;
use std::fmt;
use std::thread;

/// A test, by the names that run it again.
#[derive(Debug, Clone, Copy)]
pub struct Test {
    /// The package it is in.
    pub package: &'static str,
    /// Its path, with the test binary as the first part.
    pub path: &'static str,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (binary, name) = self.path.split_once("::").unwrap_or(("", self.path));
        write!(f, "cargo test -p {} --test {binary} -- --exact {name}", self.package)
    }
}

/// Whether more should be tried than a default run has time for.
pub fn deep() -> bool {
    std::env::var_os("KEYWARD_DEEP").is_some_and(|deep| deep == "1")
}

/// The seeds of a random test: `usual` many, or `deep` many with `KEYWARD_DEEP=1`, always the same
/// ones; with `KEYWARD_SEED=n` only `n`.
pub fn seeds(usual: u64, deep: u64) -> Vec<u64> {
    match std::env::var("KEYWARD_SEED") {
        Ok(seed) => match seed.parse() {
            Ok(seed) => vec![seed],
            Err(_) => panic!("KEYWARD_SEED is a number, not {seed:?}"),
        },
        Err(_) if self::deep() => (0..deep).collect(),
        Err(_) => (0..usual).collect(),
    }
}

/// Says how to run a seed again, and what was done last, if the test fails while it is held.
pub struct Replay {
    test: Test,
    seed: u64,
    steps: usize,
    last: VecDeque<String>,
}

impl Replay {
    /// How many of the last steps are told.
    const TOLD: usize = 20;
    const STEP_CHARS_MAX: usize = 400;

    /// Holds a seed of a test.
    pub fn new(test: Test, seed: u64) -> Self {
        Self { test, seed, steps: 0, last: VecDeque::with_capacity(Self::TOLD) }
    }

    /// Notes a step about to be taken; of a long one, the beginning.
    pub fn step(&mut self, mut step: String) {
        if let Some((end, _)) = step.char_indices().nth(Self::STEP_CHARS_MAX) {
            step.truncate(end);
            step.push('…');
        }
        if self.last.len() == Self::TOLD {
            self.last.pop_front();
        }
        self.last.push_back(step);
        self.steps += 1;
    }
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped = self.steps - self.last.len();
        for (at, step) in self.last.iter().enumerate() {
            writeln!(f, "step {}: {step}", skipped + at)?;
        }
        writeln!(f, "failed with seed {}; to run it again:", self.seed)?;
        write!(f, "  KEYWARD_SEED={} {}", self.seed, self.test)
    }
}

impl Drop for Replay {
    #[allow(clippy::print_stderr, reason = "a failing test says how to run it again")]
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{self}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_tells_its_last_steps_and_the_command_to_run_it_again() {
        let test = Test {
            package: "keyward-memory",
            path: "conformance::atomic::model::random_operations",
        };
        let mut replay = Replay::new(test, 7);
        for n in 0..25 {
            replay.step(format!("operation {n}"));
        }
        let told = replay.to_string();
        assert!(!told.contains("step 4:"), "{told}");
        assert!(told.starts_with("step 5: operation 5\n"), "{told}");
        assert!(
            told.ends_with(
                "  KEYWARD_SEED=7 cargo test -p keyward-memory --test conformance -- \
                 --exact atomic::model::random_operations"
            ),
            "{told}"
        );
    }
}
