//! What the declarations of a schema must agree on.

use std::collections::BTreeMap;

use keyward_key::{Pattern, PatternSet};

use super::report::{Report, Span};
use super::store::Stores;
use super::{lock, space};

/// A pattern whose keys somebody claims.
struct Claim<'a> {
    who: String,
    store: &'a str,
    pattern: &'a Pattern,
    at: &'a Span,
}

pub(super) fn check(
    stores: &Stores,
    spaces: &[space::Draft<'_>],
    locks: &[lock::Draft<'_>],
    report: &mut Report<'_>,
) {
    check_claims(spaces, locks, report);
    check_index_names(spaces, report);
    let undecided = spaces.iter().any(|space| space.store.is_none())
        || locks.iter().any(|lock| lock.store.is_none());
    let used = |name: &str| {
        let by_space = spaces.iter().any(|space| space.store.as_deref() == Some(name));
        by_space || locks.iter().any(|lock| lock.store.as_deref() == Some(name))
    };
    for (store, at) in stores.declared.iter().zip(&stores.places) {
        if !undecided && !used(&store.name) {
            let message = format!("nothing lives in the store {}", store.name);
            report.warning(
                "unused-store",
                at.clone(),
                message,
                "declare a space in it, or remove it",
            );
        }
    }
}

/// Refuses patterns of one store that could mean the same key. The roots of lock trees are keys
/// too: their catalogs stand there.
fn check_claims(spaces: &[space::Draft<'_>], locks: &[lock::Draft<'_>], report: &mut Report<'_>) {
    let of_spaces = spaces.iter().filter_map(|space| {
        let (pattern, text) = space.key.as_ref()?;
        let who = format!("the space {}", space.name);
        Some(Claim { who, store: space.store.as_deref()?, pattern, at: &text.at })
    });
    let of_locks = locks.iter().filter_map(|lock| {
        let (pattern, text) = lock.root.as_ref()?;
        let who = format!("the lock tree {}", lock.name);
        Some(Claim { who, store: lock.store.as_deref()?, pattern, at: &text.at })
    });
    let claims: Vec<Claim<'_>> = of_spaces.chain(of_locks).collect();
    for (n, claim) in claims.iter().enumerate() {
        for earlier in claims[..n].iter().filter(|earlier| earlier.store == claim.store) {
            let both = [earlier.pattern.clone(), claim.pattern.clone()];
            let Err(clash) = PatternSet::new(both) else {
                continue;
            };
            let message = format!(
                "the key {} could be one of {} ({}) and of {} ({}, line {})",
                clash.example,
                claim.who,
                claim.pattern,
                earlier.who,
                earlier.pattern,
                report.line_of(earlier.at),
            );
            let hint =
                "make a literal segment differ, give a variable a type, or use another store";
            report.error("ambiguous-keys", claim.at.clone(), message, hint);
        }
    }
}

/// Refuses two indexes of one name in a store: their entries would stand in the same place.
fn check_index_names(spaces: &[space::Draft<'_>], report: &mut Report<'_>) {
    let mut known: BTreeMap<(&str, &str), (&str, &Span)> = BTreeMap::new();
    for space in spaces {
        let Some(store) = space.store.as_deref() else {
            continue;
        };
        for (name, at) in &space.indexes {
            if let Some((other, place)) = known.get(&(store, name.as_str())) {
                let message = format!(
                    "the space {other} has an index {name:?} already (line {}), and in one store an \
                     index has its name for itself",
                    report.line_of(place)
                );
                let hint = format!("call it {}_{name}, for example", space.name);
                report.error("index-name", at.clone(), message, hint);
            } else {
                known.insert((store, name), (space.name, at));
            }
        }
    }
}
