use super::cell::Cell;
use super::cover::{self, CellRange, Overlap, Region};
use super::error::ShapeError;
use super::grid::Precision;
use super::point::Point;

/// The places between two parallels and two meridians.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundingBox {
    south: f64,
    west: f64,
    north: f64,
    east: f64,
}

impl BoundingBox {
    /// The box between two latitudes and two longitudes, edges included. It reaches from `west`
    /// eastwards to `east`; if `west` is greater than `east` it crosses the 180° meridian.
    ///
    /// # Errors
    ///
    /// A coordinate is not in its range, or `south` is greater than `north`.
    pub fn new(south: f64, west: f64, north: f64, east: f64) -> Result<Self, ShapeError> {
        Point::new(south, west)?;
        Point::new(north, east)?;
        if south > north {
            return Err(ShapeError::SouthAboveNorth { south, north });
        }
        Ok(Self { south, west, north, east })
    }

    /// Whether a place is in the box or on its edge. A box that touches a pole contains it, with
    /// any longitude; one that touches the 180° meridian contains it as 180 and as -180.
    pub fn contains(self, point: Point) -> bool {
        let (lat, lon) = (point.lat(), point.lon());
        (self.south..=self.north).contains(&lat)
            && (self.reaches_lon(lon)
                || lat.abs() == 90.0
                || lon.abs() == 180.0 && self.reaches_lon(-lon))
    }

    /// Whether a longitude, as it is written, is between west and east.
    fn reaches_lon(self, lon: f64) -> bool {
        if self.west <= self.east {
            self.west <= lon && lon <= self.east
        } else {
            self.west <= lon || lon <= self.east
        }
    }

    /// Ranges of geohashes that hold every place of the box, in order and with gaps between them:
    /// at most `ranges_max`, which is kept between 1 and [`RANGES_MAX`](super::RANGES_MAX).
    ///
    /// Long and narrow boxes, and those that touch a pole or the 180° meridian with an edge, have
    /// covers that hold more around them.
    pub fn cover(self, precision: Precision, ranges_max: usize) -> Vec<CellRange> {
        cover::cover(&Panes::new(self), precision, ranges_max)
    }
}

/// A box as a list of panes: one, or two across the 180° meridian, and those for the other names of
/// the places on that meridian and at the poles.
struct Panes(Vec<Pane>);

struct Pane {
    lats: (f64, f64),
    lons: (f64, f64),
}

impl Panes {
    fn new(bounds: BoundingBox) -> Self {
        let lats = (bounds.south, bounds.north);
        let mut panes = if bounds.west <= bounds.east {
            vec![Pane { lats, lons: (bounds.west, bounds.east) }]
        } else {
            let (west, east) = ((bounds.west, 180.0), (-180.0, bounds.east));
            vec![Pane { lats, lons: west }, Pane { lats, lons: east }]
        };
        for meridian in [-180.0, 180.0] {
            if bounds.reaches_lon(-meridian) && !bounds.reaches_lon(meridian) {
                panes.push(Pane { lats, lons: (meridian, meridian) });
            }
        }
        for pole in [-90.0, 90.0] {
            if bounds.south <= pole && pole <= bounds.north {
                panes.push(Pane { lats: (pole, pole), lons: (-180.0, 180.0) });
            }
        }
        Self(panes)
    }
}

impl Region for Panes {
    type Parallel = ();
    type Meridian = ();

    fn parallel(&self, _: f64) {}

    fn meridian(&self, _: f64) {}

    fn overlap(&self, cell: &Cell<Self>) -> Overlap {
        let lats = (cell.south.degrees, cell.north.degrees);
        let lons = (cell.west.degrees, cell.east.degrees);
        // The northern and the eastern edge belong to the next cell, except at the end of the
        // world.
        let meets = |pane: &Pane| {
            lats.0 <= pane.lats.1
                && (pane.lats.0 < lats.1 || lats.1 == 90.0)
                && lons.0 <= pane.lons.1
                && (pane.lons.0 < lons.1 || lons.1 == 180.0)
        };
        let holds = |pane: &Pane| {
            pane.lats.0 <= lats.0
                && lats.1 <= pane.lats.1
                && pane.lons.0 <= lons.0
                && lons.1 <= pane.lons.1
        };
        if self.0.iter().any(holds) {
            Overlap::All
        } else if self.0.iter().any(meets) {
            Overlap::Some
        } else {
            Overlap::None
        }
    }
}
