use keyward_engine::{Error, ErrorKind, Result, StoreUrl};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::Options;

/// The port of a URL that names none.
const PORT: u16 = 5432;
/// The names of the machine itself.
const THIS_MACHINE: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// What identifies a store in PostgreSQL, whoever connects to it and however it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Hosts in lower case, with their ports. One server can have several names.
    pub hosts: Vec<(String, u16)>,
    /// The database; `None` if it is named like the account that runs the program.
    pub database: Option<String>,
    /// The store's name in the database.
    pub store: String,
}

impl Address {
    /// Reads it from a `postgres:` URL. Nothing is opened.
    pub fn from_url(url: StoreUrl) -> Result<Self> {
        let (server, options) = Options::from_url(url)?;
        // The error names no part of the URL: there may be a password in it.
        let config: Config = server.parse().map_err(|_| {
            Error::new(ErrorKind::Invalid, "the store's URL is not one of a PostgreSQL server")
        })?;
        let ports = config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(PORT);
        let hosts = config.get_hosts().iter().enumerate();
        let hosts = hosts.map(|(at, host)| (name(host), port(at))).collect();
        let database = config.get_dbname().or(config.get_user()).map(str::to_owned);
        Ok(Self { hosts, database, store: options.store })
    }
}

fn name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => {
            let name = name.strip_suffix('.').unwrap_or(name).to_lowercase();
            let is_here = THIS_MACHINE.contains(&name.as_str());
            if is_here { THIS_MACHINE[0].to_owned() } else { name }
        }
        #[cfg(unix)]
        Host::Unix(directory) => directory.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> Address {
        Address::from_url(url.parse().unwrap()).unwrap()
    }

    #[test]
    fn spellings_of_one_store_have_one_address() {
        let plain = address("postgres://h/app?store=notes&pool_max=3");
        for other in [
            "postgresql://h/app?pool_max=3&store=notes",
            "postgres://H:5432/app?store=notes",
            "postgres://me:secret@h./app?store=notes&sslmode=require",
        ] {
            assert_eq!(address(other), plain, "{other}");
        }
        assert_eq!(address("postgres://localhost/a"), address("postgres://127.0.0.1:5432/a"));
        assert_eq!(address("postgres://app@h"), address("postgres://me@h/app"));
        assert_eq!(address("postgres://h/app?store=default"), address("postgres://h/app"));
        for other in ["postgres://h/app", "postgres://h:5433/app?store=notes", "postgres://h/App"] {
            assert_ne!(address(other), plain, "{other}");
        }
    }
}
