//! What an argument may become, while somebody is writing it.

use rmcp::model::{
    ArgumentInfo, CompleteRequestParams, CompletionContext, CompletionInfo, Reference,
};

use super::resources::{entry_keys, keys_like, namespaces, reached};
use crate::api::registries::policies::{self, Listing};
use crate::api::{registries, spaces};
use crate::app::App;
use crate::auth::{Identity, Need, Target};

/// What the argument of a prompt or of a resource's address may become: only what the caller reaches.
pub(super) async fn complete(
    app: &App,
    who: &Identity,
    request: &CompleteRequestParams,
) -> CompletionInfo {
    let ArgumentInfo { name, value, .. } = &request.argument;
    let given = |name: &str| {
        let context: Option<&CompletionContext> = request.context.as_ref();
        context.and_then(|context| context.get_argument(name)).cloned()
    };
    let known = match (&request.r#ref, name.as_str()) {
        (Reference::Resource(_) | Reference::Prompt(_), "store") => stores(app, who),
        (Reference::Resource(_) | Reference::Prompt(_), "space") => {
            space_names(app, who, given("store").as_deref())
        }
        (Reference::Resource(_), "registry") => {
            let all = registries::list(who, app, Need::Read);
            all.map(|kept| kept.registry.name().to_owned()).collect()
        }
        (Reference::Resource(_), "policy") => match given("registry") {
            Some(registry) => policy_names(app, who, &registry, value).await,
            None => Vec::new(),
        },
        (Reference::Resource(_) | Reference::Prompt(_), "namespace") => namespaces(app, who).await,
        (Reference::Resource(_) | Reference::Prompt(_), "key") => match given("namespace") {
            Some(namespace) => {
                let page = entry_keys(app, who, &namespace, value).await;
                page.map(|page| page.keys).unwrap_or_default()
            }
            None => return keys(app, who, given("store"), given("space"), value).await,
        },
        _ => Vec::new(),
    };
    let fitting = known.into_iter().filter(|word| word.starts_with(value.as_str())).collect();
    limited(fitting)
}

/// Names of policies that have a text in them, or in their title; those of one page.
async fn policy_names(app: &App, who: &Identity, registry: &str, begun: &str) -> Vec<String> {
    let search = Some(begun.to_owned());
    let listing = Listing { after: None, limit: CompletionInfo::MAX_VALUES, search };
    let page = policies::list(who, app, registry, &listing).await;
    let found = page.map(|page| page.items).unwrap_or_default();
    found.into_iter().map(|policy| policy.policy_name).collect()
}

fn stores(app: &App, who: &Identity) -> Vec<String> {
    let reads = |name: &str| who.scopes().allow(Need::Read, &Target::Store(name));
    let with_spaces = spaces::list(who, app.stores());
    with_spaces
        .filter(|(served, spaces)| !spaces.is_empty() || reads(&served.name))
        .map(|(served, _)| served.name.clone())
        .collect()
}

fn space_names(app: &App, who: &Identity, store: Option<&str>) -> Vec<String> {
    spaces::list(who, app.stores())
        .filter(|(served, _)| store.is_none_or(|store| served.name == store))
        .flat_map(|(_, spaces)| spaces.into_iter().map(|space| space.name.clone()))
        .collect()
}

async fn keys(
    app: &App,
    who: &Identity,
    store: Option<String>,
    space: Option<String>,
    begun: &str,
) -> CompletionInfo {
    let Some(space) = space else { return limited(Vec::new()) };
    let store = match store {
        Some(store) => store,
        None => match app.stores().space(&space) {
            Some((served, _)) => served.name.clone(),
            None => return limited(Vec::new()),
        },
    };
    let found = match reached(app, who, &store, &space) {
        Ok(reached) => keys_like(app, who, &reached, begun).await,
        Err(problem) => Err(problem),
    };
    // Whoever may not look has nothing to choose from.
    limited(found.unwrap_or_default().iter().map(ToString::to_string).collect())
}

fn limited(mut words: Vec<String>) -> CompletionInfo {
    let more = words.len() > CompletionInfo::MAX_VALUES;
    words.truncate(CompletionInfo::MAX_VALUES);
    let mut info = CompletionInfo::default();
    info.values = words;
    info.has_more = Some(more);
    info
}
