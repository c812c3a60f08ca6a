use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keyward_engine::{
    BoxFuture, Consistency, Document, DocumentLimits, DocumentList, DocumentPage, Documents, Error,
    ErrorKind, Json, Result, Swapped,
};

use crate::{Fault, Faults, When};

/// A call to a database of documents that may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentCall {
    /// `get_many`.
    Get,
    /// `list`.
    List,
    /// `put`.
    Put,
    /// `delete`.
    Delete,
}

/// A client of a database of documents whose calls go wrong by plan, as those of
/// [`FaultyEngine`](crate::FaultyEngine) do. Clones are the same client.
#[derive(Clone)]
pub struct FaultyDocuments {
    inner: Arc<dyn Documents>,
    script: Arc<Mutex<Script>>,
    /// Whether this client is dead. Clients of one database have one each.
    crashed: Arc<AtomicBool>,
}

struct Script {
    faults: Faults,
    trace: Vec<(DocumentCall, Fault)>,
}

/// A swap that lands later, whatever became of its client.
enum Late {
    Put(String, Json, Option<Document>),
    Delete(Document),
}

impl FaultyDocuments {
    /// A client of a database, with faults to come.
    pub fn new(inner: Arc<dyn Documents>, faults: Faults) -> Self {
        let script = Arc::new(Mutex::new(Script { faults, trace: Vec::new() }));
        Self { inner, script, crashed: Arc::default() }
    }

    /// Another client of the same database, alive, as of a process started after this one crashed. The
    /// plan and the count of calls go on.
    #[must_use]
    pub fn revive(&self) -> Self {
        Self { crashed: Arc::default(), ..self.clone() }
    }

    /// Whether this client is dead.
    pub fn is_crashed(&self) -> bool {
        self.crashed.load(Ordering::SeqCst)
    }

    /// How many calls were made, by all clients. Calls of a dead client do not count.
    pub fn calls(&self) -> u64 {
        self.script().trace.len() as u64
    }

    /// What happened to each call, in order.
    pub fn trace(&self) -> Vec<(DocumentCall, Fault)> {
        self.script().trace.clone()
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn crash(&self) {
        self.crashed.store(true, Ordering::SeqCst);
    }

    fn alive(&self) -> Result<()> {
        if self.is_crashed() { Err(dead()) } else { Ok(()) }
    }

    fn begin(&self, call: DocumentCall) -> Result<Fault> {
        self.alive()?;
        let mut script = self.script();
        let number = script.trace.len() as u64;
        let fault = script.faults.next(number);
        script.trace.push((call, fault));
        Ok(fault)
    }

    async fn swap(
        &self,
        call: DocumentCall,
        late: impl FnOnce() -> Late,
        act: impl Future<Output = Result<Swapped>>,
    ) -> Result<Swapped> {
        let fault = self.begin(call)?;
        if let Fault::Late(after) = fault {
            self.send_late(late(), after);
        }
        self.answered(call, fault, act).await
    }

    fn send_late(&self, late: Late, after: Duration) {
        let inner = self.inner.clone();
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            // Nobody waits for its answer.
            let _ = match late {
                Late::Put(id, fields, replaced) => inner.put(&id, &fields, replaced.as_ref()).await,
                Late::Delete(removed) => inner.delete(&removed).await,
            };
        });
    }

    async fn answered<T>(
        &self,
        call: DocumentCall,
        fault: Fault,
        act: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match fault {
            Fault::None => act.await,
            Fault::Fail => Err(Error::new(ErrorKind::Unavailable, "injected failure")),
            Fault::Unanswered(When::Before) | Fault::Late(_) => Err(unanswered(call)),
            Fault::Unanswered(When::After) => {
                // Whether it worked is just what the caller does not learn.
                let _ = act.await;
                Err(unanswered(call))
            }
            Fault::Crash(When::Before) => {
                self.crash();
                Err(dead())
            }
            Fault::Crash(When::After) => {
                let _ = act.await;
                self.crash();
                Err(unanswered(call))
            }
            Fault::Delay(When::Before, time) => {
                tokio::time::sleep(time).await;
                self.alive()?;
                act.await
            }
            Fault::Yield(When::Before, times) => {
                pause(times).await;
                self.alive()?;
                act.await
            }
            Fault::Delay(When::After, time) => {
                let answer = act.await;
                tokio::time::sleep(time).await;
                if self.is_crashed() { Err(unanswered(call)) } else { answer }
            }
            Fault::Yield(When::After, times) => {
                let answer = act.await;
                pause(times).await;
                if self.is_crashed() { Err(unanswered(call)) } else { answer }
            }
        }
    }
}

async fn pause(times: u8) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

fn dead() -> Error {
    Error::new(ErrorKind::Unavailable, "crashed")
}

/// The error of a call whose answer did not arrive.
fn unanswered(call: DocumentCall) -> Error {
    let kind = match call {
        DocumentCall::Put | DocumentCall::Delete => ErrorKind::OutcomeUnknown,
        DocumentCall::Get | DocumentCall::List => ErrorKind::Unavailable,
    };
    Error::new(kind, "injected loss of the answer")
}

impl Documents for FaultyDocuments {
    fn limits(&self) -> &DocumentLimits {
        self.inner.limits()
    }

    fn get_many<'a>(&'a self, ids: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Document>>>> {
        Box::pin(async move {
            let fault = self.begin(DocumentCall::Get)?;
            self.answered(DocumentCall::Get, fault, self.inner.get_many(ids)).await
        })
    }

    fn put<'a>(
        &'a self,
        id: &'a str,
        fields: &'a Json,
        replaced: Option<&'a Document>,
    ) -> BoxFuture<'a, Result<Swapped>> {
        let late = move || Late::Put(id.to_owned(), fields.clone(), replaced.cloned());
        Box::pin(self.swap(DocumentCall::Put, late, self.inner.put(id, fields, replaced)))
    }

    fn delete<'a>(&'a self, removed: &'a Document) -> BoxFuture<'a, Result<Swapped>> {
        let late = move || Late::Delete(removed.clone());
        Box::pin(self.swap(DocumentCall::Delete, late, self.inner.delete(removed)))
    }

    fn list<'a>(&'a self, list: &'a DocumentList) -> BoxFuture<'a, Result<DocumentPage>> {
        Box::pin(async move {
            let fault = self.begin(DocumentCall::List)?;
            self.answered(DocumentCall::List, fault, self.inner.list(list)).await
        })
    }

    fn compare(&self) -> bool {
        self.inner.compare()
    }

    fn consistency(&self) -> Consistency {
        self.inner.consistency()
    }

    fn list_lag(&self) -> Option<Duration> {
        self.inner.list_lag()
    }

    fn prepare(&self, create: bool) -> BoxFuture<'_, Result<Vec<String>>> {
        self.inner.prepare(create)
    }
}
