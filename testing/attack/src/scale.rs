use std::env;
use std::time::Duration;

/// How large the attacks are: short by default, deep with `KEYWARD_DEEP` set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// A few seconds for each attack, for every run of the tests.
    Short,
    /// The numbers of the attacks that once succeeded.
    Deep,
}

impl Scale {
    /// The scale that the environment asks for.
    pub fn from_env() -> Self {
        match env::var_os("KEYWARD_DEEP") {
            Some(_) => Self::Deep,
            None => Self::Short,
        }
    }

    /// One of two values.
    pub fn choose<T>(self, short: T, deep: T) -> T {
        match self {
            Self::Short => short,
            Self::Deep => deep,
        }
    }

    /// What must hold during an attack and after it.
    pub fn bounds(self) -> Bounds {
        Bounds {
            // Short runs share a machine with anything, so they leave room for its noise.
            get_p99_max: self.choose(Duration::from_secs(2), Duration::from_secs(1)),
            normal_after_max: self.choose(Duration::from_secs(10), Duration::from_secs(5)),
            resident_bytes_max: 512 * 1024 * 1024,
        }
    }
}

/// What must hold during an attack and after it.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The 99th percentile of another user's gets.
    pub get_p99_max: Duration,
    /// How long after the attack everything is normal again.
    pub normal_after_max: Duration,
    /// The server's memory.
    pub resident_bytes_max: u64,
}
