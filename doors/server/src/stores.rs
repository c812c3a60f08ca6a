//! The stores that a server serves.

use std::collections::BTreeMap;

use keyward::migrate::{Migration, Report};
use keyward::records::Records;
use keyward::schema::{Schema, Space as Declaration};
use keyward::{Data, Key, Pattern, Store};

use crate::feed::Feed;
use crate::problem::{Problem, Result};
use crate::work::Work;

/// The name of the store of a server without a schema.
const STORE_NAME: &str = "main";

/// One store, called `main`, with no declared spaces: for servers without a schema.
pub fn without_schema(url: &str) -> keyward::records::Result<Data> {
    let schema = Schema::parse(&format!("[stores.{STORE_NAME}]\n"), "the default schema");
    let schema = schema.map_err(|problems| {
        keyward::Error::new(keyward::ErrorKind::Internal, problems.to_string())
    })?;
    Data::new(schema).at(STORE_NAME, url)
}

/// The stores that a server serves, all open.
#[derive(Debug)]
pub(crate) struct Stores {
    served: BTreeMap<String, Served>,
}

/// A store that is served.
#[derive(Debug)]
pub(crate) struct Served {
    pub name: String,
    pub records: Records,
    /// What changes in it.
    pub feed: Feed,
    /// The roots of its lock trees.
    pub lock_roots: Vec<Pattern>,
    /// The plan that is being run.
    pub migrations: Work<Vec<Migration>>,
    /// The doctor who looks through it.
    pub examination: Work<Report>,
}

impl Stores {
    /// Opens every store that is declared.
    pub async fn open(data: &Data) -> Result<Self> {
        let mut served = BTreeMap::new();
        for store in &data.schema().stores {
            let records = data.records(&store.name).await?;
            let locks = data.schema().locks.iter().filter(|tree| tree.store == store.name);
            let one = Served {
                name: store.name.clone(),
                feed: Feed::new(records.store().clone()),
                records,
                lock_roots: locks.map(|tree| tree.root.clone()).collect(),
                migrations: Work::new(),
                examination: Work::new(),
            };
            served.insert(store.name.clone(), one);
        }
        Ok(Self { served })
    }

    /// The store with a name.
    pub fn get(&self, name: &str) -> Result<&Served> {
        self.served.get(name).ok_or_else(|| {
            let detail = format!("there is no store called {name:?}");
            Problem::new("unknown-store", detail).hint("GET /v1/stores lists what there is.")
        })
    }

    /// The space with a name, and the store that it lives in.
    pub fn space(&self, name: &str) -> Option<(&Served, &Declaration)> {
        self.served.values().find_map(|served| {
            let mut spaces = served.records.declarations();
            Some((served, spaces.find(|space| space.name == name)?))
        })
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Served> {
        self.served.values()
    }
}

impl Served {
    pub fn store(&self) -> &Store {
        self.records.store()
    }

    /// The space that a key belongs to, if any.
    pub fn space_of(&self, key: &Key) -> Option<&str> {
        let mut spaces = self.records.declarations();
        spaces.find(|space| space.key.matches(key)).map(|space| space.name.as_str())
    }
}
