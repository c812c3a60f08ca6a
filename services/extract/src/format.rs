use std::fmt;

use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::{Error, Result};

/// The kinds of documents that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Format {
    /// Portable Document Format.
    Pdf,
    /// Office Open XML text, as Word and LibreOffice write it.
    Docx,
    /// A page of the web.
    Html,
    /// CommonMark, with tables and front matter.
    Markdown,
    /// Plain text.
    Text,
}

impl Format {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Pdf, Self::Docx, Self::Html, Self::Markdown, Self::Text];

    /// What a document is: by its content, and where that is only text, by what is declared.
    ///
    /// `application/octet-stream` and unknown extensions declare nothing. Fails if the content is of
    /// no supported kind, or if it contradicts what is declared.
    pub fn detect(bytes: &[u8], media_type: Option<&str>, file_name: Option<&str>) -> Result<Self> {
        let content = Content::of(bytes)?;
        let declared = Declared::new(media_type, file_name);
        let found = match (&content, declared.format) {
            (Content::Pdf, _) => Self::Pdf,
            (Content::Docx, _) => Self::Docx,
            (Content::Html, _) => Self::Html,
            (Content::Text, None | Some(Self::Text)) => Self::Text,
            (Content::Text, Some(Self::Markdown)) => Self::Markdown,
            (Content::Text, Some(Self::Html)) => Self::Html,
            // Bytes that are no text by themselves, and may be in an old encoding.
            (Content::Bytes, Some(text @ (Self::Html | Self::Markdown | Self::Text)))
                if content.reads_as_old_text(bytes) =>
            {
                text
            }
            (_, Some(_)) => return Err(declared.contradicted_by(&content)),
            (_, None) => return Err(Error::Unsupported { found: content.to_string() }),
        };
        let fits = match declared.format {
            // A page of the web is text, and often saved as such.
            Some(Self::Markdown | Self::Text) => !matches!(found, Self::Pdf | Self::Docx),
            Some(declared) => declared == found,
            None => !declared.foreign,
        };
        if fits { Ok(found) } else { Err(declared.contradicted_by(&content)) }
    }

    /// The kind with this media type; parameters such as `charset` are ignored.
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| essence(media_type) == format.media_type()).or_else(
            || match essence(media_type).as_str() {
                "application/x-pdf" => Some(Self::Pdf),
                "application/xhtml+xml" => Some(Self::Html),
                "text/x-markdown" => Some(Self::Markdown),
                _ => None,
            },
        )
    }

    /// The kind with this extension, written without a dot.
    pub fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "pdf" => Self::Pdf,
            "docx" => Self::Docx,
            "html" | "htm" | "xhtml" => Self::Html,
            "md" | "markdown" => Self::Markdown,
            "txt" | "text" => Self::Text,
            _ => return None,
        })
    }

    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Pdf => "application/pdf",
            Self::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            Self::Html => "text/html",
            Self::Markdown => "text/markdown",
            Self::Text => "text/plain",
        }
    }

    /// Its name, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pdf => "pdf",
            Self::Docx => "docx",
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Text => "text",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pdf => "PDF",
            Self::Docx => "DOCX",
            Self::Html => "HTML",
            Self::Markdown => "Markdown",
            Self::Text => "text",
        })
    }
}

/// What is said about a document.
struct Declared {
    format: Option<Format>,
    /// Whether something else than a supported kind is declared.
    foreign: bool,
    name: String,
}

impl Declared {
    /// The media type decides, unless it is as vague as `text/plain`, or says nothing.
    fn new(media_type: Option<&str>, file_name: Option<&str>) -> Self {
        let by_type = media_type.and_then(Format::from_media_type);
        let by_name = file_name
            .and_then(|name| name.rsplit_once('.'))
            .and_then(|(_, extension)| Format::from_extension(extension));
        let (format, name) = match (by_type, by_name) {
            (None | Some(Format::Text), Some(_)) => (by_name, file_name),
            (Some(_), _) => (by_type, media_type),
            (None, None) => (None, media_type),
        };
        let says_nothing = |media_type: &&str| {
            ["", "application/octet-stream", "application/zip"]
                .contains(&essence(media_type).as_str())
        };
        Self {
            format,
            foreign: format.is_none() && media_type.is_some_and(|name| !says_nothing(&name)),
            name: name.unwrap_or_default().to_owned(),
        }
    }

    fn contradicted_by(&self, content: &Content) -> Error {
        Error::ContradictingType { declared: self.name.clone(), found: content.to_string() }
    }
}

fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
