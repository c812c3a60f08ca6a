//! Asking again, waiting and giving up, with a clock that the test owns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keyward_engine::{Code, Coded};
use keyward_models::{Asked, Error, Models, Options, Provider, Request, Scripted, framed};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::speakers::{SEED, counted, question};

fn overloaded(retry_after: Option<Duration>) -> Error {
    Error::Overloaded { attempts: 1, last: "busy".to_owned(), retry_after }
}

/// Fails so often, and then answers.
fn failing(times: u64, error: Error) -> Scripted {
    let left = AtomicU64::new(times);
    Scripted::new(move |_| {
        let less = |left: u64| left.checked_sub(1);
        match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => Err(error.clone()),
            Err(_) => Ok("yes".to_owned()),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_says_when_is_asked_then_and_not_before() {
    for (asked, least, most) in [(7, 14, 16), (7_200, 120, 120)] {
        let scripted = failing(2, overloaded(Some(Duration::from_secs(asked))));
        let models = Models::new(scripted.clone(), Options::default(), SEED);
        let began = Instant::now();
        let (_, receipt) = models.text(&question()).await.unwrap();
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(least), "{took:?}, seed {SEED}");
        assert!(took <= Duration::from_secs(most) + Duration::from_millis(10), "{took:?}");
        assert_eq!((receipt.attempts, scripted.calls()), (3, 3));
        assert_eq!(u128::from(receipt.duration_ms), took.as_millis());
    }
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_tried_a_bounded_number_of_times() {
    for error in [
        overloaded(None),
        Error::Unreachable { attempts: 1, why: "no route".to_owned() },
        Error::TimedOut { attempts: 1, limit: Duration::from_secs(1) },
    ] {
        let scripted = failing(u64::MAX, error.clone());
        let models = Models::new(scripted.clone(), Options::default(), SEED);
        let began = Instant::now();
        let given_up = models.text(&question()).await.unwrap_err();
        assert_eq!((given_up.code(), scripted.calls()), (error.code(), 5));
        assert!(given_up.to_string().contains("5 attempts"), "{given_up}");
        // Half a second, one, two and four, each less up to a half.
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(3_750) && took <= Duration::from_millis(7_510));
    }
}

#[tokio::test(start_paused = true)]
async fn what_lasts_is_not_tried_again() {
    for error in [
        Error::Refused { status: 401, message: "no".to_owned() },
        Error::Invalid("no".to_owned()),
        Error::Declined { why: "no".to_owned() },
        Error::TooLarge { bytes_max: 1 },
        Error::Malformed { why: "no".to_owned() },
    ] {
        let scripted = failing(1, error.clone());
        let models = Models::new(scripted.clone(), Options::default(), SEED);
        assert_eq!(models.text(&question()).await.unwrap_err(), error);
        assert_eq!(scripted.calls(), 1);
    }
}

/// Never answers, and counts who has stopped waiting.
#[derive(Clone, Default)]
struct Silent {
    asked: Arc<AtomicU64>,
    left: Arc<AtomicU64>,
}

struct Leaving(Arc<AtomicU64>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Provider for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn model(&self) -> &str {
        "none"
    }

    fn ask<'a>(&'a self, _request: &'a Request) -> Asked<'a> {
        Box::pin(async {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let _leaving = Leaving(self.left.clone());
            std::future::pending().await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_answers_is_given_up() {
    let silent = Silent::default();
    let models = Models::new(silent.clone(), Options::default(), SEED);
    let error = models.text(&question()).await.unwrap_err();
    assert_eq!(error, Error::TimedOut { attempts: 5, limit: Duration::from_secs(300) });
    assert_eq!(silent.left.load(Ordering::Relaxed), 5);
}

#[tokio::test(start_paused = true)]
async fn an_ask_that_is_dropped_ends_and_gives_up_its_turn() {
    let silent = Silent::default();
    let options = Options { concurrency_max: 1, ..Options::default() };
    let models = Models::new(silent.clone(), options, SEED);
    for dropped in 1..=3 {
        let asked = tokio::time::timeout(Duration::from_secs(1), models.text(&question())).await;
        assert!(asked.is_err());
        // The next could not even begin if the one before had kept its turn.
        assert_eq!(silent.asked.load(Ordering::Relaxed), dropped);
        assert_eq!(silent.left.load(Ordering::Relaxed), dropped);
    }
}

#[tokio::test(start_paused = true)]
async fn others_have_the_turn_during_a_pause() {
    let scripted = failing(1, overloaded(Some(Duration::from_secs(50))));
    let options = Options { concurrency_max: 1, ..Options::default() };
    let models = Models::new(scripted, options, SEED);
    let question = question();
    let (paused, other) = tokio::join!(models.text(&question), models.text(&question));
    assert!(paused.unwrap().1.duration_ms >= 50_000);
    assert!(other.unwrap().1.duration_ms < 1_000);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_asked_is_refused_before_it_is() {
    let scripted = Scripted::new(|_| Ok("yes".to_owned()));
    let models = Models::new(scripted.clone(), Options::default(), SEED);
    let long = Request { prompt: "x".repeat(Request::BYTES_MAX), ..question() };
    let odd = Request { schema: Some(json!({ "type": "nothing" })), ..question() };
    assert_eq!(models.text(&long).await.unwrap_err().code(), Code::ModelRequestInvalid);
    assert_eq!(models.json::<Value>(&odd).await.unwrap_err().code(), Code::ModelRequestInvalid);
    assert_eq!(scripted.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_the_type_is_shown_to_the_model_too() {
    #[derive(Debug, serde::Deserialize)]
    struct Small {
        n: u8,
    }
    let scripted = Scripted::new(|request| {
        let is_second = framed(&request.prompt).first() == Some(&"{\"n\":300}");
        Ok(if is_second { r#"{"n":30}"# } else { r#"{"n":300}"# }.to_owned())
    });
    let models = Models::new(scripted.clone(), Options::default(), SEED);
    let (small, receipt) = models.json::<Small>(&counted()).await.unwrap();
    assert_eq!((small.n, receipt.attempts, scripted.calls()), (30, 2, 2));
    assert_eq!(models.spent().input_tokens, receipt.input_tokens);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_fails_a_check_is_asked_for_again_within_its_budget() {
    let check = |value: &Value| match value.as_u64() {
        Some(3) => Ok(()),
        _ => Err(format!("{value} is not three")),
    };
    let counting = || {
        let n = AtomicU64::new(0);
        Scripted::new(move |request| {
            let n = n.fetch_add(1, Ordering::Relaxed);
            // What was wrong with the last answer, and with no earlier one.
            let told: Vec<u64> =
                (0..9).filter(|n| request.prompt.contains(&format!("{n} is not three"))).collect();
            assert_eq!(told, n.checked_sub(1).into_iter().collect::<Vec<_>>());
            Ok(n.to_string())
        })
    };
    let scripted = counting();
    let models = Models::new(scripted.clone(), Options::default(), SEED);
    let (three, receipt) = models.checked_json::<Value>(&question(), 3, check).await.unwrap();
    assert_eq!((three, receipt.attempts, scripted.calls()), (json!(3), 4, 4));
    let scripted = counting();
    let models = Models::new(scripted.clone(), Options::default(), SEED);
    let failed = models.checked_json::<Value>(&question(), 2, check).await.unwrap_err();
    assert_eq!((failed.code(), scripted.calls()), (Code::ModelMalformed, 3));
    assert!(failed.to_string().contains("2 is not three"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn without_a_schema_any_json_will_do() {
    let models = Models::new(Scripted::new(|_| Ok("[1, 2]".to_owned())), Options::default(), SEED);
    let (numbers, _) = models.json::<Vec<u8>>(&question()).await.unwrap();
    assert_eq!(numbers, [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn limits_of_nothing_still_ask_once() {
    let scripted = failing(u64::MAX, overloaded(None));
    let options = Options { concurrency_max: 0, attempts_max: 0, ..Options::default() };
    let models = Models::new(scripted.clone(), options, SEED);
    assert!(models.text(&question()).await.unwrap_err().retryable());
    assert_eq!(scripted.calls(), 1);
}
