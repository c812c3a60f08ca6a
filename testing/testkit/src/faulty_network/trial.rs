use keyward_engine::{Commit, Entry, ErrorKind, Expect, Json, Outcome, Put, Result};
use keyward_key::Key;

use super::network::{Network, key};

/// A kind of commit that must succeed on a network that works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Put,
    Overwrite,
    Delete,
    /// Checks that the key is absent.
    Create,
    /// Checks the key's version.
    Swap,
    /// Checks the key's version, and deletes it.
    Remove,
    /// Writes several keys.
    Several,
}

impl Kind {
    /// The kinds that an engine can do.
    pub(super) fn of(network: &Network) -> Vec<Self> {
        let mut kinds = vec![Self::Put, Self::Overwrite, Self::Delete];
        if network.can_compare() {
            kinds.extend([Self::Create, Self::Swap, Self::Remove]);
        }
        if network.can_write_together(3) {
            kinds.push(Self::Several);
        }
        kinds
    }
}

/// A commit, and the entries of its keys before and after it.
pub(super) struct Trial {
    name: String,
    pub(super) commit: Commit,
    /// The written keys, in the order of the writes.
    keys: Vec<Key>,
    before: Vec<Option<Entry>>,
    after: Vec<Option<Json>>,
}

impl Trial {
    const BEFORE: i64 = 1;
    const AFTER: i64 = 2;

    /// Prepares a commit of a kind, on keys that no other trial uses.
    pub(super) async fn new(network: &Network, kind: Kind, name: &str) -> Self {
        let name = format!("{kind:?} {name}");
        let first = Key::from_segments([&name, "first"]).unwrap();
        let value = || Put::new(Json::from_integer(Self::AFTER));
        let done = || Some(Json::from_integer(Self::AFTER));
        let (commit, keys, before, after) = match kind {
            Kind::Put | Kind::Create => {
                let commit = Commit::new().put(first.clone(), value());
                let commit = match kind {
                    Kind::Create => commit.check(first.clone(), Expect::Absent),
                    _ => commit,
                };
                (commit, vec![first], vec![None], vec![done()])
            }
            Kind::Overwrite | Kind::Delete | Kind::Swap | Kind::Remove => {
                let entry = network.prepare(&first, Self::BEFORE).await;
                let (commit, after) = match kind {
                    Kind::Overwrite | Kind::Swap => {
                        (Commit::new().put(first.clone(), value()), done())
                    }
                    _ => (Commit::new().delete(first.clone()), None),
                };
                let commit = match kind {
                    Kind::Swap | Kind::Remove => {
                        commit.check(first.clone(), Expect::Version(entry.version.clone()))
                    }
                    _ => commit,
                };
                (commit, vec![first], vec![Some(entry)], vec![after])
            }
            Kind::Several => {
                let second = Key::from_segments([&name, "second"]).unwrap();
                let third = Key::from_segments([&name, "third"]).unwrap();
                let old = network.prepare(&second, Self::BEFORE).await;
                let gone = network.prepare(&third, Self::BEFORE).await;
                let mut commit = Commit::new()
                    .put(first.clone(), value())
                    .put(second.clone(), value())
                    .delete(third.clone());
                if network.can_compare() {
                    commit = commit
                        .check(first.clone(), Expect::Absent)
                        .check(third.clone(), Expect::Version(gone.version.clone()));
                }
                let before = vec![None, Some(old), Some(gone)];
                (commit, vec![first, second, third], before, vec![done(), done(), None])
            }
        };
        Self { name, commit, keys, before, after }
    }

    /// Commits, and sees that what was said about it is so.
    pub(super) async fn run(&self, network: &Network) -> Result<Outcome> {
        let said = network.store.commit(self.commit.clone()).await;
        self.judge(network, &said).await;
        said
    }

    /// Sees that what was said about the commit is so.
    pub(super) async fn judge(&self, network: &Network, said: &Result<Outcome>) {
        let now = network.truth(&self.keys).await;
        let values = now.iter().map(|entry| entry.as_ref().map(|entry| entry.value.clone()));
        let is_done = values.eq(self.after.iter().cloned());
        let is_undone = now == self.before;
        let described = || format!("{}: {said:?}, but there is {now:?}", self.described(network));
        assert!(is_done || is_undone, "done in part: {}", described());
        match said {
            Ok(Outcome::Applied { versions, .. }) => {
                assert!(is_done, "acknowledged and not there: {}", described());
                let there = now.iter().map(|entry| entry.as_ref().map(|entry| &entry.version));
                assert!(
                    there.eq(versions.iter().map(Option::as_ref)),
                    "other versions: {}",
                    described()
                );
            }
            Ok(Outcome::Conflicted { .. }) => {
                panic!("called a conflict, and nobody else wrote: {}", described())
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                assert!(is_undone, "called not done, and it was: {}", described());
            }
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {}
            Err(_) => panic!("neither Unavailable nor OutcomeUnknown: {}", described()),
        }
    }

    fn described(&self, network: &Network) -> String {
        format!("{}, after\n  {}\n", self.name, network.log())
    }
}

/// A commit that must conflict: somebody else was first.
pub(super) async fn conflicting(network: &Network, kind: Kind, name: &str) -> (Key, Commit) {
    let contested = key(&format!("contested:{kind:?}:{name}"));
    let old = network.prepare(&contested, 1).await;
    let expect = match kind {
        Kind::Create => Expect::Absent,
        _ => {
            network.prepare(&contested, 2).await;
            Expect::Version(old.version)
        }
    };
    // The same value as is there: only what an engine itself adds tells the two writes apart.
    let value = network.truth(std::slice::from_ref(&contested)).await[0].clone().unwrap().value;
    let commit = Commit::new().check(contested.clone(), expect);
    (contested.clone(), commit.put(contested, Put::new(value)))
}
