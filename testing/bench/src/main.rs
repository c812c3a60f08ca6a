//! Keyward's benchmarks: each case runs side by side with a reference that does the same work with
//! nothing in between, in one process, and reports the ratio of the two.
//!
//! `docs/benchmarks.md` says how to read the numbers.

mod bench;
mod cases;
mod database;
mod measure;
mod place;
mod records;
mod reference;
mod report;
mod served;
mod server;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use clap::builder::{PossibleValue, PossibleValuesParser};

use bench::{Bench, Settings};
use cases::{CASES, Case, Needs};
use report::Row;
use server::Server;

/// That of the command, for both sides.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What can go wrong in a benchmark: it stops with the message, there is nothing to handle.
type Result<T, E = Failure> = std::result::Result<T, E>;
type Failure = Box<dyn Error + Send + Sync>;

/// Runs each case side by side with its reference and prints the ratios.
#[derive(Debug, Parser)]
#[command(name = "keyward-bench")]
struct Arguments {
    /// The cases to run; all when none is named.
    #[arg(value_name = "CASE", value_parser = case_names())]
    cases: Vec<String>,

    /// Fewer and shorter rounds: under two minutes on two cores.
    #[arg(long)]
    quick: bool,

    /// Also write the results to a file, as a JSON list.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// How many records the large data set has, e.g. 10000 or 10000000.
    #[arg(
        long,
        value_name = "N",
        default_value_t = records::MILLION,
        value_parser = clap::value_parser!(u64).range(records::TEN_THOUSAND..=records::MAX),
    )]
    records: u64,

    /// Where the data lies while the benchmark runs; it is removed afterwards. By default in the
    /// build's target directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Exit with 1 when a goal is missed.
    #[arg(long)]
    check: bool,

    /// List the cases and what they compare.
    #[arg(long)]
    list: bool,
}

fn case_names() -> PossibleValuesParser {
    PossibleValuesParser::new(CASES.iter().map(|case| PossibleValue::new(case.name)))
}

fn main() -> Result<ExitCode> {
    if cases::plays_waiter()? {
        return Ok(ExitCode::SUCCESS);
    }
    let arguments = Arguments::parse();
    if arguments.list {
        print(&report::case_list(CASES))?;
        return Ok(ExitCode::SUCCESS);
    }

    let settings = if arguments.quick {
        Settings::quick(arguments.records)
    } else {
        Settings::full(arguments.records)
    };
    let directory = place::directory(arguments.dir.as_deref())?;
    print(&format!("{}\n", place::describe(directory.path())))?;

    let mut bench = Bench::new(settings, directory.path());
    let mut rows = Vec::new();
    let (runnable, left_out) = runnable(&arguments.cases, Server::is_there);
    if !left_out.is_empty() && !arguments.cases.is_empty() {
        bench.say(&without_servers(&left_out))?;
        return Ok(ExitCode::from(2));
    }
    for case in runnable {
        bench.say(&format!("{}: {}", case.name, case.compares))?;
        rows.extend((case.run)(&mut bench)?);
    }

    print(&report::table(&rows))?;
    if !left_out.is_empty() {
        bench.say(&format!("\nLEFT OUT\n{}", without_servers(&left_out)))?;
    }
    if let Some(file) = &arguments.json {
        let file = File::create(file)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        report::write_json(&rows, file)?;
    }
    let missed = rows.iter().any(Row::is_missed);
    Ok(ExitCode::from(u8::from(arguments.check && missed)))
}

/// The named cases in the order of the list, each once; all when none is named.
fn chosen(names: &[String]) -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(move |case| names.is_empty() || names.iter().any(|name| name == case.name))
}

/// The chosen cases, and those of them that cannot run because their server is not there.
fn runnable(
    names: &[String],
    is_there: impl Fn(Server) -> bool,
) -> (Vec<&'static Case>, Vec<&'static Case>) {
    chosen(names).partition(|case| match case.needs {
        Needs::Nothing => true,
        Needs::Server(server) => is_there(server),
    })
}

/// What each of these cases is missing, and how to have it.
fn without_servers(cases: &[&Case]) -> String {
    let mut missing: BTreeMap<Server, Vec<&str>> = BTreeMap::new();
    for case in cases {
        if let Needs::Server(server) = case.needs {
            missing.entry(server).or_default().push(case.name);
        }
    }
    let lines = missing
        .iter()
        .map(|(server, names)| format!("{}: this needs {}\n", names.join(", "), server.needed()));
    let lines: String = lines.collect();
    let servers: Vec<Server> = missing.into_keys().collect();
    format!("{lines}\n{}", server::how_to_have(&servers))
}

fn print(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_case_is_refused_with_the_known_ones() {
        let refused = Arguments::try_parse_from(["keyward-bench", "gte"]).unwrap_err();
        let message = refused.to_string();
        for case in CASES {
            assert!(message.contains(case.name), "{message}");
        }
    }

    #[test]
    fn without_names_every_case_is_chosen() {
        assert_eq!(chosen(&[]).count(), CASES.len());
    }

    #[test]
    fn without_a_server_the_cases_that_need_it_are_left_out_by_name() {
        let (with, without) = (runnable(&[], |_| true), runnable(&[], |_| false));
        assert_eq!((with.0.len(), with.1.len()), (CASES.len(), 0));
        assert_eq!(without.0.len() + without.1.len(), CASES.len());
        assert!(without.0.iter().all(|case| case.needs == Needs::Nothing));
        let told = without_servers(&without.1);
        for part in ["pg_get", "couchdb_commit", "testing/services/run --only postgres,couchdb,"] {
            assert!(told.contains(part), "{told}");
        }

        let (runs, left_out) = runnable(&[], |server| server != Server::CouchDb);
        let left_out: Vec<_> = left_out.iter().map(|case| case.name).collect();
        assert_eq!(left_out, ["couchdb_get", "couchdb_commit"]);
        assert!(runs.iter().any(|case| case.name == "pg_get"));
    }

    #[test]
    fn a_case_named_twice_runs_once() {
        let names = ["scan100", "get", "get"].map(str::to_owned);
        let chosen: Vec<_> = chosen(&names).map(|case| case.name).collect();
        assert_eq!(chosen, ["get", "scan100"]);
    }
}
