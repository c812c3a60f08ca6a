//! What was made from a value goes with it.

use keyward_cache::Source;
use keyward_engine::{Put, Scan};
use keyward_key::KeyRange;
use keyward_stores::{Place, on_engines, on_every_engine};

use crate::{Runs, cache, json, key, version};

on_every_engine!(
    everything_made_from_a_value_is_dropped_with_it,
    a_stale_original_is_dropped_with_its_translations,
    a_result_of_something_that_changed_meanwhile_is_not_cached,
    a_computation_may_renew_what_it_is_made_from,
);
on_engines!(recoverable: Recoverable;
    everything_made_from_a_value_is_dropped_with_it,
    a_stale_original_is_dropped_with_its_translations,
    a_result_of_something_that_changed_meanwhile_is_not_cached,
    a_computation_may_renew_what_it_is_made_from,
);

async fn everything_made_from_a_value_is_dropped_with_it(place: Place) {
    let (cache, runs) = (cache(&place).await, Runs::default());
    let store = place.store().await;
    for (text, needs) in [
        ("page7:policy:1", None),
        ("page7:policy:1:fr", None),
        ("page7:policy:1:de", None),
        ("page7:policy:10", None),
        ("page8:summary", Some("page7:policy:1:fr")),
        ("page8:title", Some("page8:summary")),
        ("page8:other", Some("page7:policy:10")),
    ] {
        let mut fetch = version("1");
        fetch.depends_on.extend(needs.map(key));
        cache.get_or_compute(&key(text), &fetch, runs.make("1")).await.unwrap();
    }
    // Below the key, but not the cache's.
    store.put(key("page7:policy:1:note"), Put::new(json("1"))).await.unwrap();

    let dropped = cache.invalidate(&key("page7:policy:1")).await.unwrap();
    assert_eq!(dropped.values, 5);
    let rows = store.scan(&Scan::new(KeyRange::all()).keys_only()).await.unwrap().rows;
    let all: Vec<String> = rows.iter().map(|row| row.key.to_string()).collect();
    let kept = |part: &str| all.iter().filter(|key| key.contains(part)).collect::<Vec<_>>();
    assert_eq!(kept("page7:"), ["page7:policy:1:note", "page7:policy:10"]);
    assert_eq!(kept("page8:"), ["page8:other"]);
    assert_eq!(cache.invalidate(&key("page7:policy:1")).await.unwrap().values, 0);
    // Nothing is left of what was kept about them.
    let edge = "system:cache:dependants:page7%3Apolicy%3A10:page8%3Aother";
    assert_eq!(kept(":dependants:"), [edge]);
}

async fn a_stale_original_is_dropped_with_its_translations(place: Place) {
    let (cache, runs) = (cache(&place).await, Runs::default());
    let original = key("page7:policy:1");
    for key in [&original, &original.child("fr"), &original.child("de")] {
        cache.get_or_compute(key, &version("1"), runs.make("1")).await.unwrap();
    }
    cache.get_or_compute(&original, &version("2"), runs.make("2")).await.unwrap();
    for language in ["fr", "de"] {
        assert_eq!(cache.show(&original.child(language)).await.unwrap(), None, "{language}");
    }
    // Also if the new one cannot be computed.
    cache.get_or_compute(&original.child("fr"), &version("2"), runs.make("2")).await.unwrap();
    let failing = || async { Err::<keyward_engine::Json, _>("no text in it") };
    cache.get_or_compute(&original, &version("3"), failing).await.unwrap_err();
    assert_eq!(cache.show(&original).await.unwrap(), None);
    assert_eq!(cache.show(&original.child("fr")).await.unwrap(), None);
}

async fn a_result_of_something_that_changed_meanwhile_is_not_cached(place: Place) {
    let (cache, runs) = (cache(&place).await, Runs::default());
    let (original, summary) = (key("original"), key("summary"));
    cache.get_or_compute(&original, &version("1"), runs.make("1")).await.unwrap();
    let fetch = version("1").depends_on(original.clone());
    let summarize = || async {
        cache.get_or_compute(&original, &version("2"), runs.make("2")).await.unwrap();
        Ok::<_, String>(json(r#""of the old one""#))
    };
    let made = cache.get_or_compute(&summary, &fetch, summarize).await.unwrap();
    assert_eq!((made.value, made.version), (json(r#""of the old one""#), None));
    assert_eq!(cache.get(&summary, &Source::Constant).await.unwrap(), None);
}

async fn a_computation_may_renew_what_it_is_made_from(place: Place) {
    let (cache, runs) = (cache(&place).await, Runs::default());
    let (original, summary) = (key("original"), key("summary"));
    for asked in ["1", "2"] {
        let fetch = version(asked).depends_on(original.clone());
        let summarize = || async {
            let text = cache.get_or_compute(&original, &version(asked), runs.make(asked)).await;
            Ok::<_, String>(text.unwrap().value)
        };
        let made = cache.get_or_compute(&summary, &fetch, summarize).await.unwrap();
        assert_eq!((made.value, made.version.is_some()), (json(asked), true), "{asked}");
    }
    assert_eq!(runs.count(), 2);
}
