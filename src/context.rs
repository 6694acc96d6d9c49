//! What users point at: the files of a workspace to choose from, and what is chosen as parts of a
//! message.

pub mod index;
pub mod query;
pub mod render;
pub mod repo_map;
pub mod web;

mod files;
mod mention;
mod paths;
mod share;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use index::Index;
pub use paths::Places;

use crate::config::IndexConfig;
use crate::workspace::Workspace;

/// So many workspaces are kept at hand.
const MOST_INDEXES: usize = 4;

/// The indexes of the workspaces in use; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Indexes(Arc<Mutex<Vec<Entry>>>);

#[derive(Debug)]
struct Entry {
    roots: Vec<PathBuf>,
    config: IndexConfig,
    index: Arc<Index>,
}

impl Indexes {
    /// The index of these folders. One that has not been asked for lately is given up.
    pub fn of(&self, workspace: &Workspace, config: &IndexConfig) -> Arc<Index> {
        let roots: Vec<PathBuf> = workspace.roots().iter().map(|root| root.path.clone()).collect();
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = entries.iter().position(|entry| entry.roots == roots && entry.config == *config);
        let entry = known.map(|position| entries.remove(position)).unwrap_or_else(|| {
            let index = Arc::new(Index::new(roots.clone(), config));
            Entry { roots, config: config.clone(), index }
        });
        let index = Arc::clone(&entry.index);
        // The same folders with other rules are not needed any more.
        entries.retain(|other| other.roots != entry.roots);
        if entries.len() >= MOST_INDEXES {
            entries.remove(0);
        }
        entries.push(entry);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(path: &str) -> Workspace {
        Workspace::from_folders(&[(path.to_owned(), None)]).0
    }

    #[test]
    fn a_workspace_has_one_index_until_its_rules_change_or_others_are_used() {
        let indexes = Indexes::default();
        let config = IndexConfig::default();
        let first = indexes.of(&workspace("/a"), &config);
        assert!(Arc::ptr_eq(&first, &indexes.clone().of(&workspace("/a"), &config)));
        let other = indexes.of(&workspace("/a"), &IndexConfig { ignores: false, ..config.clone() });
        assert!(!Arc::ptr_eq(&first, &other));
        for number in 0..MOST_INDEXES {
            indexes.of(&workspace(&format!("/b{number}")), &config);
        }
        assert_eq!(Arc::strong_count(&other), 1, "nobody else holds it");
    }
}
