use crate::pdf::layout::{Item, Line};
use crate::pdf::line::Segment;
use crate::pdf::paragraph::is_list_mark;

/// In units of the size of letters: lines of a cell are closer than this, and rows are not.
const ROW_GAP_MIN: f32 = 1.45;
const ROWS_MIN: usize = 2;

/// Finds tables in rows of segments: several rows in a row with several segments each, that stand in
/// columns. The rest is lines.
pub(crate) fn find(rows: Vec<Vec<Segment>>, items: &mut Vec<Item>) {
    let right = rows.iter().flatten().map(|segment| segment.end).fold(f32::NEG_INFINITY, f32::max);
    let mut candidate: Vec<Vec<Segment>> = Vec::new();
    for row in rows.into_iter().map(with_list_mark) {
        let continues =
            candidate.last().is_some_and(|last| row.len() == 1 && is_wrapped(last, &row[0]));
        if row.len() > 1 || continues {
            candidate.push(row);
            continue;
        }
        flush(&mut candidate, right, items);
        items.extend(row.into_iter().map(|segment| line(segment, right)));
    }
    flush(&mut candidate, right, items);
}

/// Whether a segment alone on its line is a further line of a cell above it.
fn is_wrapped(row: &[Segment], segment: &Segment) -> bool {
    let close = row[0].y - segment.y < ROW_GAP_MIN * segment.size;
    let cell = row.iter().position(|cell| (cell.x - segment.x).abs() < 0.5 * segment.size);
    // Text over the whole width is not in a cell.
    let narrow = |at: usize| row.get(at + 1).is_none_or(|next| segment.end < next.x);
    close && cell.is_some_and(narrow)
}

/// The mark of a list item stands apart from its text.
fn with_list_mark(row: Vec<Segment>) -> Vec<Segment> {
    let mut segments = row.into_iter();
    let mut out = Vec::new();
    if let Some(mut first) = segments.next() {
        if is_list_mark(&first.text)
            && let Some(text) = segments.next()
        {
            first.append(text);
        }
        out.push(first);
    }
    out.extend(segments);
    out
}

fn flush(candidate: &mut Vec<Vec<Segment>>, right: f32, items: &mut Vec<Item>) {
    let rows = std::mem::take(candidate);
    let columns = columns(&rows);
    let full = rows.iter().filter(|row| row.len() > 1).count();
    if full < ROWS_MIN || columns.len() < 2 {
        for row in rows {
            let mut segments = row.into_iter();
            if let Some(mut first) = segments.next() {
                segments.for_each(|segment| first.append(segment));
                items.push(line(first, right));
            }
        }
        return;
    }
    items.push(Item::Table(cells(rows, &columns)));
}

/// The columns: what is left of the width when all gaps between segments are taken away. Only the
/// rows with the most cells count; in others, cells may be so close that they look like one.
fn columns(rows: &[Vec<Segment>]) -> Vec<(f32, f32)> {
    let most = rows.iter().map(Vec::len).max().unwrap_or(0);
    let full = rows.iter().filter(|row| row.len() == most).flatten();
    let mut extents: Vec<(f32, f32)> = full.map(|segment| (segment.x, segment.end)).collect();
    extents.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut columns: Vec<(f32, f32)> = Vec::new();
    for (x, end) in extents {
        match columns.last_mut() {
            Some(last) if x <= last.1 => last.1 = last.1.max(end),
            _ => columns.push((x, end)),
        }
    }
    columns
}

fn cells(rows: Vec<Vec<Segment>>, columns: &[(f32, f32)]) -> Vec<Vec<String>> {
    let gap = |above: &[Segment], below: &[Segment]| (above[0].y - below[0].y) / below[0].size;
    // If all lines are equally close, each is a row.
    let apart = rows.windows(2).any(|pair| gap(&pair[0], &pair[1]) >= ROW_GAP_MIN);
    let mut out: Vec<Vec<String>> = Vec::new();
    let mut above: Option<Vec<Segment>> = None;
    for row in rows {
        let wraps = apart && above.as_ref().is_some_and(|above| gap(above, &row) < ROW_GAP_MIN);
        if !wraps {
            out.push(vec![String::new(); columns.len()]);
        }
        if let Some(cells) = out.last_mut() {
            for segment in &row {
                put(segment, columns, cells);
            }
        }
        above = Some(row);
    }
    out
}

/// Puts a segment into its cell, or its parts into theirs if it reaches into another column.
fn put(segment: &Segment, columns: &[(f32, f32)], cells: &mut [String]) {
    let at = |x: f32| {
        let reach = x + 0.5 * segment.size;
        columns.partition_point(|(start, _)| *start <= reach).saturating_sub(1)
    };
    let reaches = columns.get(at(segment.x) + 1).is_some_and(|next| segment.end > next.0);
    let whole = [(segment.x, segment.text.clone())];
    for (x, text) in if reaches { segment.parts.as_slice() } else { &whole } {
        let cell = &mut cells[at(*x)];
        if !cell.is_empty() {
            cell.push(' ');
        }
        cell.push_str(text.trim());
    }
}

fn line(segment: Segment, right: f32) -> Item {
    Item::Line(Line {
        x: segment.x,
        end: segment.end,
        y: segment.y,
        size: segment.size,
        bold: segment.bold,
        text: segment.text,
        right,
    })
}
