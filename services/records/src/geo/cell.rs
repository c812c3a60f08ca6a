use super::cover::Region;
use super::grid::Precision;
use super::spans::Span;

/// A node of the binary tree of cells: the world, halved some number of times.
pub(super) struct Cell<R: Region> {
    level: u32,
    code: u64,
    pub(super) south: Edge<R::Parallel>,
    pub(super) north: Edge<R::Parallel>,
    pub(super) west: Edge<R::Meridian>,
    pub(super) east: Edge<R::Meridian>,
}

/// An edge of a cell: where it is, and what a region has worked out about it. That is done once,
/// when a cell is halved there, and not for each cell that has the edge.
#[derive(Clone, Copy)]
pub(super) struct Edge<T> {
    pub(super) degrees: f64,
    pub(super) seen: T,
}

impl<R: Region> Cell<R> {
    pub(super) fn world(region: &R) -> Self {
        let parallel = |degrees| Edge { degrees, seen: region.parallel(degrees) };
        let meridian = |degrees| Edge { degrees, seen: region.meridian(degrees) };
        Self {
            level: 0,
            code: 0,
            south: parallel(-90.0),
            north: parallel(90.0),
            west: meridian(-180.0),
            east: meridian(180.0),
        }
    }

    /// The two halves, in the order of geohashes. All edges are exact: they need at most 36 bits.
    pub(super) fn halves(&self, region: &R) -> [Self; 2] {
        let (mut first, mut second) = (self.half(0), self.half(1));
        if self.level.is_multiple_of(2) {
            let degrees = f64::midpoint(self.west.degrees, self.east.degrees);
            let middle = Edge { degrees, seen: region.meridian(degrees) };
            (first.east, second.west) = (middle, middle);
        } else {
            let degrees = f64::midpoint(self.south.degrees, self.north.degrees);
            let middle = Edge { degrees, seen: region.parallel(degrees) };
            (first.north, second.south) = (middle, middle);
        }
        [first, second]
    }

    /// A half that still has the edges of the whole.
    fn half(&self, bit: u64) -> Self {
        let Self { level, code, south, north, west, east } = *self;
        Self { level: level + 1, code: code << 1 | bit, south, north, west, east }
    }

    /// The cells of a precision that are in this one, which must not be smaller than they are.
    pub(super) fn span(&self, precision: Precision) -> Span {
        let below = precision.bits() - self.level;
        let first = self.code << below;
        Span { first, last: first + ((1 << below) - 1) }
    }
}
