use proptest::prelude::*;

use super::{
    DISTANCE_M_MAX, EARTH_RADIUS_M, area_m2, assert_well_formed, cases, circle_area_m2, circles,
    destination, names, point, points, precision, precisions, ways, would_read,
};
use crate::geo::{Circle, RANGES_MAX, ShapeError, distance_m};

fn circle(lat: f64, lon: f64, radius_m: f64) -> Circle {
    Circle::new(point(lat, lon), radius_m).unwrap()
}

#[test]
fn a_radius_is_finite_and_not_negative() {
    for radius_m in [-1.0, f64::NAN, f64::INFINITY] {
        let error = Circle::new(point(0.0, 0.0), radius_m).unwrap_err();
        assert!(matches!(error, ShapeError::Radius(_)), "{error:?}");
        assert!(error.to_string().contains("give metres"), "{error}");
    }
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn every_place_of_a_circle_is_in_its_cover(
        circle in circles(),
        ways in ways(),
        others in prop::collection::vec(points(), 20),
        precision in precisions(),
        ranges_max in prop_oneof![1..=RANGES_MAX, Just(RANGES_MAX)],
    ) {
        let ranges = circle.cover(precision, ranges_max);
        prop_assert!(ranges.len() <= ranges_max, "{}", ranges.len());
        assert_well_formed(&ranges, precision);
        let (centre, radius_m) = (circle.centre(), circle.radius_m());
        let reached =
            ways.iter().map(|&(bearing, part)| destination(centre, bearing, part * radius_m));
        for place in reached.chain(others).chain([centre]).flat_map(names) {
            prop_assert_eq!(circle.contains(place), distance_m(centre, place) <= radius_m);
            if circle.contains(place) {
                prop_assert!(would_read(&ranges, place, precision), "{place:?} is left out");
            }
        }
    }

    #[test]
    fn a_circle_of_half_the_earth_or_more_is_one_range(
        centre in points(),
        precision in precisions(),
    ) {
        for radius_m in [DISTANCE_M_MAX, 3e7, f64::MAX] {
            let ranges = Circle::new(centre, radius_m).unwrap().cover(precision, RANGES_MAX);
            prop_assert_eq!(ranges.len(), 1);
            prop_assert!(ranges[0].from.bytes().all(|character| character == b'0'));
            prop_assert!(ranges[0].to.bytes().all(|character| character == b'z'));
        }
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_cover_is_hardly_larger_than_its_circle(
        lat in -60.0..60.0_f64,
        lon in -180.0..=180.0_f64,
        characters in 5..=12_u8,
        log in 1.0..3.0_f64,
    ) {
        // Large in comparison with the cells of the index, and yet a small part of the Earth.
        let precision = precision(characters);
        let cell_m = precision.cell_degrees().1.to_radians() * EARTH_RADIUS_M;
        let circle = circle(lat, lon, (30.0 * cell_m * 10_f64.powf(log - 1.0)).min(5e6));
        let area = circle_area_m2(circle.radius_m());
        let ratio =
            |ranges_max| area_m2(&circle.cover(precision, ranges_max), precision) / area;
        for (ranges_max, ratio_max) in [(64, 1.09), (32, 1.2), (16, 1.4), (8, 2.0), (1, f64::MAX)] {
            let ratio = ratio(ranges_max);
            prop_assert!(1.0 - 1e-9 <= ratio, "{ratio} with {ranges_max} ranges");
            prop_assert!(ratio < ratio_max, "{ratio} with {ranges_max} ranges");
        }
    }
}

#[test]
fn a_circle_of_radius_zero_is_a_single_cell() {
    for characters in 1..=12 {
        let precision = precision(characters);
        let place = point(48.2, 16.37);
        let ranges = circle(48.2, 16.37, 0.0).cover(precision, RANGES_MAX);
        assert_eq!(ranges.len(), 1);
        assert_eq!(ranges[0].from, place.geohash(precision));
        assert_eq!(ranges[0].to, place.geohash(precision));
    }
}

#[test]
fn a_cover_has_at_least_one_range_and_at_most_64_whatever_is_asked_for() {
    let circle = circle(48.2, 16.37, 10_000.0);
    assert_eq!(circle.cover(precision(9), 0).len(), 1);
    assert_eq!(circle.cover(precision(9), usize::MAX).len(), RANGES_MAX);
}

#[test]
fn covers_are_tight_across_the_180th_meridian_and_north_of_the_arctic_circle() {
    for (lat, lon, radius_m, ratio_max) in [
        (0.0, 180.0, 1e4, 1.1),
        (-17.0, -180.0, 1e5, 1.1),
        (70.0, 20.0, 2e6, 1.15),
        (80.0, 180.0, 1e3, 1.15),
        (85.0, 179.9, 1e5, 1.3),
        (89.0, -10.0, 1e4, 2.0),
        (-90.0, 0.0, 1e6, 1.5),
    ] {
        let ranges = circle(lat, lon, radius_m).cover(precision(9), RANGES_MAX);
        let ratio = area_m2(&ranges, precision(9)) / circle_area_m2(radius_m);
        assert!(ratio < ratio_max, "{ratio} at {lat}, {lon}");
    }
}

#[test]
fn at_a_pole_a_cover_holds_less_than_240_km_around_it() {
    for lat in [-90.0, 90.0] {
        let ranges = circle(lat, 11.0, 1_000.0).cover(precision(9), RANGES_MAX);
        assert!(area_m2(&ranges, precision(9)) < circle_area_m2(240_000.0));
    }
}

#[test]
fn a_circle_with_all_but_a_hole_on_the_other_side_leaves_the_hole_out() {
    let all = circle(20.0, 30.0, DISTANCE_M_MAX - 500_000.0);
    let ranges = all.cover(precision(6), RANGES_MAX);
    let antipode = point(-20.0, -150.0);
    assert!(!all.contains(antipode));
    assert!(!would_read(&ranges, antipode, precision(6)));
    assert!(would_read(&ranges, point(-20.0, -140.0), precision(6)));
}
