//! A record and a message in one commit, by a process that dies, or hears no answer, at any call.

use std::sync::Arc;

use keyward::queue::{Enqueued, Message, Options, Queue};
use keyward::records::{Caller, Draft, Error, Records, Space, Written};
use keyward::schema::Schema;
use keyward::{Commit, Json, Key, Store};
use keyward_memory::Memory;
use keyward_testkit::{Fault, Faults, FaultyEngine, TestClock, When};

const SCHEMA: &str = r#"
[stores.app]
[spaces.people]
key = "user:{user}"
ownership = "user"
[spaces.people.indexes.by_email]
field = "email"
type = "text"
unique = true
scope = "shared"
"#;

struct Process {
    people: Space,
    mails: Queue,
    ada: Key,
}

impl Process {
    fn on(store: Store, clock: &TestClock) -> Self {
        let schema = Schema::parse(SCHEMA, "schema.toml").unwrap();
        let records = Records::open(store.clone(), schema.spaces, clock.clone()).unwrap();
        let people = records.space("people", &Caller::user("ada")).unwrap();
        let options = Options { seed: Some(7), ..Options::default() };
        let mails = Queue::new(store, "mails", clock.clone(), options).unwrap();
        Self { people, mails, ada: Key::parse("user:ada").unwrap() }
    }

    /// Makes a person, and enqueues what welcomes them.
    async fn welcome(&self) -> Result<Written, Box<dyn std::error::Error>> {
        let message = Message::new(Json::parse(r#"{"to":"ada"}"#)?).id("welcome-ada");
        let (rider, fates) = self.mails.enqueue_in(Commit::new(), vec![message]).await?;
        let is_known = matches!(fates[0], Enqueued::Duplicate { .. });
        let draft = Draft::new(Json::parse(r#"{"email":"ada@example.org"}"#)?);
        let people = self.people.clone().with_rider(rider);
        let written = people.create(&self.ada, draft).await?;
        assert_eq!(is_known, !written.is_accepted(), "one without the other: {written:?}");
        Ok(written)
    }

    /// How many people and how many messages there are.
    async fn found(&self) -> (usize, u64) {
        let people = self.people.get(&self.ada).await.unwrap().iter().count();
        (people, self.mails.stats().await.unwrap().ready.count)
    }
}

#[tokio::test]
async fn a_record_and_its_message_are_both_there_or_neither() {
    let setting = |faults: Faults| {
        let clock = TestClock::new();
        let memory = Memory::with(keyward_memory::Options::default(), clock.clone());
        (FaultyEngine::new(Arc::new(memory), faults), clock)
    };
    let calls = {
        let (engine, clock) = setting(Faults::none());
        let process = Process::on(Store::new(engine.clone()), &clock);
        assert!(process.welcome().await.unwrap().is_accepted());
        assert_eq!(process.found().await, (1, 1));
        engine.calls()
    };
    let mut both = 0;
    for call in 0..calls {
        for fault in [
            Fault::Crash(When::Before),
            Fault::Crash(When::After),
            Fault::Unanswered(When::Before),
            Fault::Unanswered(When::After),
        ] {
            let (engine, clock) = setting(Faults::script([(call, fault)]));
            let told = Process::on(Store::new(engine.clone()), &clock).welcome().await;
            let looking = Process::on(Store::from_arc(engine.inner()), &clock);
            let found = looking.found().await;
            let context = format!("{fault:?} at call {call}: {told:?}, {found:?}");
            assert!([(0, 0), (1, 1)].contains(&found), "{context}");
            both += u64::from(found == (1, 1) && told.is_err());
            // The next process does it again, and it is done once.
            let again = looking.welcome().await.unwrap();
            assert_eq!(again.is_accepted(), found == (0, 0), "{context}");
            assert_eq!(looking.found().await, (1, 1), "{context}");
        }
    }
    assert!(both > 0, "an answer was lost of a commit that was done");
}

#[tokio::test]
async fn a_message_that_came_to_be_meanwhile_refuses_the_record_and_a_new_rider_does_not() {
    let clock = TestClock::new();
    let memory = Memory::with(keyward_memory::Options::default(), clock.clone());
    let process = Process::on(Store::new(memory), &clock);
    let message = || Message::new(Json::from_integer(1)).id("m");
    let (rider, _) = process.mails.enqueue_in(Commit::new(), vec![message()]).await.unwrap();
    process.mails.enqueue(message()).await.unwrap();
    let draft = Draft::new(Json::parse(r#"{"email":"a"}"#).unwrap());
    let late = process.people.clone().with_rider(rider);
    let refused = late.put(&process.ada, draft.clone()).await.unwrap_err();
    assert!(matches!(refused, Error::RiderRefused { .. }), "{refused}");
    assert_eq!(process.found().await, (0, 1));
    let (rider, _) = process.mails.enqueue_in(Commit::new(), vec![message()]).await.unwrap();
    let fresh = process.people.clone().with_rider(rider);
    assert!(fresh.put(&process.ada, draft).await.unwrap().is_accepted());
    assert_eq!(process.found().await, (1, 1));
}
