//! Damaged data files: nothing ends the process, damage is told as such, and the rest can be saved.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use keyward_embedded::{Embedded, Options, Salvaged, compact, restore, salvage};
use keyward_engine::{Commit, Error, ErrorKind, Expiry, Json, Put, Scan, Store};
use keyward_key::{Key, KeyRange};
use keyward_testkit::seeds;
use tempfile::TempDir;

use crate::child::{self, block_on, key, open, put};
use crate::process::{name, tell};

const PAGE: usize = 4_096;

type Entries = BTreeMap<Key, String>;

/// A store with several levels of pages, values on pages of their own, and free pages; the bytes of
/// its data file, and what it holds. The last commit put `last`.
struct Sample {
    data: Vec<u8>,
    entries: Entries,
}

impl Sample {
    fn make() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        let entries = block_on(async {
            let wide = "w".repeat(300);
            let mut commit = Commit::new();
            for n in 0..400 {
                let text = if n % 20 == 7 { "v".repeat(9_000) } else { "v".repeat(n % 150) };
                let value = Json::from_value(&format!("{n}:{text}")).unwrap();
                let mut it = Put::new(value);
                if n % 5 == 0 {
                    it = it.with_metadata(Json::parse(format!("{{\"n\":{n}}}")).unwrap());
                }
                if n % 3 == 0 {
                    it = it.expiring(Expiry::After(Duration::from_secs(1_000_000)));
                }
                commit = commit.put(key(&format!("item:{}:{n:04}", &wide[..n % 300])), it);
                if n % 25 == 24 {
                    assert!(store.commit(std::mem::take(&mut commit)).await.unwrap().is_applied());
                }
            }
            for n in 0..40 {
                store.put(key("gone"), put(&n.to_string())).await.unwrap();
            }
            store.delete(key("gone")).await.unwrap();
            store.put(key("last"), put("1")).await.unwrap();
            held(&store).await.unwrap()
        });
        drop(store);
        assert_eq!(entries.len(), 401);
        Self { data: fs::read(directory.path().join("data.mdb")).unwrap(), entries }
    }

    /// A store whose data file is a changed copy.
    fn damaged(&self, damage: impl FnOnce(&mut Vec<u8>)) -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        let mut data = self.data.clone();
        damage(&mut data);
        fs::write(directory.path().join("data.mdb"), data).unwrap();
        directory
    }

    fn pages(&self) -> usize {
        self.data.len() / PAGE
    }

    /// How many entries lie on a page at most, by its header: none on a branch page, one on a page of
    /// a value.
    fn entries_max(&self, page: usize) -> usize {
        let header = &self.data[page * PAGE..page * PAGE + 16];
        match header[10] {
            1 | 8 => 0,
            2 => (usize::from(u16::from_ne_bytes([header[12], header[13]])) - 16) / 2,
            _ => 1,
        }
    }

    /// The number of the newer meta page.
    fn newer_meta(&self) -> usize {
        let transaction = |meta: usize| {
            let at = meta * PAGE + 16 + 128;
            u64::from_ne_bytes(self.data[at..at + 8].try_into().unwrap())
        };
        usize::from(transaction(1) > transaction(0))
    }

    /// A leaf of `entries`: zeroing it loses several entries.
    fn leaf(&self) -> usize {
        let lost = |page: &usize| {
            let directory = self.damaged(|data| zero(data, *page));
            self.entries.len() - saved(directory.path()).unwrap().0.len()
        };
        (2..self.pages()).find(|page| lost(page) > 3).unwrap()
    }
}

/// Everything a store holds.
async fn held(store: &Store) -> Result<Entries, Error> {
    let mut scan = Scan::new(KeyRange::all());
    let mut entries = BTreeMap::new();
    loop {
        let page = store.scan(&scan).await?;
        for row in page.rows {
            let value = row.entry.unwrap().value.as_str().to_owned();
            assert!(entries.insert(row.key, value).is_none(), "a key comes twice");
        }
        match page.next {
            Some(next) => scan.after = Some(next),
            None => return Ok(entries),
        }
    }
}

/// Everything that can be salvaged.
fn saved(directory: &Path) -> Result<(Entries, Salvaged), Error> {
    let mut entries = BTreeMap::new();
    let salvaged = salvage(directory, |row| {
        let entry = row.entry.unwrap();
        assert!(Json::parse(entry.value.to_bytes()).is_ok());
        assert!(entries.insert(row.key, entry.value.as_str().to_owned()).is_none());
        ControlFlow::Continue(())
    })?;
    assert_eq!(salvaged.entries, entries.len() as u64);
    Ok((entries, salvaged))
}

fn refusal(directory: &Path) -> Error {
    Embedded::open(directory, Options::default()).err().expect("damage goes unnoticed")
}

fn corrupt(error: &Error, says: &str) {
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

fn zero(data: &mut [u8], page: usize) {
    data[page * PAGE..(page + 1) * PAGE].fill(0);
}

#[test]
fn a_sound_store_is_salvaged_whole() {
    let sample = Sample::make();
    let directory = sample.damaged(|_| ());
    let (entries, salvaged) = saved(directory.path()).unwrap();
    assert_eq!(entries, sample.entries);
    let whole = Salvaged { entries: 401, expected: 401, ..Salvaged::default() };
    assert_eq!(salvaged, whole);
    // It is as it was, and opens.
    assert_eq!(block_on(held(&open(directory.path()))).unwrap(), sample.entries);
    assert_eq!(
        salvage(&directory.path().join("no"), |_| ControlFlow::Continue(())).unwrap_err().kind(),
        ErrorKind::Misplaced
    );
}

#[test]
fn an_open_store_is_not_salvaged() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    assert_eq!(saved(directory.path()).unwrap_err().kind(), ErrorKind::Unavailable);
    drop(store);
    saved(directory.path()).unwrap();
}

#[test]
fn one_damaged_page_costs_only_what_lies_on_it() {
    let sample = Sample::make();
    let (mut leaves, mut branches) = (0, 0);
    for page in 0..sample.pages() {
        let directory = sample.damaged(|data| zero(data, page));
        let (entries, salvaged) = saved(directory.path()).unwrap();
        for (key, value) in &entries {
            assert_eq!(sample.entries.get(key), Some(value), "page {page}: {key}");
        }
        let mut lost = sample.entries.len() - entries.len();
        if salvaged.without_last_commit && !entries.contains_key(&key("last")) {
            lost -= 1;
        }
        assert!(lost <= sample.entries_max(page), "page {page}: {lost} lost; {salvaged:?}");
        assert!(lost == 0 || !salvaged.damaged.is_empty(), "page {page}: {salvaged:?}");
        leaves += usize::from(lost > 1);
        branches += usize::from(salvaged.orphaned > 0);
    }
    assert!(leaves > 20, "{leaves}");
    // The root and the pages below it, on which no entry is lost.
    assert!(branches > 2, "{branches}");
}

#[test]
fn a_zeroed_page_is_named_when_the_store_is_opened() {
    let sample = Sample::make();
    let page = sample.leaf();
    let directory = sample.damaged(|data| zero(data, page));
    corrupt(&refusal(directory.path()), &format!("page {page} (table entries)"));
}

/// LMDB finds a key by the order of the others: without it, it answers that there is none.
#[test]
fn keys_out_of_order_are_noticed_rather_than_not_found() {
    let sample = Sample::make();
    let page = sample.leaf();
    let directory = sample.damaged(|data| {
        let pointers = page * PAGE + 16;
        data[pointers..pointers + 4].rotate_left(2);
    });
    corrupt(&refusal(directory.path()), "keys are out of order");
    // Both are whole, so both are saved.
    assert_eq!(saved(directory.path()).unwrap().0, sample.entries);
}

#[test]
fn a_value_that_is_no_json_is_named_and_makes_no_backup() {
    let sample = Sample::make();
    let directory = sample.damaged(|data| {
        let run = data.windows(5_000).position(|bytes| bytes.iter().all(|byte| *byte == b'v'));
        data[run.unwrap() + 100] = b'"';
    });
    let backup = directory.path().join("backup");
    let lost = block_on(async {
        let store = open(directory.path());
        let error = store.verify(&KeyRange::all()).await.unwrap_err();
        corrupt(&error, "is not JSON");
        let held = held(&store).await.unwrap();
        let mut broken = held.iter().filter(|(_, value)| Json::parse((*value).clone()).is_err());
        let lost = broken.next().unwrap().0.clone();
        corrupt(&error, &lost.to_string());
        // Elsewhere everything is well.
        store.verify(&KeyRange::exactly(&key("last"))).await.unwrap();
        corrupt(&store.verify(&KeyRange::exactly(&lost)).await.unwrap_err(), "is not JSON");
        corrupt(&store.backup(&backup).await.unwrap_err(), "is not JSON");
        lost
    });
    assert!(!backup.exists());
    corrupt(&compact(directory.path(), Options::default()).unwrap_err(), "is not JSON");
    let (mut entries, salvaged) = saved(directory.path()).unwrap();
    assert!(salvaged.damaged[0].contains(&lost.to_string()), "{salvaged:?}");
    assert_eq!(entries.insert(lost.clone(), sample.entries[&lost].clone()), None);
    assert_eq!(entries, sample.entries);
    // Nor is a damaged backup restored.
    let place = tempfile::tempdir().unwrap();
    let data = directory.path().join("data.mdb");
    let error = restore(&place.path().join("new"), &data, Options::default()).unwrap_err();
    corrupt(&error, "is not JSON");
}

#[test]
fn meta_pages_that_lmdb_would_stumble_over_are_refused() {
    let sample = Sample::make();
    // The page size, the last page, the transaction, the root of the list of tables, flags.
    for field in [24, 120, 128, 112, 76] {
        for meta in [0, 1] {
            let directory = sample.damaged(|data| {
                let at = meta * PAGE + 16 + field;
                for byte in &mut data[at..at + 2] {
                    *byte ^= 0x55;
                }
            });
            let opened = Embedded::open(directory.path(), Options::default());
            // What the older one says of pages is of no use to anybody.
            let of_use = meta == sample.newer_meta() || field == 24 || field == 128;
            match opened {
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
                Ok(_) => assert!(!of_use, "field {field} of meta page {meta}"),
            }
        }
    }
}

#[test]
fn a_file_that_was_cut_off_gives_what_is_left() {
    let sample = Sample::make();
    let directory = sample.damaged(|data| data.truncate(data.len() / 2 / PAGE * PAGE + 100));
    corrupt(&refusal(directory.path()), "cut off");
    let (entries, salvaged) = saved(directory.path()).unwrap();
    assert!(!salvaged.damaged.is_empty());
    for (key, value) in &entries {
        assert_eq!(sample.entries.get(key), Some(value), "{key}");
    }
    let nothing = sample.damaged(|data| data.truncate(100));
    corrupt(&saved(nothing.path()).unwrap_err(), "cannot be read");
}

/// Of a large store the pages above the leaves are checked on opening, and everything when asked.
#[test]
fn a_large_store_opens_without_reading_all_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data.mdb");
    let store = open(directory.path());
    block_on(async {
        let value = Json::from_value(&"x".repeat(1_900)).unwrap();
        for thousand in 0..10 {
            let keys = (0..1_000).map(|n| key(&format!("item:{thousand}:{n:03}")));
            let commit = keys.fold(Commit::new(), |it, key| it.put(key, Put::new(value.clone())));
            assert!(store.commit(commit).await.unwrap().is_applied());
        }
    });
    drop(store);
    let sound = fs::read(&data).unwrap();
    let holds = |page: &[u8], text: &[u8]| page.windows(text.len()).any(|it| it == text);
    let is_leaf = |page: &[u8]| page[10] == 2 && holds(page, b"item\x005\x00500");
    let leaf = sound.chunks(PAGE).position(is_leaf).unwrap();
    let mut damaged = sound.clone();
    zero(&mut damaged, leaf);
    fs::write(&data, &damaged).unwrap();
    block_on(async {
        let store = open(directory.path());
        assert!(store.get(&key("item:0:000")).await.unwrap().is_some());
        corrupt(&store.verify(&KeyRange::all()).await.unwrap_err(), &format!("page {leaf} "));
        let mut failed = 0;
        for n in 480..520 {
            if let Err(error) = store.get(&key(&format!("item:5:{n}"))).await {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                failed += 1;
            }
        }
        assert!((1..=2).contains(&failed), "{failed}");
    });
    let (entries, salvaged) = saved(directory.path()).unwrap();
    assert!(entries.len() >= 10_000 - 2, "{salvaged:?}");
}

/// A check must never take a write for damage.
#[test]
fn checks_find_nothing_while_others_write() {
    if let Some((_, directory)) = child::role() {
        for _ in 0..40 {
            block_on(open(&directory).verify(&KeyRange::all())).unwrap();
        }
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let test = name(concat!(module_path!(), "::checks_find_nothing_while_others_write"));
    let mut child = child::command(test, "check", directory.path()).spawn().unwrap();
    let large = Json::from_value(&"x".repeat(20_000)).unwrap();
    block_on(async {
        let mut round = 0;
        while child.try_wait().unwrap().is_none() {
            round += 1;
            let commit = (0..20).fold(Commit::new(), |commit, n| {
                let place = (round * 7 + n * 13) % 300;
                commit.put(key(&format!("item:{place:03}")), Put::new(large.clone()))
            });
            assert!(store.commit(commit).await.unwrap().is_applied());
            store.delete(key(&format!("item:{:03}", round % 300))).await.unwrap();
            if round % 10 == 0 {
                store.verify(&KeyRange::all()).await.unwrap();
            }
        }
    });
    assert!(child.wait().unwrap().success());
}

/// Damage of every kind, each in a process of its own: it may find anything wrong, but not die of it.
#[test]
fn no_damage_ends_the_process_or_passes_for_sound() {
    const TEST: &str = "no_damage_ends_the_process_or_passes_for_sound";
    if let Some((role, directory)) = child::role() {
        return use_damaged(&directory, role.parse().unwrap());
    }
    let sample = Sample::make();
    let test = name(concat!(module_path!(), "::no_damage_ends_the_process_or_passes_for_sound"));
    let mut refused = 0;
    for seed in seeds(120, 5_000) {
        let directory = sample.damaged(|data| harm(data, seed));
        let keys: Vec<String> = sample.entries.keys().map(ToString::to_string).collect();
        fs::write(directory.path().join("keys.txt"), keys.join("\n")).unwrap();
        let output =
            child::command(test, &sample.entries.len().to_string(), directory.path()).output();
        let output = output.unwrap();
        let told = child::printed(&output);
        assert!(output.status.success(), "{}\n  KEYWARD_SEED={seed} {TEST}\n{told}", output.status);
        refused += usize::from(told.contains("REFUSED"));
    }
    assert!(std::env::var_os("KEYWARD_SEED").is_some() || refused > 60, "{refused}");
}

/// Harms a data file in a way that the seed chooses.
fn harm(data: &mut Vec<u8>, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let pages = data.len() / PAGE;
    let page = random.usize(0..pages) * PAGE;
    match seed % 6 {
        0 => {
            for _ in 0..random.usize(1..9) {
                data[page + random.usize(0..PAGE)] ^= 1 << random.u32(0..8);
            }
        }
        1 => zero(data, page / PAGE),
        2 => {
            let other = random.usize(0..pages) * PAGE;
            let copy = data[page..page + PAGE].to_vec();
            data.copy_within(other..other + PAGE, page);
            data[other..other + PAGE].copy_from_slice(&copy);
        }
        3 => data.truncate(random.usize(0..data.len())),
        4 => {
            let start = random.usize(0..16);
            random.fill(&mut data[page + start..page + 32]);
        }
        _ => random.fill(&mut data[page..page + PAGE]),
    }
}

/// Uses a store that may be damaged in every way, and shows that what is not refused is right.
fn use_damaged(directory: &Path, expected: usize) {
    let refused = |error: &Error| {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        tell(&format!("REFUSED {error}"));
    };
    let keys = fs::read_to_string(directory.join("keys.txt")).unwrap();
    let salvaged = saved(directory).inspect_err(refused);
    let Ok(engine) = Embedded::open(directory, Options::default()).inspect_err(refused) else {
        return;
    };
    let store = Store::new(engine);
    block_on(async {
        let verified = store.verify(&KeyRange::all()).await;
        let backup = directory.join("backup");
        let backed_up = store.backup(&backup).await;
        assert_eq!(verified.is_ok(), backed_up.is_ok());
        assert_eq!(verified.is_ok(), backup.exists());
        let held = held(&store).await;
        for text in keys.lines() {
            if let Err(error) = store.get(&key(text)).await {
                refused(&error);
            }
        }
        match (verified, held) {
            (Ok(()), held) => {
                assert_eq!(held.unwrap().len(), expected);
                let (entries, salvaged) = salvaged.unwrap();
                assert_eq!((entries.len(), salvaged.damaged), (expected, Vec::new()));
            }
            (Err(error), held) => {
                refused(&error);
                let _ = held.inspect_err(refused);
            }
        }
        if let Err(error) = store.put(key("new"), put("1")).await {
            refused(&error);
        }
    });
    drop(store);
    let backup: PathBuf = directory.join("backup");
    if backup.exists() {
        let copy = directory.join("copy");
        restore(&copy, &backup, Options::default()).unwrap();
        assert_eq!(block_on(held(&open(&copy))).unwrap().len(), expected);
    }
    if let Err(error) = compact(directory, Options::default()) {
        refused(&error);
    }
}
