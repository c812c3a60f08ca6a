//! Office Open XML text.

mod archive;
mod body;
mod numbering;
mod paragraph;
mod styles;
mod xml;

use crate::document::Document;
use crate::docx::archive::Archive;
use crate::docx::body::Body;
use crate::docx::numbering::Numbering;
use crate::docx::styles::Styles;
use crate::docx::xml::{Node, Xml};
use crate::{Error, Format, Limits, Result, block, title};

pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<Document> {
    let mut archive = Archive::open(bytes, limits)?;
    let Some(document) = archive.part("word/document.xml")? else {
        return Err(broken("it has no part word/document.xml"));
    };
    let part =
        |archive: &mut Archive<'_>, name: &str| archive.part(name).map(Option::unwrap_or_default);
    let styles = Styles::read(&part(&mut archive, "word/styles.xml")?, limits)?;
    let numbering = Numbering::read(&part(&mut archive, "word/numbering.xml")?, limits)?;
    let links = read_links(&part(&mut archive, "word/_rels/document.xml.rels")?, limits)?;
    let properties = part(&mut archive, "docProps/core.xml")?;
    let body = Body::read(&document, styles, numbering, links, limits)?;
    let given = read_title(&properties, limits)?;
    Ok(Document {
        title: given.as_deref().and_then(title::sensible).or(body.title),
        markdown: block::render(&body.blocks, limits.text_bytes_max)?,
        pages: None,
    })
}

fn broken(problem: impl Into<String>) -> Error {
    Error::broken(Format::Docx, problem)
}

/// The targets of links, by their identifiers.
fn read_links(part: &str, limits: &Limits) -> Result<std::collections::HashMap<String, String>> {
    let mut links = std::collections::HashMap::new();
    let mut xml = Xml::new("document.xml.rels", part, limits);
    while let Some(node) = xml.next()? {
        if let Node::Start(element) = node
            && element.is("Relationship")
            && element.attribute("TargetMode") == Some("External")
            && let (Some(id), Some(target)) = (element.attribute("Id"), element.attribute("Target"))
        {
            links.insert(id.to_owned(), target.to_owned());
        }
    }
    Ok(links)
}

/// The title in the document's properties.
fn read_title(part: &str, limits: &Limits) -> Result<Option<String>> {
    let mut title = None;
    let mut inside = false;
    let mut xml = Xml::new("core.xml", part, limits);
    while let Some(node) = xml.next()? {
        match node {
            Node::Start(element) => inside = element.is("title"),
            Node::End(_) => inside = false,
            Node::Text(text) if inside => title.get_or_insert_with(String::new).push_str(&text),
            Node::Text(_) => {}
        }
    }
    Ok(title)
}
