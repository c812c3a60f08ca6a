use std::sync::atomic::{AtomicUsize, Ordering};

use keyward_engine::{
    BoxFuture, Capabilities, Commit, Cursor, Engine, Entry, Json, Limits, List, Listed, Order,
    Outcome, Page, Put, Result, Scan, Stats, Store,
};
use keyward_key::{Key, KeyRange, Prefix};
use keyward_memory::Memory;

/// An engine whose pages are short, and at first empty although more follows: as of a database that
/// has read its share without finding anything.
struct ShortPages {
    inner: Memory,
    scans: AtomicUsize,
}

impl Engine for ShortPages {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
        self.inner.get_many(keys)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            let scans = self.scans.fetch_add(1, Ordering::Relaxed);
            assert!(scans < 10_000, "the listing goes round in circles");
            let mut page = self.inner.scan(&scan.clone().limit(2)).await?;
            if scan.after.is_none() && !page.rows.is_empty() {
                // It has read up to just before the first row.
                let first = page.rows.remove(0).key;
                page.rows.clear();
                page.next = Some(cursor_just_before(&first, scan.order));
            }
            Ok(page)
        })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
        self.inner.commit(commit)
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.inner.stats()
    }
}

fn cursor_just_before(key: &Key, order: Order) -> Cursor {
    match order {
        // No key of the test lies between a key without its last byte and the key.
        Order::Ascending => Cursor::new(key.as_bytes()[..key.as_bytes().len() - 1].to_vec()),
        Order::Descending => Cursor::after_key(&key.child("")),
    }
}

async fn store() -> Store {
    let store = Store::new(ShortPages { inner: Memory::new(), scans: AtomicUsize::new(0) });
    for text in ["a1", "b1", "b1:c1", "b1:c1:d1", "b1:c2", "c1:d1", "d1", "e1:f1:g1"] {
        let key = Key::parse(text).unwrap();
        store.put(key, Put::new(Json::from_integer(1))).await.unwrap();
    }
    store
}

async fn names(store: &Store, mut list: List) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let page = store.list(&list).await.unwrap();
        names.extend(page.items.iter().map(|item| match item {
            Listed::Key(key) => key.to_string(),
            Listed::Prefix(prefix) => prefix.to_string(),
        }));
        let Some(next) = page.next else { return names };
        list.after = Some(next);
    }
}

#[tokio::test]
async fn a_listing_is_whole_on_an_engine_with_short_and_empty_pages() {
    let store = store().await;
    for limit in [1, 2, 3, 100] {
        let list = List::new(Prefix::all()).depth(1).limit(limit);
        let mut expected = ["a1", "b1", "b1:", "c1:", "d1", "e1:"];
        assert_eq!(names(&store, list.clone()).await, expected, "by {limit}");
        expected.reverse();
        let down = list.order(Order::Descending);
        assert_eq!(names(&store, down).await, expected, "down by {limit}");

        let below = List::new(Prefix::parse("b1").unwrap()).depth(1).limit(limit);
        assert_eq!(names(&store, below).await, ["b1:c1", "b1:c1:", "b1:c2"]);
    }
}

/// The keys of a scan that leaves something out, page by page.
async fn scanned(store: &Store, mut scan: Scan, without: &[Key]) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let page = store.scan_without(&scan, without).await.unwrap();
        names.extend(page.rows.iter().map(|row| row.key.to_string()));
        let Some(next) = page.next else { return names };
        scan.after = Some(next);
    }
}

#[tokio::test]
async fn what_is_left_out_is_neither_listed_nor_scanned_in_either_direction() {
    let store = store().await;
    let without = ["b1", "e1", "nothing"].map(|text| Key::parse(text).unwrap());
    for limit in [1, 2, 3, 100] {
        for order in [Order::Ascending, Order::Descending] {
            let in_order = |mut names: Vec<&'static str>| {
                if order == Order::Descending {
                    names.reverse();
                }
                names
            };
            let list = List::new(Prefix::all()).limit(limit).order(order).without(without.to_vec());
            let every = in_order(vec!["a1", "c1:d1", "d1"]);
            assert_eq!(names(&store, list.clone()).await, every, "by {limit}");
            let levels = in_order(vec!["a1", "c1:", "d1"]);
            assert_eq!(names(&store, list.depth(1)).await, levels, "by {limit}");
            let scan = Scan::new(KeyRange::all()).limit(limit).order(order);
            assert_eq!(scanned(&store, scan.clone(), &without).await, every, "by {limit}");
            // Where nothing is left, there is nothing.
            let below = Scan { range: KeyRange::under(&Prefix::parse("b1").unwrap()), ..scan };
            assert!(scanned(&store, below, &without).await.is_empty());
        }
    }
    let odd = Scan::new(KeyRange::all()).after(Some(Cursor::new(vec![7, 7])));
    assert!(store.scan_without(&odd, &without).await.is_err());
}

#[tokio::test]
async fn a_scan_goes_on_after_any_of_its_rows() {
    let store = store().await;
    let without = [Key::parse("b1").unwrap()];
    for without in [&without[..], &[]] {
        for order in [Order::Ascending, Order::Descending] {
            let scan = Scan::new(KeyRange::all()).order(order);
            let every = scanned(&store, scan.clone(), without).await;
            for (at, name) in every.iter().enumerate() {
                let cursor = store.cursor_after(&Key::parse(name).unwrap(), &scan, without);
                assert!(cursor.is_some());
                let rest = scanned(&store, scan.clone().after(cursor), without).await;
                assert_eq!(rest, every[at + 1..], "after {name}");
            }
        }
    }
}

#[tokio::test]
async fn a_cursor_in_a_piece_that_is_not_there_is_refused() {
    let store = store().await;
    // Two pieces: before b1, and after it.
    let without = [Key::parse("b1").unwrap()];
    let at = |piece: u8| {
        let cursor = Cursor::new(vec![b's', 0, 0, 0, piece]);
        Scan::new(KeyRange::all()).after(Some(cursor))
    };
    assert!(store.scan_without(&at(1), &without).await.is_ok());
    for piece in [2, 255] {
        let error = store.scan_without(&at(piece), &without).await.unwrap_err();
        assert!(error.to_string().contains("cursor"), "{error}");
    }
}

#[tokio::test]
async fn what_is_left_out_is_not_read() {
    /// Fails on a scan that comes upon a key below `hidden`.
    struct Watched(Memory);

    impl Engine for Watched {
        fn capabilities(&self) -> &Capabilities {
            self.0.capabilities()
        }

        fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
            self.0.get_many(keys)
        }

        fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
            Box::pin(async move {
                let page = self.0.scan(scan).await?;
                assert!(page.rows.iter().all(|row| row.key.first() != "hidden"), "{scan:?}");
                Ok(page)
            })
        }

        fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
            self.0.commit(commit)
        }

        fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
            self.0.stats()
        }
    }

    let store = Store::new(Watched(Memory::new()));
    for text in ["a", "hidden", "hidden:1", "hidden:2:3", "z"] {
        let key = Key::parse(text).unwrap();
        store.put(key, Put::new(Json::from_integer(1))).await.unwrap();
    }
    let without = [Key::parse("hidden").unwrap()];
    let list = List::new(Prefix::all()).without(without.to_vec());
    assert_eq!(names(&store, list.clone()).await, ["a", "z"]);
    assert_eq!(names(&store, list.depth(1)).await, ["a", "z"]);
    assert_eq!(scanned(&store, Scan::new(KeyRange::all()), &without).await, ["a", "z"]);
}

#[tokio::test]
async fn a_listing_keeps_to_the_rows_a_store_allows() {
    /// Fails on a scan of more rows than two.
    struct Strict(Memory);

    impl Engine for Strict {
        fn capabilities(&self) -> &Capabilities {
            self.0.capabilities()
        }

        fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Entry>>>> {
            self.0.get_many(keys)
        }

        fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Page>> {
            assert!(scan.limit <= 2, "asked for {} rows", scan.limit);
            self.0.scan(scan)
        }

        fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome>> {
            self.0.commit(commit)
        }

        fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
            self.0.stats()
        }
    }

    let store = Store::new(Strict(Memory::new()));
    let limits = Limits { scan_rows_max: 2, ..*store.limits() };
    let store = store.with_limits(limits);
    for text in ["a", "b:c", "b:d", "c", "d"] {
        let key = Key::parse(text).unwrap();
        store.put(key, Put::new(Json::from_integer(1))).await.unwrap();
    }
    for list in [List::new(Prefix::all()).depth(1), List::new(Prefix::all())] {
        assert!(names(&store, list).await.len() >= 4);
    }
}
