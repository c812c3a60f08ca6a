use std::fmt;
use std::io::Cursor;

use zip::ZipArchive;

use crate::{Error, Format, Result, charset};

/// How far into a file its marks are looked for.
const HEAD_BYTES: usize = 1024;

/// What the bytes of a file look like.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Pdf,
    Docx,
    Html,
    Text,
    /// A known kind that is not supported, with an article.
    Other(&'static str),
    /// Nothing known.
    Bytes,
}

/// The first bytes of kinds that are often sent by mistake.
const MARKS: [(&[u8], &str); 12] = [
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"MZ", "a Windows program"),
    (b"\x7fELF", "a Linux program"),
    (b"{\\rtf", "an RTF document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"%!PS", "a PostScript file"),
];

impl Content {
    pub(crate) fn of(bytes: &[u8]) -> Result<Self> {
        let head = &bytes[..bytes.len().min(HEAD_BYTES)];
        if bytes.is_empty() {
            return Err(Error::EmptyFile);
        }
        if contains(head, b"%PDF-") {
            return Ok(Self::Pdf);
        }
        if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
            return Ok(zip_content(bytes));
        }
        if head.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") {
            return compound_content(bytes);
        }
        // "MZ" may also begin a text.
        let text = charset::strict(bytes);
        if let Some((_, name)) = MARKS.iter().find(|(mark, _)| head.starts_with(mark))
            && (text.is_none() || !name.contains("program"))
        {
            return Ok(Self::Other(name));
        }
        Ok(match text {
            Some(text) if looks_like_html(&text) => Self::Html,
            Some(_) => Self::Text,
            None => Self::Bytes,
        })
    }

    /// Whether bytes that are no Unicode may be a text in an old encoding.
    pub(crate) fn reads_as_old_text(&self, bytes: &[u8]) -> bool {
        *self == Self::Bytes && !bytes.iter().any(|byte| is_binary(*byte))
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pdf => "a PDF",
            Self::Docx => "a DOCX",
            Self::Html => "HTML",
            Self::Text => "plain text",
            Self::Other(name) => name,
            Self::Bytes => "unknown binary data",
        })
    }
}

/// A byte that no text has, in whatever encoding of one byte per letter.
pub(crate) fn is_binary(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b)
}

fn zip_content(bytes: &[u8]) -> Content {
    const BODY: &str = "word/document.xml";

    let is_docx = match ZipArchive::new(Cursor::new(bytes)) {
        Ok(archive) => archive.index_for_name(BODY).is_some(),
        // Its list of parts is at the end, and may be cut off.
        Err(_) => contains(bytes, BODY.as_bytes()),
    };
    if is_docx { Content::Docx } else { Content::Other("a zip archive without a Word document") }
}

/// The container of old Office files is also that of encrypted new ones.
fn compound_content(bytes: &[u8]) -> Result<Content> {
    let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    if contains(bytes, &name) {
        return Err(Error::Encrypted { format: Format::Docx });
    }
    Ok(Content::Other("an old Office file (save it as .docx)"))
}

fn looks_like_html(text: &str) -> bool {
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix("<!--").or_else(|| rest.strip_prefix("<?")) {
        let end = if rest.starts_with("<!--") { "-->" } else { "?>" };
        let Some((_, after)) = comment.split_once(end) else { return false };
        rest = after.trim_start();
    }
    let head = rest.chars().take(16).collect::<String>().to_ascii_lowercase();
    ["<!doctype html", "<html", "<head", "<body"].iter().any(|mark| head.starts_with(mark))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
