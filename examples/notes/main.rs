//! Notes that belong to users: a user reaches their own, and nobody else's.

#![allow(clippy::print_stdout, reason = "showing what happens is what an example is for")]

use keyward::records::{Caller, Draft, Listing, Merge, Precondition, Query};
use keyward::schema::Schema;
use keyward::{Bindings, Data, Json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = Data::new(Schema::parse(include_str!("schema.toml"), "schema.toml")?);

    // A space is always reached as somebody. The owner in the key is the caller.
    let notes = data.space("notes", &Caller::user("ada")).await?;
    let milk = notes.key(Bindings::new().with("note", "milk"))?;
    let written = notes.put(&milk, note(r#"{"title":"Buy milk","status":"open"}"#)?).await?;
    println!("ada wrote {milk}: {}", written.is_accepted());
    let keys = notes.key(Bindings::new().with("note", "keys"))?;
    let written = notes.put(&keys, note(r#"{"title":"Find the keys","status":"open"}"#)?).await?;
    println!("ada wrote {keys}: {}", written.is_accepted());

    // Bob cannot reach it, not even by its exact key.
    let bobs = data.space("notes", &Caller::user("bob")).await?;
    println!("bob: {}", bobs.get(&milk).await.err().ok_or("bob got it")?);
    println!("bob lists {} notes", bobs.list(&Listing::new(Bindings::new())).await?.items.len());

    // What does not fit the schema is not written.
    let wrong = notes.put(&milk, note(r#"{"title":"Buy milk","status":"dnoe"}"#)?).await;
    println!("ada: {}", wrong.err().ok_or("it was written")?);

    // Merging changes a part; the index changes with it.
    let done = Merge::new(Json::parse(r#"{"status":"done"}"#)?);
    if !notes.merge(&milk, done, Precondition::Any).await?.is_accepted() {
        println!("somebody was faster");
    }
    for record in notes.query(&Query::index("notes_by_status").equal("open")).await?.records {
        println!("still open: {}", record.value);
    }

    // The space keeps history, so what was is not lost.
    for past in notes.history(&milk, None, 10).await? {
        let value = past.value.map_or("-".to_owned(), |value| value.to_string());
        println!("version {} by {}: {value}", past.seq, past.user.unwrap_or_default());
    }
    Ok(())
}

fn note(json: &'static str) -> Result<Draft, keyward::JsonError> {
    Ok(Draft::new(Json::parse(json)?))
}
