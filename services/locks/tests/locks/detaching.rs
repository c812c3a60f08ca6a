//! Locks without a guard, which go from process to process.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Code, Coded, Commit, Engine, Outcome, Store};
use keyward_locks::{Error, Locks, Loss, Mode, Options, Request, Result, Target, Ticket, Tried};
use keyward_memory::Memory;
use keyward_stores::{Place, on_engines, on_every_engine};
use keyward_testkit::{Fault, Faults, FaultyEngine, VirtualClock};

use crate::fixture::{key, locks, number, page, path, take, try_take};

on_every_engine!(
    a_detached_lock_is_renewed_and_released_by_others,
    a_renewal_tells_how_the_lock_was_lost,
    a_resumed_guard_leaves_the_lock_when_it_is_dropped,
    a_lock_below_is_asked_for_by_ticket,
    a_request_asked_again_by_its_name_is_the_same_grant,
    a_named_request_that_is_given_up_leaves_the_line_and_not_the_lock,
    a_commit_depends_on_a_ticket,
);
on_engines!(recoverable: Recoverable;
    a_detached_lock_is_renewed_and_released_by_others,
    a_renewal_tells_how_the_lock_was_lost,
    a_resumed_guard_leaves_the_lock_when_it_is_dropped,
    a_lock_below_is_asked_for_by_ticket,
    a_request_asked_again_by_its_name_is_the_same_grant,
    a_named_request_that_is_given_up_leaves_the_line_and_not_the_lock,
    a_fence_is_refused_where_commits_have_one_key,
);

/// A ticket as it comes out of a text.
fn written_down(ticket: &Ticket) -> Ticket {
    serde_json::from_str(&serde_json::to_string(ticket).unwrap()).unwrap()
}

fn loss(error: Error) -> Loss {
    match error {
        Error::Lost { loss, .. } => loss,
        error => panic!("{error}"),
    }
}

async fn a_detached_lock_is_renewed_and_released_by_others(place: Place) {
    let (ours, theirs) = (locks(&place).await, locks(&place).await);
    let guard = take(&page(&ours), "a").await;
    let (token, left) = (guard.token(), guard.left());
    assert!(left <= guard.ttl() && left > guard.ttl() / 2, "{left:?}");
    let ticket = guard.detach();
    ours.settled().await;
    assert_eq!(written_down(&ticket), ticket);
    assert_eq!((ticket.token(), ticket.root()), (token, page(&ours).key()));
    assert!(try_take(&page(&theirs), "a", Mode::Exclusive).await.is_none(), "it is still held");

    let renewal = theirs.renew(&written_down(&ticket)).await.unwrap();
    assert_eq!(renewal.ttl, Request::TTL_DEFAULT);
    assert!(renewal.left <= renewal.ttl && renewal.left > renewal.ttl / 2);
    theirs.release(&ticket).await.unwrap();
    let next = try_take(&page(&ours), "a", Mode::Exclusive).await.unwrap();
    assert!(next.token() > token);
    // Sent again, it does no harm to the next holder.
    theirs.release(&ticket).await.unwrap();
    assert!(try_take(&page(&theirs), "a", Mode::Exclusive).await.is_none());
    next.release().await.unwrap();
}

async fn a_renewal_tells_how_the_lock_was_lost(place: Place) {
    let locks = locks(&place).await;
    let root = page(&locks);
    let (broken, released) = (take(&root, "a").await.detach(), take(&root, "b").await.detach());
    root.break_lock(&Target::Token(broken.token()), "bob", "stuck").await.unwrap();
    locks.release(&released).await.unwrap();
    let told = Loss::Broken { by: "bob".into(), reason: "stuck".into() };
    assert_eq!(loss(locks.renew(&broken).await.unwrap_err()), told);
    assert_eq!(loss(locks.renew(&released).await.unwrap_err()), Loss::Gone);
    assert_eq!(loss(locks.resume(&released).await.unwrap_err()), Loss::Gone);
    assert_eq!(loss(locks.outrun(&broken).await.unwrap_err()), told);
    // A token alone is nobody's.
    let held = take(&root, "c").await;
    let text = serde_json::json!({"root": "page:7", "id": "made up", "token": held.token()});
    let made_up: Ticket = serde_json::from_value(text).unwrap();
    assert_eq!(loss(locks.renew(&made_up).await.unwrap_err()), Loss::Gone);
    locks.release(&made_up).await.unwrap();
    assert!(try_take(&root, "c", Mode::Exclusive).await.is_none());
    held.release().await.unwrap();
}

async fn a_resumed_guard_leaves_the_lock_when_it_is_dropped(place: Place) {
    let (ours, theirs) = (locks(&place).await, locks(&place).await);
    let ticket = take(&page(&ours), "a").await.detach();
    let resumed = theirs.resume(&ticket).await.unwrap();
    assert_eq!((resumed.token(), resumed.paths()), (ticket.token(), &[path("a")][..]));
    drop(resumed);
    theirs.settled().await;
    ours.renew(&ticket).await.unwrap();
    theirs.resume(&ticket).await.unwrap().release().await.unwrap();
    assert_eq!(loss(ours.renew(&ticket).await.unwrap_err()), Loss::Gone);
}

async fn a_lock_below_is_asked_for_by_ticket(place: Place) {
    let (ours, theirs) = (locks(&place).await, locks(&place).await);
    let ticket = take(&page(&ours), "a").await.detach();
    let below = theirs.under(&ticket, Request::default()).await.unwrap();
    let asked = page(&theirs).ask(&[path("a:b")], Mode::Exclusive, &below).await.unwrap();
    let Tried::Granted(fine) = asked else { panic!("it is the owner's own") };
    let above = page(&theirs).ask(&[path("")], Mode::Exclusive, &below).await;
    assert_eq!(above.unwrap_err().code(), Code::WouldDeadlock);
    fine.release().await.unwrap();
    ours.release(&ticket).await.unwrap();
    let gone = theirs.under(&ticket, Request::default()).await;
    assert_eq!(loss(gone.unwrap_err()), Loss::Gone);
}

async fn a_request_asked_again_by_its_name_is_the_same_grant(place: Place) {
    let (ours, theirs) = (locks(&place).await, locks(&place).await);
    let named = Request::default().named("4f1c").wait_max(Duration::from_secs(30));
    let ask = async |locks: &Locks, text: &str| -> Result<Ticket> {
        let asked = page(locks).ask(&[path(text)], Mode::Exclusive, &named).await?;
        match asked {
            Tried::Granted(guard) => Ok(guard.detach()),
            Tried::Held(holder) => panic!("{holder:?} is in the way"),
        }
    };
    // At once, and again: one lock.
    let (first, second) = tokio::join!(ask(&ours, "a"), ask(&theirs, "a"));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.token(), second.token());
    assert_eq!(ask(&theirs, "a").await.unwrap().token(), first.token());
    assert_eq!(page(&ours).list().await.unwrap().holders.len(), 1);
    assert_eq!(ask(&theirs, "b").await.unwrap_err().code(), Code::IdTaken);
    theirs.release(&second).await.unwrap();
    assert_eq!(page(&ours).list().await.unwrap().holders, []);
    for bad in ["", &"x".repeat(Request::NAME_BYTES_MAX + 1)] {
        let request = Request::default().named(bad);
        let refused = page(&ours).ask(&[path("a")], Mode::Exclusive, &request).await;
        assert_eq!(refused.unwrap_err().code(), Code::Invalid);
    }
}

async fn a_named_request_that_is_given_up_leaves_the_line_and_not_the_lock(place: Place) {
    let (ours, theirs) = (locks(&place).await, locks(&place).await);
    let held = take(&page(&ours), "a").await;
    let (root, asked) = (page(&theirs), [path("a")]);
    let short = Request::default().named("4f1c").wait_max(Duration::from_millis(50));
    let vain = root.ask(&asked, Mode::Exclusive, &short).await.unwrap();
    assert!(matches!(vain, Tried::Held(holder) if holder.token == held.token()));
    assert_eq!(page(&ours).list().await.unwrap().waiters, []);

    let named = Request::default().named("4f1c");
    let waiting = root.ask(&asked, Mode::Exclusive, &named);
    let in_line = async {
        while page(&ours).list().await.unwrap().waiters.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = waiting => panic!("it is held"),
        () = in_line => {}
    }
    theirs.settled().await;
    assert_eq!(page(&ours).list().await.unwrap().waiters, []);
    held.release().await.unwrap();

    let Tried::Granted(guard) = root.ask(&asked, Mode::Exclusive, &named).await.unwrap() else {
        panic!("nobody is in the way")
    };
    let token = guard.token();
    drop(guard);
    theirs.settled().await;
    let holders = page(&ours).list().await.unwrap().holders;
    assert_eq!(holders.iter().map(|holder| holder.token).collect::<Vec<_>>(), [token]);
}

async fn a_commit_depends_on_a_ticket(place: Place) {
    let locks = locks(&place).await;
    let (root, store) = (page(&locks), place.store().await);
    let ticket = take(&root, "a").await.detach();
    let write = async |ticket: &Ticket, value| {
        let mut commit = Commit::new().put(key("k"), number(value));
        commit.checks.push(locks.fence(ticket).unwrap());
        store.commit(commit).await.unwrap()
    };
    assert!(write(&ticket, 1).await.is_applied());
    // Renewing moves nothing: what is on its way may land.
    locks.renew(&ticket).await.unwrap();
    assert!(write(&ticket, 2).await.is_applied());

    let later = locks.outrun(&ticket).await.unwrap();
    assert_eq!(locks.outrun(&ticket).await.unwrap(), later, "its answer may be lost");
    assert_eq!(write(&ticket, 3).await, Outcome::Conflicted { failed: vec![0] });
    assert_eq!(locks.refused(&ticket).await.code(), Code::OldTicket);
    assert!(write(&later, 4).await.is_applied());
    locks.renew(&ticket).await.unwrap();

    root.break_lock(&Target::Token(later.token()), "bob", "stuck").await.unwrap();
    let next = take(&root, "a").await;
    assert_eq!(write(&later, 5).await, Outcome::Conflicted { failed: vec![0] });
    assert!(matches!(loss(locks.refused(&later).await), Loss::Broken { by, .. } if by == "bob"));
    assert_eq!(locks.metrics().fence_refusals.get(), 2);
    assert_eq!(store.get(&key("k")).await.unwrap().unwrap().value.as_integer(), Some(4));
    next.release().await.unwrap();
}

async fn a_fence_is_refused_where_commits_have_one_key(place: Place) {
    let locks = locks(&place).await;
    let ticket = take(&page(&locks), "a").await.detach();
    assert_eq!(locks.fence(&ticket).unwrap_err().code(), Code::Unsupported);
    assert_eq!(locks.outrun(&ticket).await.unwrap(), ticket);
    locks.release(&ticket).await.unwrap();
}

fn on_faulty(faults: Faults) -> (FaultyEngine, Locks) {
    let memory: Arc<dyn Engine> =
        Arc::new(Memory::with(keyward_memory::Options::default(), VirtualClock::new()));
    let engine = FaultyEngine::new(memory, faults);
    let options = Options { seed: Some(1), ..Options::default() };
    let locks = Locks::new(Store::new(engine.clone()), VirtualClock::new(), options).unwrap();
    (engine, locks)
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_nobody_renews_ends_the_lock_for_whoever_wants_it() {
    let (_, locks) = on_faulty(Faults::none());
    let ticket = take(&page(&locks), "a").await.detach();
    tokio::time::sleep(Request::TTL_DEFAULT * 2).await;
    // Nobody wanted it: it is still the same holder's.
    locks.renew(&ticket).await.unwrap();
    tokio::time::sleep(Request::TTL_DEFAULT * 2).await;
    let next = try_take(&page(&locks), "a", Mode::Exclusive).await.unwrap();
    assert_eq!(loss(locks.renew(&ticket).await.unwrap_err()), Loss::Gone);
    assert!(next.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_lands_late_is_refused_after_the_ticket_was_outrun() {
    // Taking the lock is a look and a commit; the write after it is not answered.
    let (engine, locks) = on_faulty(Faults::script([(2, Fault::Late(Duration::MAX))]));
    let ticket = take(&page(&locks), "a").await.detach();
    let write = async |ticket: &Ticket, value| {
        let mut commit = Commit::new().put(key("k"), number(value));
        commit.checks.push(locks.fence(ticket).unwrap());
        locks.store().commit(commit).await
    };
    assert_eq!(write(&ticket, 1).await.unwrap_err().kind().code(), Code::OutcomeUnknown);
    let ticket = locks.outrun(&ticket).await.unwrap();
    assert!(write(&ticket, 2).await.unwrap().is_applied());
    let landed = engine.land().await;
    assert!(matches!(&landed[..], [Ok(outcome)] if !outcome.is_applied()), "{landed:?}");
    let value = locks.store().get(&key("k")).await.unwrap().unwrap().value;
    assert_eq!(value.as_integer(), Some(2));
}
