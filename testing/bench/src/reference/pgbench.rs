use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

/// PostgreSQL's own load generator, which runs one script again and again.
pub struct Pgbench {
    program: PathBuf,
    address: String,
    script: PathBuf,
    variables: Vec<String>,
}

impl Pgbench {
    /// Runs of a script, which is written to a file.
    pub fn new(address: &str, script: &str, file: PathBuf) -> Result<Self> {
        fs::write(&file, script)?;
        let address = address.to_owned();
        Ok(Self { program: program()?, address, script: file, variables: Vec::new() })
    }

    /// The same with a variable of the script.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push(format!("--define={name}={value}"));
        self
    }

    /// How often some clients get through the script in a second, in a run of so many seconds.
    /// Statements are prepared once, and the time to connect is not counted.
    pub fn rate(&self, clients: usize, seconds: u64, seed: usize) -> Result<f64> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let ran = Command::new(&self.program)
            .args(["--protocol=prepared", "--no-vacuum"])
            .arg(format!("--client={clients}"))
            .arg(format!("--jobs={}", clients.min(cpus)))
            .arg(format!("--time={seconds}"))
            .arg(format!("--random-seed={seed}"))
            .arg(format!("--file={}", self.script.display()))
            .args(&self.variables)
            .arg(&self.address)
            .stdin(Stdio::null())
            .output()?;
        let (said, complained) =
            (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        match rate(&said) {
            Some(rate) if ran.status.success() => Ok(rate),
            _ => Err(format!("pgbench failed ({}): {said}{complained}", ran.status).into()),
        }
    }
}

/// A statement with something in the place of `$1`, `$2`, …
pub fn filled_in(statement: &str, values: &[&str]) -> String {
    // From the last on, so that $1 is not found in $10.
    let numbered = values.iter().enumerate().rev();
    numbered.fold(statement.to_owned(), |statement, (at, value)| {
        statement.replace(&format!("${}", at + 1), value)
    })
}

/// The rate in what pgbench prints.
fn rate(said: &str) -> Option<f64> {
    let line = said.lines().find_map(|line| line.strip_prefix("tps = "))?;
    line.split(' ').next()?.parse().ok()
}

/// On the path, or where Debian has it: the newest.
fn program() -> Result<PathBuf> {
    const NAME: &str = "pgbench";
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join(NAME));
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = versions.map(|version| version.path()).collect();
    versions.sort_by_key(|version| number(version));
    let installed = versions.iter().rev().map(|version| version.join("bin").join(NAME));
    on_path
        .chain(installed)
        .find(|program| program.is_file())
        .ok_or_else(|| "pgbench is not installed; it comes with PostgreSQL's server".into())
}

fn number(version: &Path) -> Option<u32> {
    version.file_name()?.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_a_statement_is_filled_in() {
        let values: Vec<String> = (1..=10).map(|n| format!(":v{n}")).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let filled_in = filled_in("SELECT $1, $2::bigint, $10, $1", &values);
        assert_eq!(filled_in, "SELECT :v1, :v2::bigint, :v10, :v1");
    }

    #[test]
    fn the_rate_is_found_among_what_pgbench_prints() {
        let said = "number of failed transactions: 0 (0.000%)\nlatency average = 0.035 ms\n\
                    initial connection time = 1.4 ms\n\
                    tps = 28470.25 (without initial connection time)\n";
        assert_eq!(rate(said), Some(28_470.25));
        assert_eq!(rate("pgbench: error"), None);
    }
}
