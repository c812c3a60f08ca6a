use clap::Args;
use serde::Serialize;

use crate::args::Target;
use crate::failure::Result;
use crate::output::Output;

/// Drop a cached value and everything that was made from it
///
/// With the value go the cached values below its key, and those made with --depends-on. Entries that
/// no cache has made are left alone.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward cache drop page7:text"#)]
pub struct Arguments {
    /// The key, for example page7:text
    key: String,
}

#[derive(Serialize)]
struct Dropped {
    dropped: u64,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let key = crate::command::key(&arguments.key)?;
    let cache = super::cache(target.open_existing().await?)?;
    let dropped = cache.invalidate(&key).await?.values;
    if output.json() {
        return output.write_json(&Dropped { dropped });
    }
    match dropped {
        0 => writeln!(output, "nothing was cached at {key}"),
        1 => writeln!(output, "dropped {key}"),
        values => writeln!(output, "dropped {key}: {values} values"),
    }
}
