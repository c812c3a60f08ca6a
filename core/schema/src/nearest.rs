//! Which known name was probably meant.

/// Names longer than this are not compared.
const NAME_CHARS_MAX: usize = 64;

/// The known name that differs least from `name`, if one is near enough to have been meant.
pub(crate) fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let length = name.chars().count();
    if length > NAME_CHARS_MAX {
        return None;
    }
    let folded = name.to_lowercase();
    known
        .into_iter()
        .filter(|other| other.chars().count() <= NAME_CHARS_MAX)
        .map(|other| (distance(&folded, &other.to_lowercase()), other))
        .filter(|&(distance, other)| {
            let longer = length.max(other.chars().count());
            // A longer form of the same word (`types` for `type`, `tag` for `tags`) is near too.
            distance <= (longer / 3).max(1)
        })
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, other)| other)
}

/// How many letters must be added, removed, replaced or swapped with their neighbour to make one
/// text of the other.
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut before_last = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, &a) in one.iter().enumerate() {
        let mut row = vec![i + 1; other.len() + 1];
        for (j, &b) in other.iter().enumerate() {
            let replaced = last[j] + usize::from(a != b);
            row[j + 1] = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a == other[j - 1] && one[i - 1] == b {
                row[j + 1] = row[j + 1].min(before_last[j - 1] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

/// Names as a list in a sentence: `a, b and c`.
pub(crate) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.split_last() {
        None => "none".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_with_the_fewest_changes() {
        let known = ["key", "owner", "ownership", "value", "value_bytes_max", "ttl"];
        for (typed, meant) in [
            ("ky", Some("key")),
            ("kye", Some("key")),
            ("Key", Some("key")),
            ("ownr", Some("owner")),
            ("owenrship", Some("ownership")),
            ("value_byte_max", Some("value_bytes_max")),
            ("tll", Some("ttl")),
            ("lifetime", None),
            ("x", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
    }

    #[test]
    fn names_that_are_absurdly_long_are_near_nothing() {
        assert_eq!(nearest(&"k".repeat(100_000), ["key"]), None);
    }
}
