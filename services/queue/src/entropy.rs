use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fastrand::Rng;

use crate::{Error, Result};

/// Where random numbers come from: the system, or a seed.
pub(crate) struct Entropy {
    /// Choices that nobody must not guess.
    choices: Mutex<Rng>,
    seeded: bool,
}

impl Entropy {
    pub fn new(seed: Option<u64>) -> Result<Self> {
        let start = match seed {
            Some(seed) => seed,
            None => u64::from_ne_bytes(system()?),
        };
        Ok(Self { choices: Mutex::new(Rng::with_seed(start)), seeded: seed.is_some() })
    }

    /// 128 bits in hexadecimal, which nobody has had before.
    pub fn nonce(&self) -> Result<String> {
        let bits = match self.seeded {
            true => self.choices().u128(..),
            false => u128::from_ne_bytes(system()?),
        };
        Ok(format!("{bits:032x}"))
    }

    /// 64 bits.
    pub fn bits(&self) -> Result<u64> {
        if self.seeded { Ok(self.choices().u64(..)) } else { system().map(u64::from_ne_bytes) }
    }

    /// A number below `end`; zero if there is none.
    pub fn below(&self, end: usize) -> usize {
        if end == 0 { 0 } else { self.choices().usize(..end) }
    }

    /// A number from 0 to 1.
    pub fn fraction(&self) -> f64 {
        self.choices().f64()
    }

    fn choices(&self) -> MutexGuard<'_, Rng> {
        self.choices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn system<const BYTES: usize>() -> Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|error| Error::NoEntropy(error.to_string()))?;
    Ok(bytes)
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entropy").field("seeded", &self.seeded).finish_non_exhaustive()
    }
}
