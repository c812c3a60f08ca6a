use std::time::Duration;

use keyward_engine::{Code, Coded};
use serde::{Deserialize, Serialize};

use crate::Format;

/// The result of an extraction.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a document could not be turned into text.
///
/// It also travels from the child of a [`Sandbox`](crate::Sandbox) to its parent, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Error {
    /// The content is of a kind that nothing here reads.
    #[error(
        "this is {found}, which is not supported: send PDF, DOCX, HTML, Markdown or plain text"
    )]
    Unsupported {
        /// What it looks like.
        found: String,
    },
    /// The content is not what its type or its name says.
    #[error("declared as {declared}, but the content is {found}: correct the type or the file")]
    ContradictingType {
        /// The declared media type or file name.
        declared: String,
        /// What it looks like.
        found: String,
    },
    /// There are no bytes.
    #[error("the file is empty (zero bytes): send the file again")]
    EmptyFile,
    /// The document cannot be read without a password.
    #[error("this {format} is encrypted: remove its password and send it again")]
    Encrypted {
        /// The kind of document.
        format: Format,
    },
    /// The document can be read, and has no text.
    #[error("{}", no_text(*format, *pages))]
    NoText {
        /// The kind of document.
        format: Format,
        /// How many pages it has, where it has pages.
        pages: Option<u32>,
    },
    /// The document does not follow its format.
    #[error("this {format} is broken: {problem}; save it again with the program that made it")]
    Broken {
        /// The kind of document.
        format: Format,
        /// What is wrong, and where.
        problem: String,
    },
    /// The document is beyond a limit.
    #[error(
        "the document is too large: {what} would be over the limit of {max}; split it, or raise the limit"
    )]
    TooLarge {
        /// What was counted.
        what: String,
        /// The limit.
        max: u64,
    },
    /// The child was stopped because it took more memory than it may.
    #[error(
        "reading the document took more than {memory_bytes_max} bytes of memory; simplify or split it"
    )]
    TooMuchMemory {
        /// The limit.
        memory_bytes_max: u64,
    },
    /// The child was stopped because it took too long.
    #[error("reading the document took longer than {time_max:?}; simplify or split it")]
    TookTooLong {
        /// The limit.
        time_max: Duration,
    },
    /// The child could not be started or did not answer as agreed: not the document's fault.
    #[error("the process that reads documents failed: {problem}")]
    Sandbox {
        /// What happened.
        problem: String,
    },
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Unsupported { .. } => Code::Unsupported,
            Self::ContradictingType { .. } => Code::ContradictingType,
            Self::EmptyFile => Code::EmptyFile,
            Self::Encrypted { .. } => Code::Encrypted,
            Self::NoText { .. } => Code::NoText,
            Self::Broken { .. } => Code::Broken,
            Self::TooLarge { .. } => Code::TooLarge,
            Self::TooMuchMemory { .. } => Code::TooMuchMemory,
            Self::TookTooLong { .. } => Code::TookTooLong,
            Self::Sandbox { .. } => Code::Sandbox,
        }
    }

    fn hint(&self) -> &str {
        match self {
            Self::Unsupported { .. } => "Convert it to PDF, DOCX, HTML, Markdown or plain text.",
            _ => self.code().hint(),
        }
    }

    fn retryable(&self) -> bool {
        matches!(self, Self::TookTooLong { .. } | Self::Sandbox { .. })
    }
}

impl Error {
    pub(crate) fn broken(format: Format, problem: impl Into<String>) -> Self {
        Self::Broken { format, problem: problem.into() }
    }

    pub(crate) fn too_large(what: &str, max: impl TryInto<u64>) -> Self {
        Self::TooLarge { what: what.to_owned(), max: max.try_into().unwrap_or(u64::MAX) }
    }
}

fn no_text(format: Format, pages: Option<u32>) -> String {
    match (format, pages) {
        (Format::Pdf, Some(pages)) => {
            let noun = if pages == 1 { "page" } else { "pages" };
            format!(
                "this PDF has {pages} {noun} and no text; it is probably scanned: run OCR on it first"
            )
        }
        _ => format!("this {format} has no text: send a document with text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_in_json_is_the_code_of_the_error() {
        let errors = [
            Error::Unsupported { found: "a PNG image".into() },
            Error::ContradictingType { declared: "a.pdf".into(), found: "a PNG image".into() },
            Error::EmptyFile,
            Error::Encrypted { format: Format::Pdf },
            Error::NoText { format: Format::Pdf, pages: Some(3) },
            Error::broken(Format::Docx, "no body"),
            Error::too_large("the text", 7_u64),
            Error::TooMuchMemory { memory_bytes_max: 1 },
            Error::TookTooLong { time_max: Duration::from_secs(1) },
            Error::Sandbox { problem: "gone".into() },
        ];
        for error in errors {
            let json = serde_json::to_value(&error).unwrap();
            assert_eq!(json["code"], error.code().name());
            assert_eq!(serde_json::from_value::<Error>(json).unwrap(), error);
        }
    }
}
