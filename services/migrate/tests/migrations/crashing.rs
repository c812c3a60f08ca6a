//! Migrations that end at any call to the engine, and are run again.

use std::sync::Arc;

use keyward_engine::{Store, Tier};
use keyward_memory::{Memory, Options};
use keyward_migrate::{Counts, Doctor, Edit, Migration, Result};
use keyward_records::Records;
use keyward_stores::Kind;
use keyward_testkit::{Faults, FaultyEngine, TestClock, When};

use crate::fixture::{
    PLAIN, add, assert_done, assert_well, fill, indexed, json, migrator, operator, records, rows,
};
use crate::rekeying;
use crate::transforming::edits;

/// Fills a store by the first schema, runs a migration by the second, crashing at every call; runs
/// it again, and compares with a run without a crash.
pub async fn crash_everywhere(
    tier: Tier,
    schemas: [String; 2],
    fill: impl AsyncFn(&Records),
    run: impl AsyncFn(&Records, &TestClock) -> Result<Migration>,
) {
    let filled = async |faults: Faults| {
        let clock = TestClock::new();
        let memory = Memory::with(Options::tier(tier), clock.clone());
        let engine = FaultyEngine::new(Arc::new(memory), faults);
        fill(&records(Store::from_arc(engine.inner()), &clock, &schemas[0])).await;
        (engine, clock)
    };
    let (whole, clock) = filled(Faults::none()).await;
    let after = records(Store::new(whole.clone()), &clock, &schemas[1]);
    assert_done(&run(&after, &clock).await.unwrap());
    let calls = whole.calls();
    let expected = content(&after).await;
    assert!(calls > 15, "{calls}");
    for call in 0..calls {
        for when in [When::Before, When::After] {
            let (engine, clock) = filled(Faults::crash_at(call, when)).await;
            let crashing = records(Store::new(engine.clone()), &clock, &schemas[1]);
            // What a writer removes behind itself, it does not wait for.
            let crashed = run(&crashing, &clock).await.is_err();
            assert!(crashed || engine.is_crashed(), "{when:?} {call}");
            let again = records(Store::new(engine.revive()), &clock, &schemas[1]);
            assert_done(&run(&again, &clock).await.unwrap());
            let healed = records(Store::from_arc(engine.inner()), &clock, &schemas[1]);
            if tier != Tier::Atomic {
                // What a writer left who never came back is removed by the doctor.
                let report = Doctor::new(healed.clone()).repair(true).run(|_| ()).await.unwrap();
                assert!(!report.counts.contains_key("missing-entry"), "{:#?}", report.found);
            }
            assert_well(&healed).await;
            assert_eq!(content(&healed).await, expected, "{when:?} {call}");
        }
    }
}

/// Everything but the ledger.
async fn content(records: &Records) -> Vec<(String, String)> {
    let rows = rows(records.store(), "").await;
    rows.into_iter().filter(|(key, _)| !key.starts_with("system:migration")).collect()
}

async fn add_index(tier: Tier) {
    crash_everywhere(
        tier,
        [PLAIN.to_owned(), indexed()],
        async |records| fill(&operator(records, "notes"), 15).await,
        async |records, clock| {
            let step = add(records, "notes", "by_title");
            let tags = add(records, "notes", "by_tag");
            let migrator = migrator(records, clock);
            // One that is done already is done again, and comes to the same.
            migrator.run(tags, |_| ()).await?;
            migrator.run(step, |_| ()).await
        },
    )
    .await;
}

async fn drop_index(tier: Tier) {
    crash_everywhere(
        tier,
        [indexed(), PLAIN.to_owned()],
        async |records| fill(&operator(records, "notes"), 15).await,
        async |records, clock| {
            let drop = |index: &str| keyward_migrate::Definition::DropIndex {
                space: "notes".into(),
                index: index.into(),
            };
            let migrator = migrator(records, clock);
            migrator.run(drop("by_tag"), |_| ()).await?;
            migrator.run(drop("by_title"), |_| ()).await
        },
    )
    .await;
}

async fn rekey(tier: Tier, kind: Kind) {
    let definition = rekeying::rekey(rekeying::OLD, rekeying::NEW, &[("userId", "userId")]);
    crash_everywhere(
        tier,
        [rekeying::OLD, rekeying::NEW].map(|pattern| rekeying::schema(pattern, kind)),
        async |records| rekeying::fill(records, 10).await,
        async |records, clock| {
            let migrator = migrator(records, clock);
            let done = migrator.run(definition.clone(), |_| ()).await?;
            // Whatever was killed in between, the ledger counts every record once.
            let history = migrator.history().await?;
            let counted = |of: fn(&Counts) -> u64| -> u64 {
                history.iter().map(|migration| of(&migration.counts)).sum()
            };
            let (looked_at, changed) = (counted(|it| it.records), counted(|it| it.changed));
            let lost_max = if tier == Tier::Atomic { 0 } else { 1 };
            assert_eq!(looked_at, changed, "{history:#?}");
            assert!((10 - lost_max..=10).contains(&changed), "{history:#?}");
            Ok(done)
        },
    )
    .await;
}

async fn transform(tier: Tier) {
    crash_everywhere(
        tier,
        [indexed(), indexed()],
        async |records| fill(&operator(records, "notes"), 10).await,
        async |records, clock| {
            let mut change = edits(vec![
                Edit::Set("title".parse().unwrap(), json(r#""new""#)),
                Edit::Remove("tags".parse().unwrap()),
            ]);
            migrator(records, clock).transform("notes", "edits", &mut change, |_| ()).await
        },
    )
    .await;
}

#[tokio::test]
async fn an_index_is_made_in_the_end_wherever_making_it_crashed() {
    add_index(Tier::Atomic).await;
}

#[tokio::test]
async fn an_index_is_made_in_the_end_wherever_making_it_crashed_key_by_key() {
    add_index(Tier::Recoverable).await;
}

#[tokio::test]
async fn an_index_is_gone_in_the_end_wherever_dropping_it_crashed() {
    drop_index(Tier::Atomic).await;
}

#[tokio::test]
async fn an_index_is_gone_in_the_end_wherever_dropping_it_crashed_key_by_key() {
    drop_index(Tier::Recoverable).await;
}

#[tokio::test]
async fn every_record_has_its_new_key_in_the_end_wherever_moving_them_crashed() {
    rekey(Tier::Atomic, Kind::Memory).await;
}

#[tokio::test]
async fn every_record_has_its_new_key_in_the_end_wherever_moving_them_crashed_key_by_key() {
    rekey(Tier::Recoverable, Kind::Recoverable).await;
}

#[tokio::test]
async fn every_value_is_changed_in_the_end_wherever_changing_them_crashed() {
    transform(Tier::Atomic).await;
}

#[tokio::test]
async fn every_value_is_changed_in_the_end_wherever_changing_them_crashed_key_by_key() {
    transform(Tier::Recoverable).await;
}
