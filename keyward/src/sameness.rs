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
    /// store in PostgreSQL; server and store behind a server of Keyward; server and database in CouchDB; region and
    /// table in DynamoDB; project, database and collection in Firestore; account and namespace in Cloudflare KV; the
    /// file with the token in Forge. Accounts, coordinators and other options are nobody's identity, but
    /// `layout=document` is: it sees other documents of a database.
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
        let mut url: StoreUrl = url.parse().ok()?;
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
            "couchdb" | "couchdb+http" | "couchdb+https" => {
                let default = if url.engine() == "couchdb+https" { 443 } else { 5_984 };
                let layout = layout(&mut url);
                let (authority, database) = url.place().strip_prefix("//")?.split_once('/')?;
                let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
                let has_port = host.rsplit(']').next().is_some_and(|rest| rest.contains(':'));
                let port = if has_port { String::new() } else { format!(":{default}") };
                let database = database.trim_end_matches('/').to_owned();
                let server = format!("{}{port}", host.to_lowercase());
                Some(Self::served("couchdb", Some(server), [Some(database), layout]))
            }
            "dynamodb" => {
                let layout = layout(&mut url);
                let table = url.place().strip_prefix("//")?.to_owned();
                Some(Self::served("dynamodb", url.take("endpoint"), [Some(table), layout]))
            }
            "firestore" => {
                let layout = layout(&mut url);
                let collection = url.place().strip_prefix("//")?.trim_end_matches('/').to_owned();
                Some(Self::served("firestore", url.take("emulator"), [Some(collection), layout]))
            }
            "cloudflare-kv" => {
                let namespace = url.place().strip_prefix("//")?.to_owned();
                Some(Self::served("cloudflare-kv", url.take("api"), [Some(namespace)]))
            }
            "forge-kvs" => {
                Some(Self::served("forge-kvs", url.take("api"), [url.take("token_file")]))
            }
            _ => None,
        }
    }

    fn served(
        engine: &'static str,
        server: Option<String>,
        names: impl IntoIterator<Item = Option<String>>,
    ) -> Self {
        // Without an address it is the provider's own.
        let server = vec![server.unwrap_or_default().trim_end_matches('/').to_owned()];
        Self::Served(Served { engine, server, names: names.into_iter().collect() })
    }
}

/// The layout that a URL asks for, as a name that is always said.
fn layout(url: &mut StoreUrl) -> Option<String> {
    Some(url.take("layout").unwrap_or_default())
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
    fn a_store_of_another_database_is_one_store_however_it_is_written() {
        for (one, other, sameness) in [
            ("couchdb://h/notes", "couchdb+http://me:secret@H:5984/notes/", Sameness::Same),
            ("couchdb://h/notes", "couchdb://h/notes?answer_timeout=2s", Sameness::Same),
            ("couchdb://h/notes", "couchdb+https://h/notes", Sameness::Possible),
            ("couchdb://h/notes", "couchdb://other/notes", Sameness::Possible),
            ("couchdb://h/notes", "couchdb://h/drafts", Sameness::Different),
            ("couchdb://h/notes", "couchdb://h/notes?layout=document", Sameness::Different),
            ("dynamodb://eu/t", "dynamodb://eu/t?create=true", Sameness::Same),
            ("dynamodb://eu/t", "dynamodb://eu/t?endpoint=http://h:1", Sameness::Possible),
            ("dynamodb://eu/t", "dynamodb://us/t", Sameness::Different),
            ("firestore://p/d/c", "firestore://p/d/c/", Sameness::Same),
            ("firestore://p/d/c", "firestore://p/d/e", Sameness::Different),
            ("cloudflare-kv://a/n", "cloudflare-kv://a/n?coordinator=embedded:./c", Sameness::Same),
            ("cloudflare-kv://a/n", "cloudflare-kv://a/m", Sameness::Different),
            ("forge-kvs://x?token_file=/t", "forge-kvs://y?token_file=/t", Sameness::Same),
            ("forge-kvs://x?token_file=/t", "forge-kvs://x", Sameness::Possible),
            ("forge-kvs://x?token_file=/t", "forge-kvs://x?token_file=/u", Sameness::Different),
        ] {
            assert_eq!(Sameness::of(one, other), sameness, "{one} {other}");
            assert_eq!(Sameness::of(other, one), sameness, "{other} {one}");
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
