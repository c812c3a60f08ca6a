use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

/// The most characters of a title; what is longer is cut.
const CHARS_MAX: usize = 500;

/// The title of a Markdown text: its first heading of level one, as plain text.
///
/// Both forms of headings count (`# Title`, and a line underlined with `=`). Code, inline HTML's tags and
/// front matter (between two lines `---`, at the very beginning) are no headings; emphasis, links and
/// inline code inside one give their text. White space is collapsed, and the title is cut after 500
/// characters. `None` if there is no such heading, or nothing in it: the policy's name is its title then.
///
/// ```
/// use keyward_registry::title;
///
/// assert_eq!(title("---\nid: 7\n---\n\n# 학칙 *개정* `v2`\n").as_deref(), Some("학칙 개정 v2"));
/// assert_eq!(title("## 장\n"), None);
/// ```
pub fn title(markdown: &str) -> Option<String> {
    let markdown = markdown.strip_prefix('\u{feff}').unwrap_or(markdown);
    let mut text = String::new();
    let mut inside = false;
    for event in Parser::new(after_front_matter(markdown)) {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => inside = true,
            Event::End(TagEnd::Heading(HeadingLevel::H1)) => {
                inside = false;
                let title = collapsed(&text);
                if !title.is_empty() {
                    return Some(title);
                }
                text.clear();
            }
            Event::Text(part) | Event::Code(part) if inside => text.push_str(&part),
            Event::SoftBreak | Event::HardBreak if inside => text.push(' '),
            _ => {}
        }
    }
    None
}

/// What follows front matter. A beginning without an end is no front matter, but a line.
fn after_front_matter(markdown: &str) -> &str {
    let mut lines = markdown.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else { return markdown };
    let mut at = first.len();
    for line in lines {
        at += line.len();
        if matches!(line.trim_end(), "---" | "...") {
            return &markdown[at..];
        }
    }
    markdown
}

fn collapsed(text: &str) -> String {
    let mut title = String::new();
    let mut chars = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        let gap = usize::from(!title.is_empty());
        let room = CHARS_MAX.saturating_sub(chars + gap);
        if room == 0 {
            break;
        }
        if gap == 1 {
            title.push(' ');
        }
        let taken: String = word.chars().take(room).collect();
        chars += gap + taken.chars().count();
        title.push_str(&taken);
    }
    title
}
