//! A page, read from its directory.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::super::{SourceLimits, failed, refused, title::title};
use super::names::{Found, Pages, files, pages};
use super::{Inner, LeftOut, Survey, files};
use crate::{Attachment, BodyFormat, Page, PageId, PageSummary, Result, SourceId};

/// What a page's text may be called, the best first.
const BODIES: [(&str, BodyFormat); 5] = [
    ("page.md", BodyFormat::Markdown),
    ("index.md", BodyFormat::Markdown),
    ("README.md", BodyFormat::Markdown),
    ("page.html", BodyFormat::Html),
    ("index.html", BodyFormat::Html),
];

/// Titles stand at the beginning: for a list of pages, so much of each is read.
const TITLE_BYTES_MAX: u64 = 64 << 10;

pub(super) fn survey(inner: &Inner) -> Result<Survey> {
    let Inner { root: place, options } = inner;
    let root = files::open_root(place)?;
    let Pages { disk, left_out, .. } = pages(&root, place, &options.limits)?;
    let mut survey = Survey { pages: Vec::with_capacity(disk.len()), left_out };
    for (id, disk) in disk {
        let Some(directory) = files::enter(&root, place, &disk)? else { continue };
        let title = short_title(&directory, &place.join(&disk));
        let title = title.unwrap_or_else(|| id.to_string());
        survey.pages.push(PageSummary { id, title });
    }
    Ok(survey)
}

/// What a page in a list is called. One whose text cannot be read is in the list all the same.
fn short_title(directory: &OwnedFd, place: &Path) -> Option<String> {
    BODIES.iter().find_map(|(name, format)| {
        let begun = files::beginning(directory, place, name, TITLE_BYTES_MAX).ok()??;
        Some(title(&String::from_utf8_lossy(&begun), *format))
    })?
}

/// A page's directory, with what is in it.
struct Listed {
    place: PathBuf,
    directory: OwnedFd,
    body: Option<(Found, BodyFormat)>,
    attached: Vec<Found>,
}

fn listed(inner: &Inner, id: &PageId) -> Result<Option<Listed>> {
    let Inner { root: place, options } = inner;
    let root = files::open_root(place)?;
    let pages = pages(&root, place, &options.limits)?;
    let Some(disk) = pages.disk.get(id) else {
        if pages.others.contains(id.as_str()) {
            let place = place.join(id.as_str());
            return Err(refused(format!("{} is no directory", place.display())));
        }
        if pages.disk.is_empty() {
            return Err(failed(format!(
                "{} has no page at all, so that it may be a folder that is not mounted; nothing is \
                 taken for gone",
                place.display()
            )));
        }
        return Ok(None);
    };
    let Some(directory) = files::enter(&root, place, disk)? else { return Ok(None) };
    let place = place.join(disk);
    let (mut attached, left_out) = files(&directory, &place, &options.limits)?;
    for LeftOut { name, reason } in left_out {
        tracing::warn!(page = %id, name, reason, "a file is not attached to its page");
    }
    let body = BODIES.iter().find_map(|(name, format)| {
        let at = attached.iter().position(|file| file.disk == *name)?;
        Some((attached.remove(at), *format))
    });
    check_count(&place, attached.len(), &options.limits)?;
    Ok(Some(Listed { place, directory, body, attached }))
}

fn check_count(place: &Path, count: usize, limits: &SourceLimits) -> Result<()> {
    if count > limits.attachments_max {
        let (place, most) = (place.display(), limits.attachments_max);
        return Err(refused(format!("{place} has more than {most} attachments")));
    }
    Ok(())
}

pub(super) fn page(inner: &Inner, id: &PageId) -> Result<Option<Page>> {
    let Some(Listed { place, directory, body, attached }) = listed(inner, id)? else {
        return Ok(None);
    };
    let changed = rustix::fs::fstat(&directory).map_err(|error| files::unread(&place, error))?;
    let (text, format) = match &body {
        Some((file, format)) => (text(inner, &directory, &place, file)?, *format),
        None => (String::new(), BodyFormat::default()),
    };
    let all = body.iter().map(|(file, _)| file).chain(&attached);
    let updated = all.map(|file| files::created(&file.stat)).max();
    let updated = updated.unwrap_or_default().max(files::created(&changed));
    Ok(Some(Page {
        id: id.clone(),
        title: title(&text, format).unwrap_or_else(|| id.to_string()),
        body: text,
        body_format: format,
        updated,
        attachments: attached.into_iter().map(attachment).collect(),
    }))
}

fn text(inner: &Inner, directory: &OwnedFd, place: &Path, file: &Found) -> Result<String> {
    let bytes_max = inner.options.limits.body_bytes_max;
    let read = files::read(directory, place, &file.disk, bytes_max)?;
    let place = place.join(&file.disk);
    let bytes = read.ok_or_else(|| failed(format!("{} was just removed", place.display())))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| refused(format!("{} is no UTF-8 text", place.display())))?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    })
}

fn attachment(file: Found) -> Attachment {
    Attachment {
        name: file.id.to_string(),
        media_type: media_type(&file.disk).map(str::to_owned),
        created: files::created(&file.stat),
        bytes: Some(files::size(&file.stat)),
        source: file.id,
    }
}

pub(super) fn read(inner: &Inner, id: &PageId, source: &SourceId) -> Result<Option<Bytes>> {
    let Some(listed) = listed(inner, id)? else { return Ok(None) };
    let Some(file) = listed.attached.iter().find(|file| file.id == *source) else {
        return Ok(None);
    };
    let bytes_max = inner.options.limits.attachment_bytes_max;
    let read = files::read(&listed.directory, &listed.place, &file.disk, bytes_max)?;
    Ok(read.map(Bytes::from))
}

/// What a file is, by its ending.
fn media_type(name: &str) -> Option<&'static str> {
    const TYPES: [(&str, &str); 9] = [
        ("pdf", "application/pdf"),
        ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("odt", "application/vnd.oasis.opendocument.text"),
        ("rtf", "application/rtf"),
        ("html", "text/html"),
        ("htm", "text/html"),
        ("md", "text/markdown"),
        ("markdown", "text/markdown"),
        ("txt", "text/plain"),
    ];
    let (_, ending) = name.rsplit_once('.')?;
    TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(ending)).map(|(_, media)| *media)
}
