//! A policy as an export writes it: front matter, then the document.

use serde::Serialize;
use serde_json::Value;

/// What front matter says of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FrontMatter<'a> {
    pub policy_name: &'a str,
    pub title: &'a str,
    pub status: &'a str,
    pub sha: &'a str,
    pub path: &'a str,
    pub last_updated: &'a str,
}

/// The largest front matter of a document that is taken apart.
const OWN_BYTES_MAX: usize = 64 << 10;
const MARK: &str = "---";

impl FrontMatter<'_> {
    /// As YAML, a line for each member. Texts that a reader could take for something else are quoted.
    pub fn yaml(&self) -> Result<String, String> {
        let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
        serde_saphyr::to_string_with_options(self, options).map_err(|error| error.to_string())
    }

    /// The whole file. Front matter that the document has itself is kept, as it is written there, as
    /// the member `frontMatter`; where it is no YAML mapping it stays in the document.
    pub fn above(&self, document: &str) -> Result<String, String> {
        let ours = self.yaml()?;
        let document = document.strip_prefix('\u{feff}').unwrap_or(document);
        let nested = own(document).and_then(|(own, rest)| Some((nested(&ours, own)?, rest)));
        let (yaml, body) = nested.unwrap_or((ours, document));
        let body = body.trim_start_matches(['\r', '\n']);
        Ok(format!("{MARK}\n{yaml}{MARK}\n\n{body}"))
    }
}

/// The front matter that a document has, and the rest.
fn own(document: &str) -> Option<(&str, &str)> {
    let mut lines = document.split_inclusive('\n');
    let first = lines.next()?;
    if first.trim_end() != MARK || !first.ends_with('\n') {
        return None;
    }
    let mut end = first.len();
    for line in lines {
        if matches!(line.trim_end(), MARK | "...") {
            return Some((&document[first.len()..end], &document[end + line.len()..]));
        }
        end += line.len();
        if end > OWN_BYTES_MAX {
            return None;
        }
    }
    None
}

/// Our front matter with the document's own in it, if it means the same there.
fn nested(ours: &str, own: &str) -> Option<String> {
    let meant: Value = serde_saphyr::from_str(own).ok()?;
    if !meant.is_object() {
        return None;
    }
    // Moved to the right as text: digits, order and comments stay what they were.
    let mut yaml = format!("{ours}frontMatter:\n");
    for line in own.lines() {
        if !line.trim().is_empty() {
            yaml.push_str("  ");
            yaml.push_str(line);
        }
        yaml.push('\n');
    }
    let read: Value = serde_saphyr::from_str(&yaml).ok()?;
    (read.get("frontMatter") == Some(&meant)).then_some(yaml)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titled(title: &str) -> FrontMatter<'_> {
        FrontMatter {
            policy_name: "p",
            title,
            status: "active",
            sha: "0123456789012345678901234567890123456789",
            path: "a/p.md",
            last_updated: "2026-01-02T03:04:05Z",
        }
    }

    /// What a reader that knows no types sees.
    fn read(file: &str) -> (Value, String) {
        let rest = file.strip_prefix("---\n").unwrap();
        let (yaml, body) = rest.split_once("\n---\n").unwrap();
        (serde_saphyr::from_str(yaml).unwrap(), body.to_owned())
    }

    #[test]
    fn every_title_comes_back_as_the_text_it_is() {
        let long = "정책 ".repeat(200);
        for title in [
            "Plain",
            "a: b",
            "a:b",
            ": a",
            "it's",
            "\"quoted\"",
            "both ' and \"",
            "a # b",
            "# a",
            "#",
            "- a",
            "-",
            "---",
            "...",
            "! a",
            "!tag",
            "& a",
            "*a",
            "? a",
            "| a",
            "> a",
            "%a",
            "@a",
            "`a`",
            "[a]",
            "{a: b}",
            "a, b",
            "two\nlines",
            "a\n---\nb",
            "\n",
            "tab\tbed",
            " a",
            "a ",
            "yes",
            "no",
            "on",
            "off",
            "y",
            "true",
            "null",
            "~",
            "",
            "1.0",
            "1",
            "0x1f",
            "0o7",
            "1e5",
            ".inf",
            ".nan",
            "12:30:45",
            "2026-01-02",
            "1_000",
            "<<",
            "=",
            "개인정보 보호정책",
            "이용약관: 제1조",
            "🦀 crab",
            "\u{7f}",
            "\u{85}",
            "\u{2028}",
            "\u{feff}a",
            "a\\b",
            "\u{0}",
            "a\r\nb",
            "'",
            "\"",
            "''",
            "a'",
            "e\u{301}",
            long.as_str(),
        ] {
            let file = titled(title).above("# Body\n").unwrap();
            let (front, body) = read(&file);
            assert_eq!(front["title"], Value::from(title), "{file}");
            assert_eq!(front["policyName"], "p");
            assert_eq!(front["sha"], "0123456789012345678901234567890123456789", "{file}");
            assert_eq!(front["lastUpdated"], "2026-01-02T03:04:05Z", "{file}");
            assert_eq!(body, "\n# Body\n", "{title:?}");
        }
    }

    #[test]
    fn ids_of_objects_that_look_like_numbers_are_texts() {
        for sha in ["1e38000000000000000000000000000000000000", "0".repeat(64).as_str()] {
            let file = FrontMatter { sha, ..titled("t") }.above("").unwrap();
            assert_eq!(read(&file).0["sha"], Value::from(sha), "{file}");
        }
    }

    #[test]
    fn front_matter_of_the_document_is_kept_word_for_word() {
        let document = "---\r\n# who\r\nzebra: 1.10\r\nalpha: [a,\r\n b]\r\nnote: |\r\n  x\r\n\r\n  y\r\n---\r\n\r\n# Body\r\n";
        let file = titled("t").above(document).unwrap();
        assert!(
            file.contains("frontMatter:\n  # who\n  zebra: 1.10\n  alpha: [a,\n   b]\n"),
            "{file}"
        );
        let (front, body) = read(&file);
        assert_eq!(front["frontMatter"]["note"], "x\n\ny\n");
        assert_eq!(front["title"], "t");
        assert_eq!(body, "\n# Body\r\n");
    }

    #[test]
    fn what_is_no_mapping_stays_in_the_document() {
        for document in [
            "---\na: [\n---\nx\n",
            "---\na: 1\na: 2\n---\nx\n",
            "---\njust text\n---\nx\n",
            "---\n---\nx\n",
            "---\na: 1\n",
            "--- \nno end",
            "----\na: 1\n---\n",
            "text\n---\na: 1\n---\n",
        ] {
            let file = titled("t").above(document).unwrap();
            let (front, body) = read(&file);
            assert!(front.get("frontMatter").is_none(), "{file}");
            assert_eq!(body, format!("\n{document}"));
        }
    }

    #[test]
    fn a_document_cannot_speak_for_the_registry() {
        let file = titled("ours").above("---\ntitle: theirs\nsha: x\n---\n").unwrap();
        let (front, _) = read(&file);
        assert_eq!(
            (&front["title"], &front["frontMatter"]["title"]),
            (&"ours".into(), &"theirs".into())
        );
        // Expanding names does not outgrow what is read.
        let bomb = "---\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n---\n";
        assert!(titled("t").above(bomb).unwrap().len() < 2_000);
    }

    #[test]
    fn a_byte_order_mark_is_not_carried_into_the_middle() {
        let file = titled("t").above("\u{feff}# Body").unwrap();
        assert!(file.ends_with("---\n\n# Body") && !file.contains('\u{feff}'));
    }
}
