//! Documents that mean harm, or are damaged.

use keyward_extract::{Error, Extracted, Format, Limits, extract};

use crate::{fixture, made};

const GIB: usize = 1 << 30;

fn read(bytes: &[u8], format: Format) -> Result<Extracted, Error> {
    extract(bytes, format, &Limits::default())
}

fn code(bytes: &[u8], format: Format) -> &'static str {
    read(bytes, format).expect_err("it is refused").code()
}

#[test]
fn a_pdf_that_expands_to_more_than_a_gibibyte_is_refused() {
    let bomb = made::deflated(b' ', GIB + 1);
    assert!(bomb.len() < 16 << 20);
    assert_eq!(code(&made::pdf_page("/Filter/FlateDecode", &bomb), Format::Pdf), "too-large");
}

#[test]
fn a_pdf_with_a_bomb_inside_a_bomb_is_refused() {
    let once = made::deflated(0, 256 << 20);
    let mut twice = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut twice, &once).unwrap();
    let bomb = made::pdf_page("/Filter[/FlateDecode/FlateDecode]", &twice.finish().unwrap());
    assert_eq!(code(&bomb, Format::Pdf), "too-large");
}

#[test]
fn a_pdf_whose_objects_are_in_a_bomb_is_refused() {
    let bomb = made::stream(
        "/Type/ObjStm/N 1/First 4/Filter/FlateDecode",
        &made::deflated(b' ', 128 << 20),
    );
    let bytes = made::pdf(&[b"<</Type/Catalog/Pages 2 0 R>>".to_vec(), bomb]);
    assert!(read(&bytes, Format::Pdf).is_err());
}

#[test]
fn a_drawing_that_contains_itself_ends() {
    let content = b"BT /F 12 Tf (around we go) Tj ET /X Do /X Do /X Do";
    let outcome = read(&made::pdf_page("/Type/XObject/Subtype/Form", content), Format::Pdf);
    assert!(matches!(outcome, Ok(_) | Err(Error::TooLarge { .. })), "{outcome:?}");
}

#[test]
fn a_tree_of_pages_that_contains_itself_ends() {
    let bytes = made::pdf(&[
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2/Parent 2 0 R>>".to_vec(),
    ]);
    assert!(read(&bytes, Format::Pdf).is_err());
}

#[test]
fn a_reference_to_itself_ends() {
    let bytes = made::pdf(&[b"<</Type/Catalog/Pages 2 0 R>>".to_vec(), b"2 0 R".to_vec()]);
    assert_eq!(code(&bytes, Format::Pdf), "broken");
}

#[test]
fn deeply_nested_arrays_in_a_pdf_end() {
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    let _ =
        read(&made::pdf(&[b"<</Type/Catalog/Pages 2 0 R>>".to_vec(), deep.clone()]), Format::Pdf);
    let _ = read(&made::pdf_page("", &[deep, b" TJ".to_vec()].concat()), Format::Pdf);
}

#[test]
fn a_truncated_pdf_gives_its_text_or_is_broken() {
    let whole = fixture::bytes("en-libreoffice.pdf");
    for tenth in 1..10 {
        let outcome = read(&whole[..whole.len() * tenth / 10], Format::Pdf);
        let expected = matches!(&outcome, Ok(_) | Err(Error::Broken { .. } | Error::NoText { .. }));
        assert!(expected, "{outcome:?}");
    }
    assert_eq!(code(b"%PDF-1.7\n", Format::Pdf), "broken");
}

#[test]
fn five_hundred_pages_are_read_without_their_running_titles() {
    let extracted = read(&made::pdf_pages(500), Format::Pdf).unwrap();
    assert_eq!(extracted.pages, Some(500));
    let paragraphs: Vec<&str> = extracted.markdown.split("\n\n").collect();
    assert_eq!(paragraphs.len(), 500);
    assert_eq!(
        paragraphs[41],
        "Paragraph 42 begins here and goes on, with a long line of words, to its end on page 42."
    );
}

#[test]
fn more_pages_than_allowed_are_refused() {
    let mut limits = Limits::default();
    limits.pages_max = 4;
    assert!(extract(&made::pdf_pages(4), Format::Pdf, &limits).is_ok());
    let error = extract(&made::pdf_pages(5), Format::Pdf, &limits).unwrap_err();
    assert_eq!(error, Error::TooLarge { what: "the number of its pages".into(), max: 4 });
}

#[test]
fn a_docx_that_expands_to_more_than_allowed_is_refused() {
    let bomb = made::zip(&[("word/document.xml", &vec![b' '; 65 << 20])]);
    assert!(bomb.len() < 1 << 20);
    assert_eq!(code(&bomb, Format::Docx), "too-large");
    let styles = vec![b' '; 40 << 20];
    let document = made::document("<w:p><w:r><w:t>x</w:t></w:r></w:p>") + &" ".repeat(40 << 20);
    let parts = [("word/document.xml", document.as_bytes()), ("word/styles.xml", &styles)];
    assert_eq!(code(&made::zip(&parts), Format::Docx), "too-large");
}

#[test]
fn a_docx_with_entities_of_its_own_is_broken() {
    let mut laughs = String::from("<!DOCTYPE w [<!ENTITY a0 \"ha\">");
    for level in 1..12 {
        let before = level - 1;
        laughs.push_str(&format!("<!ENTITY a{level} \"{}\">", format!("&a{before};").repeat(10)));
    }
    laughs.push_str("]>");
    laughs.push_str(&made::document("<w:p><w:r><w:t>&a11;</w:t></w:r></w:p>"));
    let error = read(&made::zip(&[("word/document.xml", laughs.as_bytes())]), Format::Docx);
    let error = error.unwrap_err();
    assert_eq!(error.code(), "broken");
    assert!(error.to_string().contains("document type"), "{error}");
}

#[test]
fn a_docx_that_is_damaged_says_where() {
    let error = read(&made::docx("<w:p><w:r></w:p>"), Format::Docx).unwrap_err();
    assert!(error.to_string().contains("document.xml is wrong at byte"), "{error}");
    let cut = made::zip(&[("word/document.xml", b"<w:document><w:body>")]);
    assert!(read(&cut, Format::Docx).unwrap_err().to_string().contains("ends too early"));
    let other = made::zip(&[("word/other.xml", b"<a/>")]);
    assert!(read(&other, Format::Docx).unwrap_err().to_string().contains("word/document.xml"));
    assert_eq!(code(b"PK\x03\x04 nothing more", Format::Docx), "broken");
}

#[test]
fn a_truncated_docx_is_broken() {
    let whole = fixture::bytes("en.docx");
    for tenth in 1..10 {
        assert_eq!(code(&whole[..whole.len() * tenth / 10], Format::Docx), "broken");
    }
}

#[test]
fn deeply_nested_xml_is_refused() {
    let deep = "<w:sdt>".repeat(100_000) + &"</w:sdt>".repeat(100_000);
    assert_eq!(code(&made::docx(&deep), Format::Docx), "too-large");
}

#[test]
fn html_nested_a_hundred_thousand_deep_gives_its_text() {
    for tag in ["div", "b", "ul", "blockquote", "table", "svg"] {
        let deep = format!("<p>before</p>{}inside", format!("<{tag}>").repeat(100_000));
        let extracted = read(deep.as_bytes(), Format::Html).unwrap();
        assert!(extracted.markdown.contains("before"), "{tag}");
        assert!(tag == "svg" || extracted.markdown.contains("inside"), "{tag}");
    }
}

#[test]
fn a_text_over_its_limit_is_refused_in_every_format() {
    let mut limits = Limits::default();
    limits.text_bytes_max = 64;
    for (name, format) in [
        ("en-libreoffice.pdf", Format::Pdf),
        ("en.docx", Format::Docx),
        ("en.html", Format::Html),
        ("en.md", Format::Markdown),
        ("en.md", Format::Text),
    ] {
        let error = extract(&fixture::bytes(name), format, &limits).unwrap_err();
        assert_eq!(error, Error::TooLarge { what: "its text in bytes".into(), max: 64 }, "{name}");
    }
}

#[test]
fn a_file_over_its_limit_and_an_empty_one_are_refused() {
    let mut limits = Limits::default();
    limits.bytes_max = 3;
    assert_eq!(extract(b"four", Format::Text, &limits).unwrap_err().code(), "too-large");
    for format in Format::ALL {
        assert_eq!(read(b"", format).unwrap_err(), Error::EmptyFile);
    }
    assert_eq!(code(b" \n\t\r\n", Format::Text), "no-text");
}
