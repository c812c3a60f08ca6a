//! Records as lines.

use keyward::Entry;
use keyward::records::Record;

use crate::failure::Result;
use crate::line::{self, Fields};
use crate::output::Output;

/// Writes a record as one line, as scan does.
pub fn write(record: Record, output: &mut Output) -> Result {
    if !output.json_lines() {
        return output.write_columns(&record.key.to_string(), record.value.as_str());
    }
    let mut line = json(record, Fields::Versioned);
    line.push(b'\n');
    output.write_all(&line)
}

/// Writes a record and how far away it is as one line.
pub fn write_distant(record: Record, distance_m: f64, output: &mut Output) -> Result {
    if !output.json_lines() {
        let name = format!("{:>8}  {}", distance(distance_m), record.key);
        return output.write_columns(&name, record.value.as_str());
    }
    let mut line = json(record, Fields::Versioned);
    line.pop();
    line.extend_from_slice(format!(",\"distance_m\":{distance_m:.3}}}\n").as_bytes());
    output.write_all(&line)
}

/// A record as a JSON object, without a line's end.
pub fn json(record: Record, fields: Fields) -> Vec<u8> {
    let Record { key, value, metadata, version, expires } = record;
    let mut line = Vec::new();
    line::write(&mut line, &key, &Entry { value, metadata, version, expires }, fields);
    line
}

fn distance(metres: f64) -> String {
    match metres {
        metres if metres < 999.5 => format!("{metres:.0} m"),
        metres if metres < 99_950.0 => format!("{:.1} km", metres / 1_000.0),
        metres => format!("{:.0} km", metres / 1_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_as_precise_as_a_person_needs() {
        let shown = [0.2, 42.4, 999.4, 999.6, 5_432.0, 99_949.0, 99_951.0].map(distance);
        assert_eq!(shown, ["0 m", "42 m", "999 m", "1.0 km", "5.4 km", "99.9 km", "100 km"]);
    }
}
