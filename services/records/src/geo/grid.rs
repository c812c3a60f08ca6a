//! The numbers and texts of geohash cells.
//!
//! The world is halved by longitude, then by latitude, and so on. Each bit of a cell's number
//! chooses a half, and each character of its text is five bits.

use super::error::PrecisionError;
use super::point::Point;

/// How often the finest cells halve each axis: 12 characters are 60 bits.
const AXIS_BITS: u32 = 30;
pub(super) const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";

/// How many characters the geohashes of an index have: 1 to 12.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Precision(u8);

impl Precision {
    /// The most characters a geohash can have. Its cells are 37 by 19 mm.
    pub const CHARACTERS_MAX: u8 = 12;

    /// The precision of geohashes with that many characters.
    ///
    /// # Errors
    ///
    /// It is not between 1 and 12.
    pub fn new(characters: u8) -> Result<Self, PrecisionError> {
        if (1..=Self::CHARACTERS_MAX).contains(&characters) {
            Ok(Self(characters))
        } else {
            Err(PrecisionError(characters))
        }
    }

    /// How many characters geohashes of this precision have.
    pub fn characters(self) -> u8 {
        self.0
    }

    /// The depth of the tree at which this precision's cells are.
    pub(super) fn bits(self) -> u32 {
        5 * u32::from(self.0)
    }

    /// Height and width of a cell, in degrees.
    pub(super) fn cell_degrees(self) -> (f64, f64) {
        let halved = |whole: f64, times: u32| whole / f64::from(1_u32 << times);
        (halved(180.0, self.bits() / 2), halved(360.0, self.bits().div_ceil(2)))
    }
}

/// The number of the cell that holds a place, among the cells of a precision in the order of their
/// geohashes.
pub(super) fn code(point: Point, precision: Precision) -> u64 {
    let finest =
        spread(axis_index(point.lon(), 180.0)) << 1 | spread(axis_index(point.lat(), 90.0));
    finest >> (2 * AXIS_BITS - precision.bits())
}

/// The geohash of a cell, by its number.
pub(super) fn text(code: u64, precision: Precision) -> String {
    let characters = u32::from(precision.characters());
    (0..characters)
        .rev()
        .map(|place| char::from(ALPHABET[(code >> (5 * place) & 31) as usize]))
        .collect()
}

/// The row (or column) of a latitude (or longitude) in the finest grid, where the axis reaches from
/// `-half` to `half` degrees.
fn axis_index(degrees: f64, half: f64) -> u32 {
    let cells = 1_u32 << AXIS_BITS;
    let cell_degrees = 2.0 * half / f64::from(cells);
    let index = (((degrees + half) / cell_degrees) as u32).min(cells - 1);
    // The sum above may round up to the edge of the next cell. The edges are exact, as they need no
    // more than 36 bits.
    let edge = f64::from(index) * cell_degrees - half;
    if degrees < edge { index - 1 } else { index }
}

/// Puts a zero before each bit.
fn spread(index: u32) -> u64 {
    let mut bits = u64::from(index);
    bits = (bits | bits << 16) & 0x0000_ffff_0000_ffff;
    bits = (bits | bits << 8) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    (bits | bits << 1) & 0x5555_5555_5555_5555
}
