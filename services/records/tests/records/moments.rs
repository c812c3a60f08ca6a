//! Times in values: filters and indexes of times go by one rule.

use std::collections::BTreeSet;

use keyward_engine::Tier;
use keyward_key::Bindings;
use keyward_records::{By, Caller, Filter, Query, Space, moment};

use crate::fixture::{declare, draft, ids, key, memory};

const EVENTS: &str = r#"
[stores.app]
[spaces.events]
key = "shared:events:{event}"
ownership = "shared"
[spaces.events.indexes.by_at]
kind = "time"
field = "at"
"#;

/// In the order of their moments, with and without offsets, fractions and times of day.
const TIMES: [&str; 15] = [
    "2025-12-31",
    "2026-01-04T23:00:00+02:00",
    "2026-01-04T21:30",
    "2026-01-05T02:00:00+03:00",
    "2026-01-05T00:30:00+01:00",
    "2026-01-05",
    "2026-01-05 00:00:00.5",
    "2026-01-04T23:30:00-05:00",
    "2026-01-05T08:00:00",
    "2026-01-05T08:00:00.000001Z",
    "2026-01-05T09:00:01+01:00",
    "2026-01-05T23:59:59.999",
    "2026-01-06T00:00:00Z",
    "9999-12-31",
    "9999-12-31T23:59:59Z",
];

async fn events(tier: Tier) -> Space {
    let (memory, clock) = memory(tier);
    let records = declare(memory, &clock, EVENTS);
    let events = records.space("events", &Caller::user("ada")).unwrap();
    for (n, at) in TIMES.iter().enumerate() {
        let value = draft(&format!(r#"{{"at":"{at}"}}"#));
        let written = events.put(&key(&format!("shared:events:{n:02}")), value).await.unwrap();
        assert!(written.is_accepted(), "{at}");
    }
    events
}

#[tokio::test]
async fn an_index_of_times_has_them_in_the_order_of_their_moments() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let events = events(tier).await;
        let all = events.query(&Query::index("by_at")).await.unwrap().records;
        let expected: Vec<String> = (0..TIMES.len()).map(|n| format!("{n:02}")).collect();
        assert_eq!(ids(&all), expected, "{tier}");
    }
}

#[tokio::test]
async fn a_filter_finds_the_same_by_an_index_of_times_and_without_one() {
    let events = events(Tier::Atomic).await;
    let more = ["2026-01-05T09:00:00+01:00", "2026-01-05T08:00", "2026-01-07", "2025-01-01"];
    for limit in TIMES.iter().chain(&more) {
        for comparison in ["eq", "lt", "lte", "gt", "gte"] {
            let text = format!(r#"{{"at":{{"{comparison}":"{limit}"}}}}"#);
            let filter = Filter::parse(&text).unwrap();
            let by_index = Query::for_filter(events.declaration(), &filter).unwrap();
            assert!(matches!(&by_index.by, By::Index { name, .. } if name == "by_at"), "{text}");
            let by_key = Query::key(Bindings::new()).filter(filter.clone()).allow_scan();
            let mut found = Vec::new();
            for query in [by_index, by_key] {
                let records = events.query(&query).await.unwrap().records;
                found.push(ids(&records).into_iter().collect::<BTreeSet<_>>());
            }
            assert_eq!(found[0], found[1], "{text}");
            let limit = moment(limit).unwrap();
            let holds = |at: &&str| {
                let at = moment(at).unwrap();
                match comparison {
                    "eq" => at == limit,
                    "lt" => at < limit,
                    "lte" => at <= limit,
                    "gt" => at > limit,
                    _ => at >= limit,
                }
            };
            assert_eq!(found[0].len(), TIMES.into_iter().filter(holds).count(), "{text}");
        }
    }
}

#[tokio::test]
async fn a_date_that_means_never_is_after_every_other_with_and_without_an_index() {
    for tier in [Tier::Atomic, Tier::Recoverable] {
        let events = events(tier).await;
        let filter = Filter::parse(r#"{"at":{"gte":"2026-01-06"}}"#).unwrap();
        let by_index = Query::for_filter(events.declaration(), &filter).unwrap();
        let by_key = Query::key(Bindings::new()).filter(filter).allow_scan();
        for query in [by_index, by_key] {
            let found = events.query(&query).await.unwrap().records;
            assert_eq!(ids(&found), ["12", "13", "14"], "{tier}");
        }
    }
}

#[tokio::test]
async fn a_text_that_is_no_time_is_in_no_index_of_times() {
    let events = events(Tier::Atomic).await;
    for at in ["tomorrow", "2026-01", "2026-02-30", "2026-01-05T08:00[Europe/Berlin]"] {
        let value = draft(&format!(r#"{{"at":"{at}"}}"#));
        let refused = events.put(&key("shared:events:x"), value).await.unwrap_err();
        assert!(refused.to_string().contains("must be a time"), "{at}: {refused}");
    }
}
