//! The cases, one file for each family.
//!
//! A new case is a function that returns rows, and a line in [`CASES`].

mod commit;
mod growth;
mod load;
mod read;

use crate::Result;
use crate::bench::Bench;
use crate::report::Row;

/// Something to measure, and what to compare it with.
pub struct Case {
    /// What it is called on the command line and in the results.
    pub name: &'static str,
    /// What is compared.
    pub compares: &'static str,
    /// Measures. The row with the case's own name has the goal; others inform.
    pub run: fn(&mut Bench) -> Result<Vec<Row>>,
}

/// Every case, in the order they run.
pub const CASES: &[Case] = &[
    Case {
        name: "get",
        compares: "random point gets: Store / raw heed on a copy of the same file",
        run: read::get,
    },
    Case {
        name: "get_hop",
        compares: "the same gets, each on another thread and back: Store / raw heed (no goal)",
        run: read::get_hop,
    },
    Case {
        name: "scan100",
        compares: "random pages of 100 rows: Store / raw heed on a copy of the same file",
        run: read::scan100,
    },
    Case {
        name: "get_growth",
        compares: "time of a point get through Store: 1 million records / 10 thousand",
        run: growth::get_growth,
    },
    Case {
        name: "load",
        compares: "bulk load in commits of 1,000 puts: Store / raw heed, the worse of two orders",
        run: load::load,
    },
    Case {
        name: "commit1_vs_log",
        compares: "durable single-put commits of 1 client: Store / append log (no goal)",
        run: |bench| commit::against_log(bench, 1, None),
    },
    Case {
        name: "commit16_vs_log",
        compares: "durable single-put commits of 16 clients: Store / append log (no goal)",
        run: |bench| commit::against_log(bench, 16, None),
    },
    Case {
        name: "commit64_vs_log",
        compares: "durable single-put commits of 64 clients: Store / append log, same batching",
        run: |bench| commit::against_log(bench, 64, Some(commit::LOG_GOAL)),
    },
    Case {
        name: "commit64_vs_commit1",
        compares: "durable single-put commits through Store: 64 clients / 1 client",
        run: commit::many_against_one,
    },
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::Settings;
    use crate::records::TEN_THOUSAND;

    #[test]
    fn every_case_runs_and_gives_a_row_of_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings {
            records: TEN_THOUSAND,
            growth_records: 2 * TEN_THOUSAND,
            load_records: TEN_THOUSAND,
            read_rounds: 1,
            commit_rounds: 1,
            commit_time: Duration::from_millis(10),
        };
        let mut bench = Bench::new(settings, directory.path());
        for case in CASES {
            let rows = (case.run)(&mut bench).unwrap();
            assert_eq!(rows.iter().filter(|row| row.case == case.name).count(), 1);
            for row in rows {
                assert!(row.comparison.ratio > 0.0, "{row:?}");
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = CASES.iter().map(|case| case.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CASES.len());
    }
}
