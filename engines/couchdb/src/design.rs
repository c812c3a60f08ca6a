//! The design document of the layout: its two views, and how they are added.

use std::time::Duration;

use keyward_engine::{Error, ErrorKind, Result};
use keyward_http::{Effect, Method, Request, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::client::{Client, encode, read};
use crate::engine::{create_database, database};
use crate::error::is_absent;
use crate::fields::{members, object};

/// The path of the design document.
pub(crate) const DESIGN: [&str; 2] = ["_design", "data_store"];
/// How often adding a view is tried while others change the design document.
const TRIES_MAX: usize = 8;
/// How long to wait until CouchDB has read all documents for the views, and how often to ask.
const BUILT_IN: Duration = Duration::from_secs(60 * 60);
const PAUSE: Duration = Duration::from_millis(500);

/// A view of the layout.
#[derive(Debug)]
pub(crate) struct View {
    pub name: &'static str,
    map: &'static str,
}

pub(crate) const BY_USER_NAMESPACE: View = View {
    name: "by_user_namespace",
    map: "function(doc) { if (doc.userId && doc.namespace) { emit([doc.userId, doc.namespace], null); } }",
};

pub(crate) const BY_USER: View = View {
    name: "by_user",
    map: "function(doc) { if (doc.userId) { emit(doc.userId, doc.namespace); } }",
};

impl View {
    const ALL: [Self; 2] = [BY_USER_NAMESPACE, BY_USER];

    /// Whether a view does the same, however it is set.
    fn is(&self, view: &str) -> bool {
        let map = serde_json::from_str::<Value>(view).ok();
        let map = map.as_ref().and_then(|view| view.get("map")?.as_str());
        let words = |map: &str| map.split_whitespace().collect::<String>();
        map.is_some_and(|map| words(map) == words(self.map))
    }

    fn body(&self) -> String {
        json!({"map": self.map}).to_string()
    }

    /// The path to query it.
    pub fn path(&self) -> [&'static str; 4] {
        [DESIGN[0], DESIGN[1], "_view", self.name]
    }
}

/// What the database lacks, as sentences; and if asked, creates it.
pub(crate) async fn prepare(client: &Client, create: bool) -> Result<Vec<String>> {
    let mut lacking = Vec::new();
    let exists = database(client).await?.is_some();
    if !exists {
        lacking.push(format!("creates the database {}", client.shown()));
        if create {
            create_database(client).await?;
        }
    }
    for _ in 0..TRIES_MAX {
        let found = if exists || create { design(client).await? } else { None };
        let missing = missing(found.as_deref())?;
        if missing.is_empty() {
            // Whoever added them may have left before CouchDB had built them.
            if create {
                build(client).await?;
            }
            return Ok(lacking);
        }
        let sentence = sentence(found.is_some(), &missing);
        if !create {
            lacking.push(sentence);
            return Ok(lacking);
        }
        if put(client, &with(found.as_deref(), &missing)?).await? {
            build(client).await?;
            lacking.push(sentence);
            return Ok(lacking);
        }
    }
    let message = format!("others changed _design/data_store {TRIES_MAX} times in a row");
    Err(Error::new(ErrorKind::Unavailable, message))
}

fn sentence(is_there: bool, missing: &[View]) -> String {
    let names: Vec<_> = missing.iter().map(|view| view.name).collect();
    let names = names.join(" and ");
    let views = if missing.len() == 1 { "view" } else { "views" };
    match is_there {
        false => format!("creates the design document _design/data_store with the {views} {names}"),
        true => format!(
            "adds the {views} {names} to the design document _design/data_store, whose other views CouchDB then builds anew"
        ),
    }
}

/// The design document as it is.
async fn design(client: &Client) -> Result<Option<String>> {
    let response = client.send(Request::get(client.url(&DESIGN, ""))).await?;
    match response.status {
        StatusCode::OK => {
            let text: &serde_json::value::RawValue = read("_design/data_store", &response)?;
            Ok(Some(text.get().to_owned()))
        }
        StatusCode::NOT_FOUND if is_absent(&response) => Ok(None),
        _ => Err(client.refused(&response)),
    }
}

fn unlike(what: &str) -> Error {
    let message = format!("_design/data_store has {what}, and is left as it is");
    Error::new(ErrorKind::Misplaced, message).advise(
        "Compare it with the layout of the agent data store. Another program may need it as it is; then keep the data in another database.",
    )
}

/// The views that a design document lacks. One that does something else is an error: another program may need it.
fn missing(design: Option<&str>) -> Result<Vec<View>> {
    let Some(design) = design else { return Ok(View::ALL.into()) };
    let parts = members(design).map_err(|error| unlike(&format!("no readable form ({error})")))?;
    let part = |name: &str| parts.iter().find(|(it, _)| it == name).map(|(_, json)| *json);
    let views = members(part("views").unwrap_or("{}"))
        .map_err(|error| unlike(&format!("no readable views ({error})")))?;
    let mut missing = Vec::new();
    for view in View::ALL {
        match views.iter().find(|(name, _)| name == view.name) {
            None => missing.push(view),
            Some((_, found)) if view.is(found) => {}
            Some(_) => {
                let what =
                    format!("a view {} with another map function than the layout's", view.name);
                return Err(unlike(&what));
            }
        }
    }
    let language = part("language").unwrap_or("\"javascript\"");
    if !missing.is_empty() && language != "\"javascript\"" {
        return Err(unlike(&format!(
            "the language {language}, and the layout's views are JavaScript"
        )));
    }
    Ok(missing)
}

/// A design document with some views more; everything else in it stays.
fn with(design: Option<&str>, missing: &[View]) -> Result<String> {
    let unreadable = |error: serde_json::Error| unlike(&format!("no readable form ({error})"));
    let parts = members(design.unwrap_or("{}")).map_err(unreadable)?;
    let views = parts.iter().find(|(name, _)| name == "views").map_or("{}", |(_, json)| *json);
    let views = members(views).map_err(unreadable)?;
    let added: Vec<_> = missing.iter().map(|view| (view.name, view.body())).collect();
    let views = views.iter().map(|(name, json)| (name.as_str(), *json));
    let views = object(views.chain(added.iter().map(|(name, body)| (*name, body.as_str()))));
    let others = parts.iter().filter(|(name, _)| name != "views");
    let others = others.map(|(name, json)| (name.as_str(), *json));
    Ok(object(others.chain([("views", views.as_str())])))
}

/// Stores the design document, unless somebody changed it since it was read.
async fn put(client: &Client, design: &str) -> Result<bool> {
    // Sent again after a lost answer: it conflicts then, and is read once more.
    let request = Request::new(Method::PUT, client.url(&DESIGN, ""), Effect::WritesOnce);
    let response = client.send(request.json(design.to_owned())).await?;
    match response.status {
        StatusCode::CREATED | StatusCode::OK | StatusCode::ACCEPTED => Ok(true),
        StatusCode::CONFLICT => Ok(false),
        _ => Err(client.refused(&response)),
    }
}

/// Waits until CouchDB has built the views, which it does when one is queried. It answers once it is done, and goes on if
/// nobody waits for the answer. So the query is sent again and again.
async fn build(client: &Client) -> Result<()> {
    let query = encode(&json!({"limit": 1}))?;
    let started = Instant::now();
    loop {
        let request = Request::new(Method::POST, client.url(&BY_USER.path(), ""), Effect::Reads);
        match client.send(request.json(query.clone())).await {
            Ok(response) if response.status == StatusCode::OK => return Ok(()),
            Ok(response) => return Err(client.refused(&response)),
            Err(error) if error.kind() != ErrorKind::Unavailable => return Err(error),
            Err(_) => {}
        }
        // If this gets no answer either, it is not the views that take so long.
        database(client).await?;
        if started.elapsed() >= BUILT_IN {
            let message =
                format!("CouchDB still builds the views of _design/data_store after {BUILT_IN:?}");
            return Err(Error::new(ErrorKind::Unavailable, message).advise(
                "The design document is stored, and CouchDB goes on building. Run keyward agent prepare --apply again to wait for the end.",
            ));
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(views: &[View]) -> Vec<&str> {
        views.iter().map(|view| view.name).collect()
    }

    #[test]
    fn missing_views_are_added_and_others_stay() {
        let both = ["by_user_namespace", "by_user"];
        assert_eq!(names(&missing(None).unwrap()), both);
        let theirs = r#"{"_id":"_design/data_store","_rev":"3-x","language":"javascript","views":{"mine":{"map":"f","reduce":"_count"}},"lists":{"l":"g"}}"#;
        let lacking = missing(Some(theirs)).unwrap();
        assert_eq!(names(&lacking), both);
        let whole = with(Some(theirs), &lacking).unwrap();
        assert!(missing(Some(&whole)).unwrap().is_empty());
        let whole: Value = serde_json::from_str(&whole).unwrap();
        assert_eq!(whole["views"]["mine"], json!({"map": "f", "reduce": "_count"}));
        assert_eq!((&whole["lists"], &whole["_rev"]), (&json!({"l": "g"}), &json!("3-x")));
        assert_eq!(whole["views"].as_object().unwrap().len(), 3);
    }

    #[test]
    fn a_view_may_be_set_in_another_way_but_not_do_something_else() {
        let design =
            |map: &str| json!({"_rev": "1-x", "views": {"by_user": {"map": map}}}).to_string();
        let set =
            "function (doc) {\n  if (doc.userId) {\n    emit(doc.userId, doc.namespace);\n  }\n}";
        assert_eq!(names(&missing(Some(&design(set))).unwrap()), ["by_user_namespace"]);
        let other = missing(Some(&design("function(doc) { emit(doc._id); }"))).unwrap_err();
        assert_eq!(other.kind(), ErrorKind::Misplaced);
        assert!(other.message().contains("by_user with another map function"), "{other}");
        let query = r#"{"language":"query","views":{"x":{"map":{"fields":{"a":"asc"}}}}}"#;
        assert!(missing(Some(query)).unwrap_err().message().contains("language \"query\""));
    }
}
