//! Spaces that change.

use super::{Change, Migration, Verdict, key, value};
use crate::{Index, Ownership, Schema, Share, Space};

pub(super) fn compare_all(old: &Schema, new: &Schema, changes: &mut Vec<Change>) {
    let mut found: Vec<&str> = Vec::new();
    for space in &new.spaces {
        let subject = format!("space {}", space.name);
        let Some(before) = before(old, new, space) else {
            changes.push(Change::new(subject, "new", Verdict::Compatible));
            continue;
        };
        found.push(&before.name);
        if before.name != space.name {
            let message = format!("called {} before; its keys are the same", before.name);
            changes.push(Change::new(subject, message, Verdict::Compatible));
        }
        compare(before, space, changes);
    }
    for space in old.spaces.iter().filter(|space| !found.contains(&space.name.as_str())) {
        let why = "its records stay in the store, and match no pattern: delete them first";
        let verdict = Verdict::Incompatible { why: why.to_owned() };
        changes.push(Change::new(format!("space {}", space.name), "gone", verdict));
    }
}

/// What a space was: the space of that name, or one that is gone and had the same keys.
fn before<'s>(old: &'s Schema, new: &Schema, space: &Space) -> Option<&'s Space> {
    let renamed = |other: &&Space| {
        (&other.store, &other.key) == (&space.store, &space.key) && new.space(&other.name).is_none()
    };
    old.space(&space.name).or_else(|| old.spaces.iter().find(renamed))
}

fn compare(old: &Space, new: &Space, changes: &mut Vec<Change>) {
    let subject = format!("space {}", new.name);
    let mut add = |message: String, verdict: Verdict| {
        changes.push(Change::new(subject.clone(), message, verdict));
    };
    if old.store != new.store {
        let why = format!(
            "its records stay in {}: declare it under another name, copy them, then remove it",
            old.store
        );
        add(format!("in {}, before in {}", new.store, old.store), Verdict::Incompatible { why });
    }
    if let Some(verdict) = key::compare(old, new) {
        add(format!("keys {}, before {}", new.key, old.key), verdict);
    }
    if let Some(message) = ownership(&old.ownership, &new.ownership) {
        add(message, Verdict::Compatible);
    }
    for (message, verdict) in value::compare(new, old.value.as_ref(), new.value.as_ref()) {
        add(message, verdict);
    }
    sizes(old, new, &mut add);
    roles("read", &old.read_roles, &new.read_roles, &mut add);
    roles("written", &old.write_roles, &new.write_roles, &mut add);
    indexes(old, new, changes);
}

fn ownership(old: &Ownership, new: &Ownership) -> Option<String> {
    let message = match (old, new) {
        (Ownership::Shared, Ownership::User { .. }) => {
            "owned by users, before shared: others lose sight of them"
        }
        (Ownership::Shared, Ownership::Hybrid { .. }) => {
            "owned by users and found by all, before shared: others can change them no more"
        }
        (Ownership::User { .. }, Ownership::Shared) => {
            "shared, before owned by users: everybody sees and changes them"
        }
        (Ownership::User { .. }, Ownership::Hybrid { .. }) => {
            "found by all, before by their owners alone: others see what is shared"
        }
        (Ownership::Hybrid { .. }, Ownership::User { .. }) => {
            "owned by users alone, before found by all: others lose sight of them"
        }
        (Ownership::Hybrid { .. }, Ownership::Shared) => {
            "shared, before owned by users: everybody sees and changes them"
        }
        (Ownership::Hybrid { share: old, .. }, Ownership::Hybrid { share: new, .. })
            if old != new =>
        {
            return Some(format!("others see {}, before {}", shared(new), shared(old)));
        }
        _ => return None,
    };
    Some(message.to_owned())
}

fn shared(share: &Share) -> String {
    match share {
        Share::Everything => "everything".to_owned(),
        Share::Fields(fields) => {
            fields.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
    }
}

fn sizes(old: &Space, new: &Space, add: &mut impl FnMut(String, Verdict)) {
    if old.lifetime != new.lifetime {
        let said = |space: &Space| match space.lifetime {
            None => "for ever".to_owned(),
            Some(lifetime) => {
                let sliding = if lifetime.sliding { ", sliding" } else { "" };
                format!("{:?}{sliding}", lifetime.ttl)
            }
        };
        let message = format!(
            "records live {}, before {}; those that are there end as they were written",
            said(new),
            said(old)
        );
        add(message, Verdict::Compatible);
    }
    if old.history != new.history {
        let said = |space: &Space| space.history.map_or(1, std::num::NonZeroUsize::get);
        let message = format!("{} versions are kept, before {}", said(new), said(old));
        add(message, Verdict::Compatible);
    }
    if old.value_bytes_max != new.value_bytes_max {
        let said =
            |max: Option<usize>| max.map_or("any size".to_owned(), |max| format!("{max} bytes"));
        let message = format!(
            "values of at most {}, before {}",
            said(new.value_bytes_max),
            said(old.value_bytes_max)
        );
        let bound = |max: Option<usize>| max.unwrap_or(usize::MAX);
        let verdict = if bound(new.value_bytes_max) < bound(old.value_bytes_max) {
            let migration = Migration::TransformValues { space: new.name.clone() };
            Verdict::NeedsMigration { migration }
        } else {
            Verdict::Compatible
        };
        add(message, verdict);
    }
}

fn roles(what: &str, old: &[String], new: &[String], add: &mut impl FnMut(String, Verdict)) {
    if old == new {
        return;
    }
    let said = |roles: &[String]| {
        if roles.is_empty() { "everybody".to_owned() } else { roles.join(", ") }
    };
    add(format!("{what} by {}, before by {}", said(new), said(old)), Verdict::Compatible);
}

fn indexes(old: &Space, new: &Space, changes: &mut Vec<Change>) {
    let named = |index: &Index| (new.name.clone(), index.name.clone());
    for index in &new.indexes {
        let subject = format!("index {} of {}", index.name, new.name);
        let (message, migration) = match old.index(&index.name) {
            Some(before) if before == index => continue,
            Some(before) if !before.is_unique() && index.is_unique() => {
                let (space, index) = named(index);
                let message = "unique now, so that records with the same values stop the migration";
                (message, Migration::RebuildIndex { space, index })
            }
            Some(_) => {
                let (space, index) = named(index);
                ("holds something else", Migration::RebuildIndex { space, index })
            }
            None => {
                let (space, index) = named(index);
                ("new", Migration::AddIndex { space, index })
            }
        };
        changes.push(Change::new(subject, message, Verdict::NeedsMigration { migration }));
    }
    for index in old.indexes.iter().filter(|index| new.index(&index.name).is_none()) {
        let (space, name) = named(index);
        let subject = format!("index {name} of {space}");
        let migration = Migration::DropIndex { space, index: name };
        changes.push(Change::new(subject, "gone", Verdict::NeedsMigration { migration }));
    }
}
