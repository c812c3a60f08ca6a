//! What agents keep for users: `/v1/agents`.
//!
//! A namespace and a key are one segment of the path each, percent-encoded, so `files:apache%2Frepo` is
//! the namespace `files:apache/repo`.

mod document;
mod entries;
mod exchange;
mod history;
pub(crate) mod life;
mod namespaces;
mod runs;
mod search;
mod together;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;

use crate::api::agents::{Behalf, NAME_BYTES_MAX};
use crate::app::App;
use crate::http::problem::Refused;
use crate::problem::{Problem, Result};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(namespaces::routes())
        .merge(entries::routes())
        .merge(together::routes())
        .merge(history::routes())
        .merge(search::routes())
        .merge(runs::routes())
        .merge(exchange::routes())
}

/// In whose name a request is made, as its headers say.
struct Acting {
    agent: Option<String>,
    run: Option<String>,
}

impl Acting {
    /// The same, for a user if one is named.
    fn for_user(self, user: Option<String>) -> Behalf {
        Behalf { user, agent: self.agent, run: self.run }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Acting {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refused> {
        let named = |name: &str| {
            let mut given = parts.headers.get_all(name).iter();
            let Some(value) = given.next() else { return Ok(None) };
            let text =
                std::str::from_utf8(value.as_bytes()).ok().filter(|_| given.next().is_none());
            let text = text.filter(|text| (1..=NAME_BYTES_MAX).contains(&text.len()));
            text.map(|text| Some(text.to_owned())).ok_or_else(|| {
                Problem::invalid(format!(
                    "the header {name} names one, in 1 to {NAME_BYTES_MAX} bytes of UTF-8"
                ))
            })
        };
        Ok(Self { agent: named("Keyward-Agent")?, run: named("Keyward-Run")? })
    }
}

/// How the description tells of [`Acting`].
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it describes what is read from headers")]
struct ActingHeaders {
    /// In the name of which agent. A credential that is bound to an agent cannot name another one.
    #[param(rename = "Keyward-Agent", min_length = 1, max_length = 256)]
    agent: Option<String>,
    /// In which run of it: what is done is written to the run's operations log.
    #[param(rename = "Keyward-Run", min_length = 1, max_length = 256)]
    run: Option<String>,
}

/// Parameters of requests that have no others.
#[derive(Debug, serde::Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OfUser {
    /// Whose entries, for a credential that is bound to no user. On a server without credentials it is
    /// `local`, if it is left out.
    #[param(min_length = 1, max_length = 256)]
    user: Option<String>,
}
