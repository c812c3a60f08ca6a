//! The store behind an engine: the one that a coordinator's values go to. The other scratch keys of a probe never leave
//! the coordinator.

use keyward_engine::ErrorKind;
use keyward_key::Key;

use super::probe::Trial;
use crate::error::{Error, Result};

/// The first segment of the key that a coordinator does not keep to itself.
const PLAIN: &str = "keyward-probe";

/// What came of the store behind the engine.
pub(super) enum Behind {
    /// There is none.
    Nothing,
    Sound,
    /// It refuses a value, or does not show it.
    Broken,
    /// It could not be reached.
    Away,
}

impl Trial<'_> {
    /// Sends a value to the store behind the engine, and removes it there.
    pub(super) async fn behind(&self) -> Result<Behind> {
        let name = self.below.segments().last().unwrap_or_default();
        let key = Key::from_segments([PLAIN, &name])
            .map_err(|error| Error::Damaged(error.to_string()))?;
        if let Some(met) = self.passed_on(&key).await? {
            return Ok(met);
        }
        self.store.put(key.clone(), self.put(1)).await?;
        let put = self.passed_on(&key).await;
        self.store.delete(key.clone()).await?;
        let deleted = self.passed_on(&key).await?;
        Ok(put?.or(deleted).unwrap_or(Behind::Sound))
    }

    /// Nothing, if the store behind the engine shows what a key holds.
    async fn passed_on(&self, key: &Key) -> Result<Option<Behind>> {
        Ok(match self.store.push_through(key).await {
            Ok(Some(true)) => None,
            Ok(Some(false)) => Some(Behind::Broken),
            Ok(None) => Some(Behind::Nothing),
            Err(error)
                if matches!(error.kind(), ErrorKind::OutcomeUnknown | ErrorKind::Unavailable) =>
            {
                Some(Behind::Away)
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => return Err(error.into()),
            // It refuses the write.
            Err(_) => Some(Behind::Broken),
        })
    }
}
