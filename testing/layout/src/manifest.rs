use toml::Table;

/// Whether the text of a `Cargo.toml` takes its lints from the workspace.
pub fn inherits_lints(manifest: &str) -> bool {
    let lints = manifest
        .parse::<Table>()
        .ok()
        .and_then(|manifest| Some(manifest.get("lints")?.get("workspace")?.as_bool()));
    lints.flatten() == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lints_of_its_own_or_none_are_noticed() {
        assert!(inherits_lints("[lints]\nworkspace = true\n"));
        assert!(inherits_lints("lints.workspace = true\n"));
        assert!(!inherits_lints("[lints]\nworkspace = false\n"));
        assert!(!inherits_lints("[lints.rust]\nmissing_docs = \"allow\"\n"));
        assert!(!inherits_lints("[package]\nname = \"keyward-key\"\n"));
        assert!(!inherits_lints("# [lints]\n# workspace = true\n"));
    }
}
