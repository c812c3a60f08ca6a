//! The user whose records nobody else must see, and what is secret about them.

use std::collections::BTreeMap;
use std::time::Duration;

use keyward_engine::{Code, Coded, Json, Scan, Tier};
use keyward_key::{Bindings, Key, KeyRange};
use keyward_records::{Caller, Draft, Query, Records, Space};
use keyward_schema::{IndexKind, Schema};
use keyward_stores::Place;
use keyward_testkit::TestClock;

/// In everything that must not be seen.
pub const SECRET: &str = "S3CR3T-9f2c71d0";
/// How near to it attackers come by themselves.
pub const GUESS: &str = "S3CR3T";
pub const NAME: &str = "ada";
pub const EMAIL: &str = "ada@example.org";

pub const SPACES: [&str; 5] = ["notes", "people", "posts", "places", "pages"];
pub const INDEXES: [&str; 8] =
    ["by_title", "by_tag", "email", "recent", "posts_by_tag", "geo", "slug", "none"];

const SCHEMA: &str = r#"
[stores.app]

[spaces.notes]
key = "user:{user}:notes:{note}"
ownership = "user"
[spaces.notes.indexes.by_title]
field = "title"
type = "text"
[spaces.notes.indexes.by_tag]
field = "tags"
type = "text"
multi = true

[spaces.people]
key = "user:{user}"
ownership = "user"
[spaces.people.indexes.email]
field = "email"
type = "folded"
unique = true
scope = "shared"

[spaces.posts]
key = "user:{user}:posts:{post}"
ownership = "hybrid"
share = ["text", "tags", "at"]
[spaces.posts.indexes.recent]
kind = "time"
field = "at"
scope = "shared"
[spaces.posts.indexes.posts_by_tag]
field = "tags"
type = "text"
multi = true
scope = "shared"

[spaces.places]
key = "user:{user}:places:{place}"
ownership = "user"
[spaces.places.indexes.geo]
kind = "geohash"
lat = "lat"
lon = "lon"
precision = 7

[spaces.pages]
key = "user:{user}:pages:{page}"
ownership = "user"
history = 5
[spaces.pages.indexes.slug]
field = "slug"
type = "text"
unique = true
"#;

pub struct Victim {
    pub records: Records,
    clock: TestClock,
}

impl Victim {
    /// A user of a new store, with as much of the schema as its engine can keep.
    pub async fn new(place: &Place) -> Self {
        let store = place.store().await;
        let tier = store.capabilities().tier();
        let schema = Schema::parse(SCHEMA, "schema.toml").unwrap_or_else(|p| panic!("{p}"));
        let spaces = schema.spaces.into_iter().map(|mut space| {
            if tier != Tier::Atomic {
                space.history = None;
            }
            for index in &mut space.indexes {
                if let (IndexKind::Values { unique, .. }, Tier::Advisory) = (&mut index.kind, tier)
                {
                    *unique = false;
                }
            }
            space
        });
        let clock = place.clock().clone();
        let records = Records::open(store, spaces, clock.clone()).unwrap();
        let victim = Self { records, clock };
        for n in 0..3 {
            let secret = format!("{SECRET} {n}");
            victim
                .put(
                    "notes",
                    &format!("n{n}"),
                    &format!(r#"{{"title":"{secret}","tags":["a","b"]}}"#),
                )
                .await;
            let post = format!(
                r#"{{"text":"hello","tags":["a"],"at":"2026-01-0{}T00:00:00Z","draft":"{secret}"}}"#,
                n + 1
            );
            victim.put("posts", &format!("p{n}"), &post).await;
            // No shared index finds it.
            victim.put("posts", &format!("d{n}"), &format!(r#"{{"text":"{secret}"}}"#)).await;
            let place = format!(r#"{{"lat":52.52,"lon":13.40{n},"name":"{secret}"}}"#);
            victim.put("places", &format!("l{n}"), &place).await;
            for version in 0..3 {
                let page = format!(r#"{{"slug":"s{n}","text":"{secret} {version}"}}"#);
                victim.put("pages", &format!("g{n}"), &page).await;
            }
        }
        victim.put("people", "", &format!(r#"{{"email":"{EMAIL}","name":"{SECRET}"}}"#)).await;
        victim.wait();
        victim
    }

    /// Until late reads see what was written.
    pub fn wait(&self) {
        self.clock.advance(Duration::from_secs(10));
    }

    pub fn space(&self, name: &str) -> Space {
        self.records.space(name, &Caller::user(NAME)).unwrap()
    }

    pub fn key(&self, space: &str, id: &str) -> Key {
        let space = self.space(space);
        let variable = space.declaration().key.variables().last().unwrap().name.clone();
        let values = match variable.as_str() {
            "user" => Bindings::new(),
            variable => Bindings::new().with(variable, id),
        };
        space.key(values).unwrap()
    }

    async fn put(&self, space: &str, id: &str, value: &str) {
        let metadata = Json::parse(format!(r#"{{"by":"{SECRET}"}}"#)).unwrap();
        let draft = Draft::new(Json::parse(value.to_owned()).unwrap()).with_metadata(metadata);
        let written = self.space(space).put(&self.key(space, id), draft).await.unwrap();
        assert!(written.is_accepted());
    }

    /// Every row of the store, with its version.
    pub async fn everything(&self) -> BTreeMap<Key, String> {
        let mut scan = Scan::new(KeyRange::all()).limit(10_000);
        let mut rows = BTreeMap::new();
        loop {
            let page = self.records.store().scan(&scan).await.unwrap();
            rows.extend(page.rows.into_iter().map(|row| (row.key, format!("{:?}", row.entry))));
            match page.next {
                Some(next) => scan.after = Some(next),
                None => return rows,
            }
        }
    }

    /// Nothing that was there has changed, and nothing was added below the victim's name or in it.
    pub async fn check(&self, before: &BTreeMap<Key, String>) {
        let after = self.everything().await;
        for (key, row) in before {
            // What all users have in common changes with any of them.
            if key.first() != "system" || key.segments().nth(1).is_some_and(|s| s == "history") {
                assert_eq!(after.get(key), Some(row), "{key}");
            }
        }
        for (key, row) in after.iter().filter(|(key, _)| !before.contains_key(key)) {
            let mut segments = key.segments();
            let below = segments.next().is_some_and(|first| first == "user")
                && segments.next().is_some_and(|user| user == NAME);
            let named = row.contains("\"user:ada\"") || row.contains("\"user:ada:");
            assert!(!below && !named, "{key} {row}");
        }
    }

    pub async fn still_finds_everything(&self) {
        for (space, index) in [("notes", "by_title"), ("notes", "by_tag"), ("pages", "slug")] {
            let answer = self.space(space).query(&Query::index(index)).await.unwrap();
            assert_eq!(answer.records.len(), 3, "{index}");
        }
        let mail = Query::index("email").equal(EMAIL);
        let people = self.space("people");
        let found = people.query(&mail).await;
        match people.guarantee() {
            // Where others may have the same, asking would tell of them.
            Tier::Advisory => assert_eq!(found.unwrap_err().code(), Code::BadQuery),
            _ => assert_eq!(found.unwrap().records.len(), 1),
        }
    }
}
