use proptest::prelude::*;

use super::{
    EARTH_RADIUS_M, area_m2, assert_well_formed, cases, degrees, names, point, points, precision,
    precisions, would_read,
};
use crate::geo::{BoundingBox, PointError, RANGES_MAX, ShapeError};

fn boxes() -> impl Strategy<Value = (f64, f64, f64, f64)> {
    (degrees(90.0), degrees(180.0), degrees(90.0), degrees(180.0))
        .prop_map(|(a, west, b, east)| (a.min(b), west, a.max(b), east))
}

#[test]
fn a_box_is_not_upside_down_and_its_corners_are_places() {
    let error = BoundingBox::new(10.0, 0.0, 9.0, 5.0).unwrap_err();
    assert_eq!(error, ShapeError::SouthAboveNorth { south: 10.0, north: 9.0 });
    assert!(error.to_string().contains("swap"), "{error}");
    let error = BoundingBox::new(10.0, 0.0, 91.0, 5.0).unwrap_err();
    assert_eq!(error, ShapeError::Corner(PointError::Latitude(91.0)));
    assert!(error.to_string().contains("between -90 and 90"), "{error}");
    let error = BoundingBox::new(10.0, -200.0, 11.0, 5.0).unwrap_err();
    assert_eq!(error, ShapeError::Corner(PointError::Longitude(-200.0)));
    assert!(BoundingBox::new(f64::NAN, 0.0, 0.0, 0.0).is_err());
    assert!(BoundingBox::new(0.0, 0.0, 0.0, f64::NAN).is_err());
}

#[test]
fn a_box_contains_its_edges_and_nothing_beyond() {
    let bounds = BoundingBox::new(10.0, 20.0, 30.0, 40.0).unwrap();
    for (lat, lon) in [(10.0, 20.0), (30.0, 40.0), (10.0, 40.0), (20.0, 30.0)] {
        assert!(bounds.contains(point(lat, lon)), "{lat}, {lon}");
    }
    let (below, above) = (f64::next_down, f64::next_up);
    for (lat, lon) in [
        (below(10.0), 30.0),
        (above(30.0), 30.0),
        (20.0, below(20.0)),
        (20.0, above(40.0)),
        (20.0, -30.0),
        (90.0, 30.0),
        (20.0, 180.0),
    ] {
        assert!(!bounds.contains(point(lat, lon)), "{lat}, {lon}");
    }
}

#[test]
fn a_box_whose_west_is_greater_than_its_east_crosses_the_180th_meridian() {
    let fiji = BoundingBox::new(-21.0, 176.0, -12.0, -178.0).unwrap();
    for lon in [176.0, 179.9, 180.0, -180.0, -179.0, -178.0] {
        assert!(fiji.contains(point(-17.0, lon)), "{lon}");
    }
    for lon in [175.9, 0.0, -177.9] {
        assert!(!fiji.contains(point(-17.0, lon)), "{lon}");
    }
}

#[test]
fn a_box_that_touches_the_180th_meridian_or_a_pole_contains_it_under_every_name() {
    let siberia = BoundingBox::new(60.0, 170.0, 70.0, 180.0).unwrap();
    assert!(siberia.contains(point(65.0, -180.0)));
    assert!(!siberia.contains(point(65.0, -179.999)));
    let alaska = BoundingBox::new(60.0, -180.0, 70.0, -150.0).unwrap();
    assert!(alaska.contains(point(65.0, 180.0)));
    let wedge = BoundingBox::new(-90.0, 0.0, -60.0, 10.0).unwrap();
    assert!(wedge.contains(point(-90.0, 139.0)));
    assert!(!wedge.contains(point(-89.999, 139.0)));
    assert!(!wedge.contains(point(90.0, 5.0)));
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn every_place_of_a_box_is_in_its_cover(
        (south, west, north, east) in boxes(),
        parts in prop::collection::vec((part(), part()), 40),
        others in prop::collection::vec(points(), 20),
        precision in precisions(),
        ranges_max in prop_oneof![1..=RANGES_MAX, Just(RANGES_MAX)],
    ) {
        let bounds = BoundingBox::new(south, west, north, east).unwrap();
        let ranges = bounds.cover(precision, ranges_max);
        prop_assert!(ranges.len() <= ranges_max, "{}", ranges.len());
        assert_well_formed(&ranges, precision);
        let width = if west <= east { east - west } else { east - west + 360.0 };
        let inside = parts.iter().map(|&(up, along)| {
            let lat = (south + up * (north - south)).clamp(south, north);
            let lon = west + along * width;
            let lon = if lon > 180.0 { (lon - 360.0).min(east) } else { lon };
            point(lat, if along == 1.0 { east } else { lon })
        });
        for place in inside.chain(others).flat_map(names) {
            if bounds.contains(place) {
                prop_assert!(would_read(&ranges, place, precision), "{place:?} is left out");
            }
        }
        // Corners are in, whatever the arithmetic above made of the rest.
        for (lat, lon) in [(south, west), (south, east), (north, west), (north, east)] {
            for name in names(point(lat, lon)) {
                prop_assert!(bounds.contains(name));
                prop_assert!(would_read(&ranges, name, precision), "{name:?} is left out");
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn the_cover_of_a_box_is_hardly_larger_than_the_box(
        south in -60.0..50.0_f64,
        height in 0.5..10.0_f64,
        west in -180.0..179.0_f64,
        aspect in 0.3..3.0_f64,
    ) {
        let width = height * aspect;
        let east = west + width;
        let east = if east > 180.0 { east - 360.0 } else { east };
        let bounds = BoundingBox::new(south, west, south + height, east).unwrap();
        let area = area_m2(&bounds.cover(precision(9), RANGES_MAX), precision(9));
        let sines = (south + height).to_radians().sin() - south.to_radians().sin();
        let ratio = area / (EARTH_RADIUS_M.powi(2) * width.to_radians() * sines);
        prop_assert!((1.0 - 1e-9..1.25).contains(&ratio), "{ratio}");
    }
}

fn part() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..=1.0, Just(0.0), Just(1.0)]
}

#[test]
fn a_box_that_is_one_cell_or_everything_is_one_range() {
    let world = BoundingBox::new(-90.0, -180.0, 90.0, 180.0).unwrap();
    for characters in 1..=12 {
        assert_eq!(world.cover(precision(characters), RANGES_MAX).len(), 1);
    }
    // The cell "ezs42", without the edges that belong to the next.
    let (south, west) = (42.5830078125, -5.625);
    let (north, east) =
        ((south + 180.0 / 4096.0_f64).next_down(), (west + 360.0 / 8192.0_f64).next_down());
    let ranges =
        BoundingBox::new(south, west, north, east).unwrap().cover(precision(5), RANGES_MAX);
    assert_eq!(ranges.len(), 1);
    assert_eq!((ranges[0].from.as_str(), ranges[0].to.as_str()), ("ezs42", "ezs42"));
    let ranges = BoundingBox::new(south, west, north, east).unwrap().cover(precision(7), 1);
    assert_eq!((ranges[0].from.as_str(), ranges[0].to.as_str()), ("ezs4200", "ezs42zz"));
}
