//! Claims that wait.

use std::future::{pending, ready};
use std::time::Duration;

use futures_util::FutureExt;
use keyward_queue::Claimant;
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Fixture, claim_ids, message};

on_every_engine!(
    a_claim_waits_for_a_message,
    a_claim_that_is_given_up_while_it_waits_has_claimed_nothing,
    a_claim_waits_no_longer_than_its_patience,
    a_claim_waits_for_the_end_of_a_pause_and_of_a_delay,
);

fn anybody() -> Claimant {
    Claimant::default()
}

async fn a_claim_waits_for_a_message(place: Place) {
    let fixture = Fixture::new(place).await;
    let other = fixture.other();
    let anybody = anybody();
    let mut waiting = Box::pin(other.claim_in_time(&anybody, 5, pending()));
    assert!((&mut waiting).now_or_never().is_none());
    let id = fixture.enqueue("1").await;
    let claims = waiting.await.unwrap();
    assert_eq!(claims.attempts[0].id(), id);
}

async fn a_claim_that_is_given_up_while_it_waits_has_claimed_nothing(place: Place) {
    let fixture = Fixture::new(place).await;
    let other = fixture.other();
    let waiting = tokio::spawn(async move { other.claim_in_time(&anybody(), 5, pending()).await });
    tokio::task::yield_now().await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    let id = fixture.enqueue("1").await;
    assert_eq!(claim_ids(&fixture.queue, 5).await, [id]);
}

async fn a_claim_waits_no_longer_than_its_patience(place: Place) {
    let fixture = Fixture::new(place).await;
    let claims = fixture.queue.claim_in_time(&anybody(), 1, ready(())).await.unwrap();
    assert!(claims.attempts.is_empty());
    // What is there is claimed without any patience.
    fixture.enqueue("1").await;
    let claims = fixture.queue.claim_in_time(&anybody(), 1, ready(())).await.unwrap();
    assert_eq!(claims.attempts.len(), 1);
}

async fn a_claim_waits_for_the_end_of_a_pause_and_of_a_delay(place: Place) {
    let fixture = Fixture::new(place).await;
    fixture.queue.pause("x").await.unwrap();
    let delay = Duration::from_millis(30);
    fixture.queue.enqueue(message("1").delay(delay)).await.unwrap();
    let other = fixture.other();
    let anybody = anybody();
    let mut waiting = Box::pin(other.claim_in_time(&anybody, 5, pending()));
    assert!((&mut waiting).now_or_never().is_none());
    fixture.place.clock().advance(delay * 2);
    assert!((&mut waiting).now_or_never().is_none());
    fixture.queue.resume().await.unwrap();
    assert_eq!(waiting.await.unwrap().attempts.len(), 1);
}
