use std::fmt::Write;

use super::super::limits::one_line;
use super::super::{Issue, Part, Reference, State};

/// Issues as Markdown: a heading for each state that has some, below it one for each issue, in the order
/// that they are given.
///
/// Titles and texts are escaped, so that they show as they are and begin nothing; excerpts and
/// annotations are Markdown themselves, and are quoted, so that nothing in them ends up outside.
pub fn export_markdown(issues: &[Issue]) -> String {
    let mut out = String::from("# Issues\n");
    for state in State::ALL {
        let of_state: Vec<&Issue> = issues.iter().filter(|issue| issue.state == state).collect();
        if of_state.is_empty() {
            continue;
        }
        push(&mut out, &format!("## {} ({})", capital(state), of_state.len()));
        for issue in of_state {
            write_issue(&mut out, issue);
        }
    }
    out
}

fn write_issue(out: &mut String, issue: &Issue) {
    push(out, &format!("### {}", escaped(&issue.title)));
    let mut about = format!("- Severity: {}", issue.severity);
    let _ = write!(about, "\n- Created: {:.6}\n- Updated: {:.6}", issue.created, issue.updated);
    if let Some(at) = issue.resolved_at {
        let _ = write!(about, "\n- Resolved: {at:.6}");
    }
    for (is, word) in [(issue.archived, "Archived"), (issue.stale, "Stale")] {
        if is {
            let _ = write!(about, "\n- {word}");
        }
    }
    let _ = write!(about, "\n- Id: {}", issue.id);
    push(out, &about);
    for part in &issue.description {
        match part {
            Part::Text(text) => paragraphs(text).for_each(|it| push(out, &it)),
            Part::Reference(reference) => write_reference(out, reference),
        }
    }
    if !issue.annotations.trim().is_empty() {
        push(out, "**Annotations**");
        push(out, &quoted(&issue.annotations));
    }
}

fn write_reference(out: &mut String, reference: &Reference) {
    let (title, source) = (escaped(&reference.title), escaped(reference.source.as_str()));
    let place = match reference.length {
        0 => "not found in the document".to_owned(),
        length => {
            format!(
                "{length} characters from {} on, {}",
                reference.offset,
                reference.located.as_str()
            )
        }
    };
    push(out, &format!("**{title}** ({source}; {place})"));
    if !reference.excerpt.trim().is_empty() {
        push(out, &quoted(&reference.excerpt));
    }
}

/// Adds a block, with an empty line before it.
fn push(out: &mut String, block: &str) {
    out.push('\n');
    out.push_str(block);
    out.push('\n');
}

fn capital(state: State) -> String {
    let mut chars = state.as_str().chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Text on one line of which nothing is Markdown. A backslash takes its meaning from any punctuation of
/// ASCII; that which has one only at the beginning of a line gets it there.
fn escaped(text: &str) -> String {
    let text = one_line(text);
    let mut out = String::with_capacity(text.len());
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    for (at, c) in text.chars().enumerate() {
        let anywhere = r"\`*_[]{}<>#|~&$!:^@/".contains(c);
        let at_beginning = at == 0 && "-+=".contains(c);
        let of_a_list = digits > 0 && at == digits && ".)".contains(c);
        if anywhere || at_beginning || of_a_list {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn paragraphs(text: &str) -> impl Iterator<Item = String> {
    lines(text).into_iter().map(escaped).filter(|line| !line.is_empty())
}

fn quoted(text: &str) -> String {
    let lines: Vec<String> = lines(text).into_iter().map(|line| format!("> {line}")).collect();
    lines.join("\n")
}

/// The lines of a text, whatever ends them.
fn lines(text: &str) -> Vec<&str> {
    text.split("\r\n").flat_map(|line| line.split(['\n', '\r'])).collect()
}
