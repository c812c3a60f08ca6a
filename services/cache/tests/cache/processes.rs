//! A thousand callers in four processes that ask for one slow value.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use keyward_cache::{Cache, Options};
use keyward_engine::SystemClock;
use tokio::runtime::Builder;

use crate::{json, key, version};

const DIRECTORY: &str = "KEYWARD_TEST_DIRECTORY";
const TEST: &str = "processes::a_thousand_callers_in_four_processes_cause_one_computation";
const PROCESSES: usize = 4;
const CALLERS: usize = 250;
/// How often the one who computes looks whether all processes are waiting.
const LOOK: Duration = Duration::from_millis(5);

#[test]
fn a_thousand_callers_in_four_processes_cause_one_computation() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return ask(&PathBuf::from(directory));
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("asking")).unwrap();
    let mut children: Vec<Child> = (0..PROCESSES).map(|_| child(directory.path())).collect();
    for mut child in children.drain(..) {
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{said}");
        assert!(said.contains(&format!("{CALLERS} have it")), "{said}");
    }
    let runs = std::fs::read_to_string(directory.path().join("runs")).unwrap();
    assert_eq!(runs, "ran\n");
}

fn child(directory: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([TEST, "--exact", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What one of the processes does.
#[allow(clippy::print_stdout, reason = "the child tells its parent")]
fn ask(directory: &Path) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = keyward_stores::embedded(&directory.join("store"));
        let cache = Cache::new(store, SystemClock, Options::default()).unwrap();
        let mut callers = Vec::new();
        for _ in 0..CALLERS {
            let (cache, runs) = (cache.clone(), directory.join("runs"));
            let asking = directory.join("asking");
            callers.push(tokio::spawn(async move {
                let slow = || async move {
                    let mut runs = OpenOptions::new().create(true).append(true).open(runs).unwrap();
                    runs.write_all(b"ran\n").unwrap();
                    // Not before everybody has asked.
                    while std::fs::read_dir(&asking).unwrap().count() < PROCESSES {
                        tokio::time::sleep(LOOK).await;
                    }
                    Ok::<_, String>(json(r#""slow""#))
                };
                cache.get_or_compute(&key("slow"), &version("1"), slow).await.unwrap().value
            }));
        }
        let own = std::process::id().to_string();
        std::fs::write(directory.join("asking").join(own), "").unwrap();
        let mut have_it = 0;
        for caller in callers {
            have_it += usize::from(caller.await.unwrap() == json(r#""slow""#));
        }
        println!("{have_it} have it");
    });
}
