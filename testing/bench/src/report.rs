//! What comes out: a table for people, a list for programs.

use std::fmt;
use std::io::Write;

use serde::Serialize;

use crate::Result;
use crate::cases::Case;
use crate::measure::Comparison;

/// What a ratio should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// This or more: rates.
    AtLeast(f64),
    /// This or less: costs.
    AtMost(f64),
}

impl Goal {
    fn is_reached(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(goal) => ratio >= goal,
            Self::AtMost(goal) => ratio <= goal,
        }
    }

    fn number(self) -> f64 {
        match self {
            Self::AtLeast(goal) | Self::AtMost(goal) => goal,
        }
    }

    fn better(self) -> &'static str {
        match self {
            Self::AtLeast(_) => "higher",
            Self::AtMost(_) => "lower",
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(goal) => write!(f, ">= {goal}"),
            Self::AtMost(goal) => write!(f, "<= {goal}"),
        }
    }
}

/// One line of the results.
#[derive(Debug, Clone)]
pub struct Row {
    /// The case, or a variant of it that has no goal of its own.
    pub case: String,
    /// What was compared, with the sizes of this run.
    pub compares: String,
    /// How it came out.
    pub comparison: Comparison,
    /// What `measured` and `reference` count.
    pub unit: &'static str,
    /// What the ratio should be; `None` when the row only informs.
    pub goal: Option<Goal>,
}

impl Row {
    /// Whether there is a goal and the ratio does not reach it.
    pub fn is_missed(&self) -> bool {
        self.goal.is_some_and(|goal| !goal.is_reached(self.comparison.ratio))
    }

    fn verdict(&self) -> &'static str {
        match self.goal {
            None => "",
            Some(_) if self.is_missed() => "MISSED",
            Some(_) => "reached",
        }
    }
}

/// The rows as an aligned table.
pub fn table(rows: &[Row]) -> String {
    let head =
        ["case", "ratio", "spread", "goal", "result", "measured", "reference", "unit", "compares"];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows.iter().map(|row| {
        let Comparison { ratio, spread: (least, most), measured, reference } = row.comparison;
        [
            row.case.clone(),
            format!("{ratio:.2}"),
            format!("{least:.2}..{most:.2}"),
            row.goal.map_or_else(String::new, |goal| goal.to_string()),
            row.verdict().to_owned(),
            grouped(measured),
            grouped(reference),
            row.unit.to_owned(),
            row.compares.clone(),
        ]
    }));
    aligned(&lines, &[1, 5, 6])
}

/// The cases with what they compare.
pub fn case_list(cases: &[Case]) -> String {
    let lines: Vec<_> =
        cases.iter().map(|case| [case.name.to_owned(), case.compares.to_owned()]).collect();
    aligned(&lines, &[])
}

/// The rows as a JSON list.
pub fn write_json(rows: &[Row], mut to: impl Write) -> Result<()> {
    #[derive(Serialize)]
    struct Line<'r> {
        case: &'r str,
        ratio: f64,
        goal: Option<f64>,
        /// Whether the ratio shall be at least or at most the goal.
        better: Option<&'static str>,
        unit: &'r str,
        measured: f64,
        reference: f64,
    }

    let lines: Vec<Line<'_>> = rows
        .iter()
        .map(|row| Line {
            case: &row.case,
            ratio: row.comparison.ratio,
            goal: row.goal.map(|goal| goal.number()),
            better: row.goal.map(|goal| goal.better()),
            unit: row.unit,
            measured: row.comparison.measured,
            reference: row.comparison.reference,
        })
        .collect();
    serde_json::to_writer_pretty(&mut to, &lines)?;
    Ok(writeln!(to)?)
}

/// Columns as wide as their widest cell, those of numbers flush right.
fn aligned<const COLUMNS: usize>(lines: &[[String; COLUMNS]], right: &[usize]) -> String {
    let width =
        |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or_default();
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut text = String::new();
    for line in lines {
        let mut shown = String::new();
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            if right.contains(&column) {
                shown += &format!("{cell:>width$}  ");
            } else {
                shown += &format!("{cell:<width$}  ");
            }
        }
        text += shown.trim_end();
        text.push('\n');
    }
    text
}

/// A whole number with its thousands set apart.
pub fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(case: &str, ratio: f64, goal: Option<Goal>) -> Row {
        Row {
            case: case.to_owned(),
            compares: "ours / theirs".to_owned(),
            comparison: Comparison {
                ratio,
                spread: (ratio - 0.1, ratio + 0.1),
                measured: 1_234_567.4,
                reference: 999.0,
            },
            unit: "gets/s",
            goal,
        }
    }

    #[test]
    fn a_goal_has_a_direction() {
        assert!(row("get", 0.8, Some(Goal::AtLeast(0.8))).verdict() == "reached");
        assert!(row("get", 0.79, Some(Goal::AtLeast(0.8))).is_missed());
        assert!(row("growth", 1.51, Some(Goal::AtMost(1.5))).is_missed());
        assert!(!row("growth", 1.0, Some(Goal::AtMost(1.5))).is_missed());
        assert!(!row("hop", 0.0, None).is_missed());
    }

    #[test]
    fn nothing_measured_is_a_goal_missed() {
        assert!(row("get", f64::NAN, Some(Goal::AtLeast(0.8))).is_missed());
    }

    #[test]
    fn the_table_is_aligned() {
        let rows = [
            row("get", 0.9, Some(Goal::AtLeast(0.8))),
            row("get_growth", 1.7, Some(Goal::AtMost(1.5))),
        ];
        let expected = "\
case        ratio  spread      goal    result    measured  reference  unit    compares
get          0.90  0.80..1.00  >= 0.8  reached  1,234,567        999  gets/s  ours / theirs
get_growth   1.70  1.60..1.80  <= 1.5  MISSED   1,234,567        999  gets/s  ours / theirs
";
        assert_eq!(table(&rows), expected);
    }

    #[test]
    fn the_json_is_a_list_with_six_names_each() {
        let rows = [row("get", 0.9, Some(Goal::AtLeast(0.8))), row("get_hop", 0.1, None)];
        let mut written = Vec::new();
        write_json(&rows, &mut written).unwrap();
        let read: serde_json::Value = serde_json::from_slice(&written).unwrap();
        let expected = serde_json::json!([
            {
                "case": "get", "ratio": 0.9, "goal": 0.8, "better": "higher", "unit": "gets/s",
                "measured": 1_234_567.4, "reference": 999.0,
            },
            {
                "case": "get_hop", "ratio": 0.1, "goal": null, "better": null, "unit": "gets/s",
                "measured": 1_234_567.4, "reference": 999.0,
            },
        ]);
        assert_eq!(read, expected);
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(0.4), "0");
        assert_eq!(grouped(999.0), "999");
        assert_eq!(grouped(1_000.0), "1,000");
        assert_eq!(grouped(12_345_678.0), "12,345,678");
    }
}
