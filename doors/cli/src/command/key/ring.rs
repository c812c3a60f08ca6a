//! Where API keys are kept: in a control store, or behind a server.

use keyward::remote::Connection;
use keyward_server::{ApiKey, Keys, NewKey};
use serde::Deserialize;

use crate::failure::{Failure, Result};
use crate::served::read;

/// The API keys of a server.
pub enum Ring {
    /// In its control store.
    Stored(Keys),
    /// Through the server itself.
    Served(Connection),
}

#[derive(Deserialize)]
struct Created {
    secret: String,
    #[serde(flatten)]
    key: ApiKey,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<ApiKey>,
    next: Option<String>,
}

impl Ring {
    /// Makes a key, and gives it with its secret.
    pub async fn create(&self, new: NewKey) -> Result<(ApiKey, String)> {
        match self {
            Self::Stored(keys) => {
                let (key, secret) = keys.create(new).await?;
                Ok((key, secret.reveal().to_owned()))
            }
            Self::Served(server) => {
                let new = serde_json::to_vec(&new)
                    .map_err(|error| Failure::invalid(error.to_string()))?;
                let Created { secret, key } = read(&server.post("/v1/keys", new).await?)?;
                Ok((key, secret))
            }
        }
    }

    /// Up to `limit` keys by id, those after an id, and whether there are more.
    pub async fn list(&self, after: Option<&str>, limit: usize) -> Result<(Vec<ApiKey>, bool)> {
        match self {
            Self::Stored(keys) => Ok(keys.list(after, limit).await?),
            Self::Served(server) => {
                let cursor = after.map_or(String::new(), |after| format!("&cursor={after}"));
                let path = format!("/v1/keys?limit={limit}{cursor}");
                let Page { items, next } = read(&server.get(&path).await?)?;
                Ok((items, next.is_some()))
            }
        }
    }

    /// Ends a key at once; nothing, if there is none with this id.
    pub async fn revoke(&self, id: &str) -> Result<Option<ApiKey>> {
        // An id is a word; what is none cannot stand in a path, and is none of a key.
        let is_word = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match self {
            Self::Stored(keys) => Ok(keys.revoke(id).await?),
            Self::Served(_) if !is_word => Ok(None),
            Self::Served(server) => match server.delete(&format!("/v1/keys/{id}")).await {
                Ok(answer) => Ok(Some(read(&answer)?)),
                Err(error) if error.message().contains("no API key has this id") => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }
}
