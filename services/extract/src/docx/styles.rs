use std::collections::HashMap;

use crate::docx::xml::{Node, Xml};
use crate::{Limits, Result};

/// Styles that a style may be based on, one on the other.
const CHAIN_MAX: usize = 16;

/// What the document's styles say about paragraphs.
#[derive(Debug, Default)]
pub(crate) struct Styles {
    by_id: HashMap<String, Style>,
}

#[derive(Debug, Default)]
struct Style {
    name: String,
    based_on: Option<String>,
    outline: Option<u8>,
    list: Option<(String, usize)>,
}

impl Styles {
    pub(crate) fn read(part: &str, limits: &Limits) -> Result<Self> {
        let mut styles = Self::default();
        let mut current: Option<(String, Style)> = None;
        let mut xml = Xml::new("styles.xml", part, limits);
        while let Some(node) = xml.next()? {
            match node {
                Node::Start(element) if element.is("style") => {
                    let id = element.attribute("styleId").unwrap_or_default().to_owned();
                    current = Some((id, Style::default()));
                }
                Node::Start(element) => {
                    let (Some((_, style)), Some(value)) = (&mut current, element.val()) else {
                        continue;
                    };
                    match element.name.as_str() {
                        "name" => style.name = value.to_lowercase(),
                        "basedOn" => style.based_on = Some(value.to_owned()),
                        "outlineLvl" => style.outline = value.parse().ok(),
                        "numId" => style.list.get_or_insert_default().0 = value.to_owned(),
                        "ilvl" => {
                            style.list.get_or_insert_default().1 = value.parse().unwrap_or(0);
                        }
                        _ => {}
                    }
                }
                Node::End(name) if name == "style" => {
                    styles.by_id.extend(current.take());
                }
                Node::End(_) | Node::Text(_) => {}
            }
        }
        Ok(styles)
    }

    /// The level of headings in this style, from 1.
    pub(crate) fn heading_level(&self, id: &str) -> Option<u8> {
        self.chain(id).find_map(|style| {
            let by_name = style.name.strip_prefix("heading ").and_then(|level| level.parse().ok());
            let by_outline = style.outline.filter(|level| *level < 9).map(|level| level + 1);
            by_name.or(by_outline)
        })
    }

    pub(crate) fn is_title(&self, id: &str) -> bool {
        self.by_id.get(id).map_or(id == "Title", |style| style.name == "title")
    }

    /// The list and the level that paragraphs of this style are in.
    pub(crate) fn list(&self, id: &str) -> Option<(String, usize)> {
        self.chain(id).find_map(|style| style.list.clone())
    }

    /// The style and those that it is based on.
    fn chain<'a>(&'a self, id: &str) -> impl Iterator<Item = &'a Style> {
        let next = |style: &&'a Style| self.by_id.get(style.based_on.as_deref()?);
        std::iter::successors(self.by_id.get(id), next).take(CHAIN_MAX)
    }
}
