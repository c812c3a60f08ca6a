use pulldown_cmark::{Options, Parser};

use crate::html::{Sink, Tag, is_dropped, is_void, safe_link, tokenize};

/// Elements inside elements that are shown; those further in lose their tags, not their text.
const DEPTH_MAX: usize = 64;

/// Markdown rendered as HTML that is safe to show on a page.
///
/// Raw HTML in it passes only as far as it is harmless: elements and attributes of a short list, and
/// links to `http`, `https`, `mailto`, `tel` and places without a scheme. Scripts, styles, frames,
/// images, forms and handlers of events do not, whatever they are wrapped in. What is written is
/// well nested, so it cannot close an element of the page around it.
///
/// ```
/// let html = keyward_extract::sanitized_html("*Hi* <img src=x onerror=alert(1)><b>you</b>");
/// assert_eq!(html, "<p><em>Hi</em> <b>you</b></p>\n");
/// ```
pub fn sanitized_html(markdown: &str) -> String {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_FOOTNOTES;
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, Parser::new_ext(markdown, options));
    let mut filter = Filter::default();
    tokenize(&html, &mut filter);
    filter.finish()
}

/// Writes anew what is harmless of a page. Nothing is copied: text is escaped, and tags are written
/// from lists of names.
#[derive(Debug, Default)]
struct Filter {
    out: String,
    open: Vec<&'static str>,
    /// The element whose content is passed over, and how often it is open.
    dropped: Option<(String, usize)>,
}

impl Filter {
    fn finish(mut self) -> String {
        self.close_to(0);
        self.out
    }

    fn close_to(&mut self, length: usize) {
        while self.open.len() > length {
            if let Some(name) = self.open.pop() {
                self.out.push_str(&format!("</{name}>"));
            }
        }
    }
}

impl Sink for Filter {
    fn text(&mut self, text: &str) {
        if self.dropped.is_none() {
            escape(text, &mut self.out);
        }
    }

    fn start(&mut self, tag: &Tag) {
        let name = tag.name.as_str();
        if let Some((dropped, open)) = &mut self.dropped {
            *open += usize::from(dropped == name);
            return;
        }
        // Also with "/>": to a browser these are open all the same.
        if is_dropped(name) || name == "title" {
            self.dropped = Some((name.to_owned(), 1));
            return;
        }
        let Some(known) = allowed(name) else { return };
        let void = is_void(known);
        if !void && self.open.len() >= DEPTH_MAX {
            return;
        }
        self.out.push('<');
        self.out.push_str(known);
        for (name, value) in tag.attributes() {
            if let Some((name, value)) = allowed_attribute(known, name, value) {
                self.out.push_str(&format!(" {name}=\""));
                escape(&value, &mut self.out);
                self.out.push('"');
            }
        }
        if known == "a" {
            self.out.push_str(" rel=\"noopener noreferrer nofollow\"");
        }
        self.out.push('>');
        if !void {
            self.open.push(known);
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((dropped, open)) = &mut self.dropped {
            *open -= usize::from(dropped == name);
            if *open == 0 {
                self.dropped = None;
            }
            return;
        }
        if let Some(at) = self.open.iter().rposition(|open| *open == name) {
            self.close_to(at);
        }
    }
}

fn allowed(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 47] = [
        "a",
        "abbr",
        "b",
        "blockquote",
        "br",
        "caption",
        "cite",
        "code",
        "dd",
        "del",
        "details",
        "div",
        "dl",
        "dt",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "i",
        "ins",
        "kbd",
        "li",
        "mark",
        "ol",
        "p",
        "pre",
        "q",
        "s",
        "samp",
        "small",
        "span",
        "strong",
        "sub",
        "summary",
        "sup",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "u",
        "ul",
    ];
    NAMES.into_iter().find(|known| *known == name)
}

fn allowed_attribute(element: &str, name: &str, value: &str) -> Option<(&'static str, String)> {
    let number = || value.parse::<u16>().ok().map(|number| number.to_string());
    match (element, name) {
        ("a", "href") => safe_link(value).map(|target| ("href", target)),
        ("a" | "abbr", "title") => Some(("title", value.to_owned())),
        ("ol", "start") => number().map(|number| ("start", number)),
        ("td" | "th", "colspan") => number().map(|number| ("colspan", number)),
        ("td" | "th", "rowspan") => number().map(|number| ("rowspan", number)),
        _ => None,
    }
}

fn escape(text: &str, out: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Browsers drop it, or show a mark in its place.
            '\0' => {}
            letter => out.push(letter),
        }
    }
}
