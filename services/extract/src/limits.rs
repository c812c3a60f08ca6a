use serde::{Deserialize, Serialize};

/// How much of a document is read before it is refused with
/// [`Error::TooLarge`](crate::Error::TooLarge).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Limits {
    /// The file itself, 64 MiB unless set.
    pub bytes_max: usize,
    /// Pages of a PDF, 2000 unless set.
    pub pages_max: u32,
    /// The Markdown that is made of it, 8 MiB unless set.
    pub text_bytes_max: usize,
    /// What is decompressed of it in all, 64 MiB unless set: parts of a DOCX, and the streams of a
    /// PDF that are read for its text.
    pub expanded_bytes_max: usize,
    /// Elements inside elements of a DOCX, 256 unless set.
    pub depth_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 64 << 20,
            pages_max: 2_000,
            text_bytes_max: 8 << 20,
            expanded_bytes_max: 64 << 20,
            depth_max: 256,
        }
    }
}
