//! What is promised about places, covers and rings, on random shapes: at the poles, across the 180°
//! meridian, from nothing to more than the Earth.

mod boxes;
mod circles;
mod points;
mod rings;
mod spans;

use keyward_testkit::deep;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::point::{DISTANCE_M_MAX, EARTH_RADIUS_M};
use super::{CellRange, Circle, Point, Precision, grid};

/// The same cases in every run, and twenty times as many in a deep one.
fn cases(usual: u32) -> ProptestConfig {
    ProptestConfig {
        cases: if deep() { 20 * usual } else { usual },
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn point(lat: f64, lon: f64) -> Point {
    Point::new(lat, lon).unwrap()
}

fn precision(characters: u8) -> Precision {
    Precision::new(characters).unwrap()
}

fn precisions() -> impl Strategy<Value = Precision> {
    (1..=12_u8).prop_map(precision)
}

/// A coordinate from `-end` to `end`: anywhere, at or near the places where something changes, and
/// on the edges of cells.
fn degrees(end: f64) -> impl Strategy<Value = f64> {
    let special = prop::sample::select(vec![-end, -end / 2.0, -0.0, 0.0, end / 2.0, end]);
    let nearby = (special.clone(), -9.0..1.0_f64, any::<bool>()).prop_map(|(at, log, above)| {
        let off = 10_f64.powf(log);
        if above { at + off } else { at - off }
    });
    let edge = (0..=1_u32 << 15).prop_map(move |at| f64::from(at) * end / f64::from(1 << 14) - end);
    prop_oneof![4 => -end..=end, 1 => special, 2 => nearby, 1 => edge]
        .prop_map(move |degrees| degrees.clamp(-end, end))
}

fn points() -> impl Strategy<Value = Point> {
    (degrees(90.0), degrees(180.0)).prop_map(|(lat, lon)| point(lat, lon))
}

fn radii() -> impl Strategy<Value = f64> {
    let special = vec![0.0, DISTANCE_M_MAX / 2.0, DISTANCE_M_MAX, 1e9, f64::MAX];
    let any = (-3.0..7.5_f64).prop_map(|log| 10_f64.powf(log));
    // All but a spot on the other side of the Earth.
    let most = (-3.0..6.0_f64).prop_map(|log| DISTANCE_M_MAX - 10_f64.powf(log));
    prop_oneof![5 => any, 1 => most, 1 => prop::sample::select(special)]
}

fn circles() -> impl Strategy<Value = Circle> {
    (points(), radii()).prop_map(|(centre, radius_m)| Circle::new(centre, radius_m).unwrap())
}

/// Directions and distances, which are parts of a radius; many go right to the outline.
fn ways() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let part = prop_oneof![0.0..=1.0, Just(1.0), (0.0..=1.0_f64).prop_map(|off| 1.0 - off * 1e-9)];
    prop::collection::vec((0.0..360.0, part), 40)
}

/// Where one gets from a place, in degrees clockwise from north and metres.
fn destination(from: Point, bearing: f64, distance_m: f64) -> Point {
    let (sin_lat, cos_lat) = from.lat().to_radians().sin_cos();
    let (sin_lon, cos_lon) = from.lon().to_radians().sin_cos();
    let (east, north) = bearing.to_radians().sin_cos();
    let (along, up) = (distance_m.min(DISTANCE_M_MAX) / EARTH_RADIUS_M).sin_cos();
    let x = up * cos_lat * cos_lon - along * (north * sin_lat * cos_lon + east * sin_lon);
    let y = up * cos_lat * sin_lon - along * (north * sin_lat * sin_lon - east * cos_lon);
    let z = up * sin_lat + along * north * cos_lat;
    point(z.atan2(x.hypot(y)).to_degrees(), y.atan2(x).to_degrees())
}

/// A place under all its names.
fn names(place: Point) -> Vec<Point> {
    let (lat, lon) = (place.lat(), place.lon());
    if lat.abs() == 90.0 {
        [-180.0, -77.7, 0.0, lon, 180.0].map(|lon| point(lat, lon)).to_vec()
    } else if lon.abs() == 180.0 {
        vec![place, point(lat, -lon)]
    } else {
        vec![place]
    }
}

/// Whether a scan of the ranges would read the entry of a place.
fn would_read<'a>(
    ranges: impl IntoIterator<Item = &'a CellRange>,
    place: Point,
    precision: Precision,
) -> bool {
    let hash = place.geohash(precision);
    ranges.into_iter().any(|range| range.from <= hash && hash <= range.to)
}

/// Ranges are as long as the index's geohashes, in order, and not longer in number than need be.
fn assert_well_formed(ranges: &[CellRange], precision: Precision) {
    for range in ranges {
        assert_eq!(range.from.len(), usize::from(precision.characters()), "{range:?}");
        assert_eq!(range.to.len(), usize::from(precision.characters()), "{range:?}");
        assert!(range.from <= range.to, "{range:?}");
    }
    for pair in ranges.windows(2) {
        assert!(number(&pair[0].to) + 1 < number(&pair[1].from), "{pair:?}");
    }
}

/// The number of a cell, from its geohash.
fn number(hash: &str) -> u64 {
    hash.bytes().fold(0, |number, character| {
        let digit = grid::ALPHABET.iter().position(|&letter| letter == character).unwrap();
        number << 5 | digit as u64
    })
}

/// How much of the Earth's surface ranges hold, in square metres.
fn area_m2(ranges: &[CellRange], precision: Precision) -> f64 {
    let mut sum = 0.0;
    for range in ranges {
        let (mut from, to) = (number(&range.from), number(&range.to));
        while from <= to {
            let fits = |halvings: u32| {
                from.trailing_zeros() >= halvings && from + ((1 << halvings) - 1) <= to
            };
            let below = (0..=precision.bits()).rev().find(|&halvings| fits(halvings)).unwrap();
            sum += cell_area_m2(from >> below, precision.bits() - below);
            from += 1 << below;
        }
    }
    sum
}

fn cell_area_m2(code: u64, level: u32) -> f64 {
    let (mut south, mut north, mut width) = (-90.0_f64, 90.0_f64, 360.0_f64);
    for at in 0..level {
        if at.is_multiple_of(2) {
            width /= 2.0;
        } else if code >> (level - 1 - at) & 1 == 1 {
            south = f64::midpoint(south, north);
        } else {
            north = f64::midpoint(south, north);
        }
    }
    let height = north.to_radians().sin() - south.to_radians().sin();
    EARTH_RADIUS_M.powi(2) * width.to_radians() * height
}

fn circle_area_m2(radius_m: f64) -> f64 {
    let height = 1.0 - (radius_m.min(DISTANCE_M_MAX) / EARTH_RADIUS_M).cos();
    EARTH_RADIUS_M.powi(2) * std::f64::consts::TAU * height
}
