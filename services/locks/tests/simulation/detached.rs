//! Work under a lock without a guard: nothing but the fence in each commit keeps it right.

use keyward_engine::{Commit, ErrorKind, Put, Store, Tier};
use keyward_key::Key;
use keyward_locks::{Guard, LockPath, Ticket};
use tokio::time::sleep;

use crate::journal::{Fate, appended};
use crate::node::{LEAVES, Node, Shared, TTL, path};

impl Node {
    /// Writes, renews and gives back by ticket, in as many steps as requests to a server would be.
    pub async fn work_detached(&mut self, guard: Guard, journal: &Shared) {
        journal.borrow_mut().count("detached");
        let leaves = leaves(guard.paths());
        let mut ticket = guard.detach();
        for _ in 0..self.rng.usize(..4) {
            self.stand_still(journal);
            let Some(key) = self.rng.choice(&leaves).cloned() else { break };
            match self.write_by_ticket(&ticket, key, journal).await {
                Fate::Done => {}
                // What was sent may still land, but not after the next write.
                Fate::Unknown => match self.locks.outrun(&ticket).await {
                    Ok(later) => {
                        journal.borrow_mut().count("outran");
                        ticket = later;
                    }
                    Err(_) => break,
                },
                Fate::NotDone | Fate::Open => break,
            }
            if self.rng.bool() && self.locks.renew(&ticket).await.is_ok() {
                journal.borrow_mut().count("renewed by ticket");
            }
        }
        // Sometimes nobody gives it back, and its lease ends it.
        if self.rng.u8(..4) > 0 {
            let _ = self.locks.release(&ticket).await;
        }
    }

    /// Nothing but the lock keeps others from writing between the read and the commit.
    async fn write_by_ticket(&mut self, ticket: &Ticket, key: Key, journal: &Shared) -> Fate {
        let store: Store = self.locks.store().clone();
        let Ok(before) = store.get(&key).await else { return Fate::NotDone };
        sleep(TTL.mul_f64(self.rng.f64() * 0.4)).await;
        let write = journal.borrow_mut().begin(key.clone(), ticket.token());
        let put = Put::new(appended(before.as_ref(), ticket.token(), write));
        let mut commit = Commit::new().put(key, put);
        commit.checks.push(self.locks.fence(ticket).unwrap());
        let fate = match store.commit(commit).await {
            Ok(outcome) if outcome.is_applied() => Fate::Done,
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => Fate::Unknown,
            Ok(_) | Err(_) => Fate::NotDone,
        };
        journal.borrow_mut().end(write, fate);
        fate
    }

    /// Whether commits can depend on a ticket.
    pub fn can_detach(&self) -> bool {
        self.world.tier == Tier::Atomic
    }
}

/// What may be written under some paths.
fn leaves(paths: &[LockPath]) -> Vec<Key> {
    let covered = |leaf: &LockPath| paths.iter().any(|path| path == leaf || path.is_above(leaf));
    let leaves = LEAVES.iter().filter(|(_, leaf)| covered(&path(leaf)));
    leaves.map(|(key, _)| Key::parse(key).unwrap()).collect()
}
