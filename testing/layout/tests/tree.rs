//! Holds this repository to the rules of `keyward-layout`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use keyward_layout::{
    UNSAFE_FILES, Use, inherits_lints, is_vague, misplaced, refused_edge, refused_library,
    unsafe_lines,
};

/// What Cargo knows of the workspace, without a network and without changing the lock file.
fn workspace() -> Metadata {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    MetadataCommand::new()
        .manifest_path(manifest)
        .no_deps()
        .other_options(["--locked", "--offline"].map(str::to_owned))
        .exec()
        .unwrap()
}

fn folder<'p>(workspace: &Metadata, directory: &'p cargo_metadata::camino::Utf8Path) -> &'p str {
    directory.strip_prefix(&workspace.workspace_root).unwrap().as_str()
}

fn folder_of<'p>(workspace: &Metadata, package: &'p Package) -> &'p str {
    folder(workspace, package.manifest_path.parent().unwrap())
}

/// Every Rust source of the repository, relative to its root, with `/` between folders.
fn sources(workspace: &Metadata) -> Vec<(String, PathBuf)> {
    let root = workspace.workspace_root.as_std_path();
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                folders.push(path);
            } else if name.ends_with(".rs") {
                let relative = path.strip_prefix(root).unwrap();
                let parts: Vec<_> = relative.iter().map(|part| part.to_str().unwrap()).collect();
                found.push((parts.join("/"), path));
            }
        }
    }
    found.sort();
    found
}

#[track_caller]
fn assert_nothing(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn dependencies_go_down_only() {
    let workspace = workspace();
    let mut wrong = Vec::new();
    let mut edges = 0;
    for package in workspace.workspace_packages() {
        let from = folder_of(&workspace, package);
        for dependency in &package.dependencies {
            let Some(path) = &dependency.path else {
                if dependency.kind != DependencyKind::Development {
                    wrong.extend(refused_library(from, &dependency.name));
                }
                continue;
            };
            let how = match dependency.kind {
                DependencyKind::Development => Use::Test,
                _ => Use::Build,
            };
            edges += 1;
            wrong.extend(refused_edge(from, folder(&workspace, path), how));
        }
    }
    assert_nothing(&wrong);
    assert!(edges > 0, "no edge was looked at");
}

#[test]
fn every_crate_lies_in_the_folder_of_its_layer() {
    let workspace = workspace();
    let packages = workspace.workspace_packages().into_iter();
    let wrong: Vec<String> = packages
        .filter_map(|package| misplaced(&package.name, folder_of(&workspace, package)))
        .collect();
    assert_nothing(&wrong);
}

#[test]
fn every_crate_takes_its_lints_from_the_workspace() {
    let workspace = workspace();
    let packages = workspace.workspace_packages().into_iter();
    let wrong: Vec<String> = packages
        .filter(|package| !inherits_lints(&fs::read_to_string(&package.manifest_path).unwrap()))
        .map(|package| format!("{} needs [lints] workspace = true", package.manifest_path))
        .collect();
    assert_nothing(&wrong);
}

#[test]
fn unsafe_code_stands_only_where_it_is_argued() {
    let sources = sources(&workspace());
    let mut wrong = Vec::new();
    let mut used = Vec::new();
    for (name, path) in &sources {
        let lines = unsafe_lines(&fs::read_to_string(path).unwrap());
        match UNSAFE_FILES.iter().find(|file| *file == name) {
            Some(file) if !lines.is_empty() => used.push(file),
            Some(_) => {}
            None => {
                wrong.extend(lines.iter().map(|line| format!("{name}:{line}: see UNSAFE_FILES")))
            }
        }
    }
    for file in UNSAFE_FILES.iter().filter(|file| !used.contains(file)) {
        wrong.push(format!("{file} no longer needs to be in UNSAFE_FILES"));
    }
    assert_nothing(&wrong);
    assert!(!sources.is_empty(), "no source was looked at");
}

#[test]
fn every_source_file_is_called_after_what_it_holds() {
    let sources = sources(&workspace());
    let wrong: Vec<String> = sources
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| name.contains("/src/") && !name.starts_with("testing/") && is_vague(name))
        .map(|name| format!("{name} needs a name that says what it holds"))
        .collect();
    assert_nothing(&wrong);
}
