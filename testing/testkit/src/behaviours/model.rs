//! Random operations, compared with the simplest store there is.

use std::time::Duration;

use fastrand::Rng;
use keyward_engine::{
    ChangeKind, Commit, Durability, Entry, Expect, Expiry, ExpirySupport, Json, List, Order,
    Outcome, Put, Revision, Row, Scan, Version, Want, Write,
};
use keyward_key::{Key, KeyRange, Prefix};

use super::json;
use crate::reference::{Reference, Verdict};
use crate::seeds::{Replay, seeds};
use crate::subject::Subject;
use crate::watcher::{Changed, Watcher};

const STEPS: usize = 150;
const KEYS: usize = 16;
const SEGMENTS: [&str; 6] = ["a", "b", "", "a-b", "\u{1}", "학"];

pub async fn random_operations_agree_with_a_simple_map(subject: Subject) {
    for seed in seeds(12, 1_000) {
        let mut run = Run {
            replay: Replay::new(subject.test, seed),
            rng: Rng::with_seed(seed),
            keys: Vec::new(),
            model: Reference::default(),
            subject: subject.another().await,
            begin: Revision(0),
            changed: Vec::new(),
        };
        run.keys = (0..KEYS).map(|_| run.any_key()).collect();
        run.begin = run.subject.revision().await.unwrap_or_default();
        for _ in 0..STEPS {
            run = run.step().await;
        }
        run.compare_everything().await;
        run.compare_history().await;
    }
}

struct Run {
    replay: Replay,
    rng: Rng,
    /// The keys that are mostly used: few, so that operations meet.
    keys: Vec<Key>,
    model: Reference,
    subject: Subject,
    begin: Revision,
    /// What each applied commit should have told watchers.
    changed: Vec<Changed>,
}

impl Run {
    async fn step(mut self) -> Self {
        match self.rng.u8(..100) {
            0..55 => self.commit().await,
            55..65 => self.read().await,
            65..80 => self.scan().await,
            80..88 => self.list().await,
            88..97 => self.wait().await,
            _ => return self.reopen().await,
        }
        self
    }

    async fn commit(&mut self) {
        let commit = self.random_commit();
        self.replay.step(format!("{commit:?}"));
        let now = self.subject.now();
        let verdict = self.model.verdict(&commit, self.subject.capabilities(), now);
        match (verdict, self.subject.store.commit(commit.clone()).await) {
            (Verdict::Applied, Ok(Outcome::Applied { revision, versions })) => {
                self.expect_told(&commit, revision, now);
                let keys: Vec<Key> = commit.writes.iter().map(|w| w.key().clone()).collect();
                let can = self.subject.capabilities();
                self.model.apply(commit, versions, can, now);
                self.subject.settle().await;
                self.compare(&keys).await;
            }
            (Verdict::Conflicted(expected), Ok(Outcome::Conflicted { failed })) => {
                assert_eq!(failed, expected);
            }
            (Verdict::Refused(kind), Err(error)) => assert_eq!(error.kind(), kind, "{error}"),
            (expected, other) => panic!("should be {expected:?}, but is {other:?}"),
        }
    }

    /// Notes what a commit that was applied should tell.
    fn expect_told(&mut self, commit: &Commit, revision: Option<Revision>, now: jiff::Timestamp) {
        let mut changes = Vec::new();
        for write in &commit.writes {
            let key = write.key();
            match write {
                Write::Put(..) | Write::Add(..) => changes.push((key.clone(), ChangeKind::Put)),
                Write::Delete(_) if self.model.get(key, now).is_some() => {
                    changes.push((key.clone(), ChangeKind::Deleted));
                }
                Write::Delete(_) => {}
            }
        }
        changes.sort_by(|a, b| a.0.cmp(&b.0));
        if let (Some(revision), false) = (revision, changes.is_empty()) {
            self.changed.push((revision, changes));
        }
    }

    /// Compares what was just written, taking over ends that this engine rounds in its own way.
    async fn compare(&mut self, keys: &[Key]) {
        let shown = self.subject.store.get_many(keys).await.unwrap();
        let now = self.subject.now();
        let exact = self.subject.owns_time()
            && matches!(
                self.subject.capabilities().expiry,
                ExpirySupport::Supported { granularity, .. }
                    if granularity == Duration::from_millis(1)
            );
        for (key, entry) in keys.iter().zip(shown) {
            if !exact && let Some(entry) = &entry {
                self.model.correct_end(key, entry.expires);
            }
            assert_eq!(entry.as_ref(), self.model.get(key, now), "{key}");
        }
    }

    async fn read(&mut self) {
        let keys: Vec<Key> = (0..self.rng.usize(..8)).map(|_| self.key()).collect();
        self.replay.step(format!("read {keys:?}"));
        let shown = self.subject.store.get_many(&keys).await.unwrap();
        let now = self.subject.now();
        let expected = keys.iter().map(|key| self.model.get(key, now).cloned());
        assert_eq!(shown, expected.collect::<Vec<Option<Entry>>>());
    }

    async fn scan(&mut self) {
        let mut scan = Scan::new(self.range()).limit(self.rng.usize(1..10));
        scan.order = self.order();
        if self.rng.bool() {
            scan.want = Want::Keys;
        }
        self.replay.step(format!("{scan:?}"));
        let now = self.subject.now();
        let mut shown = self.subject.rows(scan.clone()).await;
        let row = |(key, entry): (&Key, &Entry)| Row {
            key: key.clone(),
            entry: (scan.want == Want::Entries).then(|| entry.clone()),
        };
        let mut expected: Vec<Row> = self.model.range(scan.range.clone(), now).map(row).collect();
        if scan.order == Order::Descending {
            expected.reverse();
        }
        if !self.subject.is_ordered() {
            shown.sort_by(|a, b| a.key.cmp(&b.key));
        }
        assert_eq!(shown, expected);
    }

    async fn list(&mut self) {
        if !self.subject.is_ordered() {
            return;
        }
        let prefix = match self.rng.u8(..3) {
            0 => Prefix::all(),
            _ => self.key().ancestor(1).unwrap_or(Prefix::all()),
        };
        let list = List::new(prefix)
            .depth(self.rng.usize(1..4))
            .limit(self.rng.usize(1..6))
            .order(self.order());
        self.replay.step(format!("{list:?}"));
        let now = self.subject.now();
        let all = self.model.range(KeyRange::all(), now);
        let all: Vec<Key> = all.map(|(key, _)| key.clone()).collect();
        let shown = super::listing::items(&self.subject, list.clone()).await;
        assert_eq!(shown, super::listing::naive(&all, &list));
    }

    async fn wait(&mut self) {
        if self.subject.owns_time() {
            let time = Duration::from_millis(self.rng.u64(1..20_000));
            self.replay.step(format!("wait {time:?}"));
            self.subject.pass(time).await;
        }
    }

    async fn reopen(mut self) -> Self {
        if self.subject.capabilities().durability != Durability::Volatile {
            self.replay.step("reopen".to_owned());
            self.subject = self.subject.reopened().await;
            self.compare_everything().await;
        }
        self
    }

    async fn compare_everything(&self) {
        let now = self.subject.now();
        let (rows, _) = self.subject.contents().await;
        let shown = rows.into_iter().map(|row| (row.key, row.entry.unwrap()));
        let all = self.model.range(KeyRange::all(), now);
        let expected = all.map(|(key, entry)| (key.clone(), entry.clone()));
        assert_eq!(shown.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    /// What a watcher from the beginning is told: every commit, and otherwise only what expired.
    async fn compare_history(&self) {
        if !self.subject.can_resume() {
            return;
        }
        let stats = self.subject.store.stats().await.unwrap();
        let since = self.begin.max(stats.earliest_revision.unwrap());
        let mut watcher = Watcher::start(&self.subject, KeyRange::all(), Some(since)).await;
        let mut told = watcher.changes_until(stats.revision.unwrap()).await;
        for (_, changes) in &mut told {
            changes.retain(|(_, kind)| *kind != ChangeKind::Expired);
        }
        told.retain(|(_, changes)| !changes.is_empty());
        let mut expected = self.changed.clone();
        expected.retain(|(revision, _)| *revision > since);
        assert_eq!(told, expected);
    }

    fn random_commit(&mut self) -> Commit {
        let mut commit = Commit::new();
        let mut keys: Vec<Key> = (0..6).map(|_| self.key()).collect();
        keys.sort();
        keys.dedup();
        self.rng.shuffle(&mut keys);
        // Mostly small, so that engines of one key take part.
        let writes = [0, 1, 1, 1, 1, 2, 3][self.rng.usize(..7)];
        for key in keys.iter().take(writes).cloned() {
            commit.writes.push(match self.rng.u8(..10) {
                0..6 => Write::Put(key, self.random_put()),
                6..8 => Write::Delete(key),
                _ => Write::Add(key, self.rng.i64(-5..=5)),
            });
        }
        let checks = [0, 0, 0, 1, 1, 2][self.rng.usize(..6)].max(usize::from(writes == 0));
        self.rng.shuffle(&mut keys);
        // Rather on a key that is written, as a swap does.
        keys.sort_by_key(|key| !commit.writes.iter().any(|write| write.key() == key));
        for key in keys.iter().take(checks).cloned() {
            let version = self.model.get(&key, self.subject.now());
            let version = version.map(|entry| entry.version.clone());
            let expect = match (self.rng.u8(..10), version) {
                (0..7, Some(version)) => Expect::Version(version),
                (0..7, None) | (7, _) => Expect::Absent,
                (8, _) => Expect::Version(Version::parse("foreign")),
                _ => Expect::Version(Version::from(self.rng.u64(1..50))),
            };
            commit = commit.check(key, expect);
        }
        commit
    }

    fn random_put(&mut self) -> Put {
        let value = match self.rng.u8(..10) {
            0 => json("null"),
            1 => json("\"학\""),
            2 => Json::from_integer(i64::MAX - 2),
            3 => json(r#"{"a":[1.0,{"b":"c"}]}"#),
            4 => json(&format!("\"{}\"", "x".repeat(self.rng.usize(..5_000)))),
            _ => Json::from_integer(self.rng.i64(-100..100)),
        };
        let mut put = Put::new(value);
        if self.rng.u8(..4) == 0 {
            put = put.with_metadata(json(&format!(r#"{{"n":{}}}"#, self.rng.u8(..))));
        }
        // On a server's clock nothing ends while the test runs.
        let least = if self.subject.owns_time() { 5 } else { 3_600 };
        match (self.rng.u8(..10), self.subject.capabilities().expiry) {
            (0..2, ExpirySupport::Supported { ttl_min, .. }) => {
                let ttl = Duration::from_secs(self.rng.u64(least..least + 60)).max(ttl_min);
                put.expiring(Expiry::After(ttl))
            }
            (2, ExpirySupport::Supported { .. }) => {
                let ttl = Duration::from_secs(self.rng.u64(least..least + 60));
                put.expiring(Expiry::At(self.subject.now() + ttl))
            }
            _ => put,
        }
    }

    fn order(&mut self) -> Order {
        if self.subject.is_ordered() && self.rng.bool() {
            Order::Descending
        } else {
            Order::Ascending
        }
    }

    fn key(&mut self) -> Key {
        match self.rng.usize(..KEYS + 2) {
            at if at < KEYS => self.keys[at].clone(),
            _ => self.any_key(),
        }
    }

    fn any_key(&mut self) -> Key {
        let depth = self.rng.usize(1..=3);
        let segments: Vec<&str> = (0..depth).map(|_| self.segment()).collect();
        // One empty segment is no key.
        Key::from_segments(segments).unwrap_or_else(|_| super::key("a"))
    }

    fn segment(&mut self) -> &'static str {
        SEGMENTS[self.rng.usize(..SEGMENTS.len())]
    }

    fn range(&mut self) -> KeyRange {
        let key = self.key();
        let prefix = key.ancestor(1).unwrap_or(Prefix::all());
        match self.rng.u8(..8) {
            0 => KeyRange::all(),
            1 => KeyRange::under(&prefix),
            2 => KeyRange::subtree(&key),
            3 => KeyRange::exactly(&key),
            4 => KeyRange::segment_prefix(&prefix, self.segment()),
            5 => KeyRange::all().after(&key),
            6 => KeyRange::under(&prefix).before(&key),
            _ => {
                let (from, to) = (self.segment(), self.segment());
                KeyRange::between(&prefix, Some(from), self.rng.bool().then_some(to))
            }
        }
    }
}
