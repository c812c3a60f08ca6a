use super::circle::{Circle, Disc};
use super::cover::{self, CellRange, RANGES_MAX};
use super::grid::Precision;
use super::point::{DISTANCE_M_MAX, EARTH_RADIUS_M, cos_lat};
use super::spans::Spans;

/// How many spans the cells seen so far may be. A ring is what it adds to them: each span of its
/// own and each hole cut by one of theirs makes a range, so a ring has at most twice as many. Few
/// are enough: what an inner ring holds beyond its radius saves work for the next one.
const SEEN_SPANS_MAX: usize = RANGES_MAX / 4;

/// How much farther than the one before a ring reaches.
const GROWTH: f64 = 2.0;
/// The most it does so after [`Rings::adapt`].
const GROWTH_MAX: f64 = 8.0;

/// An expanding search around the centre of a circle: rings of growing radius, up to the circle's.
///
/// Each ring holds the ranges to scan that no earlier one held, so that nothing is read twice.
/// After a ring, every place within its radius has been seen; whoever looks for the nearest places
/// can stop when enough of those seen lie within it.
///
/// The first ring reaches as far as a cell of the index is large (the longer side, at the centre):
/// few ranges, and what they hold beyond the circle is as little as can be. It is the right start
/// for a crowded index. [`Rings::expect`] starts farther out where the density is known, and
/// [`Rings::adapt`] grows faster where it turns out to be low.
///
/// There are at most 32 rings: from the smallest cell to the whole Earth.
#[derive(Debug, Clone)]
pub struct Rings {
    circle: Circle,
    precision: Precision,
    /// The last ring's radius.
    radius_m: f64,
    /// The next ring's, or `None` after the last.
    next_m: Option<f64>,
    seen: Spans,
}

/// One step of an expanding search.
#[derive(Debug, Clone, PartialEq)]
pub struct Ring {
    /// Every place within this distance of the centre is in the ranges of this ring or of an
    /// earlier one. That of the last ring is the radius of the circle.
    pub radius_m: f64,
    /// What to scan: at most half of [`RANGES_MAX`], in order, disjoint from each other and from
    /// those of all earlier rings. None, if the earlier ones hold everything already.
    pub ranges: Vec<CellRange>,
}

impl Rings {
    /// The rings around the circle's centre, up to its radius.
    pub fn new(circle: Circle, precision: Precision) -> Self {
        let (height, width) = precision.cell_degrees();
        let longer = height.max(width * cos_lat(circle.centre().lat()));
        let mut rings =
            Self { circle, precision, radius_m: 0.0, next_m: None, seen: Spans::default() };
        rings.next_m = Some(rings.clipped(longer.to_radians() * EARTH_RADIUS_M));
        rings
    }

    /// Lets the next ring reach as far as is needed to find `wanted` places where there are
    /// `per_km2` of them in a square kilometre, if that is farther than it would reach anyway. With
    /// a density of 0 that is the whole circle; one that is negative or not a number says nothing.
    pub fn expect(&mut self, wanted: usize, per_km2: f64) {
        let area_km2 = wanted as f64 / per_km2;
        self.reach((area_km2 / std::f64::consts::PI).sqrt() * 1e3);
    }

    /// Lets the next ring reach farther if few of the places wanted were within the last: as far as
    /// would be enough if they are as dense as what was found, and at most eight times as far as
    /// the last ring.
    pub fn adapt(&mut self, found: usize, wanted: usize) {
        // One more of each, since none found does not mean that there are none.
        let growth = ((wanted as f64 + 1.0) / (found as f64 + 1.0)).sqrt();
        self.reach(self.radius_m * growth.min(GROWTH_MAX));
    }

    fn reach(&mut self, radius_m: f64) {
        // `max` leaves out what is not a number.
        self.next_m = self.next_m.map(|next_m| self.clipped(next_m.max(radius_m)));
    }

    /// A radius, or the circle's if there would be little or nothing between the two.
    fn clipped(&self, radius_m: f64) -> f64 {
        let last_m = self.circle.radius_m();
        if radius_m * GROWTH.sqrt() >= last_m.min(DISTANCE_M_MAX) { last_m } else { radius_m }
    }
}

impl Iterator for Rings {
    type Item = Ring;

    fn next(&mut self) -> Option<Ring> {
        self.radius_m = self.next_m?;
        let inner = Disc::new(self.circle.centre(), self.radius_m);
        let seen = cover::cells(&inner, self.precision, SEEN_SPANS_MAX)
            .union(&self.seen)
            .within(SEEN_SPANS_MAX);
        let added = seen.without(&self.seen);
        self.seen = seen;
        self.next_m =
            (self.radius_m < self.circle.radius_m()).then(|| self.clipped(self.radius_m * GROWTH));
        Some(Ring { radius_m: self.radius_m, ranges: cover::ranges(&added, self.precision) })
    }
}
