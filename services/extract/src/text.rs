//! What every text is brought to.

use unicode_normalization::UnicodeNormalization;

/// The text in Unicode's form NFC, lines ended by `\n`, without control characters, and with at most
/// one blank line in a row, except in fenced code.
pub(crate) fn normalized(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace(['\r', '\u{2028}', '\u{2029}', '\u{c}'], "\n");
    let clean: String = text.chars().filter(|letter| !is_dropped(*letter)).nfc().collect();
    let mut out = String::with_capacity(clean.len());
    let mut blank_before = true;
    let mut fence: Option<&str> = None;
    for line in clean.lines() {
        let line = if line.trim().is_empty() { "" } else { line };
        let mark = fence_of(line);
        match fence {
            Some(open) if mark.is_some_and(|mark| mark.starts_with(open)) => fence = None,
            None => fence = mark,
            Some(_) => {}
        }
        if line.is_empty() && blank_before && fence.is_none() {
            continue;
        }
        blank_before = line.is_empty();
        out.push_str(line);
        out.push('\n');
    }
    let end = out.trim_end().len();
    out.truncate(end);
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// The fence that a line opens or closes.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    (length >= 3).then(|| &line[..length])
}

/// Control characters, marks of byte order, and what stands for no letter at all.
pub(crate) fn is_dropped(letter: char) -> bool {
    (letter.is_control() && !matches!(letter, '\n' | '\t'))
        || matches!(letter, '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{fffd}')
        // Embedding and override of direction can make a text show something else than it says.
        || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// All white space as single spaces, none at the ends.
pub(crate) fn single_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        // A hard break has no meaning in one line.
        out.push_str(if word == "\\" { "" } else { word });
    }
    out.trim_end().to_owned()
}

/// Literal text as Markdown: what would be markup is escaped, and as little else as possible, since
/// people and models read it.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied().unwrap_or(' ');
        let special = match letter {
            '*' | '`' => true,
            '\\' => next.is_ascii_punctuation(),
            '_' => !(before.is_alphanumeric() && next.is_alphanumeric()),
            '<' => next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'),
            '&' => begins_entity(letters.clone()),
            ']' => matches!(next, '(' | '[' | ':'),
            '~' => next == '~' || before == '~',
            _ => false,
        };
        if special {
            out.push('\\');
        }
        out.push(letter);
        before = letter;
    }
    out
}

/// Whether a name and a semicolon come next.
fn begins_entity(mut letters: impl Iterator<Item = char>) -> bool {
    let end = letters.find(|letter| !letter.is_ascii_alphanumeric() && *letter != '#');
    end == Some(';')
}

/// The same for text that begins a block, where more is markup.
pub(crate) fn escaped_block(text: &str) -> String {
    unmarked(&escaped(text.trim()))
}

/// Markdown that does not begin with the mark of a block.
pub(crate) fn unmarked(text: &str) -> String {
    let first = text.chars().next().unwrap_or(' ');
    let marker = match first {
        '#' => {
            text.trim_start_matches('#').starts_with([' ', '\t'])
                || text.trim_matches('#').is_empty()
        }
        '>' | '|' => true,
        '-' | '+' | '=' => {
            text[1..].starts_with([' ', '\t']) || text.trim_matches([first, ' ']).is_empty()
        }
        _ => false,
    };
    if marker {
        return format!("\\{text}");
    }
    // "7." or "7)" would begin a list.
    let digits = text.len() - text.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    let after = &text[digits..];
    if (1..=9).contains(&digits) && after.starts_with(['.', ')']) {
        let rest = &after[1..];
        if rest.is_empty() || rest.starts_with([' ', '\t']) {
            return format!("{}\\{}", &text[..digits], after);
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_composed_and_blank_lines_are_single() {
        assert_eq!(normalized("\u{feff}a\u{308}\r\n\r\n\r\n \t\r\nb\0\u{7}\r\n\r\n"), "ä\n\nb\n");
        assert_eq!(normalized("```\na\n\n\nb\n```\n\n\nc"), "```\na\n\n\nb\n```\n\nc\n");
    }

    #[test]
    fn only_what_would_be_markup_is_escaped() {
        assert_eq!(
            escaped("a_b 3*4 <b> a < b R&D &amp; [1]"),
            "a_b 3\\*4 \\<b> a < b R&D \\&amp; [1]"
        );
        assert_eq!(escaped_block("# one"), "\\# one");
        assert_eq!(escaped_block("#1"), "#1");
        assert_eq!(escaped_block("12. May"), "12\\. May");
        assert_eq!(escaped_block("12.5 points"), "12.5 points");
        assert_eq!(escaped_block("- dash"), "\\- dash");
    }
}
