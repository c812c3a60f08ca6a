//! What the words of a schema suggest.

use crate::property::{JsonType, Property};
use crate::shape::Shape;
use crate::{Schema, Space};

/// A name without its style: `userId`, `user_id` and `user-id` are one.
pub(super) fn folded(name: &str) -> String {
    name.chars().filter(|c| *c != '_' && *c != '-').flat_map(char::to_lowercase).collect()
}

/// A name without its style and without `id` at its end, if more than that remains.
pub(super) fn stem(name: &str) -> String {
    let folded = folded(name);
    match folded.strip_suffix("id") {
        Some(stem) if !stem.is_empty() && is_id(name) => stem.to_owned(),
        _ => folded,
    }
}

/// Whether a name says that it is an id: `id`, `userId`, `user_id`, but not `paid`.
pub(super) fn is_id(name: &str) -> bool {
    let folded_last = name.rsplit(['_', '-']).next().unwrap_or(name);
    name == "id" || name.ends_with("Id") || name.ends_with("ID") || folded_last == "id"
}

/// A word without its plural: `users` → `user`, `policies` → `policy`.
pub(super) fn singular(word: &str) -> String {
    let word = word.to_lowercase();
    match (word.strip_suffix("ies"), word.strip_suffix('s')) {
        (Some(start), _) if start.len() > 1 => format!("{start}y"),
        (_, Some(start)) if start.len() > 1 && !start.ends_with('s') => start.to_owned(),
        _ => word,
    }
}

/// Whether a field or variable means the user that a record belongs to.
pub(super) fn means_owner(schema: &Schema, store: &str, name: &str) -> bool {
    let stem_of_name = stem(name);
    let usual = ["user", "uid", "owner", "account"].contains(&stem_of_name.as_str());
    usual
        || schema
            .spaces_of(store)
            .filter_map(|space| space.ownership.owner())
            .any(|owner| stem(owner) == stem_of_name)
}

/// What the spaces of a store call the owner in their keys; `user`, if none has one.
pub(super) fn owner_variable<'s>(schema: &'s Schema, store: &'s str) -> &'s str {
    schema.spaces_of(store).find_map(|space| space.ownership.owner()).unwrap_or("user")
}

/// Whether a literal is what people call an index: `by_email`, `email-index`, `idx`.
pub(super) fn is_index_word(literal: &str) -> bool {
    let words: Vec<&str> = literal.split(['_', '-', '.']).collect();
    let camel_by =
        literal.strip_prefix("by").is_some_and(|rest| rest.starts_with(char::is_uppercase));
    let camel_index = literal.ends_with("Index") || literal.ends_with("Idx");
    camel_by
        || camel_index
        || (words.len() > 1 && words[0] == "by")
        || words.iter().any(|word| ["index", "indexes", "idx"].contains(word))
}

/// Whether a space is an index that somebody keeps by hand: it is called one, and its values only
/// point at records.
pub(super) fn is_index_by_hand(space: &Space) -> bool {
    const POINTING: [&str; 5] = ["recent", "latest", "lookup", "ref", "refs"];
    let shape = Shape::of(&space.key);
    let points = points_at_records(space);
    (shape.literals().any(is_index_word) && points != Some(false))
        || (shape.literals().any(|literal| POINTING.contains(&literal)) && points == Some(true))
}

/// Whether values are no more than ids: one, or an object of them. Nothing, if the schema does not
/// say.
fn points_at_records(space: &Space) -> Option<bool> {
    let root = Property::root(space.value.as_ref()?.definition());
    let types = root.types_but_null()?;
    let scalar = |kind: &JsonType| matches!(kind, JsonType::String | JsonType::Integer);
    if types.iter().all(scalar) {
        return Some(true);
    }
    let fields = root.fields();
    Some(
        types.iter().all(|kind| *kind == JsonType::Object)
            && !fields.is_empty()
            && fields.iter().all(|(name, _)| is_id(name) || *name == "key"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_and_ids_do_not_hide_a_name() {
        for (name, expected) in [
            ("userId", "user"),
            ("user_id", "user"),
            ("userID", "user"),
            ("user", "user"),
            ("id", "id"),
            ("paid", "paid"),
            ("uid", "uid"),
        ] {
            assert_eq!(stem(name), expected, "{name}");
        }
    }

    #[test]
    fn plurals_and_singulars_meet() {
        for (word, expected) in [
            ("users", "user"),
            ("user", "user"),
            ("policies", "policy"),
            ("address", "address"),
            ("News", "new"),
        ] {
            assert_eq!(singular(word), expected, "{word}");
        }
    }

    #[test]
    fn words_for_indexes_are_known_in_every_style() {
        for word in ["by_email", "by-email", "byEmail", "email_index", "emailIndex", "idx", "idx-a"]
        {
            assert!(is_index_word(word), "{word}");
        }
        for word in ["by", "bytes", "users", "indexed", "shared", "notes"] {
            assert!(!is_index_word(word), "{word}");
        }
    }
}
