//! The forms in which a document is given out.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use keyward::agreements::Document;
use keyward::extract::{Language, sanitized_html};
use keyward::{Code, Version};

use crate::http::answer::{harmless, json, tagged};
use crate::http::problem::Answered;
use crate::http::text::told;
use crate::problem::{Problem, Result};

/// Up to how many bytes a document is rendered on the thread that answers: a few milliseconds.
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// A form that a client can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Markdown,
    Html,
}

/// Forms by their media types, the usual one first.
const FORMS: [(&str, Form); 3] = [
    ("application/json", Form::Json),
    ("text/markdown", Form::Markdown),
    ("text/html", Form::Html),
];

impl Form {
    /// The form that a client likes best; of those it likes alike, the first here. What it does not know
    /// how to ask for, it gets as JSON.
    fn wanted(headers: &HeaderMap) -> Self {
        let accepted =
            headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let ranges: Vec<(String, f32)> =
            accepted.flat_map(|list| list.split(',')).map(range).collect();
        let liked = |name: &str| {
            let family = name.split('/').next().unwrap_or_default();
            let found = |wanted: &str| ranges.iter().find(|(range, _)| range == wanted);
            let range =
                found(name).or_else(|| found(&format!("{family}/*"))).or_else(|| found("*/*"));
            range.map_or(0.0, |(_, quality)| *quality)
        };
        let mut best = (0.0, Self::Json);
        for (name, form) in FORMS {
            let quality = liked(name);
            if quality > best.0 {
                best = (quality, form);
            }
        }
        best.1
    }
}

/// A media range and how much it is liked.
fn range(text: &str) -> (String, f32) {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok());
    (name, quality.unwrap_or(1.0))
}

/// A document in the form that the client likes best.
pub(super) async fn shown(headers: &HeaderMap, document: &Document) -> Answered {
    let form = Form::wanted(headers);
    let text = match form {
        Form::Json => told(document)?,
        Form::Markdown => document.content.clone(),
        Form::Html => page(document).await?,
    };
    // The form counts: what is in it may be the same.
    let hash = blake3::hash(format!("{form:?}\n{text}").as_bytes()).to_hex();
    let tag = Version::parse(&hash[..32]);
    let mut response = tagged(headers, &tag, || match form {
        Form::Json => json(StatusCode::OK, text),
        Form::Markdown => harmless("text/markdown; charset=utf-8", text),
        Form::Html => harmless("text/html; charset=utf-8", text),
    })?;
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

/// A document as a page of its own, of which nothing runs.
async fn page(document: &Document) -> Result<String> {
    let language = document.language.map_or("", Language::as_str);
    let title = escaped(&document.title);
    let content = html(&document.content).await?;
    Ok(format!(
        "<!doctype html>\n<html lang=\"{language}\">\n<head><meta charset=\"utf-8\">\
         <title>{title}</title></head>\n<body>\n{content}</body>\n</html>\n"
    ))
}

/// Markdown as HTML. What takes long runs beside the threads that answer requests.
async fn html(markdown: &str) -> Result<String> {
    if markdown.len() <= INLINE_BYTES_MAX {
        return Ok(sanitized_html(markdown));
    }
    let markdown = markdown.to_owned();
    tokio::task::spawn_blocking(move || sanitized_html(&markdown)).await.map_err(|_| {
        Problem::new(Code::Internal, "the document could not be rendered")
            .hint("Ask for it as text/markdown.")
    })
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(accept: &str) -> Form {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::try_from(accept).unwrap());
        Form::wanted(&headers)
    }

    #[test]
    fn the_form_is_the_one_that_is_liked_best() {
        assert_eq!(Form::wanted(&HeaderMap::new()), Form::Json);
        assert_eq!(wanted("*/*"), Form::Json);
        assert_eq!(wanted("text/markdown"), Form::Markdown);
        assert_eq!(wanted("text/html,application/xhtml+xml,*/*;q=0.8"), Form::Html);
        assert_eq!(wanted("text/html;q=0.2, text/markdown; q=0.7"), Form::Markdown);
        assert_eq!(wanted("application/json;q=0, text/*"), Form::Markdown);
        assert_eq!(wanted("image/png"), Form::Json);
    }
}
