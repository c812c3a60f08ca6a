use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Error, Guard, Result};

/// How a lock is asked for.
///
/// ```
/// use std::time::Duration;
/// use keyward_locks::Request;
///
/// let request = Request::default().wait_max(Duration::from_secs(10)).purpose("translate to fr");
/// assert_eq!(request.ttl, Request::TTL_DEFAULT);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// How long the lock outlives a holder that stopped renewing it.
    pub ttl: Duration,
    /// How long to wait for others; `None` waits until the future is dropped. On engines that cannot
    /// watch, waiting also ends after fifteen looks.
    pub wait_max: Option<Duration>,
    /// What the lock is for, for those who list it.
    pub purpose: String,
    /// Who asks, for those who list it; the process itself, if nobody is named.
    pub who: Option<Who>,
    /// The owner of a guard that this request is made under.
    pub(crate) owner: Option<String>,
    /// What the request is known by, if it may be asked more than once.
    pub(crate) name: Option<String>,
}

impl Request {
    /// The lease of a lock, when nothing else is said.
    pub const TTL_DEFAULT: Duration = Duration::from_secs(120);
    /// The shortest lease.
    pub const TTL_MIN: Duration = Duration::from_millis(100);
    /// The longest lease.
    pub const TTL_MAX: Duration = Duration::from_secs(24 * 60 * 60);
    /// How long a name may be.
    pub const NAME_BYTES_MAX: usize = 128;
    /// How long to wait, when nothing else is said.
    pub const WAIT_DEFAULT: Duration = Duration::from_secs(300);

    /// The same with another lease.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// The same, waiting at most so long.
    #[must_use]
    pub fn wait_max(mut self, wait_max: Duration) -> Self {
        self.wait_max = Some(wait_max);
        self
    }

    /// The same, waiting until the future is dropped.
    #[must_use]
    pub fn wait_forever(mut self) -> Self {
        self.wait_max = None;
        self
    }

    /// The same, saying what for.
    #[must_use]
    pub fn purpose(mut self, purpose: impl Into<String>) -> Self {
        self.purpose = purpose.into();
        self
    }

    /// The same, asked by the owner of a guard: what lies below the guard's paths is no conflict,
    /// and what lies above them is refused at once rather than waited for.
    #[must_use]
    pub fn under(mut self, guard: &Guard) -> Self {
        self.owner = Some(guard.owner().to_owned());
        self
    }

    /// The same in somebody else's name.
    #[must_use]
    pub fn who(mut self, who: Who) -> Self {
        self.who = Some(who);
        self
    }

    /// The same, known by a name: asked again by the same name, here or in another process, it is the
    /// same request. While it is held, whoever asks gets the same grant, with a renewed lease; asked for
    /// something else, it is refused. So a grant whose answer was lost is found again.
    ///
    /// Names must be such that nobody else chooses them. What was granted is given back by a release
    /// only, or ends with its lease: not when a guard or a future is dropped, since it may be somebody
    /// else's too.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        if let Some(name) = &self.name
            && !(1..=Self::NAME_BYTES_MAX).contains(&name.len())
        {
            let (most, given) = (Self::NAME_BYTES_MAX, name.len());
            let message = format!("the name of a request has 1 to {most} bytes, not {given}");
            return Err(Error::BadRequest(message));
        }
        if (Self::TTL_MIN..=Self::TTL_MAX).contains(&self.ttl) {
            return Ok(());
        }
        let (min, max, ttl) = (Self::TTL_MIN, Self::TTL_MAX, self.ttl);
        Err(Error::BadRequest(format!("a lease lasts from {min:?} to {max:?}, not {ttl:?}")))
    }
}

impl Default for Request {
    fn default() -> Self {
        Self {
            ttl: Self::TTL_DEFAULT,
            wait_max: Some(Self::WAIT_DEFAULT),
            purpose: String::new(),
            who: None,
            owner: None,
            name: None,
        }
    }
}

/// Who holds or wants a lock, for people: nothing is decided by it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Who {
    /// A person or a service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// What for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub purpose: String,
}

impl Who {
    const TEXT_CHARS_MAX: usize = 200;

    /// This process, of somebody on some machine.
    pub fn process(name: impl Into<String>, host: impl Into<String>) -> Self {
        let pid = Some(std::process::id());
        Self { name: name.into(), host: host.into(), pid, purpose: String::new() }
    }

    /// The same, for a purpose, with every text as long as fits a catalog.
    pub(crate) fn asking_for(&self, purpose: &str) -> Self {
        let purpose = if purpose.is_empty() { &self.purpose } else { purpose };
        let cut = |text: &str| text.chars().take(Self::TEXT_CHARS_MAX).collect();
        Self { name: cut(&self.name), host: cut(&self.host), pid: self.pid, purpose: cut(purpose) }
    }
}

/// `ada@host (pid 7), translate`; what is not known is left out.
impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.name.is_empty() { "somebody" } else { &self.name })?;
        if !self.host.is_empty() {
            write!(f, "@{}", self.host)?;
        }
        if let Some(pid) = self.pid {
            write!(f, " (pid {pid})")?;
        }
        if !self.purpose.is_empty() {
            write!(f, ", {}", self.purpose)?;
        }
        Ok(())
    }
}
