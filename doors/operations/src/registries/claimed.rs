//! What of a store belongs to a registry: nobody writes it but its runs.

use keyward::rules::RegistryKeys;
use keyward::schema::Space;
use keyward::{Data, PatternSet};

use super::{store_of, unkept};
use crate::config::{RegistryConfig, ServicesConfig};
use crate::problem::Result;

/// What else the first segment of a key says: whose it is.
const OWNERS: [&str; 2] = ["user", "shared"];

/// The keys of one registry; refused if its prefix cannot be one.
fn keys(one: &RegistryConfig) -> Result<RegistryKeys> {
    let prefix = one.settings.prefix.as_deref();
    if let Some(word) = prefix.filter(|prefix| OWNERS.contains(prefix)) {
        let reason = format!("keys below {word} belong to users; choose another prefix");
        return Err(unkept(&one.name, &reason));
    }
    if prefix.is_some_and(|prefix| prefix.contains(['{', '}', '[', ']'])) {
        let reason = "braces and brackets stand for parts of keys; choose another prefix";
        return Err(unkept(&one.name, &reason));
    }
    RegistryKeys::new(&one.name, prefix).map_err(|error| unkept(&one.name, &error))
}

/// What the registries of a store keep there. Refused if a key could be claimed twice: by two of them, or
/// by one and a space, whose records would be written past the registry.
pub fn claimed<'s>(
    store: &str,
    spaces: impl Iterator<Item = &'s Space>,
    data: &Data,
    config: &ServicesConfig,
) -> Result<Vec<RegistryKeys>> {
    let mut all = Vec::new();
    let mut taken = PatternSet::default();
    for space in spaces {
        // The schema has been looked at: where two spaces claim one key, the first counts.
        let _ = taken.add(space.key.clone());
    }
    for one in &config.registries {
        if store_of(one, data)? != store {
            continue;
        }
        let claimed = keys(one)?;
        for pattern in claimed.patterns() {
            taken.add(pattern.clone()).map_err(|clash| unkept(&one.name, &clash))?;
        }
        all.push(claimed);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use keyward::Key;
    use keyward::registry::{Repository, Settings};
    use keyward::schema::Schema;

    use super::*;

    fn registry(name: &str, prefix: Option<&str>) -> RegistryConfig {
        let mut settings = Settings::new(Repository::parse("/policies").unwrap());
        settings.prefix = prefix.map(str::to_owned);
        RegistryConfig { name: name.to_owned(), settings, cache: "cache".into() }
    }

    fn found(schema: &str, registries: Vec<RegistryConfig>) -> Result<Vec<RegistryKeys>> {
        let data = Data::new(Schema::parse(schema, "schema.toml").unwrap());
        let config = ServicesConfig { registries, ..ServicesConfig::default() };
        claimed("app", data.schema().spaces.iter(), &data, &config)
    }

    const STORE: &str = "[stores.app]\nurl = \"memory:\"\n";

    #[test]
    fn keys_of_a_registry_are_its_own_and_those_beside_them_are_not() {
        let plain = found(STORE, vec![registry("p", None), registry("k", Some("k r"))]).unwrap();
        let of = |key: &str| {
            let key = Key::parse(key).unwrap();
            plain.iter().find(|claimed| claimed.covers(&key)).map(RegistryKeys::registry)
        };
        for key in [
            "policy:a",
            "metadata:sync:lastRun",
            "queue:a",
            "dead-letter:a",
            "system:registry:p:state",
        ] {
            assert_eq!(of(key), Some("p"), "{key}");
        }
        for key in ["k r:policy:a", "k r:queue:a", "system:registry:k", "system:registry-of:k r"] {
            assert_eq!(of(key), Some("k"), "{key}");
        }
        for key in [
            "policy",
            "policy:a:b",
            "queue:mails:m1",
            "metadata:other",
            "x:policy:a",
            "system:registry:q",
        ] {
            assert_eq!(of(key), None, "{key}");
        }
    }

    #[test]
    fn a_key_is_not_claimed_twice() {
        let space =
            |key: &str| format!("{STORE}[spaces.s]\nkey = \"{key}\"\nownership = \"shared\"\n");
        assert!(found(STORE, vec![registry("a", None), registry("b", None)]).is_err());
        assert!(found(&space("policy:{name}"), vec![registry("a", None)]).is_err());
        assert!(found(&space("{page}:{part}"), vec![registry("a", None)]).is_err());
        assert!(found(&space("policy:{name}:notes:{n}"), vec![registry("a", None)]).is_ok());
        assert!(found(&space("policy:{name}"), vec![registry("a", Some("x"))]).is_ok());
        for prefix in [OWNERS[0], OWNERS[1], "{x}", "a[b"] {
            assert!(found(STORE, vec![registry("a", Some(prefix))]).is_err(), "{prefix}");
        }
    }
}
