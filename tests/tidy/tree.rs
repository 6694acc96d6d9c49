//! The files of the repository, read once.

use std::path::{Path, PathBuf};

use crate::scan::Source;

/// Never part of the sources.
const SKIPPED: [&str; 7] = ["target", "node_modules", "dist", ".neovim", ".venv", ".venv-mcp", ".git"];

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The text of one file of the repository; empty when it is not there.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_default()
}

/// Every file below the given folders, relative to the repository and sorted.
pub(crate) fn files(folders: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for folder in folders {
        walk(&root().join(folder), folder, &mut found);
    }
    found.sort();
    found
}

/// Every Rust file, with test modules in files of their own marked as tests.
pub(crate) fn sources() -> Vec<Source> {
    let paths = files(&["src", "custom_methods", "guard", "tests", "benches"]);
    let mut sources: Vec<Source> =
        paths.iter().filter(|path| path.ends_with(".rs")).map(|path| Source::new(path, &read(path))).collect();
    let marked: Vec<String> = sources.iter().flat_map(test_files).collect();
    for source in &mut sources {
        let stem = source.path.trim_end_matches(".rs");
        source.only_tests |= marked.iter().any(|module| stem == module || stem.starts_with(&format!("{module}/")));
    }
    sources
}

/// The names at the top of the repository.
pub(crate) fn top_level() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(root())
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The files, without `.rs`, of the test modules that `source` declares.
fn test_files(source: &Source) -> Vec<String> {
    let stem = source.path.trim_end_matches(".rs");
    let folder = match stem.rsplit_once('/') {
        Some((folder, "lib" | "main")) => folder,
        _ => stem,
    };
    source.test_modules.iter().map(|module| format!("{folder}/{module}")).collect()
}

fn walk(folder: &Path, name: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let own = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{name}/{own}");
        if SKIPPED.contains(&own.as_str()) {
            continue;
        }
        if entry.path().is_dir() {
            walk(&entry.path(), &path, found);
        } else {
            found.push(path);
        }
    }
}
