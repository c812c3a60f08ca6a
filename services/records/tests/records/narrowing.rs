//! Listings and queries of a part of the keys.

use keyward_engine::{Code, Coded, Tier};
use keyward_key::Bindings;
use keyward_records::{Caller, Filter, ListedItem, Listing, Query, Records};

use crate::declared::{memory, open};
use crate::fixture::{draft, ids};

const SHELVES: &str = r#"
[stores.app]
[spaces.books]
key = "user:{user}:books:{shelf}:{book}"
ownership = "user"
[spaces.books.indexes.by_state]
field = "state"
type = "text"
"#;

async fn books() -> Records {
    let (memory, clock) = memory(Tier::Atomic);
    let records = open(&memory, &clock, SHELVES);
    for user in ["ada", "bob"] {
        let books = records.space("books", &Caller::user(user)).unwrap();
        for shelf in ["a", "ab", "b"] {
            for book in ["x", "xy", "y"] {
                let values = Bindings::new().with("shelf", shelf).with("book", book);
                let key = books.key(values).unwrap();
                let state = if book == "y" { "lent" } else { "here" };
                let value = draft(&format!(r#"{{"state":"{state}"}}"#));
                assert!(books.put(&key, value).await.unwrap().is_accepted());
            }
        }
    }
    records
}

#[tokio::test]
async fn a_listing_shows_what_goes_on_with_a_text() {
    let records = books().await;
    let books = records.space("books", &Caller::user("ada")).unwrap();
    let mut listing = Listing::new(Bindings::new().with("shelf", "a")).starting("x").limit(1);
    let mut found = Vec::new();
    loop {
        let page = books.list(&listing).await.unwrap();
        found.extend(page.items.into_iter().map(|item| match item {
            ListedItem::Key(key) => key.to_string(),
            ListedItem::Prefix(prefix) => panic!("{prefix}"),
        }));
        let Some(next) = page.next else { break };
        // A cursor of one beginning is none of another.
        let other = listing.clone().starting("y").after(Some(next.clone()));
        assert_eq!(books.list(&other).await.unwrap_err().code(), Code::BadCursor);
        listing = listing.after(Some(next));
    }
    assert_eq!(found, ["user:ada:books:a:x", "user:ada:books:a:xy"]);
    let shelves = Listing::new(Bindings::new()).starting("a").depth(1);
    let shelves = books.list(&shelves).await.unwrap().items;
    assert_eq!(shelves.len(), 2, "{shelves:?}");
}

#[tokio::test]
async fn an_index_is_asked_for_a_part_of_the_keys() {
    let records = books().await;
    let books = records.space("books", &Caller::user("ada")).unwrap();
    let here = Filter::parse(r#"{"state":"here"}"#).unwrap();
    let query = Query::for_filter(books.declaration(), &here).unwrap();
    let on_a = query.clone().among(Bindings::new().with("shelf", "a"));
    let answer = books.query(&on_a).await.unwrap();
    assert_eq!(ids(&answer.records), ["x", "xy"]);
    // Entries of the other shelves are read, and not followed.
    assert_eq!((answer.read.entries, answer.read.records), (6, 2));
    let few = books.query(&on_a.clone().starting("xy")).await.unwrap();
    assert_eq!(ids(&few.records), ["xy"]);
    assert_eq!(ids(&books.query(&query.starting("ab")).await.unwrap().records), ["x", "xy"]);
    // The same without the index.
    let scan = Query::key(Bindings::new().with("shelf", "a")).filter(here).allow_scan();
    assert_eq!(books.query(&scan).await.unwrap().records, answer.records);
    assert_eq!(ids(&books.query(&scan.clone().starting("xy")).await.unwrap().records), ["xy"]);
    let bobs = Query::index("by_state").among(Bindings::new().with("user", "bob"));
    assert_eq!(books.query(&bobs).await.unwrap_err().code(), Code::Forbidden);
    let nonsense = scan.among(Bindings::new());
    assert_eq!(books.query(&nonsense).await.unwrap_err().code(), Code::BadQuery);
}
