//! Users with unique addresses: two cannot have one, and an address that is given up is free again.

#![allow(clippy::print_stdout, reason = "showing what happens is what an example is for")]

use keyward::records::{Caller, Draft, Merge, Precondition, Query, Written};
use keyward::schema::Schema;
use keyward::{Bindings, Data, Json};

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let data = Data::new(Schema::parse(include_str!("schema.toml"), "schema.toml")?);
    sign_up(&data, "ada", r#"{"email":"Ada@example.org","name":"Ada"}"#).await?;
    sign_up(&data, "eve", r#"{"email":"ada@EXAMPLE.org","name":"Eve"}"#).await?;
    sign_up(&data, "ada", r#"{"email":"ada2@example.org","name":"Ada again"}"#).await?;

    // Who signs in is found by their address. A program that does so for everybody is the operator.
    find(&data, "ADA@example.org").await?;

    // A change of address frees the old one and takes the new one in the same commit.
    let users = data.space("users", &Caller::user("ada")).await?;
    let key = users.key(Bindings::new())?;
    let moved = Merge::new(Json::parse(r#"{"email":"ada@example.net"}"#)?);
    println!("ada moves: {}", users.merge(&key, moved, Precondition::Any).await?.is_accepted());
    find(&data, "ada@example.org").await?;
    find(&data, "ada@example.net").await?;
    sign_up(&data, "eve", r#"{"email":"ada@example.org","name":"Eve"}"#).await
}

async fn sign_up(data: &Data, user: &str, profile: &'static str) -> Result {
    let users = data.space("users", &Caller::user(user)).await?;
    let key = users.key(Bindings::new())?;
    match users.create(&key, Draft::new(Json::parse(profile)?)).await {
        Ok(Written::Conflicted { .. }) => println!("{user} has signed up before"),
        Ok(_) => println!("{user} signs up with {profile}"),
        // The clash does not tell eve whose address it is.
        Err(clash) => println!("{user} is refused: {clash}"),
    }
    Ok(())
}

async fn find(data: &Data, address: &str) -> Result {
    let users = data.space("users", &Caller::operator()).await?;
    let found = users.query(&Query::index("users_by_email").equal(address)).await?;
    match found.records.first() {
        Some(record) => println!("{address} is {}", record.key),
        None => println!("{address} is nobody"),
    }
    Ok(())
}
