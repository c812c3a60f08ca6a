use std::fmt;
use std::sync::{Mutex, PoisonError};

use fastrand::Rng;
use keyward_engine::{Error as StoreError, ErrorKind};

use crate::Result;

/// Where content ids come from: the system, or a seed.
pub(super) struct Entropy(Option<Mutex<Rng>>);

impl Entropy {
    pub fn new(seed: Option<u64>) -> Self {
        Self(seed.map(|seed| Mutex::new(Rng::with_seed(seed))))
    }

    /// 128 bits in hexadecimal, which nobody has had before.
    pub fn id(&self) -> Result<String> {
        let bits = match &self.0 {
            Some(seeded) => seeded.lock().unwrap_or_else(PoisonError::into_inner).u128(..),
            None => {
                let mut bytes = [0; 16];
                getrandom::fill(&mut bytes).map_err(|error| {
                    let message = format!("the system has no random numbers: {error}");
                    StoreError::new(ErrorKind::Unavailable, message)
                })?;
                u128::from_ne_bytes(bytes)
            }
        };
        Ok(format!("{bits:032x}"))
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entropy").field("seeded", &self.0.is_some()).finish()
    }
}
