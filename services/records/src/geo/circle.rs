use super::cell::Cell;
use super::cover::{self, CellRange, Overlap, Region};
use super::error::ShapeError;
use super::grid::Precision;
use super::point::{EARTH_RADIUS_M, Point, cos_lat, degrees_between, distance_m, haversine};

/// The places within a distance of a centre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Circle {
    centre: Point,
    radius_m: f64,
}

impl Circle {
    /// The places at most `radius_m` metres from `centre`. With radius 0 that is the centre itself;
    /// from half the Earth's circumference on it is everything.
    ///
    /// # Errors
    ///
    /// The radius is negative or not a finite number.
    pub fn new(centre: Point, radius_m: f64) -> Result<Self, ShapeError> {
        if radius_m.is_finite() && radius_m >= 0.0 {
            Ok(Self { centre, radius_m })
        } else {
            Err(ShapeError::Radius(radius_m))
        }
    }

    /// The centre.
    pub fn centre(self) -> Point {
        self.centre
    }

    /// The radius in metres.
    pub fn radius_m(self) -> f64 {
        self.radius_m
    }

    /// Whether a place is in the circle, by [`distance_m`].
    pub fn contains(self, point: Point) -> bool {
        distance_m(self.centre, point) <= self.radius_m
    }

    /// Ranges of geohashes that hold every place of the circle, in order and with gaps between
    /// them: at most `ranges_max`, which is kept between 1 and [`RANGES_MAX`](super::RANGES_MAX).
    ///
    /// Near the poles the cells of geohashes are narrow wedges, and a cover holds more around the
    /// circle than elsewhere: that of a small circle at a pole itself, with 64 ranges, everything
    /// within some 240 km.
    pub fn cover(self, precision: Precision, ranges_max: usize) -> Vec<CellRange> {
        cover::cover(&Disc::new(self.centre, self.radius_m), precision, ranges_max)
    }
}

/// A circle, made ready for many cells. Distances are compared by their haversines, which saves the
/// inverse functions.
pub(super) struct Disc {
    centre: Point,
    sin_lat: f64,
    cos_lat: f64,
    /// The haversine of the radius.
    reach: f64,
}

impl Disc {
    pub(super) fn new(centre: Point, radius_m: f64) -> Self {
        // More than the calculations here and in `distance_m` can be wrong, so that no cell with a
        // place of the circle is left out: absolutely for small circles, relatively for large ones,
        // whose haversines have few digits left near 1.
        const SLACK_M: f64 = 1e-6;
        const SLACK: f64 = 1.0 + 1e-14;
        let angle = (radius_m + SLACK_M) / EARTH_RADIUS_M;
        let reach = if angle < std::f64::consts::PI {
            haversine(angle.to_degrees()) * SLACK
        } else {
            f64::INFINITY
        };
        let sin_lat = centre.lat().to_radians().sin();
        Self { centre, sin_lat, cos_lat: cos_lat(centre.lat()), reach }
    }

    /// Whether the place where two edges cross is in the circle.
    fn reaches(&self, parallel: &Parallel, meridian: &Meridian) -> bool {
        parallel.along + self.cos_lat * parallel.cos_lat * meridian.across <= self.reach
    }

    /// The haversine of the distance to where a meridian comes nearest.
    fn at_nearest(&self, meridian: &Meridian) -> f64 {
        let Meridian { nearest, across, .. } = *meridian;
        haversine(nearest - self.centre.lat()) + self.cos_lat * cos_lat(nearest) * across
    }

    /// The meridian that many degrees of longitude from the centre's: 0 to 180.
    fn meridian_away(&self, away: f64) -> Meridian {
        let across = haversine(away);
        let cos_away = 1.0 - 2.0 * across;
        let nearest = self.sin_lat.atan2(self.cos_lat * cos_away).to_degrees();
        Meridian { away, across, nearest }
    }
}

/// A parallel as a circle's centre sees it.
#[derive(Clone, Copy)]
pub(super) struct Parallel {
    cos_lat: f64,
    /// The haversine of the distance along a meridian.
    along: f64,
}

/// A meridian as a circle's centre sees it.
#[derive(Clone, Copy)]
pub(super) struct Meridian {
    /// Degrees to the centre's meridian: 0 to 180.
    away: f64,
    /// Their haversine.
    across: f64,
    /// The latitude where it comes nearest to the centre. More than 90 is beyond the pole, on the
    /// other half of the great circle.
    nearest: f64,
}

impl Region for Disc {
    type Parallel = Parallel;
    type Meridian = Meridian;

    fn parallel(&self, lat: f64) -> Parallel {
        Parallel { cos_lat: cos_lat(lat), along: haversine(lat - self.centre.lat()) }
    }

    fn meridian(&self, lon: f64) -> Meridian {
        self.meridian_away(degrees_between(lon, self.centre.lon()))
    }

    fn overlap(&self, cell: &Cell<Self>) -> Overlap {
        let (lat, lon) = (self.centre.lat(), self.centre.lon());
        let has_lat = |lat: f64| cell.south.degrees <= lat && lat <= cell.north.degrees;
        let has_lon = |lon: f64| cell.west.degrees <= lon && lon <= cell.east.degrees;
        let (south, north) = (&cell.south.seen, &cell.north.seen);
        let (west, east) = (&cell.west.seen, &cell.east.seen);
        let (near, far) = if west.away <= east.away { (west, east) } else { (east, west) };

        // The nearest place of the cell is on the centre's own meridian, or else on the nearer
        // edge: where that comes nearest to the centre, or at one of its ends.
        let meets = if has_lon(lon) {
            has_lat(lat) || south.along.min(north.along) <= self.reach
        } else {
            self.reaches(south, near)
                || self.reaches(north, near)
                || has_lat(near.nearest) && self.at_nearest(near) <= self.reach
        };
        if !meets {
            return Overlap::None;
        }

        // The farthest place likewise: on the meridian opposite the centre's, or else on the
        // farther edge, where that comes nearest to the antipode or at one of its ends.
        let opposite = lon - 180.0_f64.copysign(lon);
        let far = if has_lon(opposite) { &self.meridian_away(180.0) } else { far };
        let farthest = far.nearest - 180.0_f64.copysign(far.nearest);
        let all = self.reaches(south, far)
            && self.reaches(north, far)
            && (!has_lat(farthest) || 1.0 - self.at_nearest(far) <= self.reach);
        if all { Overlap::All } else { Overlap::Some }
    }
}
