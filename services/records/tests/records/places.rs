//! Places near a point and in a box, compared with looking at every one.

use fastrand::Rng;
use keyward_engine::{Code, Coded};
use keyward_key::Bindings;
use keyward_records::geo::{BoundingBox, Circle, Point, distance_m};
use keyward_records::{Draft, Near, Operation, Space, Within};
use keyward_stores::{Place, on_engines};

use crate::fixture::{Fixture, ids, json};

on_engines!(
    memory: Memory, embedded: Embedded, postgres: Postgres, recoverable: Recoverable;
    near_finds_what_is_near_and_sorts_it,
    near_goes_on_where_a_page_ended,
    within_finds_what_is_in_the_box,
    a_place_that_moves_is_found_where_it_is,
);

async fn fill(places: &Space, points: &[Point]) {
    let operations = points.iter().enumerate().map(|(n, point)| {
        let value = format!(r#"{{"lat":{},"lon":{},"name":"{n}"}}"#, point.lat(), point.lon());
        let key = places.key(Bindings::new().with("place", n.to_string())).unwrap();
        Operation::Put(key, Draft::new(json(&value)))
    });
    for written in places.each(operations.collect()).await {
        assert!(written.unwrap().is_accepted());
    }
}

/// Everywhere, and crowded where it is hard: at the poles, at the 180° meridian, in one town.
fn points(rng: &mut Rng) -> Vec<Point> {
    let at = |lat: f64, lon: f64| Point::new(lat, lon).unwrap();
    let mut points = vec![at(90.0, 0.0), at(-90.0, 17.0), at(0.0, 180.0), at(0.0, -180.0)];
    for _ in 0..40 {
        points.push(at(rng.f64() * 180.0 - 90.0, rng.f64() * 360.0 - 180.0));
        points.push(at(89.0 + rng.f64(), rng.f64() * 360.0 - 180.0));
        let east = 179.5 + rng.f64();
        let lon = if east > 180.0 { east - 360.0 } else { east };
        points.push(at(rng.f64() - 0.5, lon));
        points.push(at(52.5 + rng.f64() / 10.0, 13.4 + rng.f64() / 10.0));
    }
    points
}

async fn near_finds_what_is_near_and_sorts_it(place: Place) {
    let fixture = Fixture::new(place).await;
    let places = fixture.space("places", "ada");
    let mut rng = Rng::with_seed(1);
    let points = points(&mut rng);
    fill(&places, &points).await;
    for _ in 0..40 {
        let centre = points[rng.usize(..points.len())];
        let radius = [0.0, 300.0, 20_000.0, 300_000.0, 30_000_000.0][rng.usize(..5)];
        let limit = [1, 10, 1_000][rng.usize(..3)];
        let circle = Circle::new(centre, radius).unwrap();
        let answer = places.near(&Near::new("geo", circle).limit(limit)).await.unwrap();
        let mut expected: Vec<f64> = points
            .iter()
            .map(|point| distance_m(centre, *point))
            .filter(|distance| *distance <= radius)
            .collect();
        expected.sort_by(f64::total_cmp);
        expected.truncate(limit);
        let found: Vec<f64> = answer.found.iter().map(|found| found.distance_m).collect();
        assert_eq!(found, expected, "{centre:?} {radius}");
    }
}

async fn near_goes_on_where_a_page_ended(place: Place) {
    let fixture = Fixture::new(place).await;
    let places = fixture.space("places", "ada");
    let mut rng = Rng::with_seed(3);
    let mut points = points(&mut rng);
    // Several at one place: then the key says which comes first.
    points.extend([Point::new(52.52, 13.405).unwrap(); 5]);
    fill(&places, &points).await;
    for limit in [1, 3, 7] {
        let circle = Circle::new(Point::new(52.52, 13.405).unwrap(), 20_000.0).unwrap();
        let whole = places.near(&Near::new("geo", circle).limit(1_000)).await.unwrap();
        assert!(whole.found.len() > 40 && whole.next.is_none());
        let mut near = Near::new("geo", circle).limit(limit);
        let mut found = Vec::new();
        loop {
            let page = places.near(&near).await.unwrap();
            assert!(page.found.len() <= limit);
            found.extend(page.found);
            match page.next {
                Some(next) => near = near.after(Some(next)),
                None => break,
            }
        }
        assert_eq!(found, whole.found);
    }
    // A cursor is for one question and one caller.
    let near = |radius: f64| {
        Near::new("geo", Circle::new(Point::new(52.52, 13.405).unwrap(), radius).unwrap()).limit(1)
    };
    let next = places.near(&near(20_000.0)).await.unwrap().next;
    let other = places.near(&near(19_000.0).after(next.clone())).await.unwrap_err();
    assert_eq!(other.code(), Code::BadCursor);
    let bob = fixture.space("places", "bob");
    let foreign = bob.near(&near(20_000.0).after(next)).await.unwrap_err();
    assert_eq!(foreign.code(), Code::BadCursor);
}

async fn within_finds_what_is_in_the_box(place: Place) {
    let fixture = Fixture::new(place).await;
    let places = fixture.space("places", "ada");
    let points = points(&mut Rng::with_seed(2));
    fill(&places, &points).await;
    for (south, west, north, east) in [
        (52.5, 13.4, 52.55, 13.45),
        (-1.0, 179.0, 1.0, -179.0),
        (80.0, -180.0, 90.0, 180.0),
        (-90.0, -180.0, 90.0, 180.0),
        (10.0, 10.0, 10.0, 10.0),
    ] {
        let area = BoundingBox::new(south, west, north, east).unwrap();
        let mut found = Vec::new();
        let mut within = Within::new("geo", area).limit(7);
        loop {
            let answer = places.within(&within).await.unwrap();
            found.extend(ids(&answer.records));
            match answer.next {
                Some(next) => within = within.after(Some(next)),
                None => break,
            }
        }
        let mut found: Vec<usize> = found.iter().map(|id| id.parse().unwrap()).collect();
        found.sort_unstable();
        let inside = |n: &usize| area.contains(points[*n]);
        let expected: Vec<usize> = (0..points.len()).filter(inside).collect();
        assert_eq!(found, expected, "{area:?}");
    }
}

async fn a_place_that_moves_is_found_where_it_is(place: Place) {
    let fixture = Fixture::new(place).await;
    let places = fixture.space("places", "ada");
    let at = |lat, lon| Point::new(lat, lon).unwrap();
    fill(&places, &[at(52.52, 13.405)]).await;
    fill(&places, &[at(52.52001, 13.405)]).await;
    let near = |point| Near::new("geo", Circle::new(point, 100.0).unwrap());
    let answer = places.near(&near(at(52.52001, 13.405))).await.unwrap();
    assert_eq!(answer.found.len(), 1);
    assert!(answer.found[0].distance_m < 0.01);
    fill(&places, &[at(-33.0, 151.0)]).await;
    assert!(places.near(&near(at(52.52, 13.405))).await.unwrap().found.is_empty());
    assert_eq!(places.near(&near(at(-33.0, 151.0))).await.unwrap().found.len(), 1);
    let wrong = places.near(&Near::new("none", Circle::new(at(0.0, 0.0), 1.0).unwrap())).await;
    assert_eq!(wrong.unwrap_err().code(), Code::UnknownIndex);
}
