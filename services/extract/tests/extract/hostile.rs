//! Documents that mean harm, or are damaged.

use std::time::{Duration, Instant};

use keyward_engine::{Code, Coded};
use keyward_extract::{Error, Extracted, Format, Limits, extract, sanitized_html};

use crate::{fixture, made};

const GIB: usize = 1 << 30;

fn read(bytes: &[u8], format: Format) -> Result<Extracted, Error> {
    extract(bytes, format, &Limits::default())
}

fn code(bytes: &[u8], format: Format) -> Code {
    read(bytes, format).expect_err("it is refused").code()
}

#[test]
fn a_pdf_that_expands_to_more_than_a_gibibyte_is_refused() {
    let bomb = made::deflated(b' ', GIB + 1);
    assert!(bomb.len() < 16 << 20);
    assert_eq!(code(&made::pdf_page("/Filter/FlateDecode", &bomb), Format::Pdf), Code::TooLarge);
}

#[test]
fn a_pdf_with_a_bomb_inside_a_bomb_is_refused() {
    let once = made::deflated(0, 256 << 20);
    let mut twice = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut twice, &once).unwrap();
    let bomb = made::pdf_page("/Filter[/FlateDecode/FlateDecode]", &twice.finish().unwrap());
    assert_eq!(code(&bomb, Format::Pdf), Code::TooLarge);
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
    assert_eq!(code(&bytes, Format::Pdf), Code::Broken);
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
    assert_eq!(code(b"%PDF-1.7\n", Format::Pdf), Code::Broken);
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
    assert_eq!(code(&bomb, Format::Docx), Code::TooLarge);
    let styles = vec![b' '; 40 << 20];
    let document = made::document("<w:p><w:r><w:t>x</w:t></w:r></w:p>") + &" ".repeat(40 << 20);
    let parts = [("word/document.xml", document.as_bytes()), ("word/styles.xml", &styles)];
    assert_eq!(code(&made::zip(&parts), Format::Docx), Code::TooLarge);
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
    assert_eq!(error.code(), Code::Broken);
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
    assert_eq!(code(b"PK\x03\x04 nothing more", Format::Docx), Code::Broken);
}

#[test]
fn a_truncated_docx_is_broken() {
    let whole = fixture::bytes("en.docx");
    for tenth in 1..10 {
        assert_eq!(code(&whole[..whole.len() * tenth / 10], Format::Docx), Code::Broken);
    }
}

#[test]
fn deeply_nested_xml_is_refused() {
    let deep = "<w:sdt>".repeat(100_000) + &"</w:sdt>".repeat(100_000);
    assert_eq!(code(&made::docx(&deep), Format::Docx), Code::TooLarge);
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

/// How long a file of a few megabytes may take at most, on a slow machine with a build that is not optimised.
/// What is quadratic takes many times longer.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Reads a file, and looks that it took no longer than its size explains.
fn read_in_time(bytes: &[u8], format: Format) -> Result<Extracted, Error> {
    let begun = Instant::now();
    let outcome = read(bytes, format);
    assert!(begun.elapsed() < TIME_MAX, "{} bytes took {:?}", bytes.len(), begun.elapsed());
    outcome
}

#[test]
fn html_with_300_000_attributes_on_a_tag_is_read_in_time() {
    let flood: String = (0..300_000).map(|n| format!(" a{n}=1")).collect();
    for page in [
        format!("<p{flood}>before</p><a{flood} href='https://a.example'>inside</a>"),
        format!("<p>before</p{flood}><a href='https://a.example'{flood} href='b'>inside</a>"),
        format!("<p>before</p><title{flood}>t</title{flood}><a href=https://a.example>inside</a>"),
    ] {
        let extracted = read_in_time(page.as_bytes(), Format::Html).unwrap();
        assert_eq!(extracted.markdown, "before\n\n[inside](https://a.example)\n");
    }
}

#[test]
fn floods_of_what_html_is_made_of_are_read_in_time() {
    for (name, flood) in [
        ("entities", "&amp;".repeat(400_000)),
        ("half entities", "&notin".repeat(300_000)),
        ("ampersands", "&".repeat(1_000_000)),
        ("open marks", "<b><i><code><a href=x>".repeat(50_000)),
        ("marks", "<b>x</b>".repeat(200_000)),
        ("breaks", "<br>".repeat(400_000)),
        ("angles", "<".repeat(1_000_000)),
        ("comments", "<!--".repeat(300_000)),
        ("ends", "</p>".repeat(300_000)),
        ("raw text", format!("<script>{}</script>", "</scrip".repeat(200_000))),
        ("cells", format!("<table><tr>{}</table>", "<td>x".repeat(200_000))),
        ("combining letters", format!("a{}", "\u{301}\u{323}".repeat(300_000))),
    ] {
        let page = format!("<p>before</p>{flood}");
        let outcome = read_in_time(page.as_bytes(), Format::Html);
        let expected = outcome.is_ok_and(|extracted| extracted.markdown.starts_with("before"));
        assert!(expected, "{name}");
    }
}

#[test]
fn a_table_whose_rows_would_be_filled_up_beyond_the_limit_is_refused() {
    let wide =
        format!("<table><tr>{}</tr>{}</table>", "<td>x".repeat(20_000), "<tr><td>y".repeat(20_000));
    assert_eq!(read_in_time(wide.as_bytes(), Format::Html).unwrap_err().code(), Code::TooLarge);
}

#[test]
fn a_docx_with_300_000_attributes_on_an_element_is_refused_in_time() {
    let flood: String = (0..300_000).map(|n| format!(" a{n}=\"1\"")).collect();
    let flooded = made::docx(&format!("<w:p{flood}><w:r><w:t>x</w:t></w:r></w:p>"));
    let error = read_in_time(&flooded, Format::Docx).unwrap_err();
    assert_eq!(error.code(), Code::Broken);
    assert!(error.to_string().contains("more than 1000 attributes"), "{error}");
}

#[test]
fn a_docx_with_a_list_for_every_item_is_read_in_time() {
    const LISTS: usize = 20_000;
    let numbering: String = (0..LISTS)
        .map(|n| format!("<w:num w:numId=\"{n}\"><w:abstractNumId w:val=\"0\"/></w:num>"))
        .collect();
    let numbering = format!(
        "<w:numbering><w:abstractNum w:abstractNumId=\"0\"><w:lvl w:ilvl=\"0\"><w:start w:val=\"1\"/>\
         <w:numFmt w:val=\"decimal\"/></w:lvl></w:abstractNum>{numbering}</w:numbering>"
    );
    let items: String = (1..LISTS)
        .map(|n| {
            format!(
                "<w:p><w:pPr><w:numPr><w:ilvl w:val=\"0\"/><w:numId w:val=\"{n}\"/></w:numPr></w:pPr>\
                 <w:r><w:t>x</w:t></w:r></w:p>"
            )
        })
        .collect();
    let document = made::document(&items);
    let parts =
        [("word/document.xml", document.as_bytes()), ("word/numbering.xml", numbering.as_bytes())];
    let extracted = read_in_time(&made::zip(&parts), Format::Docx).unwrap();
    assert_eq!(extracted.markdown.matches("1. x").count(), LISTS - 1);
}

#[test]
fn floods_in_markdown_are_read_in_time() {
    for (name, flood) in [
        ("brackets", "[".repeat(200_000)),
        ("links", "[a](".repeat(100_000)),
        ("emphasis", "*a _b ".repeat(100_000)),
        ("quotes", format!("{}x", "> ".repeat(10_000))),
        ("lists", "- ".repeat(10_000)),
        ("ticks", (1..800).map(|n| format!("{} ", "`".repeat(n))).collect()),
        ("angles", "<a ".repeat(100_000)),
        ("declarations", "<!A ".repeat(100_000)),
        ("instructions", "<?".repeat(200_000)),
        ("definitions", "[a]: b\n".repeat(50_000)),
    ] {
        let text = format!("before\n\n{flood}\n");
        let extracted = read_in_time(text.as_bytes(), Format::Markdown);
        assert!(extracted.is_ok_and(|it| it.markdown.starts_with("before")), "{name}");
        let begun = Instant::now();
        let html = sanitized_html(&text);
        assert!(html.starts_with("<p>before</p>"), "{name}");
        assert!(begun.elapsed() < TIME_MAX, "{name} took {:?}", begun.elapsed());
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
    assert_eq!(extract(b"four", Format::Text, &limits).unwrap_err().code(), Code::TooLarge);
    for format in Format::ALL {
        assert_eq!(read(b"", format).unwrap_err(), Error::EmptyFile);
    }
    assert_eq!(code(b" \n\t\r\n", Format::Text), Code::NoText);
}
