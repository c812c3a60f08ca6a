/// What the engine can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Commits of several keys, and entries that expire by the engine's clock.
    Atomic,
    /// Compare-and-swap of one key.
    Recoverable,
}

/// Something that looks simpler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shortcut {
    /// Writes do not look at the lock.
    NoFence,
    /// A holder is taken over without waiting for its lease to end.
    NoPatience,
    /// Where commits have one key: the entry is read before the token is put into it.
    ReadFirst,
}

/// The protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rules {
    pub tier: Tier,
    pub shortcut: Option<Shortcut>,
}

/// The lease. Only the order of the three times matters.
pub const TTL: u8 = 2;
/// How long a holder counts on it: less.
pub const HELD: u8 = 1;
/// How long an observer sees no change before it takes over: more.
pub const PATIENCE: u8 = 3;

impl Rules {
    pub fn of(tier: Tier) -> Self {
        Self { tier, shortcut: None }
    }

    pub fn with(self, shortcut: Shortcut) -> Self {
        Self { shortcut: Some(shortcut), ..self }
    }

    pub fn takes(&self, shortcut: Shortcut) -> bool {
        self.shortcut == Some(shortcut)
    }
}
