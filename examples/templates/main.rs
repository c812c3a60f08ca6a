//! Templates that everybody reads and editors write.

#![allow(clippy::print_stdout, reason = "showing what happens is what an example is for")]

use keyward::records::{Caller, Draft, Precondition, Query, Written};
use keyward::schema::Schema;
use keyward::{Bindings, Data, Json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = Data::new(Schema::parse(include_str!("schema.toml"), "schema.toml")?);

    let editor = Caller::user("ada").with_role("editor");
    let templates = data.space("templates", &editor).await?;
    for (name, json) in [
        ("letter", r#"{"text":"Dear {name},","language":"en"}"#),
        ("brief", r#"{"text":"Guten Tag {name},","language":"de"}"#),
        ("invoice", r#"{"text":"Amount due: {sum}","language":"en"}"#),
    ] {
        let key = templates.key(Bindings::new().with("template", name))?;
        let created = templates.create(&key, Draft::new(Json::parse(json)?)).await?;
        println!("{key}: {}", if created.is_accepted() { "created" } else { "was there" });
    }

    // A reader finds them, and may not change them.
    let reader = data.space("templates", &Caller::user("bob")).await?;
    let english = Query::index("templates_by_language").equal("en");
    for record in reader.query(&english).await?.records {
        println!("bob reads {}", record.key);
    }
    let letter = reader.key(Bindings::new().with("template", "letter"))?;
    let refused = reader.delete(&letter, Precondition::Any).await;
    println!("bob: {}", refused.err().ok_or("bob deleted it")?);

    // Two editors who read the same version: the second learns that the first was faster.
    let read = reader.get(&letter).await?.ok_or("the letter is gone")?;
    for text in [r#"{"text":"Hello {name},","language":"en"}"#, r#"{"text":"Hi!","language":"en"}"#]
    {
        let expected = Precondition::Version(read.version.clone());
        let draft = Draft::new(Json::parse(text)?).expecting(expected);
        match templates.put(&letter, draft).await? {
            Written::Conflicted { .. } => println!("conflict: read it again, then decide"),
            _ => println!("changed to {text}"),
        }
    }
    Ok(())
}
