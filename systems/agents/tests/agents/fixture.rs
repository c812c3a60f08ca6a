//! A place with agents in it, and short ways to say things.

use keyward_agents::{Actor, Agents, Namespace, Options, Set, UserData};
use keyward_engine::{Json, Store};
use keyward_records::Records;
use keyward_schema::Schema;
use keyward_stores::Place;

pub struct Fixture {
    pub place: Place,
    pub agents: Agents,
}

impl Fixture {
    pub async fn new(place: Place) -> Self {
        let agents = open(place.store().await, &place);
        Self { place, agents }
    }

    /// The same data store, as another process would open it.
    pub async fn again(&self) -> Agents {
        open(self.place.store().await, &self.place)
    }

    /// What is a user's, as the agent `tester` reaches it.
    pub fn user(&self, user: &str) -> UserData {
        self.agents.user(user, Actor::agent("tester"))
    }

    /// Ada's namespace, as the agent `tester` reaches it.
    pub fn namespace(&self, namespace: &str) -> Namespace {
        self.user("ada").use_namespace(namespace).unwrap()
    }

    pub fn store(&self) -> &Store {
        self.agents.records().store()
    }
}

pub fn open(store: Store, place: &Place) -> Agents {
    Agents::alone(store, Options::default(), place.clock().clone()).unwrap()
}

/// A data store whose space a schema declares.
pub fn declared(store: Store, place: &Place, schema: &str) -> Agents {
    let schema =
        Schema::parse(schema, "schema.toml").unwrap_or_else(|problems| panic!("{problems}"));
    let records = Records::open(store, schema.spaces, place.clock().clone()).unwrap();
    Agents::open(records, Options::default(), place.clock().clone()).unwrap()
}

pub fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

pub fn set(value: &str) -> Set {
    Set::new(json(value))
}

/// Sets an entry.
pub async fn put(namespace: &Namespace, key: &str, value: &str) {
    assert!(namespace.set(key, set(value)).await.unwrap().is_accepted());
}

/// All keys that start with a text, page by page.
pub async fn keys(namespace: &Namespace, prefix: &str, limit: usize) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = namespace.list_keys(prefix, after, limit).await.unwrap();
        assert!(page.keys.len() <= limit);
        found.extend(page.keys);
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}

/// All namespaces, page by page.
pub async fn namespaces(user: &UserData, limit: usize) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = user.list_namespaces(after, limit).await.unwrap();
        found.extend(page.namespaces);
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}
