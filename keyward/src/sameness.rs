//! Compares store URLs: do two of them name the same store?

use std::path::PathBuf;

use keyward_engine::StoreUrl;

/// Whether two store URLs name one store. Nothing is opened to tell it.
///
/// ```
/// use keyward::Sameness;
///
/// let stored = "postgres://db.example/app?store=notes";
/// assert_eq!(Sameness::of(stored, "postgresql://me@DB.example:5432/app?store=notes"), Sameness::Same);
/// assert_eq!(Sameness::of(stored, "postgres://10.0.0.7/app?store=notes"), Sameness::Possible);
/// assert_eq!(Sameness::of(stored, "postgres://db.example/app?store=drafts"), Sameness::Different);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sameness {
    /// They do, however they are spelled.
    Same,
    /// They may: the store has the same name, at an address that could be another one of the same server.
    Possible,
    /// They do not, or one of them is no URL of a store.
    Different,
}

impl Sameness {
    /// Compares two URLs by what identifies a store: the directory of an embedded one; server, database and
    /// store in PostgreSQL; server and store behind a server of Keyward. Accounts and options are nobody's
    /// identity.
    pub fn of(one: &str, other: &str) -> Self {
        match (Place::of(one), Place::of(other)) {
            _ if one == other => Self::Same,
            (Some(Place::Directory(one)), Some(Place::Directory(other))) if one == other => {
                Self::Same
            }
            (Some(Place::Served(one)), Some(Place::Served(other))) => one.compare(&other),
            _ => Self::Different,
        }
    }
}

/// Where a store is.
enum Place {
    Directory(PathBuf),
    Served(Served),
}

/// A store that a server keeps.
struct Served {
    engine: &'static str,
    /// The addresses of the server.
    server: Vec<String>,
    /// What the store is called there, part by part; `None` for what the URL leaves to the server.
    names: Vec<Option<String>>,
}

impl Place {
    /// Nothing for stores that are nowhere, and for what is no URL of a store.
    fn of(url: &str) -> Option<Self> {
        let url: StoreUrl = url.parse().ok()?;
        match url.engine() {
            "embedded" => {
                let place = std::path::absolute(url.place()).ok()?;
                Some(Self::Directory(place.canonicalize().unwrap_or(place)))
            }
            "postgres" | "postgresql" => {
                let address = keyward_postgres::Address::from_url(url).ok()?;
                let hosts = address.hosts.iter().map(|(host, port)| format!("{host}:{port}"));
                Some(Self::Served(Served {
                    engine: "postgres",
                    server: hosts.collect(),
                    names: vec![address.database, Some(address.store)],
                }))
            }
            "keyward+http" | "keyward+https" => {
                let (address, _) = keyward_remote::Options::from_url(url).ok()?;
                Some(Self::Served(Served {
                    engine: "keyward",
                    server: vec![address.server().to_lowercase()],
                    names: vec![address.store().map(str::to_owned)],
                }))
            }
            _ => None,
        }
    }
}

impl Served {
    fn compare(&self, other: &Self) -> Sameness {
        let mut names = self.names.iter().zip(&other.names);
        let differ = names.any(|names| matches!(names, (Some(one), Some(other)) if one != other));
        if self.engine != other.engine || differ {
            Sameness::Different
        } else if self.server == other.server && self.names == other.names {
            Sameness::Same
        } else {
            Sameness::Possible
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_directory_is_one_store_however_it_is_written() {
        let folder = std::env::current_dir().unwrap();
        let whole = format!("embedded:{}/data", folder.display());
        for (url, sameness) in [
            ("embedded:./data", Sameness::Same),
            ("embedded:data?durability=relaxed", Sameness::Same),
            ("embedded:./data2", Sameness::Different),
            ("postgres://h/data", Sameness::Different),
        ] {
            assert_eq!(Sameness::of(url, &whole), sameness, "{url}");
        }
        assert_eq!(Sameness::of("memory:", "memory:"), Sameness::Same);
    }

    #[test]
    fn a_store_in_a_database_is_one_store_however_it_is_written() {
        let stored = "postgres://h/app?store=notes&pool_max=3";
        for (url, sameness) in [
            ("postgresql://h/app?pool_max=3&store=notes", Sameness::Same),
            ("postgres://me:secret@H:5432/app?store=notes", Sameness::Same),
            // Other names of the same server, a proxy in front of it, or another one: nobody can tell.
            ("postgres://db.example/app?store=notes", Sameness::Possible),
            ("postgres://h:6432/app?store=notes", Sameness::Possible),
            ("postgres://h/app?store=drafts", Sameness::Different),
            ("postgres://h/other?store=notes", Sameness::Different),
            ("postgres://h/app", Sameness::Different),
            ("keyward+http://h/notes", Sameness::Different),
            ("postgres://h/app?store=notes&nonsense=1", Sameness::Different),
        ] {
            assert_eq!(Sameness::of(url, stored), sameness, "{url}");
            assert_eq!(Sameness::of(stored, url), sameness, "{url}");
        }
    }

    #[test]
    fn a_store_of_a_server_is_one_store_however_it_is_written() {
        let served = "keyward+http://h:7480/main";
        let same = "keyward+http://H:7480/main?answer_timeout=2s";
        assert_eq!(Sameness::of(served, same), Sameness::Same);
        assert_eq!(Sameness::of(served, "keyward+http://h:7480"), Sameness::Possible);
        assert_eq!(Sameness::of(served, "keyward+http://h:7480/other"), Sameness::Different);
    }
}
