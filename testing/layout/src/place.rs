/// What is wrong with a crate of this name in this folder (relative to the repository), if
/// anything.
///
/// A crate `keyward-<noun>` lies in `<layer>/<noun>`; the facade `keyward` lies in `keyward`, and
/// the examples lie in `examples`.
pub fn misplaced(name: &str, folder: &str) -> Option<String> {
    const LAYERS: [&str; 6] = ["core", "engines", "services", "systems", "doors", "testing"];
    let expected = match folder.split_once('/') {
        None if folder == "keyward" => "keyward".to_owned(),
        None if folder == "examples" => "keyward-examples".to_owned(),
        Some((layer, noun)) if LAYERS.contains(&layer) && !noun.contains('/') => {
            format!("keyward-{noun}")
        }
        _ => {
            return Some(format!(
                "{name} lies in {folder}, which is no layer: a crate lies in keyward, in \
                 examples or in one folder of {}",
                LAYERS.join(", ")
            ));
        }
    };
    (name != expected).then(|| format!("{name} lies in {folder}, where it is called {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_has_the_name_of_its_folder() {
        assert_eq!(misplaced("keyward", "keyward"), None);
        assert_eq!(misplaced("keyward-key", "core/key"), None);
        assert_eq!(misplaced("keyward-examples", "examples"), None);
        for (name, folder) in [
            ("keyward-keys", "core/key"),
            ("key", "core/key"),
            ("keyward-key", "key"),
            ("keyward-key", "library/key"),
            ("keyward-key", "core/key/key"),
            ("facade", "keyward"),
        ] {
            assert!(misplaced(name, folder).is_some(), "{name} in {folder}");
        }
    }
}
