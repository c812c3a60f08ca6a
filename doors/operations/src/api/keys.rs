//! API keys, for those who run the server.

use crate::identity::{ApiKey, Identity, Keys, Need, NewKey, Secret, Target};
use crate::problem::{Problem, Result};

/// Makes a key. Its secret is in this answer and nowhere else.
pub async fn create(who: &Identity, keys: &Keys, new: NewKey) -> Result<(ApiKey, Secret)> {
    who.require(Need::Admin, &Target::Server)?;
    Ok(keys.create(new).await?)
}

/// Some keys by id, those after an id, and whether there are more.
pub async fn list(
    who: &Identity,
    keys: &Keys,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<ApiKey>, bool)> {
    who.require(Need::Admin, &Target::Server)?;
    Ok(keys.list(after, limit).await?)
}

/// Ends a key at once.
pub async fn revoke(who: &Identity, keys: &Keys, id: &str) -> Result<ApiKey> {
    who.require(Need::Admin, &Target::Server)?;
    // The id is not repeated: somebody may have sent a whole key.
    keys.revoke(id).await?.ok_or_else(|| {
        Problem::not_found("no API key has this id").hint("GET /v1/keys lists them.")
    })
}
