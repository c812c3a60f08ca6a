use super::cell::Cell;
use super::grid::{self, Precision};
use super::spans::Spans;

/// The most ranges a cover has.
///
/// Fewer scans read more that is not wanted. Away from the poles, and where the cells of the index
/// are small in comparison, a cover is larger than its circle by about 5 % with 64 ranges, 11 %
/// with 32, 22 % with 16, and 48 % with 8.
pub const RANGES_MAX: usize = 64;

/// How many cells on the outline of a shape are halved further, for each range there may be. With
/// more, a cover of as many ranges gets hardly tighter, only dearer.
const OUTLINE_CELLS_PER_RANGE: usize = 4;

/// A range of geohashes, both ends included, with all the characters of the index's precision: a
/// plain comparison of strings tells what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellRange {
    /// The first geohash.
    pub from: String,
    /// The last geohash.
    pub to: String,
}

/// What a cell has in common with a region.
pub(super) enum Overlap {
    /// No place.
    None,
    /// Some places, or it was not worth finding out.
    Some,
    /// Every place.
    All,
}

/// A part of the Earth that knows which cells it meets.
pub(super) trait Region: Sized {
    /// What it needs to know about a northern or southern edge of cells.
    type Parallel: Copy;
    /// What it needs to know about a western or eastern edge of cells.
    type Meridian: Copy;

    /// Looks at the parallel of a latitude.
    fn parallel(&self, lat: f64) -> Self::Parallel;

    /// Looks at the meridian of a longitude.
    fn meridian(&self, lon: f64) -> Self::Meridian;

    /// What a cell has in common with it. [`Overlap::None`] is a promise.
    fn overlap(&self, cell: &Cell<Self>) -> Overlap;
}

/// The cells that meet a region, as finely as is worth while for that many ranges. There may be
/// more spans of them.
///
/// Level by level the cells on the outline are halved, and the halves outside left out.
pub(super) fn cells(region: &impl Region, precision: Precision, ranges_max: usize) -> Spans {
    let mut found = Vec::new();
    let mut outline = vec![Cell::world(region)];
    for _ in 0..precision.bits() {
        if outline.len() > OUTLINE_CELLS_PER_RANGE * ranges_max {
            break;
        }
        let mut finer = Vec::with_capacity(2 * outline.len());
        for half in outline.iter().flat_map(|cell| cell.halves(region)) {
            match region.overlap(&half) {
                Overlap::None => {}
                Overlap::Some => finer.push(half),
                Overlap::All => found.push(half.span(precision)),
            }
        }
        outline = finer;
    }
    found.extend(outline.iter().map(|cell| cell.span(precision)));
    Spans::new(found)
}

/// The ranges of a region's cover: at most `ranges_max`, which is kept between 1 and
/// [`RANGES_MAX`].
pub(super) fn cover(
    region: &impl Region,
    precision: Precision,
    ranges_max: usize,
) -> Vec<CellRange> {
    let ranges_max = ranges_max.clamp(1, RANGES_MAX);
    ranges(&cells(region, precision, ranges_max).within(ranges_max), precision)
}

/// The ranges that a caller scans, in order.
pub(super) fn ranges(cells: &Spans, precision: Precision) -> Vec<CellRange> {
    let text = |code| grid::text(code, precision);
    cells
        .as_slice()
        .iter()
        .map(|span| CellRange { from: text(span.first), to: text(span.last) })
        .collect()
}
