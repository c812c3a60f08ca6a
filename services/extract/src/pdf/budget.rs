use lopdf::{DecompressError, Error as PdfError, Stream};

use crate::{Error, Limits, Result};

/// What a stream costs at least: drawings that contain each other are read again each time.
const STREAM_BYTES_MIN: usize = 256;

/// How much may still be expanded, and how much text be taken, for the text of a document.
pub(crate) struct Budget {
    expanded_bytes_max: usize,
    expanded_bytes: usize,
    text_bytes_max: usize,
    text_bytes: usize,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            expanded_bytes_max: limits.expanded_bytes_max,
            expanded_bytes: 0,
            text_bytes_max: limits.text_bytes_max,
            text_bytes: 0,
        }
    }

    /// The content of a stream; `None` if it is damaged. Fails if that is too much.
    pub(crate) fn expand(&mut self, stream: &Stream) -> Result<Option<Vec<u8>>> {
        let refusal = Error::too_large("its expanded size in bytes", self.expanded_bytes_max);
        let remaining = self.expanded_bytes_max.saturating_sub(self.expanded_bytes);
        let content = match stream.get_plain_content_with_limit(remaining) {
            Ok(content) => content,
            Err(PdfError::Decompress(DecompressError::MemoryLimitExceeded { .. })) => {
                return Err(refusal);
            }
            Err(_) => return Ok(None),
        };
        self.expanded_bytes += content.len().max(STREAM_BYTES_MIN);
        if self.expanded_bytes > self.expanded_bytes_max {
            return Err(refusal);
        }
        Ok(Some(content))
    }

    /// Counts text that was shown.
    pub(crate) fn take_text(&mut self, text: &str) -> Result<()> {
        self.text_bytes += text.len();
        if self.text_bytes > self.text_bytes_max {
            return Err(Error::too_large("its text in bytes", self.text_bytes_max));
        }
        Ok(())
    }
}
