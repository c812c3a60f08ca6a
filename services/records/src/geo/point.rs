use super::error::PointError;
use super::grid::{self, Precision};

/// The mean radius of the Earth, which is taken to be a sphere.
pub(super) const EARTH_RADIUS_M: f64 = 6_371_008.8;

/// The farthest that two places can be from each other.
pub(super) const DISTANCE_M_MAX: f64 = std::f64::consts::PI * EARTH_RADIUS_M;

/// A place on the Earth, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    lat: f64,
    lon: f64,
}

impl Point {
    /// The place at a latitude (north is positive) and a longitude (east is positive).
    ///
    /// # Errors
    ///
    /// The latitude is not between -90 and 90, the longitude not between -180 and 180, or one of
    /// them is not a number.
    pub fn new(lat: f64, lon: f64) -> Result<Self, PointError> {
        if !(-90.0..=90.0).contains(&lat) {
            return Err(PointError::Latitude(lat));
        }
        if !(-180.0..=180.0).contains(&lon) {
            return Err(PointError::Longitude(lon));
        }
        Ok(Self { lat, lon })
    }

    /// Degrees north of the equator, between -90 and 90.
    pub fn lat(self) -> f64 {
        self.lat
    }

    /// Degrees east of Greenwich, between -180 and 180.
    pub fn lon(self) -> f64 {
        self.lon
    }

    /// The geohash of the cell that holds this place. A place on the edge of two cells belongs to
    /// the northern and the eastern one; latitude 90 and longitude 180 belong to the last cells.
    pub fn geohash(self, precision: Precision) -> String {
        grid::text(grid::code(self, precision), precision)
    }
}

/// The distance between two places along the surface of the Earth, in metres.
///
/// The Earth is a sphere here, so this is within 0.6 % of the distance on the ellipsoid. The error
/// of the calculation itself is far below a millimetre, for neighbours and for antipodes alike.
pub fn distance_m(a: Point, b: Point) -> f64 {
    let across = degrees_between(a.lon, b.lon);
    let cosines = cos_lat(a.lat) * cos_lat(b.lat);
    // The haversine of the angle between the two places, and that between one and the antipode of
    // the other, which is 1 less the first. Each is exact where the other has lost its digits.
    let near = haversine(a.lat - b.lat) + cosines * haversine(across);
    let far = haversine(a.lat + b.lat) + cosines * haversine(180.0 - across);
    2.0 * EARTH_RADIUS_M * near.sqrt().atan2(far.sqrt())
}

/// How far two longitudes are apart: 0 to 180 degrees.
pub(super) fn degrees_between(lon_a: f64, lon_b: f64) -> f64 {
    let apart = (lon_a - lon_b).abs();
    apart.min(360.0 - apart)
}

/// The haversine of an angle in degrees: the square of the sine of its half.
pub(super) fn haversine(degrees: f64) -> f64 {
    let sine = (degrees.to_radians() / 2.0).sin();
    sine * sine
}

/// The cosine of a latitude, which is exactly 0 at the poles.
pub(super) fn cos_lat(lat: f64) -> f64 {
    (90.0 - lat.abs()).to_radians().sin()
}
