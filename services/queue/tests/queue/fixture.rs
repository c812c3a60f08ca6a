//! A queue in a place.

use std::time::Duration;

use keyward_engine::{Json, Scan, Store};
use keyward_key::{KeyRange, Prefix};
use keyward_queue::{Attempt, Jobs, Message, Options, Queue, Retry};
use keyward_stores::Place;

pub const LEASE: Duration = Duration::from_millis(400);

pub struct Fixture {
    pub place: Place,
    pub store: Store,
    pub queue: Queue,
}

impl Fixture {
    pub async fn new(place: Place) -> Self {
        let store = place.store().await;
        let queue = Queue::new(store.clone(), "q", place.clock().clone(), options()).unwrap();
        Self { place, store, queue }
    }

    /// The same queue, as another process has it.
    pub fn other(&self) -> Queue {
        let options = Options { holder: "other".into(), ..options() };
        Queue::new(self.store.clone(), "q", self.place.clock().clone(), options).unwrap()
    }

    pub fn jobs(&self) -> Jobs {
        Jobs::new(self.store.clone(), self.place.clock().clone(), options()).unwrap()
    }

    pub async fn enqueue(&self, text: &str) -> String {
        self.queue.enqueue(message(text)).await.unwrap().id().to_owned()
    }

    pub async fn claim_one(&self) -> Attempt {
        one(&self.queue).await
    }

    /// Lets time pass until something is so: by the test's clock, and on servers by their own.
    pub async fn until<T>(&self, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        for _ in 0..2_000 {
            if let Some(found) = look().await {
                return found;
            }
            self.place.clock().advance(Duration::from_millis(50));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it never was so")
    }

    /// Claims one message, as soon as there is one.
    pub async fn claim_in_time(&self, queue: &Queue) -> Attempt {
        self.until(async || queue.claim(1).await.unwrap().attempts.pop()).await
    }

    /// The keys below a prefix.
    pub async fn keys(&self, prefix: &str) -> Vec<String> {
        let range = KeyRange::under(&Prefix::parse(prefix).unwrap());
        let page = self.store.scan(&Scan::new(range).limit(1_000)).await.unwrap();
        page.rows.into_iter().map(|row| row.key.to_string()).collect()
    }
}

pub fn options() -> Options {
    Options {
        lease: LEASE,
        holder: "test".into(),
        retry: Retry {
            attempts_max: 3,
            backoff_min: Duration::from_millis(200),
            backoff_max: Duration::from_secs(2),
        },
        ..Options::default()
    }
}

pub fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

pub fn message(text: &str) -> Message {
    Message::new(json(text))
}

pub async fn one(queue: &Queue) -> Attempt {
    let mut claims = queue.claim(1).await.unwrap();
    assert!(!claims.paused);
    claims.attempts.pop().expect("something is ready")
}

pub async fn claim_ids(queue: &Queue, max: usize) -> Vec<String> {
    let claims = queue.claim(max).await.unwrap();
    claims.attempts.iter().map(|attempt| attempt.id().to_owned()).collect()
}
