use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use keyward::Data;
use keyward_server::{
    Config, Issuer, LISTEN_DEFAULT, STORE_DEFAULT, Server, StartError, Tls, without_schema,
};
use serde::Serialize;
use tracing_subscriber::EnvFilter;

use crate::args::Target;
use crate::demo;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::{Output, note};
use crate::signals::Signals;

/// Serve stores over HTTP
///
/// Without a schema there is one store, called main: -s names it, else it is embedded:./keyward-data.
/// With a schema, its stores and spaces are served. The first Ctrl-C (or SIGTERM) stops gracefully:
/// no new connections, requests under way are finished. The second one ends it at once.
///
/// As long as there is no API key, the server works for one local user, and only on a loopback
/// address. keyward key create makes a key, and from then on everybody needs one. On another address
/// it needs a key to begin with, and --tls-cert with --tls-key, or --plaintext.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward serve
  keyward serve --demo
  keyward serve --listen 127.0.0.1:8080 -s embedded:./data
  keyward serve --schema keyward.schema.toml --log json
  keyward serve --listen 0.0.0.0:7480 --tls-cert cert.pem --tls-key key.pem
  keyward serve --listen 10.0.0.5:7480 --plaintext"#)]
pub struct Arguments {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", env = "KEYWARD_LISTEN", default_value_t = LISTEN_DEFAULT)]
    listen: SocketAddr,
    /// Serve a small set of data to look at, in embedded:./keyward-demo unless -s says otherwise
    #[arg(long, conflicts_with = "schema")]
    demo: bool,
    /// The control store, where API keys and the audit log are kept [default: the first store]
    #[arg(long, value_name = "URL", env = "KEYWARD_CONTROL", hide_env_values = true)]
    control: Option<String>,
    /// Whose tokens (JSON Web Tokens) are taken besides API keys: what their claim iss must be
    #[arg(long, value_name = "NAME", env = "KEYWARD_ISSUER", requires = "audience")]
    issuer: Option<String>,
    /// For whom tokens must be made: what their claim aud must be
    #[arg(long, value_name = "NAME", env = "KEYWARD_AUDIENCE", requires = "issuer_keys")]
    audience: Option<String>,
    /// The file with the public keys of the issuer: a JSON Web Key Set
    #[arg(long, value_name = "FILE", env = "KEYWARD_ISSUER_KEYS", requires = "issuer")]
    issuer_keys: Option<PathBuf>,
    /// The file with the certificate to show, and those above it, as PEM
    #[arg(long, value_name = "FILE", env = "KEYWARD_TLS_CERT", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The file with the private key of the certificate, as PEM
    #[arg(long, value_name = "FILE", env = "KEYWARD_TLS_KEY", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serve other machines without TLS: behind a proxy that terminates it
    #[arg(long, conflicts_with = "tls_cert")]
    plaintext: bool,
    /// How to write the log, to standard error
    #[arg(long, value_enum, env = "KEYWARD_LOG", default_value_t = LogForm::Text)]
    log: LogForm,
    /// What to log: error, warn, info or debug
    #[arg(long, value_name = "LEVEL", env = "KEYWARD_LOG_LEVEL", default_value = "warn")]
    log_level: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogForm {
    Text,
    Json,
}

#[derive(Serialize)]
struct Started {
    address: SocketAddr,
    url: String,
    /// Whether no credential is asked for.
    local: bool,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    target.refuse_server(
        "serving",
        "A server is started where its stores are: leave out --server, and unset KEYWARD_SERVER.",
    )?;
    log(&arguments)?;
    allow_connections();
    let data = served(&arguments, target).await?;
    if arguments.demo {
        demo::fill(&data).await?;
    }
    let tls = arguments.tls_cert.zip(arguments.tls_key).map(|(cert, key)| Tls { cert, key });
    let issuer = arguments.issuer.zip(arguments.audience).zip(arguments.issuer_keys);
    let issuer = issuer.map(|((issuer, audience), keys)| Issuer::new(issuer, audience, keys));
    let config = Config {
        listen: arguments.listen,
        control: arguments.control,
        issuer,
        tls,
        plaintext: arguments.plaintext,
        ..Config::default()
    };
    let server = Server::bind(&config, &data).await.map_err(not_started)?;
    let mut signals = Signals::listen()?;
    tell(&server, &data, output)?;
    let stop = async {
        signals.next().await;
        note("stopping: requests under way are finished; Ctrl-C again ends at once");
        tokio::spawn(async move {
            let came = signals.next().await;
            std::process::exit(came.exit_code().into());
        });
    };
    server.run(stop).await;
    Ok(())
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
    if target.schema_file_if_any()?.is_some() {
        return target.data().await;
    }
    let url = target.url_if_any()?;
    Ok(without_schema(url.as_deref().unwrap_or(STORE_DEFAULT))?)
}

fn tell(server: &Server, data: &Data, output: &mut Output) -> Result {
    let (url, local) = (server.url(), server.is_local());
    if output.json() {
        output.write_json(&Started { address: server.address(), url, local })?;
        return output.flush();
    }
    let store = data.schema().stores.first().map_or("main", |store| store.name.as_str());
    let (who, credential) = match local {
        true => ("the one user of this machine, as long as there is no API key", ""),
        false => {
            ("those who have an API key or a token", "-H \"Authorization: Bearer $KEYWARD_KEY\" ")
        }
    };
    writeln!(
        output,
        "Keyward serves {} for {who}.

  page      {url}/
  API docs  {url}/docs/
  API       {url}/v1/stores

Try:
  curl {credential}-X PUT {url}/v1/stores/{store}/entries/hello:world \\
       -H 'content-type: application/json' -d '{{\"from\":\"me\"}}'
  curl {credential}{url}/v1/stores/{store}/entries/hello:world

Ctrl-C stops it.",
        stores(data)
    )?;
    output.flush()
}

fn stores(data: &Data) -> String {
    let named = data.schema().stores.iter().map(|store| {
        let place = data.url(&store.name).unwrap_or_default();
        // What stands between :// and @ may be a password.
        let place = match place.split_once("://").zip(place.rsplit_once('@')) {
            Some(((engine, _), (_, place))) => format!("{engine}://…@{place}"),
            None => place,
        };
        format!("{} ({place})", store.name)
    });
    named.collect::<Vec<_>>().join(", ")
}

fn log(arguments: &Arguments) -> Result {
    let filter = EnvFilter::try_new(&arguments.log_level).map_err(|error| {
        Failure::invalid(format!("{:?} is no log level: {error}", arguments.log_level))
            .hint("Write error, warn, info or debug.")
    })?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match arguments.log {
        LogForm::Text => log.with_ansi(io::stderr().is_terminal()).init(),
        LogForm::Json => log.json().init(),
    }
    Ok(())
}

fn not_started(error: StartError) -> Failure {
    let hint = match &error {
        StartError::Listen { .. } => {
            "Choose another address: --listen 127.0.0.1:0 takes a free port."
        }
        StartError::Unguarded(_) => {
            "Make a key first (keyward key create NAME --scope admin:*), or listen on 127.0.0.1."
        }
        StartError::ReadAlong(_) => {
            "Give --tls-cert and --tls-key, or --plaintext behind a proxy that terminates TLS."
        }
        StartError::IssuerKeys { .. } => {
            "Give a JSON Web Key Set with public keys, each with its kid."
        }
        StartError::Tls { .. } => "Give a certificate and its private key as PEM files.",
        _ => "Look at the store's URL and place.",
    };
    Failure::new(Exit::Place, "not-started", error.to_string()).hint(hint)
}
