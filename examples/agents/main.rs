//! Two agents that share a namespace of a user: one collects pages, the other reads them.

#![allow(clippy::print_stdout, reason = "showing what happens is what an example is for")]

use keyward::agents::{Actor, Search, Set};
use keyward::records::{Filter, Precondition};
use keyward::schema::Schema;
use keyward::{Data, Json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = Data::new(Schema::parse(include_str!("schema.toml"), "schema.toml")?);
    let agents = data.agents(data.agents_store()?).await?;

    // Everything is done for a user, in the name of an agent.
    let ada = agents.user("ada", Actor::agent("crawler").in_run("r1"));
    let crawler = ada.use_namespace("pages:example.org")?;
    let reader = agents.user("ada", Actor::agent("reader")).use_namespace("pages:example.org")?;

    // The crawler keeps what it finds.
    for (page, title) in [("/", "Home"), ("/about", "About us"), ("/jobs", "Jobs")] {
        let value = json(&format!(r#"{{"title":"{title}","status":"new"}}"#))?;
        let set = Set::new(value).metadata(json(r#"{"source":"crawl-7"}"#)?);
        println!("the crawler set {page}: {}", crawler.set(page, set).await?.is_accepted());
    }

    // The reader finds what is new, by an index, and takes one entry for itself: of several readers
    // only one has the version that it expects.
    let new = Search::new().filter(Filter::parse(r#"{"value.status":"new"}"#)?);
    let found = reader.search(&new).await?;
    let pages: Vec<&str> = found.entries.iter().map(|entry| entry.key.as_str()).collect();
    println!("new by {}: {}", found.index.unwrap_or_default(), pages.join(" "));
    let first = found.entries.first().ok_or("nothing is new")?;
    let taken = || -> Result<Set, keyward::JsonError> {
        let set = Set::new(json(r#"{"title":"Home","status":"read"}"#)?);
        let set = set.metadata(json(r#"{"summary":"where it begins"}"#)?);
        Ok(set.expecting(Precondition::Version(first.version.clone())))
    };
    println!("the reader took {}: {}", first.key, reader.set("/", taken()?).await?.is_accepted());
    println!("and once more: {}", reader.set("/", taken()?).await?.is_accepted());

    // Each added its own metadata, and the entry knows who made it and who was here.
    let home = crawler.entry("/").await?.ok_or("it is gone")?;
    println!("metadata: {}", home.metadata.ok_or("it has none")?);
    let (made, last) = (home.created_by_agent.unwrap_or_default(), home.access.agent);
    println!(
        "made by {made}, read {} time, last by {}",
        home.access.count,
        last.unwrap_or_default()
    );

    // Another user's namespace of the same name is another one.
    let bobs = agents.user("bob", Actor::agent("crawler")).use_namespace("pages:example.org")?;
    println!("bob has {} pages", bobs.count("").await?);

    // The history tells who did what, the log what a run did.
    for past in crawler.history("/", None, 10).await? {
        let value = past.value.map_or("-".to_owned(), |value| value.to_string());
        println!("version {} by {}: {value}", past.seq, past.agent.unwrap_or_default());
    }
    for did in ada.operations("r1", None, 10).await?.operations {
        println!("in r1: {} {}", did.op, did.key.unwrap_or_default());
    }

    // Accesses were counted in memory; this writes them.
    agents.close().await?;
    Ok(())
}

fn json(text: &str) -> Result<Json, keyward::JsonError> {
    Json::parse(text.to_owned())
}
