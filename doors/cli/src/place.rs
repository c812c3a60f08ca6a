//! Which store a system is in: a registry, or a workspace.

use keyward::{Data, records};
use keyward_server::without_schema;

use crate::args::Target;
use crate::failure::Result;

/// How stores of a schema are chosen: by name, or the only one that will do.
pub type Choose = for<'d> fn(&'d Data, Option<&str>) -> Result<&'d str, records::Error>;

/// The stores, and which of them a system is in that names one or none.
pub async fn find(target: &Target, named: Option<&str>, choose: Choose) -> Result<(Data, String)> {
    let server = target.server()?;
    // What was said for this command comes before what is written down.
    if server.is_none() && target.store_is_asked_for() {
        let data = without_schema(&target.url()?)?;
        let place = choose(&data, None)?.to_owned();
        return Ok((data, place));
    }
    let data = match server.is_some() || target.schema_file_if_any()?.is_some() {
        true => target.data().await?,
        false => without_schema(&target.url()?)?,
    };
    let place = match server.as_ref().and_then(|server| server.store()) {
        Some(named) => named.to_owned(),
        None => choose(&data, named)?.to_owned(),
    };
    Ok((data, place))
}
