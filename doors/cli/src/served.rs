//! A server that is worked on.

use std::path::PathBuf;

use keyward::Data;
use keyward::remote::{Address, Connection, Options};
use keyward::schema::{Published, Schema};
use serde::de::DeserializeOwned;

use crate::failure::{Failure, Result};

/// A server, the store of it that is meant, and where the API key is.
#[derive(Debug)]
pub struct Served {
    address: Address,
    store: Option<String>,
    key_file: Option<PathBuf>,
}

impl Served {
    pub fn new(server: &str, store: Option<&str>, key_file: Option<PathBuf>) -> Result<Self> {
        let address = Address::new(server, store)?;
        Ok(Self { address, store: store.map(str::to_owned), key_file })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        self.address.server()
    }

    /// The store of it that was named, if one was.
    pub fn store(&self) -> Option<&str> {
        self.store.as_deref()
    }

    /// What asks it.
    pub fn connection(&self) -> Result<Connection> {
        let options = Options { key_file: self.key_file.clone(), ..Options::default() };
        Ok(Connection::new(self.name(), &options)?)
    }

    /// What it declares, as far as the key reaches.
    pub async fn schema(&self) -> Result<Schema> {
        Ok(self.published().await?.schema(self.name())?)
    }

    /// The same with its default store.
    pub async fn data(&self) -> Result<Data> {
        data_of(&self.published().await?, self.name())
    }

    async fn published(&self) -> Result<Published> {
        read(&self.connection()?.get("/v1/schema").await?)
    }

    /// The URL of the store that is meant: the server's only one, its default one or the one called main,
    /// if none was named.
    pub fn url(&self) -> Result<String> {
        self.store_url(self.store.as_deref().unwrap_or_default())
    }

    /// The URL of one of its stores.
    pub fn store_url(&self, store: &str) -> Result<String> {
        let url = format!("keyward+{}/{store}", self.name());
        let Some(file) = &self.key_file else { return Ok(url) };
        match file.to_str().filter(|file| !file.contains('&')) {
            Some(file) => Ok(format!("{url}?key_file={file}")),
            None => Err(Failure::invalid("the path of the key file must be UTF-8 and without &")
                .hint("Name another file, or set KEYWARD_KEY.")),
        }
    }
}

/// What a server declares, with its default store.
pub fn data_of(published: &Published, server: &str) -> Result<Data> {
    let data = Data::new(published.schema(server)?);
    match &published.default_store {
        Some(store) => Ok(data.with_default(store)?),
        None => Ok(data),
    }
}

/// What a server answered.
pub fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T> {
    serde_json::from_slice(answer).map_err(|error| {
        Failure::invalid(format!("the server's answer cannot be read: {error}"))
            .hint("Is it a Keyward server, and of this version?")
    })
}
