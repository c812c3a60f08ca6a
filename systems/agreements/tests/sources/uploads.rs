//! Pages that people put here, on every engine.

use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use futures_util::future::join_all;
use jiff::Timestamp;
use keyward_agreements::source::{Source, SourceLimits, Swept, UploadOptions, Uploads};
use keyward_agreements::{BodyFormat, Error};
use keyward_engine::{Clock, Code, Coded, Json, Limits, Put, Scan, Store, Tier};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_memory::{Memory, Options};
use keyward_stores::{Place, on_every_engine};
use keyward_testkit::TestClock;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{page, source};

on_every_engine!(
    a_page_is_read_as_it_was_put,
    an_attachment_of_any_size_comes_back_whole,
    what_is_replaced_or_deleted_leaves_nothing_behind,
    the_time_of_an_attachment_rises_whatever_the_clock_says,
    of_uploads_at_once_one_wins_whole,
    pages_that_are_changed_by_many_lose_nothing,
);

async fn uploads(place: &Place) -> Uploads {
    Uploads::new(place.store().await, place.clock().clone(), UploadOptions::default()).unwrap()
}

pub fn in_memory() -> (Memory, Uploads, TestClock) {
    let clock = TestClock::new();
    let memory = Memory::with(Options::tier(Tier::Atomic), clock.clone());
    let store = Store::new(memory.clone());
    (memory, Uploads::new(store, clock.clone(), UploadOptions::default()).unwrap(), clock)
}

/// All keys of uploads, in order.
pub async fn keys(store: &Store) -> Vec<String> {
    let range = KeyRange::under(&Prefix::from_segments(["upload"]));
    let rows = store.scan(&Scan::new(range).limit(10_000).keys_only()).await.unwrap().rows;
    rows.into_iter().map(|row| row.key.to_string()).collect()
}

/// The manifest of a page.
pub async fn manifest(store: &Store, id: &str) -> Value {
    let key = Key::from_segments(["upload", id]).unwrap();
    let entry = store.get(&key).await.unwrap().unwrap();
    serde_json::from_slice(entry.value.as_bytes()).unwrap()
}

/// Bytes that differ everywhere.
fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

async fn a_page_is_read_as_it_was_put(place: Place) {
    let uploads = uploads(&place).await;
    let id = page("a:b 학칙");
    assert_eq!(uploads.page(&id).await.unwrap(), None);
    let put = uploads.put_page(&id, "Rules", "<p>\"\\\u{1}</p>", BodyFormat::Html).await.unwrap();
    let name = "Ordnung \"neu\" %:학칙.pdf";
    let attached =
        uploads.attach(&id, &source(name), name, Some("application/pdf"), b"%PDF").await.unwrap();
    uploads.attach(&id, &source("a"), "a", None, b"").await.unwrap();
    let again = self::uploads(&place).await;
    let read = again.page(&id).await.unwrap().unwrap();
    assert_eq!(
        (&read.title, &read.body, read.body_format),
        (&put.title, &put.body, BodyFormat::Html)
    );
    assert_eq!(read.attachments.len(), 2);
    assert_eq!(read.attachments[0], attached);
    assert_eq!(again.read(&id, &source(name)).await.unwrap().unwrap(), "%PDF".as_bytes());
    assert_eq!(again.read(&id, &source("a")).await.unwrap().unwrap(), "".as_bytes());
    assert_eq!(again.read(&id, &source("b")).await.unwrap(), None);
    assert_eq!(again.read(&page("other"), &source("a")).await.unwrap(), None);
    // Its text is replaced, and what is attached stays.
    uploads.put_page(&id, "Rules 2", "two", BodyFormat::Markdown).await.unwrap();
    let read = again.page(&id).await.unwrap().unwrap();
    assert_eq!((&*read.title, read.attachments.len()), ("Rules 2", 2));
    assert!(read.updated > put.updated);
    uploads.put_page(&page("0"), "Zero", "", BodyFormat::Markdown).await.unwrap();
    let list = again.list().await.unwrap();
    let shown: Vec<_> = list.iter().map(|page| (page.id.as_str(), &*page.title)).collect();
    assert_eq!(shown, [("0", "Zero"), ("a:b 학칙", "Rules 2")]);
}

async fn an_attachment_of_any_size_comes_back_whole(place: Place) {
    let uploads = uploads(&place).await;
    let (id, policy) = (page("p"), source("s"));
    uploads.put_page(&id, "P", "", BodyFormat::Markdown).await.unwrap();
    let chunk = 512 << 10;
    for size in [0, 1, 2, 3, chunk - 1, chunk, chunk + 1, 9 * chunk + 1] {
        let bytes = noise(size as u64, size);
        let attached = uploads.attach(&id, &policy, "s", None, &bytes).await.unwrap();
        assert_eq!(attached.bytes, Some(size as u64));
        assert!(uploads.read(&id, &policy).await.unwrap().unwrap() == bytes, "{size}");
    }
}

async fn what_is_replaced_or_deleted_leaves_nothing_behind(place: Place) {
    let uploads = uploads(&place).await;
    let store = place.store().await;
    let (id, policy) = (page("p"), source("s"));
    uploads.put_page(&id, "P", "", BodyFormat::Markdown).await.unwrap();
    uploads.put_page(&page("p1"), "P1", "", BodyFormat::Markdown).await.unwrap();
    uploads.attach(&page("p1"), &policy, "s", None, b"stays").await.unwrap();
    for n in 0..3 {
        uploads.attach(&id, &policy, "s", None, &noise(n, 600_000)).await.unwrap();
        // The manifest and two pieces of one, the manifest and one piece of the other.
        assert_eq!(keys(&store).await.len(), 5);
    }
    assert!(uploads.detach(&id, &policy).await.unwrap());
    assert!(!uploads.detach(&id, &policy).await.unwrap());
    assert_eq!(keys(&store).await.len(), 3);
    uploads.attach(&id, &policy, "s", None, b"x").await.unwrap();
    assert!(uploads.delete_page(&id).await.unwrap());
    assert!(!uploads.delete_page(&id).await.unwrap());
    assert_eq!(uploads.page(&id).await.unwrap(), None);
    assert_eq!(uploads.list().await.unwrap().len(), 1);
    let left = keys(&store).await;
    assert_eq!(left.len(), 3, "{left:?}");
    assert_eq!(left[0], "upload:p:latest");
    assert_eq!(uploads.sweep().await.unwrap(), Swept::default());
    assert_eq!(uploads.read(&page("p1"), &policy).await.unwrap().unwrap(), "stays");
}

async fn the_time_of_an_attachment_rises_whatever_the_clock_says(place: Place) {
    let uploads = uploads(&place).await;
    let (id, policy) = (page("p"), source("s"));
    uploads.put_page(&id, "P", "", BodyFormat::Markdown).await.unwrap();
    // The clock stands still.
    let mut last = TestClock::START;
    for n in 0..4 {
        if n == 2 {
            uploads.detach(&id, &policy).await.unwrap();
        }
        if n == 3 {
            uploads.delete_page(&id).await.unwrap();
            uploads.put_page(&id, "P", "", BodyFormat::Markdown).await.unwrap();
        }
        let created = uploads.attach(&id, &policy, "s", None, b"same").await.unwrap().created;
        assert!(created > last, "{n}: {created} after {last}");
        last = created;
    }
    place.clock().advance(Duration::from_secs(60));
    let created = uploads.attach(&id, &policy, "s", None, b"same").await.unwrap().created;
    assert_eq!(created, place.clock().now());
}

async fn of_uploads_at_once_one_wins_whole(place: Place) {
    let first = uploads(&place).await;
    let (id, policy) = (page("p"), source("s"));
    first.put_page(&id, "P", "", BodyFormat::Markdown).await.unwrap();
    let all: Vec<Vec<u8>> = (0..4).map(|n| noise(n, 600_000 + n as usize)).collect();
    let other = uploads(&place).await;
    let attaching = all.iter().enumerate().map(|(n, bytes)| {
        let uploads = if n % 2 == 0 { first.clone() } else { other.clone() };
        async move { uploads.attach(&page("p"), &source("s"), &format!("{n}"), None, bytes).await }
    });
    let attached = join_all(attaching).await;
    let read = first.read(&id, &policy).await.unwrap().unwrap();
    let won = all.iter().position(|bytes| *bytes == read).expect("one of them, whole");
    let found = first.page(&id).await.unwrap().unwrap();
    assert_eq!(found.attachments, [attached[won].as_ref().unwrap().clone()]);
    assert_eq!(found.attachments[0].name, won.to_string());
    assert_eq!(found.attachments[0].bytes, Some(read.len() as u64));
    let store = place.store().await;
    let hash = HEXLOWER.encode(&Sha256::digest(&read));
    assert_eq!(manifest(&store, "p").await["attachments"][0]["sha256"], hash);
    let times: std::collections::BTreeSet<Timestamp> =
        attached.iter().map(|it| it.as_ref().unwrap().created).collect();
    assert_eq!(times.len(), all.len(), "each had a time of its own");
    assert_eq!(times.last(), Some(&found.attachments[0].created));
    first.sweep().await.unwrap();
    assert_eq!(keys(&store).await.len(), 3);
}

async fn pages_that_are_changed_by_many_lose_nothing(place: Place) {
    let uploads = uploads(&place).await;
    let id = page("p");
    uploads.put_page(&id, "P", "", BodyFormat::Markdown).await.unwrap();
    let attaching = (0..8).map(|n| {
        let (uploads, id) = (uploads.clone(), id.clone());
        async move {
            let name = format!("{n}");
            uploads.attach(&id, &source(&name), &name, None, name.as_bytes()).await.unwrap();
        }
    });
    join_all(attaching).await;
    for n in 0..8 {
        let name = n.to_string();
        assert_eq!(uploads.read(&id, &source(&name)).await.unwrap().unwrap(), name);
    }
}

#[tokio::test]
async fn what_is_too_much_or_makes_no_sense_is_refused_before_anything_is_written() {
    let (memory, _, clock) = in_memory();
    let limits = SourceLimits {
        attachment_bytes_max: 10,
        body_bytes_max: 10,
        attachments_max: 1,
        ..SourceLimits::default()
    };
    let options = UploadOptions { limits, seed: None };
    let uploads = Uploads::new(Store::new(memory.clone()), clock, options).unwrap();
    let (id, policy) = (page("p"), source("s"));
    let unknown = uploads.attach(&id, &policy, "s", None, b"x").await.unwrap_err();
    assert!(matches!(unknown, Error::UnknownPage { .. }));
    let long = "01234567890";
    let refused = uploads.put_page(&id, "P", long, BodyFormat::Markdown).await.unwrap_err();
    assert_eq!(refused.code(), Code::LimitExceeded);
    for title in ["", "a\nb", &"long".repeat(1_000)] {
        assert!(uploads.put_page(&id, title, "", BodyFormat::Markdown).await.is_err());
    }
    uploads.put_page(&id, "P", "", BodyFormat::Markdown).await.unwrap();
    let refused = uploads.attach(&id, &policy, "s", None, long.as_bytes()).await.unwrap_err();
    assert_eq!(refused.code(), Code::LimitExceeded);
    assert!(uploads.attach(&id, &policy, "", None, b"x").await.is_err());
    assert!(uploads.attach(&id, &policy, "s", Some("a\0b"), b"x").await.is_err());
    uploads.attach(&id, &policy, "s", None, b"one").await.unwrap();
    uploads.attach(&id, &policy, "s", None, b"two").await.unwrap();
    let refused = uploads.attach(&id, &source("t"), "t", None, b"x").await.unwrap_err();
    assert_eq!(refused.code(), Code::LimitExceeded);
    assert_eq!(keys(&Store::new(memory)).await.len(), 2);
}

#[tokio::test]
async fn engines_that_cannot_change_keys_together_are_refused() {
    for tier in [Tier::Recoverable, Tier::Advisory] {
        let clock = TestClock::new();
        let store = Store::new(Memory::with(Options::tier(tier), clock.clone()));
        let refused = Uploads::new(store, clock, UploadOptions::default()).unwrap_err();
        assert_eq!(refused.code(), Code::Unsupported);
        assert!(refused.to_string().contains(&tier.to_string()), "{refused}");
    }
}

#[tokio::test]
async fn small_values_hold_large_attachments() {
    let (memory, _, clock) = in_memory();
    let store = Store::new(memory);
    let limits =
        Limits { value_bytes_max: 1_000, commit_keys_max: 3, get_keys_max: 2, ..*store.limits() };
    let store = store.with_limits(limits);
    let uploads = Uploads::new(store.clone(), clock, UploadOptions::default()).unwrap();
    let (id, policy) = (page("p"), source("s"));
    uploads.put_page(&id, "P", "", BodyFormat::Markdown).await.unwrap();
    let bytes = noise(1, 20_000);
    uploads.attach(&id, &policy, "s", None, &bytes).await.unwrap();
    assert!(uploads.read(&id, &policy).await.unwrap().unwrap() == bytes);
    assert!(keys(&store).await.len() > 20);
    uploads.detach(&id, &policy).await.unwrap();
    assert_eq!(keys(&store).await, ["upload:p"]);
}

#[tokio::test]
async fn a_piece_that_was_changed_or_removed_is_found_out() {
    for piece in [Some("AAAA"), Some("not base64"), None] {
        let (memory, uploads, _) = in_memory();
        let store = Store::new(memory);
        let (id, policy) = (page("p"), source("s"));
        uploads.put_page(&id, "P", "", BodyFormat::Markdown).await.unwrap();
        uploads.attach(&id, &policy, "s", None, b"abc").await.unwrap();
        let key = Key::parse(&keys(&store).await[1]).unwrap();
        match piece {
            Some(text) => {
                let put = Put::new(Json::from_value(text).unwrap());
                store.put(key, put).await.map(drop).unwrap();
            }
            None => store.delete(key).await.unwrap(),
        }
        let refused = uploads.read(&id, &policy).await.unwrap_err();
        assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
    }
}

/// A clock that lets hours pass whenever it is looked at.
#[derive(Debug)]
struct Slow(TestClock);

impl Clock for Slow {
    fn now(&self) -> Timestamp {
        self.0.advance(Duration::from_secs(7_200));
        self.0.now()
    }
}

#[tokio::test]
async fn an_upload_that_was_given_up_cannot_be_finished() {
    let (memory, uploads, clock) = in_memory();
    let store = Store::new(memory);
    let slow = Uploads::new(store.clone(), Arc::new(Slow(clock)), UploadOptions::default());
    let (id, policy) = (page("p"), source("s"));
    uploads.put_page(&id, "P", "", BodyFormat::Markdown).await.unwrap();
    uploads.attach(&id, &policy, "s", None, b"old").await.unwrap();
    let refused = slow.unwrap().attach(&id, &policy, "s", None, b"new").await.unwrap_err();
    assert!(refused.to_string().contains("too long"), "{refused}");
    assert_eq!(uploads.read(&id, &policy).await.unwrap().unwrap(), "old");
    assert_eq!(uploads.sweep().await.unwrap(), Swept { contents: 1, chunks: 1 });
    assert_eq!(keys(&store).await.len(), 2);
}
