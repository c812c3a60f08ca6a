//! The composite index of the layout, by Firestore's administration API.

use std::time::Duration;

use keyward_engine::{Error, ErrorKind, Result};
use keyward_http::{Effect, Method, Request};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{GROUP, OWNER};
use crate::client::{Client, json as body};
use crate::error::garbled;

/// How long to wait until an index is built, and how often to look.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
const PAUSE: Duration = Duration::from_secs(3);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Indexes {
    #[serde(default)]
    indexes: Vec<Index>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    #[serde(default)]
    query_scope: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    fields: Vec<Field>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Field {
    field_path: String,
    order: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Missing,
    Building,
    Ready,
}

impl Index {
    /// Whether it is that of the layout: `userId` and `namespace` upwards. Firestore lists the name behind them.
    fn serves(&self) -> bool {
        let fields = self.fields.iter().filter(|field| field.field_path != "__name__");
        let is_up = |field: &Field| field.order.as_deref() == Some("ASCENDING");
        self.query_scope == "COLLECTION"
            && fields.clone().all(is_up)
            && fields.map(|field| field.field_path.as_str()).eq([OWNER, GROUP])
    }
}

fn find(indexes: &[Index]) -> Found {
    let mut states =
        indexes.iter().filter(|index| index.serves()).map(|index| index.state.as_str());
    match states.next() {
        None => Found::Missing,
        Some("READY") => Found::Ready,
        Some(_) if states.any(|state| state == "READY") => Found::Ready,
        Some(_) => Found::Building,
    }
}

/// The sentence about the index if it is missing; with `create`, it is made and waited for.
pub(super) async fn prepare(client: &Client, create: bool) -> Result<Vec<String>> {
    let found = look(client).await?;
    if found == Found::Ready {
        return Ok(Vec::new());
    }
    let sentence = format!(
        "composite index of the collection {:?}: {OWNER} ascending, {GROUP} ascending",
        client.collection.id()
    );
    if !create {
        return Ok(vec![sentence]);
    }
    if found == Found::Missing {
        let field = |path: &str| json!({ "fieldPath": path, "order": "ASCENDING" });
        let index = json!({ "queryScope": "COLLECTION", "fields": [field(OWNER), field(GROUP)] });
        let request = Request::new(Method::POST, client.indexes.clone(), Effect::WritesOnce);
        let answer = client.send(request.json(body(&index)?)).await?;
        if let Err(refusal) = answer.result
            && refusal.status != "ALREADY_EXISTS"
        {
            return Err(refusal.into_error("create an index in").advise(
                "Grant the account the role roles/datastore.indexAdmin, or create the index in the console.",
            ));
        }
    }
    let started = Instant::now();
    while look(client).await? != Found::Ready {
        if started.elapsed() > PATIENCE {
            let message = format!("the {sentence} is still being built after {PATIENCE:?}");
            return Err(Error::new(ErrorKind::Unavailable, message)
                .advise("It goes on by itself; open the store again later."));
        }
        sleep(PAUSE).await;
    }
    Ok(vec![sentence])
}

async fn look(client: &Client) -> Result<Found> {
    let mut url = client.indexes.clone();
    loop {
        let answer = client.send(Request::get(url.clone())).await?;
        let listed = answer.result.map_err(|refusal| refusal.into_error("read the indexes of"))?;
        let listed: Indexes = serde_json::from_slice(&listed).map_err(garbled)?;
        match (find(&listed.indexes), listed.next_page_token.filter(|token| !token.is_empty())) {
            (Found::Missing, Some(token)) => {
                url.query_pairs_mut().clear().append_pair("pageToken", &token);
            }
            (found, _) => return Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(indexes: &str) -> Found {
        find(&serde_json::from_str::<Indexes>(indexes).unwrap().indexes)
    }

    #[test]
    fn the_layouts_index_is_told_from_others() {
        let index = |scope: &str, state: &str, fields: [&str; 2]| {
            let field = |path: &str| format!(r#"{{"fieldPath":"{path}","order":"ASCENDING"}}"#);
            let (one, two, name) = (field(fields[0]), field(fields[1]), field("__name__"));
            format!(
                r#"{{"name":"n","queryScope":"{scope}","state":"{state}","fields":[{one},{two},{name}]}}"#
            )
        };
        let ours = ["userId", "namespace"];
        let list = |indexes: &[String]| format!(r#"{{"indexes":[{}]}}"#, indexes.join(","));
        assert_eq!(found("{}"), Found::Missing);
        assert_eq!(found(&list(&[index("COLLECTION", "READY", ours)])), Found::Ready);
        assert_eq!(found(&list(&[index("COLLECTION", "CREATING", ours)])), Found::Building);
        assert_eq!(found(&list(&[index("COLLECTION_GROUP", "READY", ours)])), Found::Missing);
        assert_eq!(
            found(&list(&[index("COLLECTION", "READY", ["namespace", "userId"])])),
            Found::Missing
        );
        let several =
            [index("COLLECTION", "NEEDS_REPAIR", ours), index("COLLECTION", "READY", ours)];
        assert_eq!(found(&list(&several)), Found::Ready);
    }
}
