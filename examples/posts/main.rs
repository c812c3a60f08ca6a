//! Posts: each belongs to its author, and everybody finds it, by tag and by time.

#![allow(clippy::print_stdout, reason = "showing what happens is what an example is for")]

use keyward::records::{Caller, Draft, Precondition, Query, Space};
use keyward::schema::Schema;
use keyward::{Bindings, Data, Json};

const POSTS: [(&str, &str, &str); 4] = [
    (
        "ada",
        "p1",
        r#"{"title":"Keys","tags":["rust","data"],"at":"2026-01-05T09:00:00Z","remarks":"too long?"}"#,
    ),
    ("bob", "p1", r#"{"title":"Locks","tags":["rust"],"at":"2026-02-01T12:00:00+01:00"}"#),
    ("ada", "p2", r#"{"title":"Doors","tags":["data"],"at":"2026-03-09T18:30:00Z"}"#),
    ("bob", "p2", r#"{"title":"Walls","at":"2026-02-11T08:00:00Z"}"#),
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = Data::new(Schema::parse(include_str!("schema.toml"), "schema.toml")?);
    for (author, post, json) in POSTS {
        let posts = data.space("posts", &Caller::user(author)).await?;
        let key = posts.key(Bindings::new().with("post", post))?;
        // The post and all its index entries are written in one commit.
        let written = posts.put(&key, Draft::new(Json::parse(json)?)).await?;
        assert!(written.is_accepted());
    }

    let carol = data.space("posts", &Caller::user("carol")).await?;
    println!("The latest, two a page:");
    let mut latest = Query::index("posts_recent").descending().limit(2);
    loop {
        let page = carol.query(&latest).await?;
        for record in page.records {
            println!("  {}", record.value);
        }
        println!("  --");
        match page.next {
            Some(cursor) => latest.cursor = Some(cursor),
            None => break,
        }
    }

    println!("Tagged rust in 2026:");
    show(&carol, "rust").await?;

    // Carol found it, and saw no remarks. She can neither read all of it nor change it.
    let key = carol.query(&Query::index("posts_recent")).await?.records.remove(0).key;
    println!("carol: {}", carol.delete(&key, Precondition::Any).await.err().ok_or("deleted")?);

    // When the author deletes it, its entries go with it.
    let ada = data.space("posts", &Caller::user("ada")).await?;
    println!("ada deletes {key}: {:?}", ada.delete(&key, Precondition::Any).await?);
    println!("Tagged rust now:");
    show(&carol, "rust").await
}

async fn show(posts: &Space, tag: &str) -> Result<(), Box<dyn std::error::Error>> {
    let tagged = Query::index("posts_by_tag")
        .equal(tag)
        .between("2026-01-01T00:00:00Z", "2026-12-31T23:59:59Z");
    for record in posts.query(&tagged).await?.records {
        println!("  {} {}", record.key, record.value);
    }
    Ok(())
}
