//! Which files count when a folder is walked: not hidden ones, and none that ignore files exclude.

use std::path::Path;

use ignore::WalkBuilder;

/// Walks `root`, which has no links in it, the way ripgrep does. A `.gitignore` counts outside of a
/// repository too, but only from `root` down: one in a home folder must not hide every project.
pub(super) fn walker(root: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    if !root.ancestors().any(|folder| folder.join(".git").exists()) {
        builder.require_git(false).parents(false);
    }
    builder.follow_links(false);
    builder
}
