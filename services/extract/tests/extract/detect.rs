//! What a file is.

use keyward_engine::{Code, Coded};
use keyward_extract::{Error, Format};

use crate::{fixture, made};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

fn detect(bytes: &[u8], media_type: &str, name: &str) -> Result<Format, Error> {
    Format::detect(
        bytes,
        Some(media_type).filter(|given| !given.is_empty()),
        Some(name).filter(|given| !given.is_empty()),
    )
}

#[test]
fn content_decides_and_declarations_help() {
    let pdf = fixture::bytes("en-columns.pdf");
    let docx = fixture::bytes("en.docx");
    for (bytes, media_type, name, format) in [
        (pdf.as_slice(), "", "", Format::Pdf),
        (&pdf, "application/pdf", "a.pdf", Format::Pdf),
        (&pdf, "application/octet-stream", "download", Format::Pdf),
        (&docx, "", "", Format::Docx),
        (&docx, DOCX, "a.docx", Format::Docx),
        (&docx, "application/zip", "", Format::Docx),
        (b"<!DOCTYPE html><p>x", "", "", Format::Html),
        (b"<!-- c --> <html>", "text/plain", "", Format::Html),
        (b"<p>part", "text/html; charset=utf-8", "", Format::Html),
        (b"# a", "text/plain", "a.MD", Format::Markdown),
        (b"# a", "text/markdown", "", Format::Markdown),
        (b"# a", "", "", Format::Text),
        (b"# a", "", "README", Format::Text),
        ("größer".as_bytes(), "", "a.txt", Format::Text),
        (b"gr\xf6\xdfer", "text/plain", "", Format::Text),
        (b"\xff\xfea\0b\0", "", "", Format::Text),
    ] {
        assert_eq!(detect(bytes, media_type, name), Ok(format), "{media_type} {name}");
    }
}

#[test]
fn a_contradiction_names_both_sides() {
    let pdf = fixture::bytes("en-columns.pdf");
    let zip = made::zip(&[("xl/workbook.xml", b"<a/>")]);
    for (bytes, media_type, name, declared, found) in [
        (PNG, "", "scan.pdf", "scan.pdf", "a PNG image"),
        (PNG, "application/pdf", "", "application/pdf", "a PNG image"),
        (&zip, "", "a.docx", "a.docx", "a zip archive without a Word document"),
        (b"MZ\x90\0\x03\0\0\0", "", "a.docx", "a.docx", "a Windows program"),
        (b"just text", "application/pdf", "", "application/pdf", "plain text"),
        (&pdf, "", "a.docx", "a.docx", "a PDF"),
        (&pdf, "text/plain", "", "text/plain", "a PDF"),
        (&pdf, "image/png", "", "image/png", "a PDF"),
        (b"\0\x01\x02", "text/plain", "", "text/plain", "unknown binary data"),
    ] {
        let error = detect(bytes, media_type, name).unwrap_err();
        let (declared, found) = (declared.to_owned(), found.to_owned());
        let message = error.to_string();
        assert!(message.contains(&declared) && message.contains(&found), "{message}");
        assert_eq!(error, Error::ContradictingType { declared, found });
    }
}

#[test]
fn what_is_not_supported_is_named_with_what_is() {
    for (bytes, found) in [
        (PNG, "a PNG image"),
        (b"\0\x01\x02\x03", "unknown binary data"),
        (b"{\\rtf1 x}", "an RTF document"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "an old Office file"),
    ] {
        let error = detect(bytes, "", "").unwrap_err();
        assert_eq!(error.code(), Code::Unsupported);
        let message = error.to_string();
        assert!(message.contains(found) && message.contains("DOCX"), "{message}");
    }
}

#[test]
fn nothing_at_all_and_an_encrypted_docx_are_told_apart() {
    assert_eq!(detect(b"", "application/pdf", "a.pdf"), Err(Error::EmptyFile));
    let mut encrypted = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec();
    encrypted.extend("EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes));
    assert_eq!(detect(&encrypted, "", "a.docx"), Err(Error::Encrypted { format: Format::Docx }));
}
