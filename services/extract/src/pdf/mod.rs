//! Portable Document Format.
//!
//! The parser of objects is that of a library; what is drawn is followed here, as far as it moves or
//! shows text ([`page`]). Of the pieces of text and their places, lines are made ([`line`]), of them
//! columns and tables ([`layout`]), and of those paragraphs, headings and lists ([`paragraph`]).

mod budget;
mod cmap;
mod font;
mod furniture;
mod hyphen;
mod layout;
mod line;
mod matrix;
mod page;
mod paragraph;
mod table;
mod widths;

use lopdf::{DecompressError, Document as Pdf, Error as PdfError, LoadOptions, Object};

use crate::document::Document;
use crate::pdf::budget::Budget;
use crate::pdf::page::Fonts;
use crate::{Error, Format, Limits, Result, block, title};

pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<Document> {
    let options = LoadOptions {
        max_decompressed_size: Some(limits.expanded_bytes_max),
        ..LoadOptions::default()
    };
    let pdf = Pdf::load_mem_with_options(bytes, options).map_err(|error| refusal(error, limits))?;
    if pdf.is_encrypted() {
        return Err(Error::Encrypted { format: Format::Pdf });
    }
    let pages_max = usize::try_from(limits.pages_max).unwrap_or(usize::MAX);
    let ids: Vec<_> = pdf.page_iter().take(pages_max.saturating_add(1)).collect();
    if ids.len() > pages_max {
        return Err(Error::too_large("the number of its pages", limits.pages_max));
    }
    if ids.is_empty() {
        return Err(broken("it has no pages"));
    }
    let mut budget = Budget::new(limits);
    let mut fonts = Fonts::default();
    let mut pages = Vec::with_capacity(ids.len());
    for id in &ids {
        let pieces = page::read(&pdf, *id, &mut fonts, &mut budget)?;
        pages.push(layout::arrange(line::segments(pieces)));
    }
    furniture::remove(&mut pages);
    let blocks = paragraph::blocks(pages);
    Ok(Document {
        title: given_title(&pdf),
        markdown: block::render(&blocks, limits.text_bytes_max)?,
        pages: u32::try_from(ids.len()).ok(),
    })
}

fn given_title(pdf: &Pdf) -> Option<String> {
    let information = pdf.trailer.get_deref(b"Info", pdf).and_then(Object::as_dict).ok()?;
    let given = information.get_deref(b"Title", pdf).ok()?;
    title::sensible(&lopdf::decode_text_string(given).ok()?)
}

fn broken(problem: impl Into<String>) -> Error {
    Error::broken(Format::Pdf, problem)
}

fn refusal(error: PdfError, limits: &Limits) -> Error {
    match error {
        PdfError::Decompress(DecompressError::MemoryLimitExceeded { .. }) => {
            Error::too_large("its expanded size in bytes", limits.expanded_bytes_max)
        }
        PdfError::InvalidPassword
        | PdfError::Decryption(_)
        | PdfError::UnsupportedSecurityHandler(_) => Error::Encrypted { format: Format::Pdf },
        error => broken(format!("its objects cannot be read ({error})")),
    }
}
