//! The API over HTTP: thin handlers over `api`.

pub(crate) mod agents;
pub(crate) mod agreements;
pub(crate) mod answer;
mod attempts;
mod audit;
mod body;
mod cache;
mod claims;
mod commits;
mod conditional;
pub(crate) mod content_type;
pub(crate) mod cors;
mod dead_letters;
mod description;
pub(crate) mod entries;
mod event_stream;
pub(crate) mod gate;
mod head;
mod headers;
mod health;
pub(crate) mod jobs;
mod keys;
pub(crate) mod locks;
mod messages;
mod migrations;
mod names;
mod operations;
pub(crate) mod origin;
mod pages;
pub(crate) mod problem;
pub(crate) mod queues;
mod raw;
pub(crate) mod registries;
pub(crate) mod request;
mod schema;
mod slots;
pub(crate) mod spaces;
pub(crate) mod stores;
pub(crate) mod text;
pub(crate) mod ticket;
mod unread;
mod users;
pub(crate) mod watch;
mod work_time;

pub(crate) use body::too_large;
use problem::Refused;

use axum::Router;
use axum::middleware::from_fn_with_state;
use keyward::Code;
use serde_json::Value;
use utoipa::PartialSchema;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::mcp::Endpoint;
use crate::problem::Problem;

/// The routes that need a credential, those that do not, and the description of both.
fn described() -> (Router<App>, Router<App>, Value) {
    let info = InfoBuilder::new()
        .title("Keyward")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "The data layer over key-value stores. Keys are segments with colons between them; a \
             key in a path is percent-encoded as one segment. Versions are strong entity tags. \
             Problems are told as RFC 9457 says, with a `code` for programs, a `hint` for people, \
             and whether the same request may succeed later.",
        ))
        .build();
    let base = OpenApiBuilder::new().info(info).build();
    let (router, mut api) = OpenApiRouter::with_openapi(base)
        .merge(stores::routes())
        .merge(schema::routes())
        .merge(raw::routes())
        .merge(commits::routes())
        .merge(watch::routes())
        .merge(locks::routes())
        .merge(cache::routes())
        .merge(keys::routes())
        .merge(audit::routes())
        .merge(spaces::routes())
        .merge(migrations::routes())
        .merge(users::routes())
        .merge(queues::routes())
        .merge(messages::routes())
        .merge(claims::routes())
        .merge(attempts::routes())
        .merge(dead_letters::routes())
        .merge(jobs::routes())
        .merge(agents::routes())
        .merge(registries::routes())
        .merge(agreements::routes())
        .split_for_parts();
    // What proves itself in another way than by a credential.
    let (open, described) = OpenApiRouter::new().merge(registries::hooks()).split_for_parts();
    api.merge(described);
    name_operations(&mut api);
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "An API key (`kw_…`) or a token of the configured issuer. A server for one local user, \
             which has no key yet, asks for none.",
        ))
        .build();
    let components = api.components.get_or_insert_default();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    components.schemas.insert("Problem".to_owned(), problem::ProblemBody::schema());
    api.security = Some(vec![SecurityRequirement::new("bearer", Vec::<String>::new())]);
    // A description of texts, numbers and lists always serializes.
    let mut api = serde_json::to_value(api).unwrap_or_default();
    description::add_operations(&mut api);
    (router.merge(operations::routes()), open, api)
}

/// Names operations after their tag and their function, so that no two have one name.
fn name_operations(api: &mut OpenApi) {
    for path in api.paths.paths.values_mut() {
        let operations =
            [&mut path.get, &mut path.put, &mut path.post, &mut path.delete, &mut path.patch];
        for operation in operations.into_iter().flatten() {
            let tag = operation.tags.iter().flatten().next().cloned();
            if let (Some(tag), Some(name)) = (tag, &mut operation.operation_id) {
                *name = format!("{tag}_{name}");
            }
        }
    }
}

/// The description of the API, as it is checked into the tree.
pub fn openapi() -> Value {
    described().2
}

/// Everything that is answered.
pub(crate) fn router(app: App, mcp: &Endpoint) -> Router {
    let (api, open, description) = described();
    let api = api.layer(from_fn_with_state(app.clone(), gate::admit));
    let tools = mcp.routes().layer(from_fn_with_state(app.clone(), gate::admit_calls));
    Router::new()
        .merge(api)
        .merge(open)
        .merge(mcp.guarded(tools))
        .merge(pages::routes(&description))
        .merge(health::routes())
        .fallback(nothing_here)
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn_with_state(app.clone(), gate::watch_over))
        .with_state(app)
}

async fn nothing_here() -> Refused {
    Refused(
        Problem::not_found("there is nothing at this path").hint("GET /docs lists what there is."),
    )
}

async fn no_such_method() -> Refused {
    let problem = Problem::new(Code::MethodNotAllowed, "this path has other methods");
    Refused(problem.hint("GET /docs lists what there is."))
}
