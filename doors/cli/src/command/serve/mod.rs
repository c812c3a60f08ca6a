mod first_key;
mod in_force;
mod started;

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use keyward::{Code, Data, ErrorKind};
use keyward_server::{Config, RegistryConfig, Server, StartError, TRACED, Traces};
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use self::in_force::{InForce, places};
use crate::agreements::kept;
use crate::args::Target;
use crate::config::{Agreements, Registries};
use crate::demo;
use crate::failure::{Failure, Result};
use crate::output::{Output, note};
use crate::registries::Cache;
use crate::settings::{Count, LogForm, Pace, Settings, Span};
use crate::signals::Signals;

/// Serve stores over HTTP
///
/// The stores and spaces of the schema are served; without a schema it is one store, called main. Where
/// they are is found as by every command (see keyward --help). The first Ctrl-C (or SIGTERM) stops gracefully:
/// no new connections, requests under way are finished. The second one ends it at once.
///
/// As long as there is no API key, the server listens on loopback addresses only, and every account on
/// this machine may do everything; with --start-token, whoever has the token that it prints. Make the
/// first key with keyward key create, with --first-key-file, or over HTTP with the start token; from then
/// on everybody needs a key. On another address the server needs a key to start, and --tls-cert with
/// --tls-key, or --plaintext.
///
/// Registries that the config file declares are synced when their schedules say, and their consumers are
/// told of changes. Workspaces of agreements that it declares are kept: their tasks are worked off here.
///
/// Flags come before variables, and those before the table server of the config file (--config FILE,
/// ./keyward.toml, ~/.config/keyward/config.toml). --check shows what is in force.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward serve
  keyward serve --demo
  keyward serve --listen 127.0.0.1:8080 -s embedded:./data
  keyward serve --schema keyward.schema.toml --log json
  keyward serve --listen 0.0.0.0:7480 --tls-cert cert.pem --tls-key key.pem
  keyward serve --listen 10.0.0.5:7480 --plaintext
  keyward serve --start-token-file /run/user/1000/keyward-token
  keyward serve --config /etc/keyward/keyward.toml --check"#)]
pub struct Arguments {
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:7480]
    #[arg(long, value_name = "ADDRESS", env = "KEYWARD_LISTEN")]
    listen: Option<SocketAddr>,
    /// Serve a small set of data to look at, in embedded:./keyward-demo unless -s says otherwise
    #[arg(long, conflicts_with = "schema")]
    demo: bool,
    /// Do not serve: look whether the configuration is sound, and show what is in force
    #[arg(long)]
    check: bool,
    /// The control store, where API keys are kept [default: the first store]
    #[arg(long, value_name = "URL", env = "KEYWARD_CONTROL", hide_env_values = true)]
    control: Option<String>,
    /// Whose tokens (JSON Web Tokens) are taken besides API keys: what their claim iss must be
    #[arg(long, value_name = "NAME", env = "KEYWARD_ISSUER")]
    issuer: Option<String>,
    /// For whom tokens must be made: what their claim aud must be
    #[arg(long, value_name = "NAME", env = "KEYWARD_AUDIENCE")]
    audience: Option<String>,
    /// The public keys of the issuer, a JSON Web Key Set [default: what the issuer publishes]
    #[arg(long, value_name = "FILE|URL", env = "KEYWARD_ISSUER_KEYS")]
    issuer_keys: Option<String>,
    /// The file with the certificate to show, and those above it, as PEM
    #[arg(long, value_name = "FILE", env = "KEYWARD_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// The file with the private key of the certificate, as PEM
    #[arg(long, value_name = "FILE", env = "KEYWARD_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Serve other machines without TLS: behind a proxy that terminates it
    #[arg(long, conflicts_with = "tls_cert")]
    plaintext: bool,
    /// File with the API key to take as the first one, with admin:*, if there is none yet; without it,
    /// the key is in KEYWARD_FIRST_KEY
    #[arg(long, value_name = "FILE", env = "KEYWARD_FIRST_KEY_FILE")]
    first_key_file: Option<PathBuf>,
    /// Ask every request for the start token until there is an API key
    #[arg(long)]
    start_token: bool,
    /// File to write the start token to, readable by you alone, instead of printing it; implies
    /// --start-token
    #[arg(long, value_name = "FILE", env = "KEYWARD_START_TOKEN_FILE")]
    start_token_file: Option<PathBuf>,
    /// How often a tenant may ask: so often a second, so often at once; or none [default: 1000/2000]
    #[arg(long, value_name = "N/BURST", env = "KEYWARD_TENANT_RATE")]
    tenant_rate: Option<Pace>,
    /// How often an address may ask without a valid credential [default: 10/100]
    #[arg(long, value_name = "N/BURST", env = "KEYWARD_STRANGER_RATE")]
    stranger_rate: Option<Pace>,
    /// Connections that one address may have; behind a proxy, all of them [default: half of all]
    #[arg(long, value_name = "N", env = "KEYWARD_CONNECTIONS_PER_ADDRESS")]
    connections_per_address: Option<Count>,
    /// How many entries or records a tenant may write in a day [default: without a bound]
    #[arg(long, value_name = "N", env = "KEYWARD_QUOTA_WRITES")]
    quota_writes: Option<u64>,
    /// How many bytes a tenant may send in requests that write, in a day [default: without a bound]
    #[arg(long, value_name = "N", env = "KEYWARD_QUOTA_BYTES")]
    quota_bytes: Option<u64>,
    /// How long the audit log is kept [default: 90d]
    #[arg(long, value_name = "TIME", env = "KEYWARD_AUDIT_KEPT")]
    audit_kept: Option<Span>,
    /// Maximum size of the audit log in bytes; the oldest lines go first [default: 268435456]
    #[arg(long, value_name = "N", env = "KEYWARD_AUDIT_BYTES_MAX")]
    audit_bytes_max: Option<u64>,
    /// Store of the audit log [default: the control store]
    #[arg(long, value_name = "URL", env = "KEYWARD_AUDIT_STORE", hide_env_values = true)]
    audit_store: Option<String>,
    /// Origin of pages that may call the server from a browser (CORS), as in https://app.example; may
    /// be repeated [default: none]
    #[arg(long, value_name = "ORIGIN", env = "KEYWARD_CORS_ORIGINS", value_delimiter = ',')]
    cors_origin: Vec<String>,
    /// Where clients find the server, if that is not where it listens, as in https://data.example.com
    #[arg(long, value_name = "URL", env = "KEYWARD_PUBLIC_URL")]
    public_url: Option<String>,
    /// A name that agents may call the server by, besides this machine's own; may be repeated
    #[arg(long, value_name = "NAME")]
    mcp_host: Vec<String>,
    /// The origin of a page that may call tools from a browser; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    mcp_origin: Vec<String>,
    /// Have what the conformance suite of MCP calls
    #[arg(long, hide = true)]
    mcp_conformance: bool,
    #[command(flatten)]
    cache: Cache,
    /// How to write the log, to standard error [default: text]
    #[arg(long, value_enum, env = "KEYWARD_LOG")]
    log: Option<LogForm>,
    /// What to log: error, warn, info or debug [default: warn]
    #[arg(long, value_name = "LEVEL", env = "KEYWARD_LOG_LEVEL")]
    log_level: Option<String>,
    /// Tell a collector of OpenTelemetry what was asked for, and how long it took
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp: Option<String>,
}

impl Arguments {
    /// What the config file says, with what was said for this command.
    fn over(&self, mut settings: Settings) -> Settings {
        fn set<T: Clone>(place: &mut Option<T>, given: &Option<T>) {
            if given.is_some() {
                place.clone_from(given);
            }
        }
        set(&mut settings.listen, &self.listen);
        set(&mut settings.control, &self.control);
        set(&mut settings.issuer.name, &self.issuer);
        set(&mut settings.issuer.audience, &self.audience);
        set(&mut settings.issuer.keys, &self.issuer_keys);
        set(&mut settings.tls.cert, &self.tls_cert);
        set(&mut settings.tls.key, &self.tls_key);
        set(&mut settings.plaintext, &self.plaintext.then_some(true));
        set(&mut settings.first_key_file, &self.first_key_file);
        set(&mut settings.start_token, &self.start_token.then_some(true));
        set(&mut settings.start_token_file, &self.start_token_file);
        set(&mut settings.rates.tenant, &self.tenant_rate);
        set(&mut settings.rates.stranger, &self.stranger_rate);
        let per_address = &mut settings.limits.connections_per_address_max;
        set(per_address, &self.connections_per_address);
        set(&mut settings.quota.writes_per_day_max, &self.quota_writes);
        set(&mut settings.quota.bytes_per_day_max, &self.quota_bytes);
        set(&mut settings.audit.kept, &self.audit_kept);
        set(&mut settings.audit.store, &self.audit_store);
        set(&mut settings.audit.bytes_max, &self.audit_bytes_max);
        set(&mut settings.mcp.public_url, &self.public_url);
        let some = |given: &Vec<String>| (!given.is_empty()).then(|| given.clone());
        // An empty variable is none.
        let named = self.cors_origin.iter().filter(|origin| !origin.is_empty());
        set(&mut settings.cors_origins, &some(&named.cloned().collect()));
        set(&mut settings.mcp.hosts, &some(&self.mcp_host));
        set(&mut settings.mcp.origins, &some(&self.mcp_origin));
        settings.mcp.fixtures = self.mcp_conformance;
        set(&mut settings.log, &self.log);
        set(&mut settings.log_level, &self.log_level);
        set(&mut settings.otlp, &self.otlp);
        settings
    }
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    target.refuse_server(
        "serving",
        "A server is started where its stores are: leave out --server, and unset KEYWARD_SERVER.",
    )?;
    let settings = arguments.over(target.settings()?);
    let form = settings.log.unwrap_or(LogForm::Text);
    let level = settings.log_level.clone().unwrap_or_else(|| "warn".to_owned());
    let otlp = settings.otlp.clone().filter(|url| !url.is_empty());
    let registries = match arguments.demo {
        true => Registries::default(),
        false => target.registries()?,
    };
    let agreements = match arguments.demo {
        true => Agreements::default(),
        false => target.agreements()?,
    };
    let (first_key_file, start_token_file) =
        (settings.first_key_file.clone(), settings.start_token_file.clone());
    let config = Config {
        first_key: first_key::read(first_key_file.as_deref())?,
        registries: registered(&registries, &arguments.cache)?,
        agreements: match arguments.demo {
            true => demo::workspaces()?,
            false => kept(&agreements)?,
        },
        ..settings.config()?
    };
    let filter = filter(&level)?;
    let traces = otlp.as_deref().map(Traces::open).transpose().map_err(|reason| {
        Failure::invalid(format!("traces cannot be told: {reason}"))
            .hint("Give the URL of a collector, such as http://localhost:4318.")
    })?;
    let data = served(&arguments, target).await?;
    if arguments.check {
        config.check().map_err(not_started)?;
        for registry in &config.registries {
            data.registry_store(registry.settings.store.as_deref()).map_err(|error| {
                Failure::from(error).at(format_args!("registries.{}", registry.name))
            })?;
        }
        for workspace in &config.agreements {
            data.agreements_store(workspace.settings.store.as_deref()).map_err(|error| {
                Failure::from(error).at(format_args!("agreements.{}", workspace.name))
            })?;
        }
        let shown = InForce {
            stores: places(&data),
            server: Settings {
                first_key_file,
                start_token_file,
                ..Settings::of(&config, form, level, otlp)
            },
            registries: registries.declared,
            agreements: agreements.declared,
        };
        return shown.write(output);
    }
    log(form, filter, traces.as_ref());
    allow_connections();
    if arguments.demo {
        demo::fill(&data, &config.agreements).await?;
    }
    let server = Server::bind(&config, &data).await.map_err(not_started)?;
    let mut signals = Signals::listen()?;
    started::tell(&server, &config, start_token_file.as_deref(), &data, output)?;
    let stop = async {
        signals.next().await;
        note("stopping: requests under way are finished; Ctrl-C again ends at once");
        tokio::spawn(async move {
            let came = signals.next().await;
            std::process::exit(came.exit_code().into());
        });
    };
    server.run(stop).await;
    if let Some(traces) = traces {
        traces.close().await;
    }
    Ok(())
}

/// The registries that a server keeps.
pub(super) fn registered(registries: &Registries, cache: &Cache) -> Result<Vec<RegistryConfig>> {
    let declared = registries.declared.iter();
    declared
        .map(|(name, settings)| {
            let (name, settings) = (name.clone(), settings.clone());
            let cache = cache.for_repository(registries, &settings.repository)?;
            Ok(RegistryConfig { name, settings, cache })
        })
        .collect()
}

/// Every connection is an open file, and systems allow a process a thousand of them unless it asks for
/// more.
fn allow_connections() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
}

/// What to serve: what the schema declares, else one store.
async fn served(arguments: &Arguments, target: &Target) -> Result<Data> {
    if arguments.demo {
        let asked_for = target.store_is_asked_for().then(|| target.url()).transpose()?;
        return demo::data(asked_for.as_deref().unwrap_or(demo::STORE_DEFAULT));
    }
    target.data_or_store().await
}

pub(super) fn filter(level: &str) -> Result<EnvFilter> {
    // The protocol's library would log what is stored.
    EnvFilter::try_new(format!("{level},rmcp=error")).map_err(|error| {
        Failure::invalid(format!("{level:?} is no log level: {error}"))
            .hint("Write error, warn, info or debug.")
    })
}

pub(super) fn log(form: LogForm, filter: EnvFilter, traces: Option<&Traces>) {
    let log = fmt::layer().with_writer(io::stderr);
    let log = match form {
        LogForm::Text => log.with_ansi(io::stderr().is_terminal()).boxed(),
        LogForm::Json => log.json().boxed(),
    };
    // Spans are for traces: what they say stands in the lines of the log already.
    let spans = filter_fn(|about| about.target() != TRACED);
    tracing_subscriber::registry()
        .with(log.with_filter(filter.and(spans)))
        .with(traces.map(Traces::layer))
        .init();
}

pub(super) fn not_started(error: StartError) -> Failure {
    if let StartError::Stores(problem) = &error
        && problem.code() == Code::Corrupt
    {
        return keyward::Error::new(ErrorKind::Corrupt, error.to_string()).into();
    }
    let hint = match &error {
        StartError::Listen { .. } => {
            "Choose another address: --listen 127.0.0.1:0 takes a free port."
        }
        StartError::Unguarded(_) => {
            "Make a key first (keyward key create NAME --scope 'admin:*'), give one with \
             --first-key-file, or listen on 127.0.0.1."
        }
        StartError::ReadAlong(_) => {
            "Give --tls-cert and --tls-key, or --plaintext behind a proxy that terminates TLS."
        }
        StartError::IssuerKeys { .. } => {
            "Give a JSON Web Key Set with public keys, each with its kid, or where it is published."
        }
        StartError::Registry { .. } => "Correct what the config file says of the registry.",
        StartError::Agreements { .. } => "Correct what the config file says of the workspace.",
        StartError::Origin { .. } => "Correct --cors-origin, or cors_origins in the config file.",
        StartError::Tls { hint, .. } => hint,
        _ => "Look at the store's URL and place.",
    };
    Failure::new(Code::NotStarted, error.to_string()).hint(hint)
}
