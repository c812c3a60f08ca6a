use proptest::prelude::*;

use super::{cases, degrees, point, points, precision};
use crate::geo::point::{DISTANCE_M_MAX, EARTH_RADIUS_M};
use crate::geo::{Point, PointError, Precision, distance_m};

#[test]
fn coordinates_out_of_range_are_refused_and_told_what_to_do() {
    for lat in [90.000_001, -91.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = Point::new(lat, 0.0).unwrap_err();
        assert!(matches!(error, PointError::Latitude(_)), "{error:?}");
        assert!(error.to_string().contains("swapped"), "{error}");
    }
    for lon in [180.000_001, -181.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = Point::new(0.0, lon).unwrap_err();
        assert!(matches!(error, PointError::Longitude(_)), "{error:?}");
        assert!(error.to_string().contains("subtract 360"), "{error}");
    }
    for (lat, lon) in [(90.0, 180.0), (-90.0, -180.0), (0.0, -0.0)] {
        assert!(Point::new(lat, lon).is_ok());
    }
}

#[test]
fn a_geohash_has_one_to_twelve_characters() {
    for characters in [0, 13, 255] {
        let error = Precision::new(characters).unwrap_err();
        assert!(error.to_string().contains("choose 1 to 12"), "{error}");
    }
    for characters in 1..=12 {
        let hash = point(1.0, 2.0).geohash(precision(characters));
        assert_eq!(hash.len(), usize::from(characters));
    }
}

#[test]
fn geohashes_are_those_that_others_publish() {
    for (lat, lon, expected) in [
        (57.64911, 10.40744, "u4pruydqqvj"),
        (42.6, -5.6, "ezs42"),
        (37.8324, 112.5584, "ww8p1r4t8"),
        (-25.382708, -49.265506, "6gkzwgjzn820"),
        (38.89710201881826, -77.03669792041183, "dqcjqcp84c6e"),
        (51.433718, -0.214126, "gcpue5hp4"),
        (0.0, 0.0, "s00000000000"),
        (-90.0, -180.0, "000000000000"),
        (90.0, 180.0, "zzzzzzzzzzzz"),
        (-90.0, 180.0, "pbpbpbpbpbpb"),
        (90.0, -180.0, "bpbpbpbpbpbp"),
    ] {
        let hash = point(lat, lon).geohash(precision(expected.len() as u8));
        assert_eq!(hash, expected, "{lat}, {lon}");
    }
}

/// The definition, by halving.
fn halved(place: Point, bits: u32) -> u64 {
    let (mut lats, mut lons) = ((-90.0, 90.0), (-180.0, 180.0));
    let mut code = 0;
    for at in 0..bits {
        let (value, ends) =
            if at.is_multiple_of(2) { (place.lon(), &mut lons) } else { (place.lat(), &mut lats) };
        let middle = f64::midpoint(ends.0, ends.1);
        let upper = value >= middle;
        *(if upper { &mut ends.0 } else { &mut ends.1 }) = middle;
        code = code << 1 | u64::from(upper);
    }
    code
}

#[test]
fn a_place_a_hair_before_an_edge_is_in_the_cell_before_it() {
    for hair in [f64::MIN_POSITIVE, 1e-300, 1e-20, 1e-14] {
        assert_eq!(point(-hair, hair).geohash(precision(12)), "kpbpbpbpbpbp");
        assert_eq!(point(hair, -hair).geohash(precision(12)), "ebpbpbpbpbpb");
    }
    let before = 45.0_f64.next_down();
    assert_eq!(
        super::number(&point(before, 0.0).geohash(precision(12))),
        halved(point(before, 0.0), 60)
    );
}

proptest! {
    #![proptest_config(cases(20_000))]

    #[test]
    fn a_geohash_is_what_halving_gives(place in points(), characters in 1..=12_u8) {
        let hash = place.geohash(precision(characters));
        prop_assert_eq!(super::number(&hash), halved(place, 5 * u32::from(characters)));
    }

    #[test]
    fn a_shorter_geohash_is_a_prefix_of_a_longer_one(
        place in points(),
        a in 1..=12_u8,
        b in 1..=12_u8,
    ) {
        let (short, long) = (a.min(b), a.max(b));
        prop_assert!(place.geohash(precision(long)).starts_with(&place.geohash(precision(short))));
    }

    #[test]
    fn a_distance_is_that_between_the_two_vectors(a in points(), b in points()) {
        let vector = |place: Point| {
            let (lat, lon) = (place.lat().to_radians(), place.lon().to_radians());
            [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
        };
        let ([x, y, z], [u, v, w]) = (vector(a), vector(b));
        let cross = [y * w - z * v, z * u - x * w, x * v - y * u];
        let sine = cross.iter().map(|part| part * part).sum::<f64>().sqrt();
        let expected = EARTH_RADIUS_M * sine.atan2(x * u + y * v + z * w);
        prop_assert!((distance_m(a, b) - expected).abs() < 1e-7, "{} {expected}", distance_m(a, b));
        prop_assert_eq!(distance_m(a, b), distance_m(b, a));
    }

    #[test]
    fn a_place_is_nowhere_but_where_it_is(a in points()) {
        for name in super::names(a) {
            prop_assert_eq!(distance_m(a, name), 0.0);
        }
    }

    #[test]
    fn along_a_meridian_a_distance_is_the_difference_of_latitudes(
        a in degrees(90.0),
        b in degrees(90.0),
        lon in degrees(180.0),
    ) {
        let expected = (a - b).abs().to_radians() * EARTH_RADIUS_M;
        let distance = distance_m(point(a, lon), point(b, lon));
        let error = (distance - expected).abs();
        prop_assert!(error <= 1e-14 * expected + 1e-9, "{distance} {expected}");
    }
}

#[test]
fn distances_between_cities_are_right() {
    // By the formula with vectors, in forty digits.
    for ((lat_a, lon_a), (lat_b, lon_b), expected) in [
        ((51.5074, -0.1278), (48.8566, 2.3522), 343_556.534_880_883_3),
        ((40.7128, -74.006), (35.6762, 139.6503), 10_851_747.837_814_12),
        ((-33.8688, 151.2093), (-33.4489, -70.6693), 11_346_730.794_085_52),
        ((-36.8485, 174.7633), (21.3069, -157.8583), 7_075_742.919_153_418),
        ((40.4168, -3.7038), (-40.4, 176.3), 20_013_218.860_225_73),
        ((78.2232, 15.6267), (-33.8688, 151.2093), 14_656_137.994_109_2),
    ] {
        let distance = distance_m(point(lat_a, lon_a), point(lat_b, lon_b));
        assert!((distance - expected).abs() < 1e-7, "{distance} is not {expected}");
    }
}

#[test]
fn distances_keep_their_digits_for_neighbours_and_for_antipodes() {
    let metres = |degrees: f64| degrees.to_radians() * EARTH_RADIUS_M;
    for tiny in [1e-12, 1e-9, 1e-6] {
        let near = distance_m(point(0.0, 0.0), point(0.0, tiny));
        assert!((near / metres(tiny) - 1.0).abs() < 1e-12, "{near}");
        let near = distance_m(point(0.0, 180.0), point(tiny, -180.0));
        assert!((near / metres(tiny) - 1.0).abs() < 1e-12, "{near}");
    }
    for tiny in [1e-9, 1e-6, 1e-3] {
        let short_of = DISTANCE_M_MAX - distance_m(point(0.0, 0.0), point(tiny, 180.0));
        assert!((short_of - metres(tiny)).abs() < 1e-8, "{short_of}");
        let short_of = DISTANCE_M_MAX - distance_m(point(-90.0 + tiny, 20.0), point(90.0, -3.0));
        assert!((short_of - metres(tiny)).abs() < 1e-8, "{short_of}");
    }
    assert_eq!(distance_m(point(90.0, 12.0), point(-90.0, 80.0)), DISTANCE_M_MAX);
}
