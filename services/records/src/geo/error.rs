/// Coordinates that are no place.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum PointError {
    /// The latitude is out of its range, or not a number.
    #[error(
        "latitude {0} is not between -90 and 90: give degrees north as a decimal number, \
         and check that latitude and longitude are not swapped"
    )]
    Latitude(f64),
    /// The longitude is out of its range, or not a number.
    #[error(
        "longitude {0} is not between -180 and 180: give degrees east as a decimal number, \
         and subtract 360 from those over 180"
    )]
    Longitude(f64),
}

/// A number of characters that a geohash cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a geohash of {0} characters is not possible: choose 1 to 12 (cells are about 5 km wide with \
     5 characters, 150 m with 7, 5 m with 9)"
)]
pub struct PrecisionError(pub(super) u8);

/// Numbers that are no shape.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ShapeError {
    /// The radius of a circle is negative or not a finite number.
    #[error("radius {0} is not possible: give metres, 0 or more")]
    Radius(f64),
    /// The southern edge of a box is north of the northern one.
    #[error("the box has its south {south} above its north {north}: swap the two")]
    SouthAboveNorth {
        /// The southern edge as given.
        south: f64,
        /// The northern edge as given.
        north: f64,
    },
    /// A coordinate of a box is out of range.
    #[error("a corner of the box is no place: {0}")]
    Corner(#[from] PointError),
}
