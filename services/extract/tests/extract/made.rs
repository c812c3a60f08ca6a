//! Files made by the tests: small writers of PDF and DOCX that can also write nonsense.

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A PDF of these objects, numbered from 1; the first is the catalog.
pub fn pdf(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut out = b"%PDF-1.7\n".to_vec();
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(out.len());
        out.extend(format!("{} 0 obj\n", at + 1).into_bytes());
        out.extend_from_slice(object);
        out.extend_from_slice(b"\nendobj\n");
    }
    let start = out.len();
    out.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).into_bytes());
    for place in places {
        out.extend(format!("{place:010} 00000 n \n").into_bytes());
    }
    let size = objects.len() + 1;
    out.extend(
        format!("trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF").into_bytes(),
    );
    out
}

pub fn stream(dictionary: &str, content: &[u8]) -> Vec<u8> {
    let mut out = format!("<<{dictionary}/Length {}>>\nstream\n", content.len()).into_bytes();
    out.extend_from_slice(content);
    out.extend_from_slice(b"\nendstream");
    out
}

/// A PDF of one page with this content, as it is in the file.
pub fn pdf_page(dictionary: &str, content: &[u8]) -> Vec<u8> {
    pdf(&[
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>/XObject<</X 4 0 R>>>>>>"
            .to_vec(),
        stream(dictionary, content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec(),
    ])
}

/// A PDF of so many pages, each with its number and two lines.
pub fn pdf_pages(count: usize) -> Vec<u8> {
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        Vec::new(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec(),
    ];
    let mut kids = String::new();
    for page in 1..=count {
        let id = objects.len() + 1;
        kids.push_str(&format!("{id} 0 R "));
        let contents = id + 1;
        objects.push(
            format!(
                "<</Type/Page/Parent 2 0 R/Contents {contents} 0 R/Resources<</Font<</F 3 0 R>>>>>>"
            )
            .into_bytes(),
        );
        let text = format!(
            "BT /F 10 Tf 72 800 Td (Regulations of the faculty) Tj ET \
             BT /F 10 Tf 72 700 Td (Paragraph {page} begins here and goes on, with a long line of) Tj \
             0 -12 Td (words, to its end on page {page}.) Tj ET BT /F 10 Tf 300 40 Td ({page}) Tj ET"
        );
        objects.push(stream("", text.as_bytes()));
    }
    objects[1] = format!("<</Type/Pages/Kids[{kids}]/Count {count}>>").into_bytes();
    pdf(&objects)
}

/// So many zeros (or spaces), deflated.
pub fn deflated(byte: u8, count: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let chunk = vec![byte; 1 << 20];
    let mut left = count;
    while left > 0 {
        let now = left.min(chunk.len());
        encoder.write_all(&chunk[..now]).expect("memory takes all");
        left -= now;
    }
    encoder.finish().expect("memory takes all")
}

/// A zip archive with these parts.
pub fn zip(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        writer.start_file(*name, SimpleFileOptions::default()).expect("memory takes all");
        writer.write_all(content).expect("memory takes all");
    }
    writer.finish().expect("memory takes all").into_inner()
}

/// A DOCX with this inside its body.
pub fn docx(body: &str) -> Vec<u8> {
    zip(&[("word/document.xml", document(body).as_bytes())])
}

pub fn document(body: &str) -> String {
    format!("<w:document xmlns:w=\"w\" xmlns:r=\"r\"><w:body>{body}</w:body></w:document>")
}
