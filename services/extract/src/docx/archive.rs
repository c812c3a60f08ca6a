use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::docx::broken;
use crate::{Error, Format, Limits, Result, charset};

/// The parts of a document, of which only so much is expanded.
pub(crate) struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    expanded_bytes_max: usize,
    remaining: usize,
}

impl<'a> Archive<'a> {
    pub(crate) fn open(bytes: &'a [u8], limits: &Limits) -> Result<Self> {
        let zip = ZipArchive::new(Cursor::new(bytes))
            .map_err(|error| broken(format!("its list of parts cannot be read ({error})")))?;
        let expanded_bytes_max = limits.expanded_bytes_max;
        Ok(Self { zip, expanded_bytes_max, remaining: expanded_bytes_max })
    }

    /// The text of a part, if there is such a part.
    pub(crate) fn part(&mut self, name: &str) -> Result<Option<String>> {
        let part = match self.zip.by_name(name) {
            Ok(part) => part,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => {
                return Err(Error::Encrypted { format: Format::Docx });
            }
            Err(error) => return Err(broken(format!("its part {name} cannot be read ({error})"))),
        };
        // What the archive says about the size is not believed: it is counted while it is read.
        let mut bytes = Vec::new();
        let at_most = u64::try_from(self.remaining).unwrap_or(u64::MAX).saturating_add(1);
        part.take(at_most)
            .read_to_end(&mut bytes)
            .map_err(|error| broken(format!("its part {name} cannot be expanded ({error})")))?;
        self.remaining = self.remaining.checked_sub(bytes.len()).ok_or_else(|| {
            Error::too_large("its expanded size in bytes", self.expanded_bytes_max)
        })?;
        Ok(Some(charset::decode(&bytes)))
    }
}
