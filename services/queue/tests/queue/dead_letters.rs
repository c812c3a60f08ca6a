//! Failing, dying, and coming back.

use keyward_queue::{Ended, Enqueued, Failure, Listing, Requeued};
use keyward_stores::{Place, on_databases, on_every_engine};

use crate::fixture::{Fixture, claim_ids, message};

on_every_engine!(
    a_message_that_fails_too_often_is_a_dead_letter_with_its_history,
    a_message_that_kills_its_workers_is_a_dead_letter_too,
    a_permanent_failure_is_a_dead_letter_at_once,
    dead_letters_are_put_back_one_all_or_some,
    dead_letters_are_dropped_for_good,
);
on_databases!(a_message_that_fails_too_often_is_a_dead_letter_with_its_history);

async fn a_message_that_fails_too_often_is_a_dead_letter_with_its_history(place: Place) {
    let fixture = Fixture::new(place).await;
    let id = fixture.enqueue(r#"{"bad":true}"#).await;
    for number in 1..=3_u32 {
        let attempt = fixture.claim_in_time(&fixture.queue).await;
        assert_eq!(attempt.number(), number);
        let failure = Failure::new(format!("reason {number}"));
        assert_eq!(attempt.fail(failure).await.unwrap(), Ended::Accepted);
        if number < 3 {
            // Not at once.
            assert!(claim_ids(&fixture.queue, 1).await.is_empty());
            let message = fixture.queue.message(&id).await.unwrap().unwrap();
            assert_eq!(message.retry_count, number);
            assert_eq!(message.error.as_deref(), Some(&*format!("reason {number}")));
        }
    }
    assert!(fixture.queue.message(&id).await.unwrap().is_none());
    let dead = fixture.queue.dead_letter(&id).await.unwrap().unwrap();
    assert_eq!((dead.retry_count, dead.reason.as_str()), (3, "reason 3"));
    assert_eq!(dead.payload.as_str(), r#"{"bad":true}"#);
    let errors: Vec<&str> = dead.history.iter().map(|past| past.error.as_str()).collect();
    assert_eq!(errors, ["reason 1", "reason 2", "reason 3"]);
    assert_eq!(fixture.keys("dead-letter").await, [format!("dead-letter:q:{id}")]);
    assert!(fixture.keys("system").await.is_empty());
}

async fn a_message_that_kills_its_workers_is_a_dead_letter_too(place: Place) {
    let fixture = Fixture::new(place).await;
    let id = fixture.enqueue("1").await;
    for number in 1..=3 {
        let attempt = fixture.claim_in_time(&fixture.queue).await;
        assert_eq!(attempt.number(), number);
        // The worker dies here.
    }
    let dead = fixture
        .until(async || {
            assert!(claim_ids(&fixture.queue, 1).await.is_empty());
            fixture.queue.dead_letter(&id).await.unwrap()
        })
        .await;
    assert_eq!(dead.history.len(), 3);
    assert!(dead.reason.contains("no sign of life"), "{}", dead.reason);
    assert!(fixture.keys("queue").await.is_empty());
}

async fn a_permanent_failure_is_a_dead_letter_at_once(place: Place) {
    let fixture = Fixture::new(place).await;
    let id = fixture.enqueue("1").await;
    fixture.claim_one().await.fail(Failure::permanent("nonsense")).await.unwrap();
    let dead = fixture.queue.dead_letter(&id).await.unwrap().unwrap();
    assert_eq!((dead.reason.as_str(), dead.retry_count), ("nonsense", 1));
}

async fn bury(fixture: &Fixture, id: &str, reason: &str) {
    fixture.queue.enqueue(message("1").id(id)).await.unwrap();
    fixture.claim_one().await.fail(Failure::permanent(reason)).await.unwrap();
}

async fn dead_letters_are_put_back_one_all_or_some(place: Place) {
    let fixture = Fixture::new(place).await;
    let Fixture { queue, .. } = &fixture;
    for (id, reason) in [("a", "timeout"), ("b", "timeout"), ("c", "broken"), ("d", "broken")] {
        bury(&fixture, id, reason).await;
    }
    assert_eq!(queue.requeue("a").await.unwrap(), Requeued::Done);
    assert_eq!(queue.requeue("a").await.unwrap(), Requeued::Unknown);
    assert_eq!(queue.requeue_where(|dead| dead.reason.contains("time")).await.unwrap(), 1);
    let claims = queue.claim(9).await.unwrap().attempts;
    assert_eq!(claims.len(), 2);
    // Attempts are counted anew; what happened before is still told.
    assert_eq!((claims[0].number(), claims[0].history().len()), (1, 1));
    // The same id while its dead letter is there is the same message.
    let again = queue.enqueue(message("1").id("c")).await.unwrap();
    assert_eq!(again, Enqueued::Duplicate { id: "c".into() });
    assert_eq!(queue.requeue_where(|_| true).await.unwrap(), 2);
    assert_eq!(claim_ids(queue, 9).await.len(), 2);
    assert!(queue.dead_letters(&Listing::default()).await.unwrap().is_empty());
}

async fn dead_letters_are_dropped_for_good(place: Place) {
    let fixture = Fixture::new(place).await;
    let Fixture { queue, .. } = &fixture;
    for id in ["a", "b", "c"] {
        bury(&fixture, id, "x").await;
    }
    assert!(queue.drop_dead_letter("a").await.unwrap());
    assert!(!queue.drop_dead_letter("a").await.unwrap());
    assert_eq!(queue.drop_dead_letters_where(|dead| dead.id == "b").await.unwrap(), 1);
    assert_eq!(fixture.keys("dead-letter").await, ["dead-letter:q:c"]);
}
