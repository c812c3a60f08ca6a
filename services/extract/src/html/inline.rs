use crate::text::{escaped, is_dropped};

/// Spans open at once; further ones are shown without their marks.
const OPEN_MAX: usize = 32;

/// A line of text with marks, while it is written.
#[derive(Debug, Default)]
pub(crate) struct Inline {
    text: String,
    /// Text that is not yet escaped: it comes in parts, and what is markup shows only in the whole.
    literal: String,
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    span: Span,
    start: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Span {
    Strong,
    Emphasis,
    Code,
    Link(String),
}

impl Span {
    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl Inline {
    pub(crate) fn push(&mut self, text: &str) {
        self.literal.push_str(text);
    }

    /// Adds the text that has come since the last mark.
    fn settle(&mut self) {
        let text = std::mem::take(&mut self.literal);
        let literal = self.open.iter().any(|open| open.span == Span::Code);
        let mut words = String::with_capacity(text.len());
        for letter in text.chars().filter(|letter| !is_dropped(*letter)) {
            if !letter.is_whitespace() || letter == '\u{a0}' {
                words.push(if letter == '\u{a0}' { ' ' } else { letter });
            } else if !words.ends_with(' ') {
                words.push(' ');
            }
        }
        let words = if literal { words } else { escaped(&words) };
        if self.text.ends_with([' ', '\n']) || self.text.is_empty() {
            self.text.push_str(words.trim_start_matches(' '));
        } else {
            self.text.push_str(&words);
        }
    }

    pub(crate) fn line_break(&mut self) {
        self.settle();
        let end = self.text.trim_end_matches(' ').len();
        self.text.truncate(end);
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push_str("\\\n");
        }
    }

    pub(crate) fn open(&mut self, span: Span) {
        self.settle();
        let again = self.open.iter().any(|open| open.span.is_like(&span));
        if !again && self.open.len() < OPEN_MAX {
            self.open.push(Open { span, start: self.text.len() });
        }
    }

    /// Closes the innermost span of this kind, and those inside it.
    pub(crate) fn close(&mut self, like: &Span) {
        self.settle();
        if let Some(at) = self.open.iter().rposition(|open| open.span.is_like(like)) {
            while self.open.len() > at {
                self.close_last();
            }
        }
    }

    fn close_last(&mut self) {
        let Some(Open { span, start }) = self.open.pop() else { return };
        let start = start.min(self.text.len());
        let inner = self.text.split_off(start);
        let body = inner.trim().trim_end_matches('\\').trim_end();
        if body.is_empty() {
            self.text.push_str(if inner.is_empty() { "" } else { " " });
            return;
        }
        if inner.starts_with(char::is_whitespace) && !self.text.ends_with(' ') {
            self.text.push(' ');
        }
        match span {
            Span::Strong => self.text.push_str(&format!("**{body}**")),
            Span::Emphasis => self.text.push_str(&format!("*{body}*")),
            Span::Code => {
                let mark = if body.contains('`') { "``" } else { "`" };
                self.text.push_str(&format!("{mark}{body}{mark}"));
            }
            Span::Link(target) => self.text.push_str(&format!("[{body}]({target})")),
        }
        if inner.ends_with(char::is_whitespace) {
            self.text.push(' ');
        }
    }

    /// The text so far; a new one begins.
    pub(crate) fn take(&mut self) -> String {
        self.settle();
        while !self.open.is_empty() {
            self.close_last();
        }
        let text = std::mem::take(&mut self.text);
        text.trim().trim_end_matches("\\").trim_end().to_owned()
    }
}

/// The target of a link, written so that Markdown reads it, if following it can run nothing.
pub(crate) fn safe_link(target: &str) -> Option<String> {
    let target: String =
        target.chars().filter(|letter| !letter.is_control()).collect::<String>().trim().to_owned();
    let scheme_end = target.find([':', '/', '?', '#']).filter(|at| target[*at..].starts_with(':'));
    if let Some(end) = scheme_end {
        let scheme = target[..end].to_ascii_lowercase();
        if !["http", "https", "mailto", "tel"].contains(&scheme.as_str()) {
            return None;
        }
    }
    if target.is_empty() || target.starts_with('#') {
        return None;
    }
    let mut out = String::with_capacity(target.len());
    for letter in target.chars() {
        match letter {
            ' ' => out.push_str("%20"),
            '(' => out.push_str("%28"),
            ')' => out.push_str("%29"),
            '<' => out.push_str("%3C"),
            '>' => out.push_str("%3E"),
            '"' => out.push_str("%22"),
            '\\' => out.push_str("%5C"),
            letter if letter.is_whitespace() => {}
            letter => out.push(letter),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_do_not_enclose_white_space() {
        let mut line = Inline::default();
        line.push("a");
        line.open(Span::Strong);
        line.push(" b ");
        line.close(&Span::Strong);
        line.push("c");
        assert_eq!(line.take(), "a **b** c");
    }

    #[test]
    fn only_targets_that_run_nothing_are_linked() {
        for target in
            ["javascript:alert(1)", " JaVa\nScript:x", "data:text/html,x", "vbscript:x", "#top", ""]
        {
            assert_eq!(safe_link(target), None, "{target}");
        }
        assert_eq!(
            safe_link("https://a.example/b c(d)").unwrap(),
            "https://a.example/b%20c%28d%29"
        );
        assert_eq!(safe_link("page/a:b").unwrap(), "page/a:b");
    }
}
