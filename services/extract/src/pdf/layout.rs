use crate::pdf::line::{Segment, joined};
use crate::pdf::table;

/// Places on a page that are tried as the gap between columns.
const TRIES: u8 = 60;
/// Lines that each of two columns has at least.
const COLUMN_LINES_MIN: usize = 5;
/// How much of its column a line of running text fills, at the median.
const COLUMN_FILL_MIN: f32 = 0.6;

/// What stands on a page, in the order of reading.
#[derive(Debug)]
pub(crate) enum Item {
    Line(Line),
    Table(Vec<Vec<String>>),
}

/// A line of running text.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) x: f32,
    pub(crate) end: f32,
    pub(crate) y: f32,
    pub(crate) size: f32,
    pub(crate) bold: bool,
    /// How far lines around it go.
    pub(crate) right: f32,
}

/// Puts the segments of a page in the order of reading.
pub(crate) fn arrange(segments: Vec<Segment>) -> Vec<Item> {
    let mut items = Vec::new();
    // Text in another direction, such as a note in the margin, comes after the rest.
    for quarter in 0..4 {
        let turned: Vec<Segment> =
            segments.iter().filter(|segment| segment.quarter == quarter).cloned().collect();
        if !turned.is_empty() {
            arrange_turned(turned, &mut items);
        }
    }
    items
}

fn arrange_turned(segments: Vec<Segment>, items: &mut Vec<Item>) {
    let rows = rows(segments);
    let Some(gap) = gap_between_columns(&rows) else {
        table::find(rows, items);
        return;
    };
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for row in rows {
        let crosses = row.iter().any(|segment| segment.x < gap && segment.end > gap);
        if crosses {
            table::find(std::mem::take(&mut left), items);
            table::find(std::mem::take(&mut right), items);
            table::find(vec![row], items);
            continue;
        }
        let (before, after): (Vec<_>, Vec<_>) = row.into_iter().partition(|one| one.end <= gap);
        left.extend((!before.is_empty()).then_some(before));
        right.extend((!after.is_empty()).then_some(after));
    }
    table::find(left, items);
    table::find(right, items);
}

/// Segments of the same height together, from the top down.
fn rows(mut segments: Vec<Segment>) -> Vec<Vec<Segment>> {
    segments.sort_by(|one, other| other.y.total_cmp(&one.y));
    let mut rows: Vec<Vec<Segment>> = Vec::new();
    for segment in segments {
        match rows.last_mut() {
            Some(row) if (row[0].y - segment.y).abs() < 0.3 * segment.size.max(row[0].size) => {
                row.push(segment);
            }
            _ => rows.push(vec![segment]),
        }
    }
    rows.into_iter().map(joined).collect()
}

/// Where two columns of running text are separated, if there are two.
fn gap_between_columns(rows: &[Vec<Segment>]) -> Option<f32> {
    let segments: Vec<&Segment> = rows.iter().flatten().collect();
    let left = segments.iter().map(|segment| segment.x).fold(f32::INFINITY, f32::min);
    let right = segments.iter().map(|segment| segment.end).fold(f32::NEG_INFINITY, f32::max);
    let width = right - left;
    let crossed = |at: f32| segments.iter().filter(|one| one.x < at && one.end > at).count();
    let tries = (TRIES / 4..TRIES * 3 / 4).map(|step| {
        let at = left + width * f32::from(step) / f32::from(TRIES);
        (crossed(at), at)
    });
    let tries: Vec<(usize, f32)> = tries.collect();
    let least = tries.iter().map(|(crossed, _)| *crossed).min()?;
    let best: Vec<f32> =
        tries.iter().filter(|(crossed, _)| *crossed == least).map(|(_, at)| *at).collect();
    let at = best[best.len() / 2];
    if least * 4 > rows.len() {
        return None;
    }
    let fills = |segments: Vec<&&Segment>, width: f32| {
        let mut widths: Vec<f32> = segments.iter().map(|one| one.end - one.x).collect();
        widths.sort_by(f32::total_cmp);
        widths.len() >= COLUMN_LINES_MIN && widths[widths.len() / 2] > COLUMN_FILL_MIN * width
    };
    let before = segments.iter().filter(|one| one.end <= at).collect();
    let after = segments.iter().filter(|one| one.x >= at).collect();
    (fills(before, at - left) && fills(after, right - at)).then_some(at)
}
