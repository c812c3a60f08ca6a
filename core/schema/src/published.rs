//! A schema as it is given to others.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toml::Table;

use crate::problem::{Problem, Problems, Severity};
use crate::{Schema, ValueSchema};

/// A schema as it is given to others: whole, without other files, and without where its stores are,
/// which may say more than others are to know.
///
/// ```
/// use keyward_schema::Schema;
///
/// let schema = Schema::parse("[stores.app]\nurl = \"postgres://me:secret@db/app\"\n", "mine")?;
/// let published = schema.publish(|_| true, |_| true);
/// assert!(!published.text.contains("secret"));
/// assert_eq!(published.schema("theirs")?.stores[0].url, None);
/// # Ok::<(), keyward_schema::Problems>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The text of a schema file. The JSON Schemas of values stand there as far as TOML, which has no
    /// `null`, can say them: the types of indexes follow from them.
    pub text: String,
    /// By space, the JSON Schema of its values as it is.
    pub values: BTreeMap<String, Value>,
    /// The store that is used for whatever names none, if there is one and it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_store: Option<String>,
}

impl Schema {
    /// What may be given to somebody: the stores and spaces for which the questions are answered with
    /// yes. A lock tree is given with its store; a store, if anything in it is.
    pub fn publish(
        &self,
        shows_store: impl Fn(&str) -> bool,
        shows_space: impl Fn(&str) -> bool,
    ) -> Published {
        let spaces: Vec<_> = self.spaces.iter().filter(|space| shows_space(&space.name)).collect();
        let locks: Vec<_> = self.locks.iter().filter(|tree| shows_store(&tree.store)).collect();
        // It was read before, so that it is TOML.
        let mut file: Table = toml::from_str(&self.text).unwrap_or_default();
        retain(&mut file, "stores", |name, store| {
            store.remove("url");
            store.remove("coordinator");
            shows_store(name) || spaces.iter().any(|space| space.store == name)
        });
        retain(&mut file, "spaces", |name, space| {
            match spaces.iter().find(|shown| shown.name == name) {
                Some(shown) => {
                    let value = shown.value.as_ref();
                    if let Some(value) = value.and_then(|value| in_toml(value.definition())) {
                        space.insert("value".to_owned(), value);
                    }
                    space.insert("store".to_owned(), shown.store.clone().into());
                    true
                }
                None => false,
            }
        });
        retain(&mut file, "locks", |name, tree| {
            match locks.iter().find(|shown| shown.name == name) {
                Some(shown) => {
                    tree.insert("store".to_owned(), shown.store.clone().into());
                    true
                }
                None => false,
            }
        });
        let values = spaces.iter().filter_map(|space| {
            Some((space.name.clone(), space.value.as_ref()?.definition().clone()))
        });
        Published { text: file.to_string(), values: values.collect(), default_store: None }
    }
}

impl Published {
    /// The schema again; problems name it `file`.
    pub fn schema(&self, file: &str) -> Result<Schema, Problems> {
        let mut schema = Schema::parse(&self.text, file)?;
        for space in &mut schema.spaces {
            let Some(definition) = self.values.get(&space.name) else { continue };
            let value = ValueSchema::new(definition.clone()).map_err(|fault| {
                let message =
                    format!("the values of {} have no usable schema: {fault}", space.name);
                let hint = "ask those who run the server".to_owned();
                let problem = Problem::placeless("value-file", Severity::Error, message, hint);
                Problems::new(vec![Problem { file: file.to_owned(), ..problem }])
            })?;
            space.value = Some(value);
        }
        Ok(schema)
    }
}

/// JSON as TOML, without what TOML cannot say.
fn in_toml(json: &Value) -> Option<toml::Value> {
    Some(match json {
        Value::Null => return None,
        Value::Bool(is) => (*is).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().filter_map(in_toml).collect::<Vec<_>>().into(),
        Value::Object(members) => {
            let members = members.iter();
            let said = members.filter_map(|(name, value)| Some((name.clone(), in_toml(value)?)));
            toml::Value::Table(said.collect())
        }
    })
}

/// Keeps those tables of a table of tables that `keep` wants, as it changes them.
fn retain(file: &mut Table, name: &str, mut keep: impl FnMut(&str, &mut Table) -> bool) {
    let Some(tables) = file.get_mut(name).and_then(toml::Value::as_table_mut) else { return };
    let kept = std::mem::take(tables).into_iter().filter_map(|(name, mut one)| {
        let wanted = one.as_table_mut().is_some_and(|table| keep(&name, table));
        wanted.then_some((name, one))
    });
    *tables = kept.collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"
        [stores.a]
        url = "postgres://me:hidden@db/a"
        [stores.b]
        url = "memory:"
        coordinator = "postgres://me:hidden@db/b"
        [spaces.notes]
        store = "a"
        key = "user:{user}:notes:{note}"
        ownership = "user"
        value = { type = "object", required = ["title"] }
        [spaces.pages]
        store = "b"
        key = "page:{page}"
        ownership = "shared"
        [locks.boards]
        store = "b"
        root = "board:{board}"
        paths = ["text"]
    "#;

    #[test]
    fn what_is_published_is_the_same_schema_without_its_places() {
        let schema = Schema::parse(TWO, "two.toml").unwrap();
        let published = schema.publish(|_| true, |_| true);
        let sent = serde_json::to_string(&published).unwrap();
        assert!(!sent.contains("hidden") && !sent.contains("memory:"), "{sent}");
        let read: Published = serde_json::from_str(&sent).unwrap();
        let read = read.schema("the server's").unwrap();
        let placeless: String = TWO
            .lines()
            .filter(|line| !line.contains("url") && !line.contains("coordinator"))
            .map(|line| format!("{line}\n"))
            .collect();
        let placeless = Schema::parse(&placeless, "two.toml").unwrap();
        assert_eq!(
            crate::diff(&placeless, &read).to_string(),
            crate::diff(&read, &read).to_string()
        );
        assert_eq!(read.locks, schema.locks);
        let value = read.space("notes").unwrap().value.as_ref().unwrap();
        assert_eq!(value.definition()["required"][0], "title");
    }

    #[test]
    fn values_from_files_come_along_and_types_of_indexes_follow_from_them() {
        let folder = tempfile::tempdir().unwrap();
        let value = r#"{"type":"object","properties":{"title":{"type":"string"},
            "n":{"enum":[1,null,2.5],"default":null}}}"#;
        std::fs::write(folder.path().join("note.json"), value).unwrap();
        let text = "[stores.a]\n[spaces.notes]\nkey = \"notes:{id}\"\nownership = \"shared\"\n\
                    value = \"note.json\"\n[spaces.notes.indexes.by_title]\nfield = \"title\"\n";
        let file = folder.path().join("schema.toml");
        std::fs::write(&file, text).unwrap();
        let schema = Schema::load(&file).unwrap();
        let read = schema.publish(|_| true, |_| true).schema("the server's").unwrap();
        let (had, has) = (schema.space("notes").unwrap(), read.space("notes").unwrap());
        assert_eq!(has.indexes, had.indexes);
        let definition = has.value.as_ref().unwrap().definition();
        assert_eq!(definition, had.value.as_ref().unwrap().definition());
        assert!(definition["properties"]["n"]["enum"][1].is_null());
    }

    #[test]
    fn what_is_not_shown_is_not_there() {
        let schema = Schema::parse(TWO, "two.toml").unwrap();
        let published = schema.publish(|_| false, |space| space == "notes");
        let text = &published.text;
        assert!(!text.contains("page") && !text.contains("board"), "{text}");
        let read = published.schema("the server's").unwrap();
        let stores: Vec<_> = read.stores.iter().map(|store| store.name.as_str()).collect();
        assert_eq!((stores, read.spaces.len(), read.locks.len()), (vec!["a"], 1, 0));
    }
}
