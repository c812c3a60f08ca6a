//! Engines that this build leaves out.

use keyward_engine::{Error, ErrorKind};

/// The module of an engine whose feature is off: every URL of it says how to get it.
macro_rules! not_built {
    ($module:ident($($kind:ty)?), $name:literal, $feature:literal) => {
        #[cfg(not(feature = $feature))]
        mod $module {
            use std::sync::Arc;

            use keyward_engine::{Capabilities, Documents, Result, StoreUrl};

            use super::not_built::error;
            use super::{Absent, Opened};

            pub fn capabilities(_: StoreUrl $(, _: $kind)?) -> Result<Capabilities> {
                Err(error($name, $feature))
            }

            pub async fn open(_: StoreUrl, _: Absent $(, _: $kind)?) -> Result<Opened> {
                Err(error($name, $feature))
            }

            #[allow(dead_code, reason = "not every engine has documents")]
            pub async fn documents(_: StoreUrl) -> Result<Arc<dyn Documents>> {
                Err(error($name, $feature))
            }
        }
    };
}

#[allow(dead_code, reason = "with all features on, nothing is left out")]
pub(super) fn error(name: &str, feature: &str) -> Error {
    let message = format!("this build has no {name} engine: rebuild with --features {feature}");
    Error::new(ErrorKind::Unsupported, message)
        .advise("Rebuild Keyward with that feature, or use a build that has it.")
}
