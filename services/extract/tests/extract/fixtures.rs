//! The same text, from several programs.

use keyward_extract::{Error, Extracted, Format, Limits, extract};

use crate::compare::{assert_alike, cells, items};
use crate::fixture;

const LANGUAGES: [&str; 5] = ["en", "de", "fr", "ro", "fi"];

fn read(name: &str) -> Extracted {
    let bytes = fixture::bytes(name);
    let format = Format::detect(&bytes, None, Some(name)).expect(name);
    let extracted = extract(&bytes, format, &Limits::default()).expect(name);
    let markdown = &extracted.markdown;
    assert!(!markdown.contains("\n\n\n"), "{name}: more than one blank line\n{markdown}");
    assert!(!markdown.chars().any(|letter| letter.is_control() && letter != '\n'), "{name}");
    extracted
}

/// Everything about the document is as in the text that it was made of.
fn assert_whole(name: &str, language: &str) {
    let extracted = read(name);
    let expected = fixture::text(&format!("{language}.md"));
    assert_alike(name, &extracted.markdown, &expected);
    assert_eq!(items(&extracted.markdown), items(&expected), "{name}\n{}", extracted.markdown);
    assert_eq!(cells(&extracted.markdown), cells(&expected), "{name}\n{}", extracted.markdown);
    assert_eq!(extracted.language.expect(name).as_str(), language, "{name}");
    let title = expected.lines().next().expect("a title").trim_start_matches("# ");
    assert_eq!(extracted.title, title, "{name}");
}

#[test]
fn a_pdf_of_libreoffice_gives_its_text() {
    for language in LANGUAGES {
        assert_whole(&format!("{language}-libreoffice.pdf"), language);
    }
}

#[test]
fn a_hyphenated_pdf_of_weasyprint_gives_its_text() {
    for language in LANGUAGES.into_iter().chain(["sv"]) {
        assert_whole(&format!("{language}-weasyprint.pdf"), language);
    }
}

#[test]
fn greek_can_be_read_from_a_pdf() {
    assert_whole("el-weasyprint.pdf", "el");
}

/// Korean words are divided at the ends of lines without a sign, so spaces there may be too many.
#[test]
fn korean_can_be_read_from_a_pdf_but_for_spaces_at_the_ends_of_lines() {
    let extracted = read("ko-weasyprint.pdf");
    let letters = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(letters(&extracted.markdown), letters(&fixture::text("ko.md")));
    assert_eq!(extracted.language.unwrap().as_str(), "ko");
}

#[test]
fn a_docx_gives_its_text() {
    for language in LANGUAGES {
        assert_whole(&format!("{language}.docx"), language);
    }
    assert_whole("en-libreoffice.docx", "en");
}

#[test]
fn a_page_gives_its_text() {
    assert_whole("en.html", "en");
}

#[test]
fn markdown_stays_as_it_is() {
    for language in LANGUAGES {
        let name = format!("{language}.md");
        assert_eq!(read(&name).markdown, fixture::text(&name));
    }
}

#[test]
fn two_columns_are_read_one_after_the_other() {
    let extracted = read("en-columns.pdf");
    assert_eq!(extracted.title, "Agreement on doctoral studies");
    let expected: Vec<String> = fixture::text("en.md")
        .lines()
        .filter(|line| !line.starts_with("# ") && !line.starts_with('|'))
        .map(str::to_owned)
        .collect();
    assert_alike("en-columns.pdf", &extracted.markdown, &expected.join("\n"));
}

#[test]
fn pages_are_counted() {
    assert_eq!(read("en-libreoffice.pdf").pages, Some(1));
    assert!(read("en-weasyprint.pdf").pages >= Some(2));
    assert_eq!(read("en.docx").pages, None);
}

#[test]
fn a_scanned_pdf_says_that_it_has_no_text() {
    let error =
        extract(&fixture::bytes("scanned.pdf"), Format::Pdf, &Limits::default()).unwrap_err();
    assert_eq!(error, Error::NoText { format: Format::Pdf, pages: Some(1) });
    let message = "this PDF has 1 page and no text; it is probably scanned: run OCR on it first";
    assert_eq!(error.to_string(), message);
}

#[test]
fn an_encrypted_pdf_says_so() {
    let error = extract(&fixture::bytes("encrypted.pdf"), Format::Pdf, &Limits::default());
    assert_eq!(error.unwrap_err(), Error::Encrypted { format: Format::Pdf });
}
