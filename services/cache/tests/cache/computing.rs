//! Fresh, stale, once.

use std::time::Duration;

use jiff::Timestamp;
use keyward_cache::{Cache, Error, Fetch, Options, Origin, Source};
use keyward_engine::{Code, Coded, Put, SystemClock};
use keyward_stores::{Kind, Place, on_databases, on_engines, on_every_engine};
use std::sync::Arc;
use tokio::sync::Notify;

use crate::{Runs, cache, json, key, version};

on_every_engine!(
    a_result_is_computed_once_and_then_found,
    a_result_of_another_version_is_stale,
    a_result_older_than_its_source_is_stale_whatever_the_clocks_say,
    many_callers_in_several_processes_cause_one_computation,
    a_cancelled_computation_is_taken_over,
    what_is_stale_is_given_out_while_a_new_result_is_computed,
    two_languages_at_once_extract_the_original_once,
    requests_that_make_no_sense_change_nothing,
);
on_databases!(
    a_result_is_computed_once_and_then_found,
    a_result_of_another_version_is_stale,
    a_cancelled_computation_is_taken_over,
);
on_engines!(couchdb: CouchDb, forge_entity: ForgeEntity;
    a_result_is_computed_once_and_then_found,
    a_cancelled_computation_is_taken_over,
);
on_engines!(recoverable: Recoverable;
    a_result_is_computed_once_and_then_found,
    a_result_of_another_version_is_stale,
    a_result_older_than_its_source_is_stale_whatever_the_clocks_say,
    a_cancelled_computation_is_taken_over,
    what_is_stale_is_given_out_while_a_new_result_is_computed,
    requests_that_make_no_sense_change_nothing,
);
// Where the test owns the clock.
on_engines!(owned_clock: Embedded; a_result_ends_with_its_time);

async fn a_result_is_computed_once_and_then_found(place: Place) {
    let (cache, runs) = (cache(&place).await, Runs::default());
    let key = key("page7:policy:123");
    let first = cache.get_or_compute(&key, &version("1"), runs.make("17")).await.unwrap();
    let other = self::cache(&place).await;
    let again = other.get_or_compute(&key, &version("1"), runs.make("18")).await.unwrap();
    assert_eq!((first.origin, again.origin), (Origin::Computed, Origin::Stored));
    assert_eq!((first.value, again.value, runs.count()), (json("17"), json("17"), 1));
    assert_eq!(first.version, again.version);
    // The value is an ordinary entry, that everybody can read.
    assert_eq!(place.store().await.get(&key).await.unwrap().unwrap().value, json("17"));
    assert_eq!(cache.get(&key, &Source::version("1")).await.unwrap().unwrap().value, json("17"));
    assert_eq!(cache.get(&key, &Source::version("2")).await.unwrap(), None);
}

async fn a_result_of_another_version_is_stale(place: Place) {
    let (cache, runs, key) = (cache(&place).await, Runs::default(), key("a"));
    for (asked, value) in [("1", "1"), ("2", "2"), ("2", "3"), ("1", "4")] {
        cache.get_or_compute(&key, &version(asked), runs.make(value)).await.unwrap();
    }
    assert_eq!(runs.count(), 3);
    let any = cache.get_or_compute(&key, &Fetch::default(), runs.make("5")).await.unwrap();
    assert_eq!((any.value, any.source), (json("4"), Source::version("1")));
}

async fn a_result_older_than_its_source_is_stale_whatever_the_clocks_say(place: Place) {
    let (cache, runs, key) = (cache(&place).await, Runs::default(), key("a"));
    // Far in the future of everybody's clock.
    let modified = |second| Fetch::of(Source::Modified(Timestamp::new(second, 0).unwrap()));
    for (asked, value) in [(9_000_000_000, "1"), (9_000_000_000, "2"), (8_000_000_000, "3")] {
        let found = cache.get_or_compute(&key, &modified(asked), runs.make(value)).await.unwrap();
        assert_eq!(found.value, json("1"));
        assert!(found.created >= Timestamp::new(9_000_000_000, 0).unwrap());
    }
    let newer = cache.get_or_compute(&key, &modified(9_000_000_001), runs.make("4")).await;
    assert_eq!((newer.unwrap().value, runs.count()), (json("4"), 2));
}

async fn many_callers_in_several_processes_cause_one_computation(place: Place) {
    let runs = Runs::default();
    let mut callers = Vec::new();
    for _ in 0..4 {
        let cache = cache(&place).await;
        for _ in 0..25 {
            let (cache, runs) = (cache.clone(), runs.clone());
            callers.push(tokio::spawn(async move {
                let slow = || async move {
                    runs.run();
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    Ok::<_, String>(json("7"))
                };
                cache.get_or_compute(&key("slow"), &version("1"), slow).await.unwrap()
            }));
        }
    }
    let mut computed = 0;
    for caller in callers {
        let cached = caller.await.unwrap();
        assert_eq!(cached.value, json("7"));
        computed += usize::from(cached.origin == Origin::Computed);
    }
    assert_eq!((runs.count(), computed), (1, 1));
}

async fn a_cancelled_computation_is_taken_over(place: Place) {
    let (cache, runs) = (cache(&place).await, Runs::default());
    let begun = Arc::new(Notify::new());
    let first = tokio::spawn({
        let (cache, runs, begun) = (cache.clone(), runs.clone(), begun.clone());
        async move {
            let endless = || async move {
                runs.run();
                begun.notify_one();
                std::future::pending::<Result<_, String>>().await
            };
            cache.get_or_compute(&key("a"), &version("1"), endless).await
        }
    });
    begun.notified().await;
    let second = tokio::spawn({
        let (cache, runs) = (cache.clone(), runs.clone());
        async move { cache.get_or_compute(&key("a"), &version("1"), runs.make("2")).await }
    });
    let elsewhere = tokio::spawn({
        let (cache, runs) = (self::cache(&place).await, runs.clone());
        async move { cache.get_or_compute(&key("a"), &version("1"), runs.make("2")).await }
    });
    first.abort();
    assert_eq!(second.await.unwrap().unwrap().value, json("2"));
    assert_eq!(elsewhere.await.unwrap().unwrap().value, json("2"));
    assert_eq!(runs.count(), 2);
}

async fn what_is_stale_is_given_out_while_a_new_result_is_computed(place: Place) {
    let (cache, runs, key) = (cache(&place).await, Runs::default(), key("a"));
    let first = cache.get_or_refresh(&key, &version("1"), runs.make("1")).await.unwrap();
    assert_eq!(first.origin, Origin::Computed);
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let second = || {
        let (begun, go_on) = (begun.clone(), go_on.clone());
        || async move {
            begun.notify_one();
            go_on.notified().await;
            Ok::<_, String>(json("2"))
        }
    };
    for _ in 0..3 {
        let stale = cache.get_or_refresh(&key, &version("2"), second()).await.unwrap();
        assert_eq!((stale.origin, stale.value), (Origin::Stale, json("1")));
    }
    begun.notified().await;
    go_on.notify_one();
    // Whoever wants the new one waits for it.
    let fresh = cache.get_or_compute(&key, &version("2"), runs.make("3")).await.unwrap();
    assert_eq!(fresh.value, json("2"));
    let fresh = cache.get_or_refresh(&key, &version("2"), second()).await.unwrap();
    assert_eq!((fresh.origin, runs.count()), (Origin::Stored, 1));
}

/// A translation gets the original first; each is computed once.
async fn two_languages_at_once_extract_the_original_once(place: Place) {
    let (extractions, translations) = (Runs::default(), Runs::default());
    let mut callers = Vec::new();
    for n in 0..40 {
        let language = if n % 2 == 0 { "fr" } else { "de" };
        let cache = cache(&place).await;
        let (extractions, translations) = (extractions.clone(), translations.clone());
        callers.push(tokio::spawn(async move {
            let original = key("page7:policy:123");
            let translated = original.child(language);
            let fetch = version("1").depends_on(original.clone());
            let translate = || {
                let cache = cache.clone();
                async move {
                    let extract = || async move {
                        extractions.run();
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        Ok::<_, String>(json(r#""text""#))
                    };
                    let text = cache.get_or_compute(&original, &version("1"), extract).await;
                    let text = text.map_err(|error| error.to_string())?;
                    translations.run();
                    let text = text.value.as_str().trim_matches('"').to_owned();
                    Ok::<_, String>(json(&format!(r#""{text} in {language}""#)))
                }
            };
            let found = cache.get_or_compute(&translated, &fetch, translate).await.unwrap();
            assert_eq!(found.value, json(&format!(r#""text in {language}""#)));
        }));
    }
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!((extractions.count(), translations.count()), (1, 2));
}

async fn requests_that_make_no_sense_change_nothing(place: Place) {
    let (cache, runs, store) = (cache(&place).await, Runs::default(), place.store().await);
    let mine = Put::new(json(r#""mine""#));
    store.put(key("mine"), mine.clone()).await.unwrap();
    for (text, fetch, code) in [
        ("mine", version("1"), Code::ForeignValue),
        ("job:7", version("1"), Code::Invalid),
        ("a", version("1").ttl(Duration::ZERO), Code::Invalid),
        ("a", version("1").depends_on(key("a")), Code::Invalid),
        ("a", version("1").lease(Duration::ZERO), Code::Invalid),
    ] {
        let error = cache.get_or_compute(&key(text), &fetch, runs.make("1")).await.unwrap_err();
        assert_eq!(error.code(), code, "{text} {error}");
        assert!(!error.hint().is_empty() && !error.retryable());
    }
    assert_eq!(runs.count(), 0);
    assert_eq!(store.get(&key("mine")).await.unwrap().unwrap().value, mine.value);
    assert_eq!(cache.invalidate(&key("mine")).await.unwrap_err().code(), Code::ForeignValue);
}

async fn a_result_ends_with_its_time(place: Place) {
    let (cache, runs, key) = (cache(&place).await, Runs::default(), key("a"));
    let fetch = version("1").ttl(Duration::from_secs(60));
    cache.get_or_compute(&key, &fetch, runs.make("1")).await.unwrap();
    place.clock().advance(Duration::from_secs(59));
    let found = cache.get_or_compute(&key, &fetch, runs.make("2")).await.unwrap();
    assert_eq!((found.value, found.expires.is_some()), (json("1"), true));
    place.clock().advance(Duration::from_secs(2));
    let found = cache.get_or_compute(&key, &fetch, runs.make("2")).await.unwrap();
    assert_eq!(found.value, json("2"));
}

#[test]
fn an_engine_without_compare_and_swap_is_refused() {
    keyward_stores::run(Kind::Advisory, async |place| {
        let refused = Cache::new(place.store().await, SystemClock, Options::default());
        assert!(matches!(refused, Err(Error::Lock(_))), "{refused:?}");
    });
}
