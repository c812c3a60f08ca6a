//! Places near me: by distance over the ground, also across the 180th meridian.

#![allow(clippy::print_stdout, reason = "showing what happens is what an example is for")]

use keyward::records::geo::{BoundingBox, Circle, Point};
use keyward::records::{Caller, Draft, Filter, Near, Space, Within};
use keyward::schema::Schema;
use keyward::{Bindings, Data, Json};

const PLACES: [(&str, &str); 6] = [
    ("brandenburg-gate", r#"{"lat":52.51628,"lon":13.37770,"kind":"gate"}"#),
    ("reichstag", r#"{"lat":52.51862,"lon":13.37618,"kind":"parliament"}"#),
    ("tv-tower", r#"{"lat":52.52082,"lon":13.40942,"kind":"tower"}"#),
    ("sanssouci", r#"{"lat":52.40389,"lon":13.03844,"kind":"palace"}"#),
    ("suva", r#"{"lat":-18.14160,"lon":178.44190,"kind":"city"}"#),
    ("apia", r#"{"lat":-13.83330,"lon":-171.76660,"kind":"city"}"#),
];

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let data = Data::new(Schema::parse(include_str!("schema.toml"), "schema.toml")?);
    let places = data.space("places", &Caller::user("ada")).await?;
    for (name, json) in PLACES {
        let key = places.key(Bindings::new().with("place", name))?;
        let written = places.put(&key, Draft::new(Json::parse(json)?)).await?;
        assert!(written.is_accepted());
    }

    println!("Within 3 km of Friedrichstrasse station:");
    let station = Circle::new(Point::new(52.52030, 13.38700)?, 3_000.0)?;
    show(&places, &Near::new("places_near", station)).await?;

    println!("The nearest tower there:");
    let tower = Filter::parse(r#"{"kind":"tower"}"#)?;
    show(&places, &Near::new("places_near", station).filter(tower).limit(1)).await?;

    println!("Within 1200 km of a ship on the 180th meridian:");
    let ship = Circle::new(Point::new(-16.0, 180.0)?, 1_200_000.0)?;
    show(&places, &Near::new("places_near", ship)).await?;

    println!("In a box around Berlin and Potsdam:");
    let area = BoundingBox::new(52.3, 13.0, 52.7, 13.8)?;
    for record in places.within(&Within::new("places_near", area)).await?.records {
        println!("  {}", record.key);
    }
    Ok(())
}

async fn show(places: &Space, near: &Near) -> Result {
    for found in places.near(near).await?.found {
        println!("  {:>7.2} km  {}", found.distance_m / 1_000.0, found.record.key);
    }
    Ok(())
}
