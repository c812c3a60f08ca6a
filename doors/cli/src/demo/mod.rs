//! A small set of data to look at.

mod agreements;

use keyward::locks::{LockPath, Locks, Mode, Options as LockOptions, Request};
use keyward::queue::{JobOptions, Jobs, Message, Options as QueueOptions, Queue};
use keyward::records::{Caller, Draft};
use keyward::schema::Schema;
use keyward::{Bindings, Data, Json, Key, Put, SystemClock};
use keyward_server::WorkspaceConfig;

use crate::failure::{Failure, Result};

/// Where it is kept when nobody says.
pub const STORE_DEFAULT: &str = "embedded:./keyward-demo";
/// The name of its store.
const STORE: &str = "demo";

/// Space, user, variable of the key, its value, the record.
const RECORDS: &[(&str, &str, &str, &str, &str)] = &[
    ("people", "ada", "", "", r#"{"name":"Ada","email":"ada@example.org"}"#),
    ("people", "grace", "", "", r#"{"name":"Grace","email":"grace@example.org"}"#),
    ("people", "lin", "", "", r#"{"name":"Lin","email":"lin@example.org"}"#),
    ("notes", "ada", "note", "n1", r#"{"text":"Keys turn locks.","tags":["idea"]}"#),
    ("notes", "ada", "note", "n2", r#"{"text":"Buy bread.","tags":["home","today"]}"#),
    ("notes", "grace", "note", "n1", r#"{"text":"Look for the moth.","tags":["work","today"]}"#),
    ("posts", "ada", "post", "p1", r#"{"title":"The engine runs","at":"2026-03-01T09:00:00Z"}"#),
    ("posts", "grace", "post", "p1", r#"{"title":"A word on words","at":"2026-03-04T17:30:00Z"}"#),
    ("posts", "lin", "post", "p1", r#"{"title":"Bread on Sunday","at":"2026-03-06T07:15:00Z"}"#),
    ("places", "", "place", "bakery", r#"{"name":"Bakery","lat":51.5081,"lon":-0.0759}"#),
    ("places", "", "place", "library", r#"{"name":"Library","lat":51.5299,"lon":-0.1277}"#),
    ("places", "", "place", "harbour", r#"{"name":"Harbour","lat":51.5045,"lon":-0.0481}"#),
];

/// The stores and spaces of the demo.
pub fn data(url: &str) -> Result<Data> {
    Ok(Data::new(Schema::parse(include_str!("schema.toml"), "the demo's schema")?)
        .at(STORE, url)?)
}

/// The workspaces of the demo.
pub fn workspaces() -> Result<Vec<WorkspaceConfig>> {
    Ok(vec![agreements::workspace()?])
}

/// Puts in what is to be looked at, unless it is there already.
pub async fn fill(data: &Data, workspaces: &[WorkspaceConfig]) -> Result {
    for workspace in workspaces {
        agreements::fill(data, workspace).await?;
    }
    fill_store(data).await
}

async fn fill_store(data: &Data) -> Result {
    let store = data.records(STORE).await?.store().clone();
    let greeting = Key::from_segments(["welcome"]).map_err(unmade)?;
    if store.get(&greeting).await?.is_some() {
        return Ok(());
    }
    for (space, user, variable, value, json) in RECORDS {
        let caller = if user.is_empty() { Caller::operator() } else { Caller::user(user) };
        let space = data.space(space, &caller).await?;
        let values = match *variable {
            "" => Bindings::new(),
            name => Bindings::new().with(name, *value),
        };
        // A record that is there already stays as it is.
        let _ = space.create(&space.key(values)?, Draft::new(parsed(json)?)).await?;
    }
    let queue = Queue::new(store.clone(), "letters", SystemClock, QueueOptions::default())?;
    for id in ["letter-1", "letter-2"] {
        let message = Message::new(parsed(r#"{"to":"lin","subject":"Sunday"}"#)?).id(id);
        queue.enqueue(message).await?;
    }
    let jobs = Jobs::new(store.clone(), SystemClock, QueueOptions::default())?;
    let options = JobOptions { id: Some("print-1".to_owned()), ..JobOptions::default() };
    jobs.submit("prints", parsed(r#"{"pages":12}"#)?, options).await?;
    let locks = Locks::new(store.clone(), SystemClock, LockOptions::default())?;
    let root = locks.root(Key::from_segments(["board"]).map_err(unmade)?)?;
    let guard = root.acquire(&[LockPath::root()], Mode::Exclusive, &Request::default()).await?;
    guard.release().await?;
    // Last, so that a fill that was cut off is done again.
    store
        .put(greeting, Put::new(parsed(r#""This is a demo: look around, change anything.""#)?))
        .await?;
    Ok(())
}

fn parsed(json: &str) -> Result<Json> {
    Json::parse(json.to_owned()).map_err(unmade)
}

fn unmade(error: impl std::fmt::Display) -> Failure {
    Failure::invalid(format!("the demo cannot be made: {error}"))
}
