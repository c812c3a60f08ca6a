//! Places on the Earth and how to find them in an index of geohashes. Pure geometry: no I/O.
//!
//! An index entry holds the geohash of its place, always with all the characters of the index's
//! [`Precision`]. A search asks a shape ([`Circle`], [`BoundingBox`]) for its *cover*: ranges of
//! geohashes that together hold every place of the shape, and some around it. Whoever scans them
//! keeps the places that the shape `contains`, which is exact. The nearest places, when it is not
//! known how far away they are, come from [`Rings`].
//!
//! A cover is made of ranges of geohashes rather than of geohash prefixes. Cells that follow each
//! other in the order of geohashes are one range, so the same number of scans follows the outline
//! of the shape more closely; and a range may end anywhere, not only at every fifth bit.
//!
//! The same place has several coordinates: the longitudes 180 and -180 are one meridian, and a pole
//! has every longitude. Distances, shapes and covers treat them as the one place they are.

mod bounding_box;
mod cell;
mod circle;
mod cover;
mod error;
mod grid;
mod point;
mod rings;
mod spans;
#[cfg(test)]
mod tests;

pub use bounding_box::BoundingBox;
pub use circle::Circle;
pub use cover::{CellRange, RANGES_MAX};
pub use error::{PointError, PrecisionError, ShapeError};
pub use grid::Precision;
pub use point::{Point, distance_m};
pub use rings::{Ring, Rings};
