//! Copies while others write, and of a store into itself.

use std::sync::{Arc, Mutex};

use keyward_engine::{
    BoxFuture, Capabilities, Commit, Engine, Entry, Outcome, Page, Result, Scan, Stats, Store,
};
use keyward_key::Key;
use keyward_memory::Memory;
use keyward_migrate::{Copied, Copy};

use crate::stores::{content, fill, key, number, put_all};

/// An engine to which somebody else writes once: right before its first scan, or its first commit.
struct Meddled {
    inner: Arc<dyn Engine>,
    before_scan: Mutex<Option<Commit>>,
    before_commit: Mutex<Option<Commit>>,
}

impl Meddled {
    fn store(inner: Arc<dyn Engine>, before_scan: Commit, before_commit: Commit) -> Store {
        let some = |commit: Commit| Mutex::new((!commit.writes.is_empty()).then_some(commit));
        Store::new(Self {
            inner,
            before_scan: some(before_scan),
            before_commit: some(before_commit),
        })
    }

    async fn meddle(&self, when: &Mutex<Option<Commit>>) -> Result<()> {
        let commit = when.lock().unwrap().take();
        match commit {
            Some(commit) => self.inner.commit(commit).await.map(drop),
            None => Ok(()),
        }
    }
}

impl Engine for Meddled {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        self.inner.get_many(keys)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            self.meddle(&self.before_scan).await?;
            self.inner.scan(scan).await
        })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move {
            self.meddle(&self.before_commit).await?;
            self.inner.commit(commit).await
        })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.inner.stats()
    }
}

async fn prune(source: &Store, target: &Store) -> Copied {
    Copy::new(source.clone(), target.clone()).prune(true).run(|_| ()).await.unwrap()
}

#[tokio::test]
async fn a_store_under_two_names_keeps_what_is_written_while_it_is_copied_into_itself() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::new());
    let store = Store::from_arc(engine.clone());
    fill(&store, 10).await;
    let before = content(&store).await;
    // Not in the page of the source any more, and in the page of the target.
    let new = Commit::new().put(key("item:000003:new"), number(1)).put(key("zz"), number(2));
    let again = Meddled::store(engine, new, Commit::new());
    let copied = prune(&store, &again).await;
    assert_eq!(copied, Copied { equal: 10, extra: 2, ..Copied::default() });
    let after = content(&store).await;
    assert_eq!(after.len(), 12);
    assert!(before.iter().all(|(key, held)| after.get(key) == Some(held)));
}

#[tokio::test]
async fn what_is_written_again_before_it_is_removed_stays() {
    let source = Store::new(Memory::new());
    put_all(&source, &["b", "d"]).await;
    let engine: Arc<dyn Engine> = Arc::new(Memory::new());
    put_all(&Store::from_arc(engine.clone()), &["a", "b", "c", "e"]).await;
    let again = Commit::new().put(key("c"), number(7)).delete(key("e"));
    let target = Meddled::store(engine, Commit::new(), again);
    let copied = prune(&source, &target).await;
    assert_eq!(copied, Copied { added: 1, replaced: 1, extra: 2, pruned: 1, ..Copied::default() });
    let there: Vec<Key> = content(&target).await.into_keys().collect();
    assert_eq!(there, [key("b"), key("c"), key("d")]);
    assert_eq!(prune(&source, &target).await.pruned, 1);
}
