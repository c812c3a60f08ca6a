//! What a page is called, by its text.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::BodyFormat;

/// The most characters of a title; what is longer is cut.
const CHARS_MAX: usize = 300;

/// The first heading of level one, or what HTML says its title is. `None` if there is none, or nothing
/// in it.
pub(super) fn title(body: &str, format: BodyFormat) -> Option<String> {
    let body = body.strip_prefix('\u{feff}').unwrap_or(body);
    let found = match format {
        BodyFormat::Markdown => heading(body),
        BodyFormat::Html => element(body, "title").or_else(|| element(body, "h1")),
    };
    found.map(|text| collapsed(&text)).filter(|title| !title.is_empty())
}

fn heading(markdown: &str) -> Option<String> {
    let mut text = String::new();
    let mut inside = false;
    for event in Parser::new_ext(markdown, Options::ENABLE_YAML_STYLE_METADATA_BLOCKS) {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => inside = true,
            Event::End(TagEnd::Heading(HeadingLevel::H1)) if text.trim().is_empty() => {
                inside = false;
            }
            Event::End(TagEnd::Heading(HeadingLevel::H1)) => return Some(text),
            Event::Text(part) | Event::Code(part) if inside => text.push_str(&part),
            Event::SoftBreak | Event::HardBreak if inside => text.push(' '),
            _ => {}
        }
    }
    None
}

/// The text of the first element of a name. Written for titles, not for HTML as such.
fn element(html: &str, name: &str) -> Option<String> {
    // Only ASCII changes, so that places are the same in both.
    let lower = html.to_ascii_lowercase();
    let open = format!("<{name}");
    let mut from = 0;
    loop {
        let start = from + lower[from..].find(&open)? + open.len();
        from = start;
        // `<h1` is not the beginning of `<h10`.
        if !lower[start..].starts_with(|c: char| c == '>' || c.is_ascii_whitespace()) {
            continue;
        }
        let text = start + lower[start..].find('>')? + 1;
        let end = text + lower[text..].find(&format!("</{name}"))?;
        return Some(unescaped(&without_tags(&html[text..end])));
    }
}

fn without_tags(html: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for c in html.chars() {
        match c {
            '<' => inside = true,
            '>' if inside => inside = false,
            c if !inside => text.push(c),
            _ => {}
        }
    }
    text
}

fn unescaped(text: &str) -> String {
    const NAMED: [(&str, &str); 6] = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        // The last one, so that nothing is read twice.
        ("&amp;", "&"),
    ];
    NAMED.iter().fold(text.to_owned(), |text, (name, meant)| text.replace(name, meant))
}

fn collapsed(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_heading_of_level_one() {
        let of = |text: &str| title(text, BodyFormat::Markdown);
        assert_eq!(
            of("---\na: 1\n---\n\n## Not\n\n# Study *rules* `v2`\n# Two").as_deref(),
            Some("Study rules v2")
        );
        assert_eq!(of("Rules\n=====\n").as_deref(), Some("Rules"));
        assert_eq!(of("```\n# code\n```\n#\n# After\n").as_deref(), Some("After"));
        assert_eq!(of("no heading"), None);
    }

    #[test]
    fn a_title_of_html_is_its_title_or_its_first_heading() {
        let of = |text: &str| title(text, BodyFormat::Html);
        assert_eq!(
            of("<TITLE lang=x>\n A &amp;lt; B</title><h1>C</h1>").as_deref(),
            Some("A &lt; B")
        );
        assert_eq!(of("<h10>no</h10><h1>Ö <b>b</b></h1>").as_deref(), Some("Ö b"));
        for none in ["<title>", "<title", "<title></title>", "<h1 <title>", ""] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn a_title_is_cut_at_its_most_characters() {
        let long = format!("# {}", "ä".repeat(5_000));
        assert_eq!(title(&long, BodyFormat::Markdown).unwrap().chars().count(), CHARS_MAX);
    }
}
