//! What of a workspace is found and listed: `index` and its relatives, typed.

/// `index`, and how much a search of it returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexConfig {
    /// Whether files that are ignored by git or by a `.ignore` file are left out: `ignoreFiles`.
    pub ignores: bool,
    pub repo_map: RepoMapConfig,
    /// `chat.queryLimit`: how many files and directories one query returns.
    pub query_limit: u32,
}

/// `index.repoMap`: how long the overview of a workspace may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepoMapConfig {
    pub max_total_entries: u32,
    pub max_entries_per_dir: u32,
}

impl Default for IndexConfig {
    fn default() -> Self {
        Self { ignores: true, repo_map: RepoMapConfig::default(), query_limit: 100 }
    }
}

impl Default for RepoMapConfig {
    fn default() -> Self {
        Self { max_total_entries: 800, max_entries_per_dir: 50 }
    }
}
