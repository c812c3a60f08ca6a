//! What a file's text looks like, and becomes.

use super::path::FilePath;
use super::{Done, LINES_MAX, Refused};

/// How many lines before and after a change are shown.
const AROUND: usize = 2;
/// How many places of a text that stands there too often are named.
const NAMED_MAX: usize = 20;

/// A file with line numbers.
pub(super) fn shown(path: &FilePath, text: &str, range: Option<[i64; 2]>) -> Done {
    let lines: Vec<&str> = lines(text).collect();
    if lines.len() > LINES_MAX {
        let message = format!("File {path} exceeds maximum line limit of 999,999 lines.");
        return Err(Refused::Told(message));
    }
    let (first, last) = match range {
        None => (1, lines.len()),
        Some(range) => span(range, lines.len()).ok_or_else(|| {
            let [from, to] = range;
            let message = format!(
                "Error: Invalid `view_range` parameter: [{from}, {to}]. It should be within the \
                 range of lines of the file: [1, {}]",
                lines.len()
            );
            Refused::Told(message)
        })?,
    };
    let numbered = numbered(&lines, first, last);
    Ok(format!("Here's the content of {path} with line numbers:\n{numbered}"))
}

/// The text with one replacement, and what is said about it.
pub(super) fn replaced(
    path: &FilePath,
    text: &str,
    old: &str,
    new: &str,
) -> Done<(String, String)> {
    if old.is_empty() {
        return Err(Refused::Told("Error: old_str is empty: say what to replace".to_owned()));
    }
    // More are neither looked for nor named: a text may stand there a million times.
    let places: Vec<usize> = starts(text, old).take(NAMED_MAX + 1).collect();
    let at = match places[..] {
        [at] => at,
        [] => {
            let message = format!(
                "No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
            );
            return Err(Refused::Told(message));
        }
        _ => {
            let mut lines: Vec<usize> = places.iter().map(|at| line_of(text, *at)).collect();
            lines.dedup();
            let mut lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            if places.len() > NAMED_MAX {
                lines.push("...".to_owned());
            }
            let message = format!(
                "No replacement was performed. Multiple occurrences of old_str `{old}` in lines: \
                 {}. Please ensure it is unique",
                lines.join(", ")
            );
            return Err(Refused::Told(message));
        }
    };
    let text = [&text[..at], new, &text[at + old.len()..]].concat();
    let (first, last) = (line_of(&text, at), line_of(&text, at + new.len()));
    let lines: Vec<&str> = lines(&text).collect();
    let snippet = numbered(&lines, first.saturating_sub(AROUND).max(1), last + AROUND);
    let answer = format!(
        "The memory file has been edited. Here is the snippet showing the change (with line \
         numbers):\n{snippet}"
    );
    Ok((text, answer))
}

/// The text with lines inserted, and what is said about it.
pub(super) fn inserted(
    path: &FilePath,
    text: &str,
    line: i64,
    new: &str,
) -> Done<(String, String)> {
    let total = lines(text).count();
    let Some(line) = usize::try_from(line).ok().filter(|line| *line <= total) else {
        let message = format!(
            "Error: Invalid `insert_line` parameter: {line}. It should be within the range of \
             lines of the file: [0, {total}]"
        );
        return Err(Refused::Told(message));
    };
    let at = match line {
        0 => 0,
        line => text.match_indices('\n').nth(line - 1).map_or(text.len(), |(at, _)| at + 1),
    };
    let (before, after) = text.split_at(at);
    let mut whole = String::with_capacity(text.len() + new.len() + 2);
    whole.push_str(before);
    if !before.is_empty() && !before.ends_with('\n') {
        whole.push('\n');
    }
    whole.push_str(new);
    if !new.ends_with('\n') && (!after.is_empty() || before.ends_with('\n')) {
        whole.push('\n');
    }
    whole.push_str(after);
    Ok((whole, format!("The file {path} has been edited.")))
}

/// The lines of a text; a line break at its end begins no new one.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_terminator('\n')
}

fn numbered(lines: &[&str], first: usize, last: usize) -> String {
    let shown = lines.iter().enumerate().take(last).skip(first.saturating_sub(1));
    let shown: Vec<String> = shown.map(|(at, line)| format!("{:>6}\t{line}", at + 1)).collect();
    shown.join("\n")
}

/// The first and last line of a range, which may end after the last line there is.
fn span([from, to]: [i64; 2], total: usize) -> Option<(usize, usize)> {
    let first = usize::try_from(from).ok().filter(|first| (1..=total).contains(first))?;
    let last = if to == -1 { total } else { usize::try_from(to).ok()?.min(total) };
    (first <= last).then_some((first, last))
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Where a text stands in another, also where it overlaps itself.
fn starts<'t>(text: &'t str, part: &'t str) -> impl Iterator<Item = usize> + 't {
    let step = part.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + text.get(from..)?.find(part)?;
        from = at + step;
        Some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> FilePath {
        match FilePath::parse("/memories/a.md") {
            Ok(path) => path,
            Err(_) => panic!("a path"),
        }
    }

    fn told<T>(done: Done<T>) -> String {
        match done {
            Err(Refused::Told(text)) => text,
            _ => panic!("it should have been refused"),
        }
    }

    fn insert(text: &str, line: i64, new: &str) -> String {
        inserted(&path(), text, line, new).ok().map_or_else(|| panic!("inserted"), |done| done.0)
    }

    #[test]
    fn inserted_lines_are_lines_of_their_own() {
        assert_eq!(insert("a\nb\n", 0, "x"), "x\na\nb\n");
        assert_eq!(insert("a\nb\n", 1, "x\n"), "a\nx\nb\n");
        assert_eq!(insert("a\nb\n", 2, "x"), "a\nb\nx\n");
        assert_eq!(insert("a\nb", 2, "x"), "a\nb\nx");
        assert_eq!(insert("", 0, "x"), "x");
        assert_eq!(
            told(inserted(&path(), "a\n", 2, "x")),
            "Error: Invalid `insert_line` parameter: 2. It should be within the range of lines of \
             the file: [0, 1]"
        );
    }

    #[test]
    fn a_text_that_overlaps_itself_stands_there_twice() {
        assert_eq!(starts("aaa", "aa").collect::<Vec<_>>(), [0, 1]);
        assert_eq!(starts("ééé", "éé").collect::<Vec<_>>(), [0, 2]);
        assert!(told(replaced(&path(), "aaa", "aa", "b")).contains("in lines: 1."));
    }

    #[test]
    fn of_very_many_places_a_few_are_named() {
        let text = "a\n".repeat(100_000);
        let told = told(replaced(&path(), &text, "a", "b"));
        assert!(
            told.contains("in lines: 1, 2, 3,") && told.contains(", 21, .... Please"),
            "{told}"
        );
    }

    #[test]
    fn ranges_end_where_the_file_does() {
        assert_eq!(span([2, -1], 3), Some((2, 3)));
        assert_eq!(span([2, 9], 3), Some((2, 3)));
        for range in [[0, 1], [4, -1], [3, 2], [1, -2]] {
            assert_eq!(span(range, 3), None, "{range:?}");
        }
    }
}
