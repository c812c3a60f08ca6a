use std::collections::{BTreeMap, HashMap};

use crate::docx::xml::{Node, Xml};
use crate::{Limits, Result};

/// The kinds of the document's lists, and the numbers that their next items have.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    /// The definition of each list.
    definitions: HashMap<String, String>,
    /// The first number of each level of a definition, if the level is numbered.
    levels: HashMap<(String, usize), Option<u64>>,
    /// The next number of each level of each list.
    next: HashMap<String, BTreeMap<usize, u64>>,
}

impl Numbering {
    pub(crate) fn read(part: &str, limits: &Limits) -> Result<Self> {
        let mut numbering = Self::default();
        let (mut definition, mut list) = (None::<String>, None::<String>);
        let mut level = 0;
        let mut xml = Xml::new("numbering.xml", part, limits);
        while let Some(node) = xml.next()? {
            let Node::Start(element) = node else { continue };
            let number =
                |name| element.attribute(name).and_then(|value| value.parse::<usize>().ok());
            let key = || definition.clone().map(|definition| (definition, level));
            match element.name.as_str() {
                "abstractNum" => {
                    definition = element.attribute("abstractNumId").map(str::to_owned);
                }
                "lvl" => level = number("ilvl").unwrap_or(0),
                "num" => list = element.attribute("numId").map(str::to_owned),
                "abstractNumId" => {
                    if let (Some(list), Some(definition)) = (list.take(), element.val()) {
                        numbering.definitions.insert(list, definition.to_owned());
                    }
                }
                "start" => {
                    if let (Some(key), Some(first)) = (key(), number("val")) {
                        let first = u64::try_from(first).unwrap_or(1);
                        numbering.levels.insert(key, Some(first));
                    }
                }
                "numFmt" => {
                    let unnumbered = matches!(element.val(), Some("bullet" | "none"));
                    if let Some(key) = key() {
                        let first = numbering.levels.entry(key).or_insert(Some(1));
                        *first = if unnumbered { None } else { first.or(Some(1)) };
                    }
                }
                _ => {}
            }
        }
        Ok(numbering)
    }

    /// The number of the next item of a list at a level, if items there have numbers. Levels further
    /// in begin anew.
    pub(crate) fn next(&mut self, list: &str, level: usize) -> Option<u64> {
        if let Some(levels) = self.next.get_mut(list) {
            drop(levels.split_off(&level.saturating_add(1)));
        }
        let definition = self.definitions.get(list)?;
        let first = (*self.levels.get(&(definition.clone(), level))?)?;
        let next = self.next.entry(list.to_owned()).or_default().entry(level).or_insert(first);
        let number = *next;
        *next = next.saturating_add(1);
        Some(number)
    }
}
