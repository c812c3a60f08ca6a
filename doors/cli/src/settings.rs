//! The settings of `keyward serve`: the table `server` of a config file, and flags and variables, which come
//! before it.

mod agents;
mod values;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use keyward::StoreUrl;
use keyward_server::{Config, Issuer, KeySource, Limits, McpOptions, Quota, Rates, Tls};
use serde::{Deserialize, Serialize};

use self::agents::AgentSettings;
pub use self::values::{AlgorithmName, Count, Pace, Span};
use crate::failure::{Failure, Result};

/// The table `server` of a config file. What is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub listen: Option<SocketAddr>,
    pub control: Option<String>,
    pub plaintext: Option<bool>,
    /// The file with the API key to take as the first one.
    pub first_key_file: Option<PathBuf>,
    /// Whether every request needs the start token until there is an API key.
    pub start_token: Option<bool>,
    /// The file to write the start token to, instead of printing it; every request needs it then.
    pub start_token_file: Option<PathBuf>,
    pub log: Option<LogForm>,
    pub log_level: Option<String>,
    /// Where traces are told: the URL of a collector.
    pub otlp: Option<String>,
    /// The origins of pages that may call the server from a browser.
    pub cors_origins: Option<Vec<String>>,
    #[serde(default)]
    pub tls: TlsSettings,
    #[serde(default)]
    pub issuer: IssuerSettings,
    #[serde(default)]
    pub rates: RateSettings,
    #[serde(default)]
    pub quota: QuotaSettings,
    #[serde(default)]
    pub audit: AuditSettings,
    #[serde(default)]
    pub limits: LimitSettings,
    #[serde(default)]
    pub mcp: McpSettings,
    #[serde(default)]
    pub agents: AgentSettings,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogForm {
    Text,
    Json,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSettings {
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerSettings {
    pub name: Option<String>,
    pub audience: Option<String>,
    /// A file or a URL; without one, the issuer is asked.
    pub keys: Option<String>,
    pub algorithms: Option<Vec<AlgorithmName>>,
    pub user_claim: Option<String>,
    pub roles_claim: Option<String>,
    pub scopes_claim: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateSettings {
    pub tenant: Option<Pace>,
    pub stranger: Option<Pace>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaSettings {
    pub writes_per_day_max: Option<u64>,
    pub bytes_per_day_max: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditSettings {
    /// The URL of its store; the control store, if it is left out.
    pub store: Option<String>,
    pub kept: Option<Span>,
    pub bytes_max: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSettings {
    pub body_bytes_max: Option<Count>,
    pub header_time_max: Option<Span>,
    pub body_time_max: Option<Span>,
    pub answer_time_max: Option<Span>,
    pub write_time_max: Option<Span>,
    pub connections_max: Option<Count>,
    pub connections_per_address_max: Option<Count>,
    pub requests_max: Option<Count>,
    pub bodies_bytes_max: Option<Count>,
    pub responses_bytes_max: Option<Count>,
    pub watches_max: Option<Count>,
    pub query_reads_max: Option<Count>,
    pub reads_max: Option<Count>,
    pub read_wait_max: Option<Span>,
    pub watch_bytes_max: Option<Count>,
    pub watch_stall_time_max: Option<Span>,
    pub recheck_interval: Option<Span>,
    pub drain_time_max: Option<Span>,
}

/// How agents reach the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpSettings {
    pub public_url: Option<String>,
    pub hosts: Option<Vec<String>>,
    pub origins: Option<Vec<String>>,
    pub sessions_max: Option<Count>,
    pub session_time_max: Option<Span>,
    /// What the protocol's conformance suite calls: only a hidden flag sets it.
    #[serde(skip)]
    pub fixtures: bool,
}

impl McpSettings {
    fn options(self) -> McpOptions {
        let plain = McpOptions::default();
        McpOptions {
            public_url: self.public_url,
            hosts: self.hosts.unwrap_or_default(),
            origins: self.origins.unwrap_or_default(),
            sessions_max: self.sessions_max.map_or(plain.sessions_max, |count| count.0),
            session_time_max: self.session_time_max.map_or(plain.session_time_max, |span| span.0),
            fixtures: self.fixtures,
        }
    }

    fn of(options: &McpOptions) -> Self {
        Self {
            public_url: options.public_url.clone(),
            hosts: Some(options.hosts.clone()),
            origins: Some(options.origins.clone()),
            sessions_max: Some(Count(options.sessions_max)),
            session_time_max: Some(Span(options.session_time_max)),
            fixtures: options.fixtures,
        }
    }
}

impl Settings {
    /// The same with files that are named relative to the config file's folder.
    pub fn beside(mut self, folder: &Path) -> Result<Self> {
        let files = [&mut self.first_key_file, &mut self.start_token_file];
        let files = files.into_iter().chain([&mut self.tls.cert, &mut self.tls.key]);
        for file in files.flatten() {
            *file = folder.join(&*file);
        }
        if let Some(keys) = &mut self.issuer.keys
            && let KeySource::File(file) = KeySource::named(keys)
        {
            *keys = folder.join(file).to_string_lossy().into_owned();
        }
        for url in [&mut self.control, &mut self.audit.store].into_iter().flatten() {
            *url = keyward::url_beside(folder, url)?;
        }
        Ok(self)
    }

    /// What a server is told.
    pub fn config(self) -> Result<Config> {
        let plain = Config::default();
        let tls = match (self.tls.cert, self.tls.key) {
            (Some(cert), Some(key)) => Some(Tls { cert, key }),
            (None, None) => None,
            _ => {
                return Err(Failure::invalid("TLS needs both a certificate and its key")
                    .hint("Give tls.cert and tls.key, or --tls-cert and --tls-key."));
            }
        };
        let plaintext = self.plaintext.unwrap_or(false);
        if plaintext && tls.is_some() {
            return Err(Failure::invalid("connections are to be in plain text, and with TLS")
                .hint("Leave out one of the two."));
        }
        let quota = self.quota;
        let quota = match (quota.writes_per_day_max, quota.bytes_per_day_max) {
            (None, None) => None,
            (writes, bytes) => Some(Quota {
                writes_per_day_max: writes.unwrap_or(u64::MAX),
                bytes_per_day_max: bytes.unwrap_or(u64::MAX),
            }),
        };
        let RateSettings { tenant, stranger } = self.rates;
        Ok(Config {
            listen: self.listen.unwrap_or(plain.listen),
            limits: self.limits.limits(),
            control: self.control,
            audit: self.audit.store,
            issuer: self.issuer.issuer()?,
            first_key: plain.first_key,
            start_token: self.start_token.unwrap_or(false) || self.start_token_file.is_some(),
            tls,
            tls_reload_interval: plain.tls_reload_interval,
            plaintext,
            rates: Rates {
                tenant: tenant.map_or(plain.rates.tenant, |pace| pace.0),
                stranger: stranger.map_or(plain.rates.stranger, |pace| pace.0),
            },
            quota,
            audit_kept: self.audit.kept.map_or(plain.audit_kept, |kept| kept.0),
            audit_bytes_max: self.audit.bytes_max.unwrap_or(plain.audit_bytes_max),
            queues: plain.queues,
            registries: plain.registries,
            agreements: plain.agreements,
            agents: self.agents.options(),
            cors_origins: self.cors_origins.unwrap_or_default(),
            mcp: self.mcp.options(),
            clock: plain.clock,
        })
    }

    /// What is in force with a configuration: everything that has a value, without passwords. Where the
    /// first key and the start token are, it does not know.
    pub fn of(config: &Config, log: LogForm, log_level: String, otlp: Option<String>) -> Self {
        let Config {
            listen,
            limits,
            control,
            audit,
            issuer,
            start_token,
            tls,
            plaintext,
            rates,
            quota,
            audit_kept,
            audit_bytes_max,
            cors_origins,
            mcp,
            agents,
            ..
        } = config;
        let without_password = |url: &String| match url.parse::<StoreUrl>() {
            Ok(url) => url.to_string(),
            Err(_) => "…".to_owned(),
        };
        let tls = tls.as_ref();
        Self {
            listen: Some(*listen),
            control: control.as_ref().map(without_password),
            plaintext: Some(*plaintext),
            first_key_file: None,
            start_token: Some(*start_token),
            start_token_file: None,
            log: Some(log),
            log_level: Some(log_level),
            otlp,
            cors_origins: Some(cors_origins.clone()),
            tls: TlsSettings {
                cert: tls.map(|tls| tls.cert.clone()),
                key: tls.map(|tls| tls.key.clone()),
            },
            issuer: issuer.as_ref().map(IssuerSettings::of).unwrap_or_default(),
            rates: RateSettings {
                tenant: Some(Pace(rates.tenant)),
                stranger: Some(Pace(rates.stranger)),
            },
            quota: QuotaSettings {
                writes_per_day_max: quota.map(|quota| quota.writes_per_day_max).and_then(bounded),
                bytes_per_day_max: quota.map(|quota| quota.bytes_per_day_max).and_then(bounded),
            },
            audit: AuditSettings {
                store: audit.as_ref().map(without_password),
                kept: Some(Span(*audit_kept)),
                bytes_max: Some(*audit_bytes_max),
            },
            limits: LimitSettings::of(limits),
            mcp: McpSettings::of(mcp),
            agents: AgentSettings::of(agents),
        }
    }
}

/// A bound, if it is one.
fn bounded(number: u64) -> Option<u64> {
    (number < u64::MAX).then_some(number)
}

impl IssuerSettings {
    fn issuer(self) -> Result<Option<Issuer>> {
        let (name, audience) = match (self.name, self.audience) {
            (Some(name), Some(audience)) => (name, audience),
            (None, None) if self.keys.is_none() => return Ok(None),
            _ => {
                return Err(Failure::invalid("tokens need an issuer and an audience")
                    .hint("Give issuer.name and issuer.audience, or --issuer and --audience."));
            }
        };
        let keys = self.keys.as_deref().map_or(KeySource::Discovered, KeySource::named);
        let usual = Issuer::new(name, audience, keys);
        let algorithms = self.algorithms.map(|names| names.iter().map(|name| name.0).collect());
        Ok(Some(Issuer {
            algorithms: algorithms.unwrap_or(usual.algorithms),
            user_claim: self.user_claim.unwrap_or(usual.user_claim),
            roles_claim: self.roles_claim.unwrap_or(usual.roles_claim),
            scopes_claim: self.scopes_claim.unwrap_or(usual.scopes_claim),
            ..usual
        }))
    }

    fn of(issuer: &Issuer) -> Self {
        let keys = match &issuer.keys {
            KeySource::Discovered => None,
            keys => Some(keys.to_string()),
        };
        Self {
            name: Some(issuer.issuer.clone()),
            audience: Some(issuer.audience.clone()),
            keys,
            algorithms: Some(issuer.algorithms.iter().copied().map(AlgorithmName).collect()),
            user_claim: Some(issuer.user_claim.clone()),
            roles_claim: Some(issuer.roles_claim.clone()),
            scopes_claim: Some(issuer.scopes_claim.clone()),
        }
    }
}

impl LimitSettings {
    fn limits(&self) -> Limits {
        let usual = Limits::default();
        let count = |given: Option<Count>, usual| given.map_or(usual, |count| count.0);
        let span = |given: Option<Span>, usual| given.map_or(usual, |span| span.0);
        Limits {
            body_bytes_max: count(self.body_bytes_max, usual.body_bytes_max),
            header_time_max: span(self.header_time_max, usual.header_time_max),
            body_time_max: span(self.body_time_max, usual.body_time_max),
            answer_time_max: span(self.answer_time_max, usual.answer_time_max),
            write_time_max: span(self.write_time_max, usual.write_time_max),
            connections_max: count(self.connections_max, usual.connections_max),
            connections_per_address_max: self.connections_per_address_max.map(|count| count.0),
            requests_max: count(self.requests_max, usual.requests_max),
            bodies_bytes_max: count(self.bodies_bytes_max, usual.bodies_bytes_max),
            responses_bytes_max: count(self.responses_bytes_max, usual.responses_bytes_max),
            watches_max: count(self.watches_max, usual.watches_max),
            query_reads_max: count(self.query_reads_max, usual.query_reads_max),
            reads_max: count(self.reads_max, usual.reads_max),
            read_wait_max: span(self.read_wait_max, usual.read_wait_max),
            watch_bytes_max: count(self.watch_bytes_max, usual.watch_bytes_max),
            watch_stall_time_max: span(self.watch_stall_time_max, usual.watch_stall_time_max),
            recheck_interval: span(self.recheck_interval, usual.recheck_interval),
            drain_time_max: span(self.drain_time_max, usual.drain_time_max),
        }
    }

    fn of(limits: &Limits) -> Self {
        Self {
            body_bytes_max: Some(Count(limits.body_bytes_max)),
            header_time_max: Some(Span(limits.header_time_max)),
            body_time_max: Some(Span(limits.body_time_max)),
            answer_time_max: Some(Span(limits.answer_time_max)),
            write_time_max: Some(Span(limits.write_time_max)),
            connections_max: Some(Count(limits.connections_max)),
            connections_per_address_max: Some(Count(limits.connections_of_one_address())),
            requests_max: Some(Count(limits.requests_max)),
            bodies_bytes_max: Some(Count(limits.bodies_bytes_max)),
            responses_bytes_max: Some(Count(limits.responses_bytes_max)),
            watches_max: Some(Count(limits.watches_max)),
            query_reads_max: Some(Count(limits.query_reads_max)),
            reads_max: Some(Count(limits.reads_max)),
            read_wait_max: Some(Span(limits.read_wait_max)),
            watch_bytes_max: Some(Count(limits.watch_bytes_max)),
            watch_stall_time_max: Some(Span(limits.watch_stall_time_max)),
            recheck_interval: Some(Span(limits.recheck_interval)),
            drain_time_max: Some(Span(limits.drain_time_max)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_force_can_be_read_back() {
        let config = Config {
            issuer: Some(Issuer::new("https://id.example", "keyward", KeySource::Discovered)),
            tls: Some(Tls { cert: "a.pem".into(), key: "b.pem".into() }),
            cors_origins: vec!["https://app.example".to_owned()],
            quota: Some(Quota { writes_per_day_max: 5, bytes_per_day_max: u64::MAX }),
            ..Config::default()
        };
        let settings = Settings::of(&config, LogForm::Json, "info".to_owned(), None);
        let text = toml::to_string(&settings).unwrap();
        let read: Settings = toml::from_str(&text).unwrap();
        assert_eq!(read, settings, "{text}");
        let again = read.config().unwrap();
        assert_eq!(Settings::of(&again, LogForm::Json, "info".to_owned(), None), settings);
    }
}
