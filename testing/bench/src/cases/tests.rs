use std::io::Write;
use std::time::Duration;

use super::*;
use crate::bench::Settings;
use crate::records::TEN_THOUSAND;

#[test]
fn every_case_without_a_server_runs_and_gives_a_row_of_its_name() {
    run_all(Needs::Nothing);
}

/// A module for each server: `./test --fast` leaves tests out by these names.
macro_rules! with_servers {
    ($($module:ident: $server:ident),+ $(,)?) => {
        $(
            mod $module {
                use super::{Needs, Server, run_all};

                #[test]
                fn every_case_with_a_server_runs_and_gives_a_row_of_its_name() {
                    run_all(Needs::Server(Server::$server));
                }
            }
        )+
    };
}

with_servers!(
    postgres: Postgres,
    couchdb: CouchDb,
    dynamodb: DynamoDb,
    firestore: Firestore,
    cloudflare_kv: CloudflareKv,
    forge_kvs: ForgeKvs,
);

fn run_all(needs: Needs) {
    if let Needs::Server(server) = needs
        && server.is_absent()
    {
        let _ = writeln!(std::io::stderr(), "NOT MEASURED: there is no {} here", server.name());
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings {
        records: TEN_THOUSAND,
        growth_records: 2 * TEN_THOUSAND,
        load_records: TEN_THOUSAND,
        read_rounds: 1,
        commit_rounds: 1,
        commit_time: Duration::from_millis(10),
        server_rounds: 1,
        server_seconds: 1,
        server_clients: &[8],
        copy_rounds: 1,
    };
    let mut bench = Bench::new(settings, directory.path());
    for case in CASES.iter().filter(|case| case.needs == needs) {
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
