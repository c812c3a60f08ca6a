//! Faults at every call that an upload makes to its engine.

use std::sync::Arc;
use std::time::Duration;

use keyward_agreements::BodyFormat;
use keyward_agreements::source::{Source, Swept, UploadOptions, Uploads};
use keyward_engine::{Limits, Store};
use keyward_testkit::{Fault, Faults, FaultyEngine, When};

use crate::uploads::{in_memory, keys};
use crate::{page, source};

/// Values so small that an upload takes many commits.
fn small(store: Store) -> Store {
    let limits = Limits { value_bytes_max: 1_000, commit_keys_max: 3, ..*store.limits() };
    store.with_limits(limits)
}

const OLD: [u8; 2_000] = [b'o'; 2_000];
const NEW: [u8; 3_000] = [b'n'; 3_000];

/// Replaces an attachment with a fault at one call, and looks at what is left. Says whether the fault
/// came at all.
async fn replaced_with(call: u64, fault: Fault) -> bool {
    let (memory, _, clock) = in_memory();
    let store = small(Store::new(memory.clone()));
    let healthy = Uploads::new(store.clone(), clock.clone(), UploadOptions::default()).unwrap();
    let (id, policy) = (page("p"), source("s"));
    healthy.put_page(&id, "P", "", BodyFormat::Markdown).await.unwrap();
    let old = healthy.attach(&id, &policy, "s", None, &OLD).await.unwrap();

    let engine = FaultyEngine::new(Arc::new(memory), Faults::script([(call, fault)]));
    let faulty = small(Store::new(engine.clone()));
    let faulty = Uploads::new(faulty, clock.clone(), UploadOptions::default()).unwrap();
    let answered = faulty.attach(&id, &policy, "s", None, &NEW).await;
    if engine.calls() <= call {
        assert!(answered.is_ok());
        return false;
    }
    let look = async |must_be_new: bool| {
        let read = healthy.read(&id, &policy).await.unwrap().unwrap();
        let shown = healthy.page(&id).await.unwrap().unwrap().attachments.remove(0);
        assert_eq!(shown.bytes, Some(read.len() as u64), "{call} {fault:?}");
        if read == OLD[..] {
            assert!(!must_be_new, "{call} {fault:?}: it was acknowledged");
            assert_eq!(shown, old);
        } else {
            assert!(read == NEW[..], "{call} {fault:?}: neither the old nor the new one");
            assert!(shown.created > old.created);
        }
    };
    look(answered.is_ok()).await;
    // What was under way is not swept, whatever became of it,
    healthy.sweep().await.unwrap();
    look(answered.is_ok()).await;
    // and a commit may land when nobody waits for it any more.
    engine.land().await.into_iter().for_each(|landed| drop(landed.unwrap()));
    look(answered.is_ok()).await;
    let again = small(Store::new(engine.revive()));
    let again = Uploads::new(again, clock.clone(), UploadOptions::default()).unwrap();
    again.attach(&id, &policy, "s", None, &NEW).await.unwrap();
    look(true).await;
    // In the end there is one manifest and one content.
    clock.advance(Duration::from_secs(7_200));
    healthy.sweep().await.unwrap();
    assert_eq!(healthy.sweep().await.unwrap(), Swept::default());
    look(true).await;
    assert_eq!(keys(&store).await.len(), 1 + NEW.len().div_ceil(747), "{call} {fault:?}");
    true
}

async fn at_every_call(fault: Fault) {
    let mut call = 0;
    while replaced_with(call, fault).await {
        call += 1;
    }
    assert!(call > 5, "an upload makes several calls, not {call}");
}

#[tokio::test]
async fn a_crash_before_any_call_leaves_the_old_attachment_or_the_new_one() {
    at_every_call(Fault::Crash(When::Before)).await;
}

#[tokio::test]
async fn a_crash_after_any_call_leaves_the_old_attachment_or_the_new_one() {
    at_every_call(Fault::Crash(When::After)).await;
}

#[tokio::test]
async fn a_failure_of_any_call_leaves_the_old_attachment_or_the_new_one() {
    at_every_call(Fault::Fail).await;
}

#[tokio::test]
async fn an_answer_that_is_lost_leaves_the_old_attachment_or_the_new_one() {
    at_every_call(Fault::Unanswered(When::Before)).await;
    at_every_call(Fault::Unanswered(When::After)).await;
}

#[tokio::test]
async fn a_commit_that_lands_late_leaves_the_old_attachment_or_the_new_one() {
    at_every_call(Fault::Late(Duration::MAX)).await;
}

#[tokio::test]
async fn an_upload_under_way_is_not_swept_before_it_is_given_up() {
    let (memory, uploads, clock) = in_memory();
    let store = Store::new(memory.clone());
    let (id, policy) = (page("p"), source("s"));
    uploads.put_page(&id, "P", "", BodyFormat::Markdown).await.unwrap();
    // A read, the pieces, a read, and the manifest, before which it ends.
    let engine = FaultyEngine::new(Arc::new(memory), Faults::crash_at(3, When::Before));
    let faulty = Uploads::new(Store::new(engine), clock.clone(), UploadOptions::default()).unwrap();
    faulty.attach(&id, &policy, "s", None, b"new").await.unwrap_err();
    assert_eq!(keys(&store).await.len(), 3, "the manifest, the note and a piece");
    clock.advance(Duration::from_secs(3_599));
    assert_eq!(uploads.sweep().await.unwrap(), Swept::default());
    clock.advance(Duration::from_secs(2));
    assert_eq!(uploads.sweep().await.unwrap(), Swept { contents: 1, chunks: 1 });
    assert_eq!(keys(&store).await, ["upload:p"]);
}
