//! Who accessed what.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use keyward_agents::{Actor, Agents, Namespace, Options};
use keyward_engine::{Code, Coded, Json, Store, Tier};
use keyward_memory::Memory;
use keyward_stores::{Place, on_engines};
use keyward_testkit::{Fault, Faults, FaultyEngine, TestClock, When};

use crate::fixture::{Fixture, put, set};

on_engines!(
    memory: Memory, recoverable: Recoverable, embedded: Embedded, postgres: Postgres;
    reads_by_agents_of_several_processes_are_counted_exactly,
    an_entry_that_was_made_again_begins_at_zero,
    tracking_moves_neither_version_nor_time_of_update,
);

const SECOND: Duration = Duration::from_secs(1);

async fn reads_by_agents_of_several_processes_are_counted_exactly(place: Place) {
    const PROCESSES: usize = 3;
    const READS: usize = 100;
    let fixture = Fixture::new(place).await;
    for key in ["a", "b"] {
        put(&fixture.namespace("notes"), key, "1").await;
    }
    let mut tasks = Vec::new();
    for process in 0..PROCESSES {
        let agents = fixture.again().await;
        tasks.push(tokio::spawn(async move {
            let ada = agents.user("ada", Actor::agent(format!("agent-{process}")));
            let notes = ada.use_namespace("notes").unwrap();
            let nobody = agents.user("ada", Actor::nobody()).use_namespace("notes").unwrap();
            for read in 0..READS {
                assert!(notes.get("a").await.unwrap().is_some());
                assert!(nobody.get("a").await.unwrap().is_some());
                assert_eq!(notes.get_many(&["b", "none"]).await.unwrap().len(), 2);
                // Racing with the flushes of the others.
                if read % 7 == process {
                    agents.flush().await.unwrap();
                }
            }
            agents.close().await.unwrap();
            assert_eq!(agents.gathered().accesses, 0);
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let nobody = fixture.again().await.user("ada", Actor::nobody());
    let nobody = nobody.use_namespace("notes").unwrap();
    for key in ["a", "b"] {
        let access = nobody.entry(key).await.unwrap().unwrap().access;
        assert_eq!(access.count, (PROCESSES * READS) as u64, "{key}");
        assert!(access.agent.unwrap().starts_with("agent-"));
    }
}

async fn an_entry_that_was_made_again_begins_at_zero(place: Place) {
    let fixture = Fixture::new(place).await;
    let other = fixture.again().await;
    let notes = fixture.namespace("notes");
    let others = other.user("ada", Actor::agent("other")).use_namespace("notes").unwrap();
    for (key, other_first) in [("k1", true), ("k2", false)] {
        put(&notes, key, "1").await;
        for _ in 0..3 {
            assert!(notes.get(key).await.unwrap().is_some());
            assert!(others.get(key).await.unwrap().is_some());
        }
        // What this one read is written; what the other one read is not yet.
        fixture.agents.flush().await.unwrap();
        let row = format!("system:access:agents:ada:notes:{key}").parse().unwrap();
        assert!(fixture.store().get(&row).await.unwrap().is_some());
        assert!(notes.delete(key).await.unwrap());
        assert_eq!(fixture.store().get(&row).await.unwrap(), None);
        fixture.place.clock().advance(SECOND);
        put(&notes, key, "2").await;
        assert!(notes.get(key).await.unwrap().is_some());
        let both = [&other, &fixture.agents];
        for agents in if other_first { both } else { [both[1], both[0]] } {
            agents.close().await.unwrap();
        }
        let entry = others.entry(key).await.unwrap().unwrap();
        // That one read, and this look at it.
        assert_eq!(entry.access.count, 2, "{key}");
    }
}

async fn tracking_moves_neither_version_nor_time_of_update(place: Place) {
    let fixture = Fixture::new(place).await;
    let notes = fixture.namespace("notes");
    put(&notes, "k", "1").await;
    let before = notes.entry("k").await.unwrap().unwrap();
    fixture.place.clock().advance(SECOND);
    for _ in 0..5 {
        assert!(notes.get("k").await.unwrap().is_some());
        fixture.agents.flush().await.unwrap();
    }
    let after = notes.entry("k").await.unwrap().unwrap();
    assert_eq!((&after.version, &after.updated_at), (&before.version, &before.updated_at));
    assert_eq!((before.access.count, after.access.count), (1, 7));
    assert_eq!(after.access.agent.as_deref(), Some("tester"));
    assert_eq!(after.access.at.as_deref(), Some("2026-01-01T00:00:01.000000Z"));
    // A write is an access that does not count.
    let writer = fixture.agents.user("ada", Actor::agent("writer")).use_namespace("notes").unwrap();
    put(&writer, "k", "2").await;
    let nobody = fixture.agents.user("ada", Actor::nobody()).use_namespace("notes").unwrap();
    let access = nobody.entry("k").await.unwrap().unwrap().access;
    assert_eq!((access.count, access.agent.as_deref()), (7, Some("writer")));
}

fn faulty(tier: Tier) -> (FaultyEngine, Agents, Memory, TestClock) {
    faulty_by(tier, Faults::none())
}

fn faulty_by(tier: Tier, faults: Faults) -> (FaultyEngine, Agents, Memory, TestClock) {
    let clock = TestClock::new();
    let memory = Memory::with(keyward_memory::Options::tier(tier), clock.clone());
    let engine = FaultyEngine::new(Arc::new(memory.clone()), faults);
    let store = Store::new(engine.clone());
    let agents = Agents::alone(store, Options::default(), clock.clone()).unwrap();
    (engine, agents, memory, clock)
}

fn notes(agents: &Agents, agent: &str) -> Namespace {
    agents.user("ada", Actor::agent(agent)).use_namespace("notes").unwrap()
}

/// What a process that comes after all others sees.
async fn count(memory: &Memory, clock: &TestClock) -> u64 {
    let store = Store::new(memory.clone());
    let agents = Agents::alone(store, Options::default(), clock.clone()).unwrap();
    let nobody = agents.user("ada", Actor::nobody()).use_namespace("notes").unwrap();
    nobody.entry("k").await.unwrap().unwrap().access.count
}

/// A read makes one call to the engine, and nothing else.
#[tokio::test]
async fn counting_a_read_asks_the_store_for_nothing() {
    let (engine, agents, ..) = faulty(Tier::Atomic);
    let notes = notes(&agents, "a");
    put(&notes, "k", "1").await;
    let before = engine.calls();
    assert!(notes.get("k").await.unwrap().is_some());
    assert_eq!(engine.calls() - before, 1);
    assert_eq!(agents.gathered().accesses, 1);
}

/// While a flush waits for the store, reads go on, and what they read is counted after it.
#[tokio::test]
async fn a_read_does_not_wait_for_a_flush() {
    let (engine, agents, memory, clock) = faulty(Tier::Atomic);
    let notes = notes(&agents, "a");
    put(&notes, "k", "1").await;
    let _ = notes.get("k").await.unwrap();
    // The calls of the flush never come back while the engine is paused; reads of others do.
    engine.pause();
    let mut flush = Box::pin(agents.flush());
    assert!((&mut flush).now_or_never().is_none());
    let record = "agents:ada:notes:k".parse().unwrap();
    agents.gathered();
    assert!(Store::new(memory.clone()).get(&record).await.unwrap().is_some());
    engine.resume();
    let _ = notes.get("k").await.unwrap();
    flush.await.unwrap();
    agents.close().await.unwrap();
    assert_eq!(count(&memory, &clock).await, 2);
}

/// The answer of every commit of a flush is lost once, before and after it arrives; or it lands late.
#[tokio::test(start_paused = true)]
async fn a_flush_whose_answer_is_lost_counts_once() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        for fault in [
            Fault::Unanswered(When::Before),
            Fault::Unanswered(When::After),
            Fault::Late(Duration::from_millis(1)),
            Fault::Late(Duration::from_millis(50)),
            Fault::Fail,
        ] {
            for call in 0..12 {
                let (_, agents, memory, clock) = faulty_by(tier, Faults::script([(call, fault)]));
                let notes = notes(&agents, "a");
                let mut made = notes.set("k", set("1")).await;
                if made.is_err() {
                    made = notes.set("k", set("1")).await;
                }
                assert!(made.unwrap().is_accepted());
                let mut reads = 0;
                for _ in 0..5 {
                    reads += u64::from(notes.get("k").await.is_ok());
                    let _tried_again_later = agents.flush().await;
                }
                agents.close().await.unwrap();
                tokio::time::sleep(SECOND).await;
                assert_eq!(count(&memory, &clock).await, reads, "{tier} {fault:?} {call}");
            }
        }
    }
}

/// A flush arrives, its answer is lost, and so is the store for a moment: what is held is in the row
/// already.
#[tokio::test(start_paused = true)]
async fn what_has_arrived_unanswered_is_not_shown_twice() {
    let mut unanswered = 0;
    for call in 0..12 {
        let faults = [(call, Fault::Unanswered(When::After)), (call + 1, Fault::Fail)];
        let (_, agents, memory, clock) = faulty_by(Tier::Atomic, Faults::script(faults));
        let notes = notes(&agents, "a");
        if notes.set("k", set("1")).await.is_err() {
            continue;
        }
        let reads = u64::from(notes.get("k").await.is_ok());
        if agents.flush().await.is_err() && agents.gathered().accesses == 1 {
            let row = "system:access:agents:ada:notes:k".parse().unwrap();
            let landed = Store::new(memory.clone()).get(&row).await.unwrap();
            unanswered += usize::from(landed.is_some());
        }
        let nobody = agents.user("ada", Actor::nobody()).use_namespace("notes").unwrap();
        if let Ok(entry) = nobody.entry("k").await {
            assert_eq!(entry.unwrap().access.count, reads, "{call}");
        }
        agents.close().await.unwrap();
        assert_eq!(count(&memory, &clock).await, reads, "{call}");
    }
    assert!(unanswered > 0);
}

#[tokio::test]
async fn what_there_is_no_room_for_is_told() {
    let clock = TestClock::new();
    let memory = Memory::with(keyward_memory::Options::tier(Tier::Atomic), clock.clone());
    let options = Options { tracked_max: 2, ..Options::default() };
    let agents = Agents::alone(Store::new(memory), options, clock).unwrap();
    let nobody = agents.user("ada", Actor::nobody()).use_namespace("notes").unwrap();
    for key in ["a", "b", "c"] {
        put(&nobody, key, "1").await;
    }
    let notes = notes(&agents, "a");
    for key in ["a", "b", "c", "a"] {
        assert!(notes.get(key).await.unwrap().is_some());
    }
    let gathered = agents.gathered();
    assert_eq!((gathered.entries, gathered.accesses, gathered.accesses_lost), (2, 3, 1));
    agents.flush().await.unwrap();
    assert_eq!(agents.gathered().entries, 0);
    assert!(notes.get("c").await.unwrap().is_some());
    assert_eq!(agents.gathered().accesses, 1);
}

#[tokio::test(start_paused = true)]
async fn flushing_goes_on_until_it_is_stopped_and_then_nothing_is_left() {
    let (engine, agents, memory, clock) = faulty(Tier::Atomic);
    let notes = notes(&agents, "a");
    put(&notes, "k", "1").await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let flushing = tokio::spawn({
        let agents = agents.clone();
        async move { agents.keep_flushing(async { drop(stopped.await) }).await }
    });
    assert!(notes.get("k").await.unwrap().is_some());
    tokio::time::sleep(3 * SECOND).await;
    assert_eq!(agents.gathered().accesses, 0);
    assert_eq!(count(&memory, &clock).await, 1);
    assert!(notes.get("k").await.unwrap().is_some());
    drop(stop);
    flushing.await.unwrap().unwrap();
    assert_eq!(count(&memory, &clock).await, 2);
    // Where the store does not answer, it says what is left.
    assert!(notes.get("k").await.unwrap().is_some());
    engine.kill();
    let left = agents.close().await.unwrap_err();
    assert!(left.to_string().starts_with("1 accesses and 0 lines"), "{left}");
    assert!(left.retryable());
    assert_eq!(agents.gathered().accesses, 1);
}

#[tokio::test]
async fn a_row_that_makes_no_sense_is_told_and_written_anew() {
    let (_, agents, memory, _) = faulty(Tier::Atomic);
    let notes = notes(&agents, "a");
    put(&notes, "k", "1").await;
    let row = "system:access:agents:ada:notes:k".parse().unwrap();
    let nonsense = keyward_engine::Put::new(Json::parse("7").unwrap());
    Store::new(memory).put(row, nonsense).await.unwrap();
    assert!(notes.get("k").await.unwrap().is_some());
    assert_eq!(notes.entry("k").await.unwrap_err().code(), Code::Corrupt);
    // The next flush writes it anew.
    agents.flush().await.unwrap();
    assert_eq!(notes.entry("k").await.unwrap().unwrap().access.count, 3);
}

#[tokio::test]
async fn a_row_that_cannot_be_written_keeps_no_others_from_it() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let clock = TestClock::new();
        let memory = Memory::with(keyward_memory::Options::tier(tier), clock.clone());
        let engine = FaultyEngine::new(Arc::new(memory), Faults::none());
        // The name of an agent may be longer than that.
        let engine = engine.acting_as(|can| can.limits.value_bytes_max = 300);
        let agents = Agents::alone(Store::new(engine), Options::default(), clock).unwrap();
        let nobody = agents.user("ada", Actor::nobody()).use_namespace("notes").unwrap();
        for n in 0..50 {
            put(&nobody, &format!("k{n:02}"), "1").await;
            let agent = if n == 7 { "a".repeat(250) } else { "a".to_owned() };
            let notes = notes(&agents, &agent);
            assert!(notes.get(&format!("k{n:02}")).await.unwrap().is_some());
        }
        assert!(agents.flush().await.is_err());
        let gathered = agents.gathered();
        assert_eq!((gathered.entries, gathered.accesses), (1, 1), "{tier}");
        assert_eq!(nobody.entry("k49").await.unwrap().unwrap().access.count, 1);
    }
}

/// Each process that writes leaves a mark; one that is gone for long is forgotten before its hour is over.
#[tokio::test]
async fn a_row_remembers_the_newest_marks_and_no_more() {
    const MARKS_MAX: usize = 128;
    let (_, first, memory, clock) = faulty(Tier::Atomic);
    put(&notes(&first, "a"), "k", "1").await;
    for _ in 0..MARKS_MAX + 5 {
        let store = Store::new(memory.clone());
        let agents = Agents::alone(store, Options::default(), clock.clone()).unwrap();
        assert!(notes(&agents, "a").get("k").await.unwrap().is_some());
        agents.close().await.unwrap();
    }
    let row = "system:access:agents:ada:notes:k".parse().unwrap();
    let row = Store::new(memory.clone()).get(&row).await.unwrap().unwrap();
    let marks = row.value.as_str().matches("],[").count() + 1;
    assert_eq!(marks, MARKS_MAX, "{}", row.value);
    assert_eq!(count(&memory, &clock).await, MARKS_MAX as u64 + 5);
}
