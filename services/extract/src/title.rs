//! What a document is called.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::text::single_line;

const CHARS_MAX: usize = 120;

/// A title from a document's metadata, if somebody has given it: not the name of a file, and not
/// what a program puts there by itself.
pub(crate) fn sensible(title: &str) -> Option<String> {
    const BY_PROGRAMS: [&str; 6] = [
        "microsoft word - ",
        "microsoft powerpoint - ",
        "untitled",
        "document1",
        "(anonymous)",
        "unspecified",
    ];
    const OF_FILES: [&str; 9] =
        [".doc", ".docx", ".pdf", ".odt", ".rtf", ".tex", ".dvi", ".indd", ".html"];

    let title = single_line(&crate::text::normalized(title));
    let lower = title.to_lowercase();
    let by_program = BY_PROGRAMS.iter().any(|beginning| lower.starts_with(beginning));
    let of_file = OF_FILES.iter().any(|extension| lower.ends_with(extension));
    let has_letters = title.chars().any(char::is_alphabetic);
    (has_letters && !by_program && !of_file).then(|| cut(&title))
}

/// The first level-one heading of a Markdown text, else its first heading, else its first line.
pub(crate) fn of_markdown(markdown: &str) -> String {
    let mut first_heading = None;
    let mut first_line = String::new();
    let mut level = None;
    let mut text = String::new();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { level: found, .. }) => {
                level = Some(found);
                text.clear();
            }
            Event::End(TagEnd::Heading(_)) => {
                let heading = single_line(&text);
                if level == Some(HeadingLevel::H1) && !heading.is_empty() {
                    return cut(&heading);
                }
                if first_heading.is_none() && !heading.is_empty() {
                    first_heading = Some(heading);
                }
                level = None;
                text.clear();
            }
            Event::End(
                TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell | TagEnd::CodeBlock,
            ) => {
                if first_line.is_empty() {
                    first_line = text
                        .lines()
                        .map(single_line)
                        .find(|line| !line.is_empty())
                        .unwrap_or_default();
                }
                text.clear();
            }
            Event::Text(part) | Event::Code(part) => text.push_str(&part),
            Event::SoftBreak | Event::HardBreak => {
                text.push(if level.is_some() { ' ' } else { '\n' })
            }
            _ => {}
        }
    }
    cut(&first_heading.unwrap_or(first_line))
}

fn cut(title: &str) -> String {
    match title.char_indices().nth(CHARS_MAX) {
        None => title.to_owned(),
        Some((end, _)) => {
            let head = &title[..end];
            // Not in the middle of a word, if the word is not all there is.
            let head = head.rsplit_once(' ').map_or(head, |(words, _)| words);
            format!("{}…", head.trim_end())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_that_programs_put_there_are_not_believed() {
        for title in ["Microsoft Word - policy.doc", "policy-v3.PDF", "", "untitled", "12-3", " \0"]
        {
            assert_eq!(sensible(title), None, "{title}");
        }
        assert_eq!(sensible(" The  leave\npolicy "), Some("The leave policy".into()));
    }

    #[test]
    fn a_heading_in_a_code_fence_is_no_title() {
        assert_eq!(
            of_markdown("```\n# no\n```\n\ntext\n\n## second\n\n# *The* title"),
            "The title"
        );
        assert_eq!(of_markdown("text\n\n## second"), "second");
        assert_eq!(of_markdown("one\ntwo"), "one");
        assert_eq!(of_markdown("- item"), "item");
        assert_eq!(of_markdown(""), "");
    }

    #[test]
    fn a_long_first_line_is_cut_at_a_word() {
        let title = of_markdown(&"word ".repeat(50));
        assert!(title.ends_with("word…") && title.chars().count() <= CHARS_MAX, "{title}");
    }
}
