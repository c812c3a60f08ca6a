//! Whether a server keeps what its engine promises, in words.

use keyward::migrate::{Probed, Promise};
use keyward::{Sharing, Store, Tier};
use serde::Serialize;

use crate::failure::Result;
use crate::output::Output;

/// What came of a probe.
#[derive(Debug, Serialize)]
pub struct Verdict {
    /// `sound`, `broken`, `unclear` or `unsupported`.
    probe: &'static str,
    /// The promise that was broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<String>,
    verdict: String,
    /// What cannot be trusted on this server.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    voids: &'static [&'static str],
    /// What was tried.
    probed: Vec<String>,
    /// What was not, and why.
    not_probed: Vec<String>,
}

impl Verdict {
    /// Probes a store.
    pub async fn of(store: &Store, has_layout: bool) -> Result<Self> {
        Ok(Self::new(keyward::probe(store, has_layout).await?, store, has_layout))
    }

    fn new(outcome: Probed, store: &Store, has_layout: bool) -> Self {
        let capabilities = store.capabilities();
        let (engine, tier) = (capabilities.engine, capabilities.tier());
        let place = match capabilities.sharing {
            Sharing::Network => "server",
            Sharing::Process | Sharing::Machine => "store",
        };
        let (probe, verdict) = match outcome {
            Probed::Sound { .. } => {
                ("sound", format!("this {place} keeps what the {engine} engine promises"))
            }
            Probed::Broken(promise) => (
                "broken",
                format!("this {place} does not keep what the {engine} engine promises: {promise}"),
            ),
            Probed::Unclear => (
                "unclear",
                "none: it is not known of some writers whether they won; run the probe again"
                    .to_owned(),
            ),
            Probed::Unsupported => (
                "unsupported",
                format!(
                    "none: the {engine} engine promises no compare-and-swap, so locks, queues and unique indexes \
                     are refused; a coordinator provides them"
                ),
            ),
        };
        let (broken, voids) = match outcome {
            Probed::Broken(promise) => (Some(promise.to_string()), promise.voids()),
            _ => (None, [].as_slice()),
        };
        let (mut probed, mut not_probed) = (Vec::new(), Vec::new());
        if outcome == Probed::Unsupported {
            not_probed.push("compare-and-swap: the last writer wins".to_owned());
        } else {
            probed.push(match outcome {
                Probed::Sound { writers, rounds, .. } => {
                    format!("compare-and-swap: {writers} writers of one version, {rounds} rounds, 1 winner each")
                }
                _ => "compare-and-swap".to_owned(),
            });
            probed
                .push("versions and absence of a key that is deleted and created again".to_owned());
            match tier {
                Tier::Atomic => probed.push("commits of two keys".to_owned()),
                Tier::Recoverable | Tier::Advisory => {
                    not_probed.push("commits of several keys: the engine has none".to_owned());
                }
            }
            let is_behind = matches!(
                outcome,
                Probed::Sound { behind: true, .. } | Probed::Broken(Promise::PassedOn)
            );
            if is_behind {
                probed.push("a value pushed to the value store, read there and deleted".to_owned());
            }
            let lag = capabilities.consistency.lag();
            match has_layout {
                true => not_probed.push("lists: the database may lack their index".to_owned()),
                false if lag.is_zero() => probed.push("scans in pages of one".to_owned()),
                false => not_probed
                    .push(format!("scans: they may be {} s late", lag.as_secs_f64().ceil())),
            }
        }
        Self { probe, broken, verdict, voids, probed, not_probed }
    }

    /// Whether a promise was broken.
    pub fn is_negative(&self) -> bool {
        self.broken.is_some()
    }

    /// Ends the line about a store, and adds those about the probe.
    pub fn tell(&self, output: &mut Output) -> Result {
        write!(output, ", the engine is {}", self.probe)?;
        match &self.broken {
            Some(broken) => writeln!(output, ": {broken}")?,
            None => writeln!(output)?,
        }
        for (what, all) in [("probed", &self.probed), ("not probed", &self.not_probed)] {
            for one in all {
                writeln!(output, "  {what}: {one}")?;
            }
        }
        writeln!(output, "verdict: {}", self.verdict)?;
        match self.voids {
            [] => Ok(()),
            voids => writeln!(output, "void on this server: {}", voids.join(", ")),
        }
    }
}
