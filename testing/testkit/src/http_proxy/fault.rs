use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use fastrand::Rng;
use hyper::Method;

/// What happens to one request on its way to the server or back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NetworkFault {
    /// The connection is closed; the server does not hear of the request.
    CutBefore,
    /// The server answers the request; the connection is closed without passing on the answer.
    CutAfter,
    /// The server answers the request; the connection is closed after a part of the answer.
    CutHalfway,
    /// The request is forwarded after a pause, even if its client has given up by then.
    Delay(Duration),
    /// The client gets this status; the server does not hear of the request. With 429 and 503 comes
    /// `Retry-After: 0`.
    Answer(u16),
    /// The client gets this status with this JSON, a refusal in the database's own form; the server does
    /// not hear of the request.
    Refuse(u16, &'static str),
    /// The server answers the request; the client gets this status instead, as from a gateway that
    /// lost the answer.
    AnswerAfter(u16),
}

impl NetworkFault {
    /// The longest random delay: far shorter than a client waits for an answer.
    const RANDOM_DELAY_MS_MAX: u64 = 20;

    /// One of each kind, with the statuses that databases and gateways send. Delays are short.
    pub const EACH: [Self; 9] = [
        Self::CutBefore,
        Self::CutAfter,
        Self::CutHalfway,
        Self::Delay(Duration::from_millis(Self::RANDOM_DELAY_MS_MAX)),
        Self::Answer(429),
        Self::Answer(500),
        Self::Answer(503),
        Self::AnswerAfter(502),
        Self::AnswerAfter(504),
    ];

    fn random(rng: &mut Rng) -> Self {
        match Self::EACH[rng.usize(..Self::EACH.len())] {
            Self::Delay(_) => {
                Self::Delay(Duration::from_millis(rng.u64(..=Self::RANDOM_DELAY_MS_MAX)))
            }
            fault => fault,
        }
    }
}

type Matches = Box<dyn Fn(&Method, &str) -> bool + Send>;

/// Which requests meet which faults.
#[derive(Default)]
pub(super) struct Plan {
    /// Faults that each wait for one request.
    pub(super) once: VecDeque<(Matches, NetworkFault)>,
    /// The fault of every other request.
    pub(super) always: Option<NetworkFault>,
    random: Option<(Rng, f64)>,
}

impl Plan {
    pub(super) fn seeded(&mut self, seed: u64, rate: f64) {
        self.random = Some((Rng::with_seed(seed), rate));
    }

    /// The fault of the next request.
    pub(super) fn next(&mut self, method: &Method, path: &str) -> Option<NetworkFault> {
        let due = self.once.iter().position(|(matches, _)| matches(method, path));
        if let Some((_, fault)) = due.and_then(|due| self.once.remove(due)) {
            return Some(fault);
        }
        if self.always.is_some() {
            return self.always;
        }
        let (rng, rate) = self.random.as_mut()?;
        (rng.f64() < *rate).then(|| NetworkFault::random(rng))
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let once: Vec<_> = self.once.iter().map(|(_, fault)| fault).collect();
        f.debug_struct("Plan").field("once", &once).field("always", &self.always).finish()
    }
}
