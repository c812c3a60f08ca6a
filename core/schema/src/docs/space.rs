//! The section of one space.

use std::time::Duration;

use jiff::Timestamp;
use keyward_key::{Bindings, Pattern, SegmentType};

use super::markdown::{Page, code, prose, row_text};
use super::{entry, value};
use crate::shape::Shape;
use crate::{Answer, DeclaredQuery, Lifetime, Ownership, Scope, Share, Space};

pub(super) fn write(space: &Space, page: &mut Page) {
    page.heading(2, &space.name);
    if let Some(description) = &space.description {
        page.line(&prose(description));
    }
    let mut facts = vec![
        format!("- Key: {}, for example {}", code(space.key.as_str()), examples(&space.key)),
        format!("- Owner: {}", ownership(space)),
        format!("- Lifetime: {}", lifetime(space.lifetime)),
    ];
    facts.extend(space.history.map(|kept| match kept.get() {
        1 => "- History: the current version only".to_owned(),
        kept => format!("- History: the last {kept} versions, the current one included"),
    }));
    facts.extend(space.value_bytes_max.map(|max| format!("- Size: values of at most {max} bytes")));
    for (what, roles) in [("Read", &space.read_roles), ("Written", &space.write_roles)] {
        if !roles.is_empty() {
            let roles: Vec<String> = roles.iter().map(|role| code(role)).collect();
            facts.push(format!("- {what} by: {}", roles.join(", ")));
        }
    }
    page.block(&facts.join("\n"));
    if let Some(schema) = &space.value {
        value::write(schema, page);
    }
    indexes(space, page);
    queries(space, page);
}

pub(super) fn owner_word(space: &Space) -> &'static str {
    match space.ownership {
        Ownership::User { .. } => "a user",
        Ownership::Shared => "everybody",
        Ownership::Hybrid { .. } => "a user, found by all",
    }
}

fn ownership(space: &Space) -> String {
    match &space.ownership {
        Ownership::User { owner } => {
            format!(
                "the user {}; nobody else sees or changes the records",
                code(&format!("{{{owner}}}"))
            )
        }
        Ownership::Shared => "nobody in particular; the records are everybody's".to_owned(),
        Ownership::Hybrid { owner, share } => {
            let seen = match share {
                Share::Everything => "the whole value".to_owned(),
                Share::Fields(fields) => {
                    let fields: Vec<String> = fields.iter().map(|f| code(&f.to_string())).collect();
                    fields.join(", ")
                }
            };
            let owner = code(&format!("{{{owner}}}"));
            format!("the user {owner}, who alone changes the records; others see {seen}")
        }
    }
}

fn lifetime(lifetime: Option<Lifetime>) -> String {
    match lifetime {
        None => "until deleted".to_owned(),
        Some(Lifetime { ttl, sliding: false }) => format!("{} from the last write", spoken(ttl)),
        Some(Lifetime { ttl, sliding: true }) => {
            format!("{} from the last write or read", spoken(ttl))
        }
    }
}

/// A length of time in words: `1 hour 30 minutes`.
fn spoken(length: Duration) -> String {
    let seconds = length.as_secs();
    let units = [
        (seconds / 86_400, "day"),
        (seconds / 3_600 % 24, "hour"),
        (seconds / 60 % 60, "minute"),
        (seconds % 60, "second"),
        (u64::from(length.subsec_millis()), "millisecond"),
    ];
    let said: Vec<String> = units
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}{}", if *count == 1 { "" } else { "s" }))
        .collect();
    if said.is_empty() { "less than a millisecond".to_owned() } else { said.join(" ") }
}

/// A key of each length that the pattern allows.
fn examples(pattern: &Pattern) -> String {
    let shape = Shape::of(pattern);
    let keys = shape.lengths.iter().filter_map(|&length| {
        let mut values = Bindings::new();
        for variable in shape.segments[..length].iter().filter_map(|segment| segment.variable()) {
            let name = variable.name.as_str();
            values = match variable.kind {
                SegmentType::Text => values.with(name, format!("{}1", initial(name))),
                SegmentType::U64 => values.with(name, 7),
                SegmentType::Time => values.with(name, Timestamp::UNIX_EPOCH),
            };
        }
        pattern.build(&values).ok().map(|key| code(&key.to_string()))
    });
    keys.collect::<Vec<_>>().join(" or ")
}

fn initial(name: &str) -> String {
    name.chars().take(1).flat_map(char::to_lowercase).collect()
}

fn indexes(space: &Space, page: &mut Page) {
    if space.indexes.is_empty() {
        return;
    }
    page.heading(3, "Indexes");
    let rows = space.indexes.iter().map(|index| {
        let whose = match (index.scope, space.ownership.owner()) {
            (Scope::Owner, _) => "each owner's apart",
            (Scope::Shared, Some(_)) => "everybody's together",
            (Scope::Shared, None) => "all",
        };
        vec![
            code(&index.name),
            entry::contents(index),
            whose.to_owned(),
            code(&entry::layout(space, index)),
        ]
    });
    page.table(&["index", "holds", "entries", "at"], rows);
}

fn queries(space: &Space, page: &mut Page) {
    if space.queries.is_empty() {
        return;
    }
    page.heading(3, "Queries");
    let rows = space.queries.iter().map(|query| {
        let by: Vec<String> = query.by.iter().map(|path| code(&path.to_string())).collect();
        vec![row_text(Some(&query.name)), by.join(", "), answered(space, query)]
    });
    page.table(&["query", "by", "answered by"], rows);
}

fn answered(space: &Space, query: &DeclaredQuery) -> String {
    match space.answer(query) {
        Some(Answer::Key { known }) => format!("the keys {}", code(&known)),
        Some(Answer::Index(index)) => format!("the index {}", code(&index.name)),
        None => "nothing: every record would be read".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_said_in_words() {
        for (millis, words) in [
            (30 * 86_400_000, "30 days"),
            (5_400_000, "1 hour 30 minutes"),
            (1_500, "1 second 500 milliseconds"),
        ] {
            assert_eq!(spoken(Duration::from_millis(millis)), words);
        }
    }
}
