//! From an attachment to Markdown.

use bytes::Bytes;
use keyward_extract::{Extracted, Format, Limits, Sandbox};

use crate::{Attachment, Error, Result};

/// Where documents are taken apart.
#[derive(Debug, Clone)]
pub enum Extractor {
    /// In a process of its own for each document, which is ended when it takes too long or too much
    /// memory: for files that strangers made.
    Sandboxed(Sandbox),
    /// In this process, within the bounds that the parsers themselves keep.
    InProcess(Limits),
}

impl Extractor {
    pub(crate) async fn extract(&self, attachment: &Attachment, bytes: Bytes) -> Result<Extracted> {
        let media_type = attachment.media_type.as_deref();
        let format = Format::detect(&bytes, media_type, Some(&attachment.name))?;
        self.extract_as(format, bytes).await
    }

    pub(crate) async fn extract_as(&self, format: Format, bytes: Bytes) -> Result<Extracted> {
        match self {
            Self::Sandboxed(sandbox) => Ok(sandbox.extract(bytes, format).await?),
            Self::InProcess(limits) => {
                let limits = *limits;
                let work = move || keyward_extract::extract(&bytes, format, &limits);
                let extracted = tokio::task::spawn_blocking(work).await;
                Ok(extracted.map_err(|error| Error::Invalid(error.to_string()))??)
            }
        }
    }
}
