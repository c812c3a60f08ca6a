use proptest::prelude::*;

use super::{
    area_m2, assert_well_formed, cases, circle_area_m2, circles, destination, names, number, point,
    precision, precisions, ways, would_read,
};
use crate::geo::{Circle, RANGES_MAX, Ring, Rings, distance_m};

/// What a search does with its rings, beside looking at them.
#[derive(Debug, Clone, Copy)]
enum Hint {
    None,
    Expect(usize, f64),
    Adapt(usize, usize),
}

fn hints() -> impl Strategy<Value = Vec<Hint>> {
    let density = prop_oneof![
        (-9.0..9.0_f64).prop_map(|log| 10_f64.powf(log)),
        Just(0.0),
        Just(f64::NAN),
        Just(-1.0)
    ];
    let hint = prop_oneof![
        4 => Just(Hint::None),
        1 => (0..1_000_usize, density).prop_map(|(wanted, density)| Hint::Expect(wanted, density)),
        1 => (0..100_usize, 0..100_usize).prop_map(|(found, wanted)| Hint::Adapt(found, wanted)),
    ];
    prop_oneof![Just(Vec::new()), prop::collection::vec(hint, 0..8)]
}

fn walk(mut rings: Rings, hints: &[Hint]) -> Vec<Ring> {
    let mut seen = Vec::new();
    let mut hints = hints.iter();
    loop {
        match hints.next() {
            Some(&Hint::Expect(wanted, per_km2)) => rings.expect(wanted, per_km2),
            Some(&Hint::Adapt(found, wanted)) => rings.adapt(found, wanted),
            Some(Hint::None) | None => {}
        }
        match rings.next() {
            Some(ring) => seen.push(ring),
            None => return seen,
        }
    }
}

fn nothing_is_read_twice(rings: &[Ring]) -> bool {
    let ranges = rings.iter().flat_map(|ring| &ring.ranges);
    let mut spans: Vec<_> = ranges.map(|range| (number(&range.from), number(&range.to))).collect();
    spans.sort_unstable();
    spans.windows(2).all(|pair| pair[0].1 < pair[1].0)
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn after_a_ring_everything_within_its_radius_was_seen_and_nothing_twice(
        circle in circles(),
        ways in ways(),
        precision in precisions(),
        hints in hints(),
    ) {
        let rings = walk(Rings::new(circle, precision), &hints);
        prop_assert!(rings.len() <= 32, "{} rings", rings.len());
        prop_assert_eq!(rings.last().map(|ring| ring.radius_m), Some(circle.radius_m()));
        for pair in rings.windows(2) {
            let growth = pair[1].radius_m / pair[0].radius_m;
            prop_assert!(growth > 1.4, "{growth}");
            if hints.is_empty() && circle.radius_m() < 2e7 {
                prop_assert!(growth < 2.9, "{growth}");
            }
        }

        for (at, ring) in rings.iter().enumerate() {
            prop_assert!(ring.ranges.len() <= RANGES_MAX / 2, "{} ranges", ring.ranges.len());
            assert_well_formed(&ring.ranges, precision);
            let so_far = || rings[..=at].iter().flat_map(|ring| &ring.ranges);
            for &(bearing, part) in &ways {
                let place = destination(circle.centre(), bearing, part * ring.radius_m);
                for name in names(place) {
                    if distance_m(circle.centre(), name) <= ring.radius_m {
                        prop_assert!(would_read(so_far(), name, precision), "{name:?}, {at}");
                    }
                }
            }
            prop_assert!(would_read(so_far(), circle.centre(), precision));
        }
        prop_assert!(nothing_is_read_twice(&rings));
    }
}

#[test]
fn nothing_is_read_twice_where_a_ring_held_more_than_the_next_one_needs() {
    // Close to a pole the gaps that the cover of a smaller circle closes are not always closed by
    // that of a larger one.
    for (lat, lon, radius_m, characters, per_km2) in [
        (85.861, -56.82, 1_600_040.0, 11, 0.32),
        (86.46, 5.25, 3_659_335.0, 6, 0.35),
        (86.461, -149.1, 9_631_271.0, 8, 0.1),
        (84.788, -104.22, 3_220_752.0, 8, 0.94),
        (85.639, 26.8, 2_100_179.0, 8, 0.02),
    ] {
        let circle = Circle::new(point(lat, lon), radius_m).unwrap();
        let mut rings = Rings::new(circle, precision(characters));
        rings.expect(1, per_km2);
        assert!(nothing_is_read_twice(&rings.collect::<Vec<Ring>>()), "{lat}, {lon}");
    }
}

#[test]
fn rings_double_from_the_size_of_a_cell_to_the_radius() {
    let circle = Circle::new(point(0.0, 0.0), 5_000.0).unwrap();
    // A cell of seven characters is 152.9 m wide at the equator, and as high.
    let radii: Vec<f64> =
        Rings::new(circle, precision(7)).map(|ring| ring.radius_m.round()).collect();
    assert_eq!(radii, [153.0, 305.0, 611.0, 1_222.0, 2_443.0, 5_000.0]);
    // One of six is twice as wide as high; at 70° north it is higher than wide.
    let north = Circle::new(point(70.0, 0.0), 5_000.0).unwrap();
    assert_eq!(Rings::new(circle, precision(6)).next().unwrap().radius_m.round(), 1_222.0);
    assert_eq!(Rings::new(north, precision(6)).next().unwrap().radius_m.round(), 611.0);
}

#[test]
fn a_radius_below_the_size_of_a_cell_is_one_ring() {
    for radius_m in [0.0, 1.0, 150.0] {
        let circle = Circle::new(point(10.0, 20.0), radius_m).unwrap();
        let rings: Vec<Ring> = Rings::new(circle, precision(7)).collect();
        assert_eq!(rings.len(), 1);
        assert_eq!(rings[0].radius_m, radius_m);
        assert!(!rings[0].ranges.is_empty());
    }
}

#[test]
fn a_known_density_says_where_to_start() {
    let circle = Circle::new(point(10.0, 20.0), 100_000.0).unwrap();
    let mut rings = Rings::new(circle, precision(9));
    rings.expect(10, 1.0 / std::f64::consts::PI);
    assert_eq!(rings.next().unwrap().radius_m.round(), (1e3 * 10_f64.sqrt()).round());
    // Less than it would reach anyway changes nothing.
    rings.expect(10, 1e6);
    assert_eq!(rings.next().unwrap().radius_m.round(), (2e3 * 10_f64.sqrt()).round());
    // Where there is nothing, the whole circle is next, and the last.
    rings.expect(10, 0.0);
    assert_eq!(rings.next().unwrap().radius_m, 100_000.0);
    rings.expect(10, 0.0);
    assert_eq!(rings.next(), None);
}

#[test]
fn rings_grow_faster_where_little_is_found() {
    let circle = Circle::new(point(10.0, 20.0), 1e6).unwrap();
    let growth = |found, wanted| {
        let mut rings = Rings::new(circle, precision(9));
        let first = rings.next().unwrap().radius_m;
        rings.adapt(found, wanted);
        rings.next().unwrap().radius_m / first
    };
    assert_eq!(growth(0, 1), 2.0);
    assert_eq!(growth(0, 24).round(), 5.0);
    assert_eq!(growth(1, 49).round(), 5.0);
    assert_eq!(growth(0, 10_000).round(), 8.0);
    assert_eq!(growth(10, 10), 2.0);
}

#[test]
fn all_rings_together_are_hardly_larger_than_the_circle() {
    for (lat, lon, radius_m) in [(48.0, 11.0, 1e4), (0.0, 180.0, 1e4), (-33.0, 151.0, 2e5)] {
        let circle = Circle::new(point(lat, lon), radius_m).unwrap();
        let area: f64 =
            Rings::new(circle, precision(9)).map(|ring| area_m2(&ring.ranges, precision(9))).sum();
        let ratio = area / circle_area_m2(radius_m);
        assert!((1.0..1.4).contains(&ratio), "{ratio} at {lat}, {lon}");
    }
}
