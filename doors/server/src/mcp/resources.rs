//! What can be read: what is declared, keys, and records.

use keyward::agents::Keys;
use keyward::records::Listing;
use keyward::{Bindings, Code, Key};
use keyward_operations::records::RecordPage;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde_json::json;

use super::uri::{self, Address};
use crate::api::agents::entries::Part;
use crate::api::agents::{self, Behalf};
use crate::api::queries;
use crate::api::registries::policies;
use crate::api::spaces::{self, Reached, reach};
use crate::app::App;
use crate::auth::Identity;
use crate::http::spaces::one;
use crate::http::text;
use crate::problem::{Problem, Result};

const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";
const TOML: &str = "application/toml";
const SCHEMA: &str = "keyward://schema";
/// How long what is declared may be taken for true: it changes when the server is started anew.
const DECLARED_TTL_MS: u64 = 60_000;
/// How many keys of a space its resource lists.
const KEYS_MAX: usize = 100;

/// The resources that a caller reaches.
pub(super) async fn list(app: &App, who: &Identity) -> ListResourcesResult {
    let mut resources = vec![
        Resource::new(SCHEMA, "schema")
            .with_title("What is declared")
            .with_description("The schema: stores, spaces, their keys, values and indexes.")
            .with_mime_type(TOML),
    ];
    for (served, spaces) in spaces::list(who, app.stores()) {
        for space in spaces {
            let about = space.description.clone();
            resources.push(
                Resource::new(uri::space(&served.name, &space.name), &space.name)
                    .with_title(format!("The space {}", space.name))
                    .with_description(about.unwrap_or_else(|| format!("Records at {}.", space.key)))
                    .with_mime_type(JSON),
            );
            resources.push(
                Resource::new(
                    uri::records(&served.name, &space.name),
                    format!("{}.records", space.name),
                )
                .with_title(format!("The keys of {}", space.name))
                .with_description(format!(
                    "The first {KEYS_MAX} keys of the space {}. Can be subscribed to.",
                    space.name
                ))
                .with_mime_type(JSON),
            );
        }
    }
    for namespace in namespaces(app, who).await {
        resources.push(
            Resource::new(uri::namespace(&namespace), &namespace)
                .with_title(format!("The namespace {namespace}"))
                .with_description("The first keys that agents keep in it. Can be subscribed to.")
                .with_mime_type(JSON),
        );
    }
    let mut result = ListResourcesResult::with_all_items(resources);
    // Namespaces come and go.
    (result.ttl_ms, result.cache_scope) = (Some(0), Some(CacheScope::Private));
    result
}

/// The first namespaces in which agents keep something for the caller; none, where there is no user that
/// the caller is.
pub(super) async fn namespaces(app: &App, who: &Identity) -> Vec<String> {
    let listed = agents::namespaces::list(who, app, &Behalf::default(), None, KEYS_MAX).await;
    listed.map(|page| page.namespaces).unwrap_or_default()
}

/// The first keys of a namespace that begin with a text.
pub(super) async fn entry_keys(
    app: &App,
    who: &Identity,
    namespace: &str,
    begun: &str,
) -> Result<Keys> {
    let reached = agents::reach(who, app, &Behalf::default(), namespace)?;
    let part = Part { prefix: begun.to_owned(), cursor: None, limit: KEYS_MAX };
    agents::entries::keys(who, &reached, part).await
}

/// The kinds of resources that there are too many of to list.
pub(super) fn templates(app: &App) -> ListResourceTemplatesResult {
    let template = |uri: &str, name: &str, about: &str| {
        ResourceTemplate::new(uri, name).with_description(about).with_mime_type(JSON)
    };
    let mut templates = vec![
        template(
            "keyward://{store}/spaces/{space}",
            "space",
            "What is declared about a space: its keys, values, indexes.",
        ),
        template(
            "keyward://{store}/spaces/{space}/records",
            "records",
            "The first keys of a space. Can be subscribed to.",
        ),
        template(
            "keyward://{store}/spaces/{space}/records/{key}",
            "record",
            "A record with its version. Can be subscribed to.",
        ),
        template(
            "keyward://agents/namespaces/{namespace}",
            "namespace",
            "The first keys that agents keep in a namespace. Can be subscribed to.",
        ),
        template(
            "keyward://agents/namespaces/{namespace}/entries/{key}",
            "entry",
            "An entry that agents keep. Can be subscribed to.",
        ),
    ];
    if app.registries().iter().next().is_some() {
        let about = "The content of a policy, as it stands in git. Can be subscribed to.";
        templates.push(
            ResourceTemplate::new("keyward://registries/{registry}/policies/{policy}", "policy")
                .with_description(about)
                .with_mime_type(MARKDOWN),
        );
    }
    let mut result = ListResourceTemplatesResult::with_all_items(templates);
    (result.ttl_ms, result.cache_scope) = (Some(DECLARED_TTL_MS), Some(CacheScope::Public));
    result
}

/// Reads a resource. One that the caller does not reach is answered as one that does not exist.
pub(super) async fn read(
    app: &App,
    who: &Identity,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let Some(address) = Address::parse(uri) else { return Err(absent(uri)) };
    let (text, kind, ttl_ms) = match contents(app, who, &address).await {
        Ok(Some(contents)) => contents,
        Ok(None) => return Err(absent(uri)),
        Err(problem) => return Err(refused(uri, &problem)),
    };
    let contents = ResourceContents::text(text, uri).with_mime_type(kind);
    let mut result = ReadResourceResult::new(vec![contents]);
    (result.ttl_ms, result.cache_scope) = (Some(ttl_ms), Some(CacheScope::Private));
    Ok(result)
}

async fn contents(
    app: &App,
    who: &Identity,
    address: &Address,
) -> Result<Option<(String, &'static str, u64)>> {
    Ok(Some(match address {
        Address::Schema => (spaces::publish(who, app).text, TOML, DECLARED_TTL_MS),
        Address::Space { store, space } => {
            reached(app, who, store, space)?;
            let told = serde_json::to_string(&one(app, who, space).await?)
                .map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
            (told, JSON, DECLARED_TTL_MS)
        }
        Address::Records { store, space } => {
            let reached = reached(app, who, store, space)?;
            let listing = Listing::new(Bindings::new()).limit(KEYS_MAX);
            let listed = queries::list(who, app, &reached, listing).await?;
            (text::told(&RecordPage::new(listed, reached.space.guarantee()))?, JSON, 0)
        }
        Address::Record { store, space, key } => {
            let reached = reached(app, who, store, space)?;
            let Some(record) = reached.space.get(key).await? else { return Ok(None) };
            (text::record(&record).finish(), JSON, 0)
        }
        Address::Namespace { namespace } => {
            let page = entry_keys(app, who, namespace, "").await?;
            let keys = page.keys.iter().map(|key| text::quoted(key));
            let told = text::Object::new().list("keys", keys);
            (told.optional("next", page.next.as_deref()).finish(), JSON, 0)
        }
        Address::Entry { namespace, key } => {
            let reached = agents::reach(who, app, &Behalf::default(), namespace)?;
            let Some(entry) = agents::entries::get(who, &reached, key).await? else {
                return Ok(None);
            };
            (entry.to_document_with_rev().as_str().to_owned(), JSON, 0)
        }
        Address::Policy { registry, policy } => {
            let content = policies::content(who, app, registry, policy).await?;
            (String::from_utf8_lossy(&content.bytes).into_owned(), MARKDOWN, 0)
        }
    }))
}

/// A space of a store, as a caller reaches it.
pub(super) fn reached<'a>(
    app: &'a App,
    who: &Identity,
    store: &str,
    space: &str,
) -> Result<Reached<'a>> {
    let reached = reach(who, app.stores(), space)?;
    match reached.served.name == store {
        true => Ok(reached),
        false => Err(Problem::new(Code::UnknownSpace, format!("{store} has no space {space:?}"))),
    }
}

/// Keys of a space that begin with a text, as a caller may list them.
pub(super) async fn keys_like(
    app: &App,
    who: &Identity,
    reached: &Reached<'_>,
    begun: &str,
) -> Result<Vec<Key>> {
    use keyward::records::ListedItem;

    let mut found = Vec::new();
    let mut listing = Listing::new(Bindings::new()).limit(1_000);
    // Where many keys come before, not all are looked at.
    for _ in 0..10 {
        let listed = queries::list(who, app, reached, listing.clone()).await?;
        for item in listed.items {
            if let ListedItem::Key(key) = item
                && key.to_string().starts_with(begun)
            {
                found.push(key);
            }
        }
        match listed.next {
            Some(next) if found.len() < KEYS_MAX => listing = listing.after(Some(next)),
            _ => break,
        }
    }
    found.truncate(KEYS_MAX);
    Ok(found)
}

fn absent(uri: &str) -> ErrorData {
    let message = "there is no such resource; resources/list and resources/templates/list say which \
                   there are";
    ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
}

fn refused(uri: &str, problem: &Problem) -> ErrorData {
    match problem.code() {
        // What may not be known of is not there.
        Code::UnknownSpace
        | Code::UnknownRegistry
        | Code::NotFound
        | Code::Forbidden
        | Code::KeyMismatch
        | Code::Invalid => absent(uri),
        _ => {
            let data = json!({ "uri": uri, "code": problem.code() });
            ErrorData::internal_error(problem.detail().to_owned(), Some(data))
        }
    }
}
