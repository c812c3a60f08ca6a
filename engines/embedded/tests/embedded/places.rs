//! Where a store can live, and what is said where it cannot.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;

use keyward_embedded::{Compacted, Embedded, Options, compact, restore};
use keyward_engine::{Commit, Error, ErrorKind, Expiry, Json, Put, Scan, Store, Version};
use keyward_key::KeyRange;

use crate::child::{self, block_on, key, needs, open, put};

fn refusal(directory: impl AsRef<Path>) -> Error {
    Embedded::open(directory.as_ref(), Options::default()).err().unwrap()
}

fn said(error: &Error, kind: ErrorKind, says: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn a_store_is_private_to_its_user() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("data");
    drop(open(&place));
    assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o700);
    for file in fs::read_dir(&place).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
}

#[test]
fn an_empty_directory_becomes_a_store_and_another_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));

    let foreign = tempfile::tempdir().unwrap();
    fs::write(foreign.path().join("thesis.tex"), "precious").unwrap();
    said(&refusal(foreign.path()), ErrorKind::Misplaced, "thesis.tex");
    assert_eq!(fs::read_dir(foreign.path()).unwrap().count(), 1);

    let file = foreign.path().join("thesis.tex");
    said(&refusal(&file), ErrorKind::Misplaced, "thesis.tex");
    said(&refusal(directory.path().join("no/such")), ErrorKind::Misplaced, "does not exist");
}

#[test]
fn a_read_only_directory_is_refused() {
    const TEST: &str = "places::a_read_only_directory_is_refused";
    if let Some((_, directory)) = child::role() {
        said(&refusal(directory.join("data")), ErrorKind::Misplaced, "Permission denied");
        said(&refusal(directory), ErrorKind::Misplaced, "Permission denied");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).unwrap();
    // Root may write anywhere, so the child is somebody else, with a copy of this program that it
    // may run.
    let program = tempfile::tempdir().unwrap();
    fs::set_permissions(program.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = program.path().join("test");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let mut command = std::process::Command::new(&copy);
    command.args([TEST, "--exact", "--nocapture"]).current_dir("/");
    command.env(child::ROLE, "open").env(child::DIRECTORY, directory.path());
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", child::printed(&output));
}

#[test]
fn damaged_files_are_refused_and_left_as_they_are() {
    for (damage, says) in [
        (Box::new(|_: &[u8]| Vec::new()) as Box<dyn Fn(&[u8]) -> Vec<u8>>, "empty"),
        (Box::new(|data: &[u8]| data[..data.len() / 2].to_vec()), "cut off"),
        (Box::new(|data: &[u8]| data[..100].to_vec()), "damaged"),
        (Box::new(|data: &[u8]| vec![0; data.len()]), "damaged"),
        (Box::new(|data: &[u8]| vec![0x5A; data.len()]), "damaged"),
        (Box::new(|_: &[u8]| b"SQLite format 3\0 and so on".repeat(1000)), "damaged"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        block_on(store.put(key("a"), put("1"))).unwrap();
        drop(store);
        let file = directory.path().join("data.mdb");
        let damaged = damage(&fs::read(&file).unwrap());
        fs::write(&file, &damaged).unwrap();
        said(&refusal(directory.path()), ErrorKind::Corrupt, says);
        assert_eq!(fs::read(&file).unwrap(), damaged);
    }
}

#[test]
fn a_foreign_lmdb_file_and_a_newer_format_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    write_format(directory.path(), b"2");
    said(&refusal(directory.path()), ErrorKind::Misplaced, "format 2");
    write_format(directory.path(), b"1");
    drop(open(directory.path()));
}

#[allow(unsafe_code, reason = "writes what a later version of the engine would write")]
fn write_format(directory: &Path, format: &[u8]) {
    use heed::types::Bytes;
    use heed::{CommitOrAbort, EnvOpenOptions};
    // SAFETY: the store is closed, and the directory belongs to this test.
    let env =
        unsafe { EnvOpenOptions::new().max_dbs(8).map_size(1 << 30).open(directory) }.unwrap();
    let txn = env.write_txn().unwrap();
    env.create_databases_and_commit(txn, |opener, txn| {
        let meta = opener.create_database::<Bytes, Bytes>(txn, Some("meta"))?;
        meta.put(txn, b"format", format)?;
        Ok::<_, heed::Error>(CommitOrAbort::<(), ()>::Commit(()))
    })
    .unwrap();
    env.prepare_for_closing().wait();
}

#[test]
fn a_full_map_refuses_what_does_not_fit_and_keeps_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { map_bytes: 4 << 20, ..Options::default() };
    let store = Store::new(Embedded::open(directory.path(), options).unwrap());
    block_on(fill_up(&store));
    drop(store);
    // With a larger map the same store goes on.
    let store = open(directory.path());
    block_on(async {
        let large = Json::from_value(&"x".repeat(4 << 20)).unwrap();
        store.put(key("large"), Put::new(large)).await.unwrap();
        assert!(store.get(&key("fill:0")).await.unwrap().is_none());
        assert!(store.get(&key("fill:1")).await.unwrap().is_some());
    });
}

/// Writes until the store is full, and shows that what was acknowledged stays, that reading and
/// deleting still work, and that there is room again after deleting.
async fn fill_up(store: &Store) {
    let large = Json::from_value(&"x".repeat(100_000)).unwrap();
    let mut written = 0;
    let error = loop {
        match store.put(key(&format!("fill:{written}")), Put::new(large.clone())).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 1_000, "the store never became full");
    };
    said(&error, ErrorKind::Full, "cannot commit");
    assert!(written >= 5, "{written}");
    let page = store.scan(&Scan::new(KeyRange::all()).limit(1_000)).await.unwrap();
    assert_eq!(page.rows.len(), written);
    assert!(page.rows.iter().all(|row| row.entry.as_ref().unwrap().value == large));

    for n in (0..written).step_by(2) {
        store.delete(key(&format!("fill:{n}"))).await.unwrap();
    }
    store.put(key("again"), Put::new(large)).await.unwrap();
}

#[test]
fn a_full_disk_refuses_what_does_not_fit_and_keeps_the_rest() {
    const TEST: &str = "places::a_full_disk_refuses_what_does_not_fit_and_keeps_the_rest";
    if let Some((_, directory)) = child::role() {
        let store = open(directory.join("disk/data"));
        block_on(async {
            store.check_space().await.unwrap();
            fill_up(&store).await;
            // Small commits find free pages all the same.
            said(&store.check_space().await.unwrap_err(), ErrorKind::Full, "disk");
        });
        return;
    }
    needs("unshare");
    let directory = tempfile::tempdir().unwrap();
    let disk = directory.path().join("disk");
    fs::create_dir(&disk).unwrap();
    // A small disk of our own, seen by the child alone.
    let script = format!("mount -t tmpfs -o size=8m none '{}' && exec \"$@\"", disk.display());
    let program = ["unshare", "--map-root-user", "--mount", "sh", "-c", &script, "sh"];
    let output = child::command_by(&program, TEST, "fill", directory.path()).output().unwrap();
    assert!(output.status.success(), "{}", child::printed(&output));
}

#[test]
fn another_pid_namespace_is_refused_while_the_store_is_open() {
    const TEST: &str = "places::another_pid_namespace_is_refused_while_the_store_is_open";
    if let Some((role, directory)) = child::role() {
        if role == "refused" {
            said(&refusal(directory), ErrorKind::Misplaced, "PID namespace");
        } else {
            drop(open(directory));
        }
        return;
    }
    needs("unshare");
    let directory = tempfile::tempdir().unwrap();
    let program = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    let run = |role: &str| {
        let output = child::command_by(&program, TEST, role, directory.path()).output().unwrap();
        assert!(output.status.success(), "{}", child::printed(&output));
    };
    let store = open(directory.path());
    run("refused");
    drop(store);
    run("taken");
    drop(open(directory.path()));
}

#[test]
fn a_backup_is_whole_while_others_write_and_restores_under_new_revisions() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("data");
    let file = directory.path().join("backup.mdb");
    let store = open(&place);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // Each commit writes two keys that must always agree.
        let pair = |n: i64| {
            Commit::new()
                .put(key("left"), Put::new(Json::from_integer(n)))
                .put(key("right"), Put::new(Json::from_integer(n)))
        };
        let writer = tokio::spawn({
            let store = store.clone();
            async move {
                for n in 0..200 {
                    assert!(store.commit(pair(n)).await.unwrap().is_applied());
                }
            }
        });
        store.backup(&file).await.unwrap();
        writer.await.unwrap();
        said(&store.backup(&file).await.unwrap_err(), ErrorKind::Misplaced, "exists already");

        let restored = directory.path().join("restored");
        restore(&restored, &file, Options::default()).unwrap();
        let old = store.stats().await.unwrap();
        let store = open(&restored);
        let both = store.get_many(&[key("left"), key("right")]).await.unwrap();
        let values: Vec<_> = both.into_iter().map(|entry| entry.map(|entry| entry.value)).collect();
        assert_eq!(values[0], values[1]);
        let new = store.stats().await.unwrap();
        assert!(new.revision > old.revision && new.earliest_revision > old.revision);
        let error = restore(&restored, &file, Options::default()).unwrap_err();
        said(&error, ErrorKind::Misplaced, "already a store");
    });
}

#[test]
fn what_is_no_backup_is_not_restored() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("data");
    let file = directory.path().join("notes.txt");
    fs::write(&file, "not a backup").unwrap();
    let error = restore(&place, &file, Options::default()).unwrap_err();
    said(&error, ErrorKind::Corrupt, "damaged");
    assert!(restore(&place, &directory.path().join("absent"), Options::default()).is_err());
    // The failed attempts are not in the way of a new store.
    drop(open(&place));
}

#[test]
fn compaction_keeps_everything_but_expired_entries_and_free_pages() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let revision = block_on(async {
        let large = Json::from_value(&"x".repeat(100_000)).unwrap();
        for n in 0..50 {
            store.put(key(&format!("gone:{n}")), Put::new(large.clone())).await.unwrap();
        }
        store.put(key("kept"), put("1").with_metadata(Json::parse("{}").unwrap())).await.unwrap();
        let past = Expiry::At("2001-01-01T00:00:00Z".parse().unwrap());
        store.put(key("expired"), put("1").expiring(past)).await.unwrap();
        for n in 0..50 {
            store.delete(key(&format!("gone:{n}"))).await.unwrap();
        }
        let error = compact(directory.path(), Options::default()).unwrap_err();
        said(&error, ErrorKind::Unavailable, "open elsewhere");
        store.stats().await.unwrap().revision
    });
    let before = block_on(async { store.get(&key("kept")).await.unwrap() });
    drop(store);
    let Compacted { bytes_before, bytes_after } =
        compact(directory.path(), Options::default()).unwrap();
    assert!(bytes_after < bytes_before / 10, "{bytes_before} → {bytes_after}");
    block_on(async {
        let store = open(directory.path());
        assert_eq!(store.get(&key("kept")).await.unwrap(), before);
        let stats = store.stats().await.unwrap();
        assert_eq!(stats.entries, 1);
        assert!(stats.revision >= revision);
        let next = store.put(key("kept"), put("2")).await.unwrap();
        assert_eq!(next, Version::from(stats.revision.unwrap().0 + 1));
    });
    let nowhere = directory.path().join("nowhere");
    said(&compact(&nowhere, Options::default()).unwrap_err(), ErrorKind::Misplaced, "no store");
    assert!(!nowhere.exists());
}

#[test]
fn restoring_one_backup_twice_never_gives_a_version_twice() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("backup.mdb");
    let versions: Vec<Version> = block_on(async {
        let store = open(directory.path().join("first"));
        let mut versions = vec![store.put(key("a"), put("1")).await.unwrap()];
        store.backup(&file).await.unwrap();
        versions.push(store.put(key("a"), put("2")).await.unwrap());
        for again in ["second", "third"] {
            let place = directory.path().join(again);
            restore(&place, &file, Options::default()).unwrap();
            versions.push(open(place).put(key("a"), put("3")).await.unwrap());
        }
        versions
    });
    let distinct: std::collections::HashSet<&Version> = versions.iter().collect();
    assert_eq!(distinct.len(), versions.len(), "{versions:?}");
}

#[test]
fn a_leftover_of_a_killed_backup_is_written_over() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("backup.mdb");
    fs::write(directory.path().join("backup.mdb.unfinished"), vec![7; 1 << 20]).unwrap();
    let store = open(directory.path().join("data"));
    block_on(async {
        store.put(key("a"), put("1")).await.unwrap();
        store.backup(&file).await.unwrap();
    });
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    restore(&directory.path().join("copy"), &file, Options::default()).unwrap();
}

/// LMDB may leave a file shorter than its account of pages, when the last ones were free again
/// before they were written.
#[test]
fn a_large_value_that_came_and_went_in_one_group_leaves_a_store_that_opens() {
    let directory = tempfile::tempdir().unwrap();
    let large = Put::new(Json::from_value(&"x".repeat(1 << 20)).unwrap());
    for round in 0..20 {
        block_on(async {
            let store = open(directory.path());
            store.put(key("kept"), Put::new(Json::from_integer(round))).await.unwrap();
            store.put(key("freed"), large.clone()).await.unwrap();
            store.delete(key("freed")).await.unwrap();
            // While the first is being synced, the others gather into one group.
            let (busy, came, went) = tokio::join!(
                store.put(key("busy"), put("1")),
                store.put(key("large"), large.clone()),
                store.delete(key("large")),
            );
            assert!(busy.is_ok() && came.is_ok() && went.is_ok());
        });
    }
    block_on(async {
        let kept = open(directory.path()).get(&key("kept")).await.unwrap().unwrap();
        assert_eq!(kept.value.as_integer(), Some(19));
    });
}

#[test]
fn a_directory_that_was_replaced_under_an_open_store_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("data");
    let store = open(&place);
    fs::rename(&place, directory.path().join("moved")).unwrap();
    // Under its new name it is the same store.
    block_on(async {
        open(directory.path().join("moved")).put(key("a"), put("1")).await.unwrap();
        assert!(store.get(&key("a")).await.unwrap().is_some());
    });
    said(&refusal(&place), ErrorKind::Misplaced, "removed or replaced");
    drop(store);
    drop(open(&place));
}

#[test]
fn a_store_whose_data_file_is_gone_is_not_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data.mdb");
    drop(open(directory.path()));
    fs::remove_file(&data).unwrap();
    said(&refusal(directory.path()), ErrorKind::Corrupt, "missing");
    std::os::unix::fs::symlink("/nowhere/data.mdb", &data).unwrap();
    said(&refusal(directory.path()), ErrorKind::Misplaced, "cannot read");
    assert!(fs::symlink_metadata(&data).unwrap().is_symlink());
}

#[test]
fn what_does_not_exist_can_be_opened_only_if_it_may_be_made() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("data");
    assert!(Embedded::open_existing(&place, Options::default()).unwrap().is_none());
    assert!(!place.exists());
    drop(open(&place));
    assert!(Embedded::open_existing(&place, Options::default()).unwrap().is_some());
}

#[test]
fn entries_that_are_written_again_do_not_leave_ends_behind() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    block_on(async {
        for n in 0..50 {
            let ttl = Expiry::After(std::time::Duration::from_secs(86_400 + n));
            store.put(key("deleted"), put("1").expiring(ttl)).await.unwrap();
            store.put(key("kept"), put("1").expiring(ttl)).await.unwrap();
        }
        store.delete(key("deleted")).await.unwrap();
    });
    drop(store);
    assert_eq!(ends(directory.path()), 1);
}

#[allow(unsafe_code, reason = "looks at a table that the engine does not show")]
fn ends(directory: &Path) -> u64 {
    use heed::types::Bytes;
    use heed::{CommitOrAbort, EnvOpenOptions};
    // SAFETY: the store is closed, and the directory belongs to this test.
    let env =
        unsafe { EnvOpenOptions::new().max_dbs(8).map_size(1 << 30).open(directory) }.unwrap();
    let txn = env.read_txn().unwrap();
    let table = env
        .open_databases_and_commit(txn, |opener, txn| {
            opener
                .open_database::<Bytes, Bytes>(txn, Some("ends"))
                .map(CommitOrAbort::<_, ()>::Commit)
        })
        .unwrap()
        .unwrap_commit()
        .unwrap();
    let count = table.len(&env.read_txn().unwrap()).unwrap();
    env.prepare_for_closing().wait();
    count
}
