//! What a user may attach, by what they have typed so far.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::index::{Hit, Index, Kind, patience};
use super::paths::{Places, without_dots};

use crate::base::task;
use crate::base::text::file_name;

/// One query offers no more than this, whatever the configuration says.
const MOST_OFFERED: usize = 1_000;
/// A directory with more entries is listed in part.
const MOST_ENTRIES: usize = 20_000;
/// A directory that does not answer, such as one on another machine, is not waited for.
const PATIENCE: Duration = patience(200);

/// Something that can be attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContextHit {
    RepoMap,
    /// The cursor, wherever it is when the prompt is sent.
    Cursor,
    Directory(PathBuf),
    File(PathBuf),
    McpResource(McpResource),
}

/// A resource that an MCP server offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McpResource {
    pub server: String,
    pub uri: String,
    pub name: String,
    pub description: String,
    pub mime_type: String,
}

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// What was typed; blank for everything.
    pub text: &'a str,
    /// How many files and directories are wanted.
    pub limit: usize,
    pub places: &'a Places,
}

/// Everything that fits: the overview and the cursor, the roots, files and directories, resources.
/// What is `chosen` already is left out.
pub async fn contexts(
    index: &Index,
    query: Query<'_>,
    resources: &[McpResource],
    chosen: &[ContextHit],
) -> Vec<ContextHit> {
    let text = query.text.trim();
    let mut found = Vec::new();
    if !is_path(text) {
        let special = [(ContextHit::RepoMap, "repoMap"), (ContextHit::Cursor, "cursor")];
        found.extend(special.into_iter().filter(|(_, name)| fits(text, name)).map(|(hit, _)| hit));
        let roots = index.roots().iter().filter(|root| root.to_str().is_some() && fits(text, &file_name(root)));
        found.extend(roots.cloned().map(ContextHit::Directory));
    }
    found.extend(files(index, query).await);
    if !is_path(text) {
        let offered = resources.iter().filter(|resource| fits(text, &resource.name) || contains(&resource.uri, text));
        found.extend(offered.take(MOST_OFFERED).cloned().map(ContextHit::McpResource));
    }
    let mut offered: Vec<ContextHit> = Vec::with_capacity(found.len());
    let mut paths = HashSet::new();
    for hit in found {
        let is_new = match &hit {
            ContextHit::Directory(path) | ContextHit::File(path) => paths.insert(path.clone()),
            ContextHit::RepoMap | ContextHit::Cursor | ContextHit::McpResource(_) => true,
        };
        if is_new && !chosen.iter().any(|chosen| is_same(chosen, &hit)) {
            offered.push(hit);
        }
    }
    offered
}

/// The files and directories that fit.
pub async fn files(index: &Index, query: Query<'_>) -> Vec<ContextHit> {
    let text = query.text.trim();
    let limit = query.limit.min(MOST_OFFERED);
    let mut hits = Vec::new();
    if is_path(text) || text.contains('/') {
        hits = listed(text, query.places, limit).await;
    }
    if !is_path(text) {
        hits.extend(index.query(text, limit).await.hits);
    }
    let mut known = HashSet::new();
    let new = hits.into_iter().filter(|hit| known.insert(hit.path.clone()));
    let offered = new.take(limit).map(|hit| match hit.kind {
        Kind::Directory => ContextHit::Directory(hit.path),
        Kind::File => ContextHit::File(hit.path),
    });
    offered.collect()
}

/// Whether the text leads to a place of its own instead of saying what is looked for.
fn is_path(text: &str) -> bool {
    let starts = ["/", "~/", "./", "../"];
    starts.iter().any(|start| text.starts_with(start)) || text == "~" || text == ".." || Path::new(text).is_absolute()
}

/// What is in the directory that the text leads to, or that begins as its last part does.
async fn listed(text: &str, places: &Places, limit: usize) -> Vec<Hit> {
    let (directory, start) = match text.rsplit_once('/') {
        _ if text == "~" || text == ".." => (text, ""),
        Some(("", start)) => ("/", start),
        Some((directory, start)) => (directory, start),
        None => return Vec::new(),
    };
    let directories = places.meant_by(directory);
    let start = start.to_owned();
    let listing = task::blocking(move || {
        let mut hits: Vec<Hit> = directories.iter().flat_map(|directory| list(directory, &start, limit)).collect();
        // A directory that is named in full is looked into as well.
        if !start.is_empty() {
            let inside: Vec<PathBuf> = directories.iter().map(|directory| directory.join(&start)).collect();
            hits.extend(inside.iter().flat_map(|directory| list(directory, "", limit)));
        }
        hits
    });
    match tokio::time::timeout(PATIENCE, listing).await {
        Ok(Ok(hits)) => hits,
        _ => Vec::new(),
    }
}

fn list(directory: &Path, start: &str, limit: usize) -> Vec<Hit> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let wanted = start.to_lowercase();
    let mut found: Vec<((bool, bool, String), Hit)> = Vec::new();
    for entry in entries.take(MOST_ENTRIES).flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| *name != ".git") else { continue };
        let lower = name.to_lowercase();
        if !lower.contains(&wanted) {
            continue;
        }
        let kind = match std::fs::metadata(entry.path()) {
            Ok(metadata) if metadata.is_dir() => Kind::Directory,
            Ok(metadata) if metadata.is_file() => Kind::File,
            _ => continue,
        };
        // What begins so comes before what only contains it, and hidden files come last.
        let is_hidden = name.starts_with('.') && !wanted.starts_with('.');
        let hit = Hit { path: without_dots(&directory.join(name)), kind };
        found.push(((!lower.starts_with(&wanted), is_hidden, lower), hit));
    }
    found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    found.into_iter().map(|(_, hit)| hit).take(limit).collect()
}

/// Whether the letters of `text` come in `name` in this order, whatever their case.
fn fits(text: &str, name: &str) -> bool {
    let mut letters = name.chars().flat_map(char::to_lowercase);
    let mut wanted = text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase);
    wanted.all(|wanted| letters.any(|letter| letter == wanted))
}

fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

fn is_same(one: &ContextHit, other: &ContextHit) -> bool {
    match (one, other) {
        (ContextHit::McpResource(one), ContextHit::McpResource(other)) => {
            (&one.server, &one.uri) == (&other.server, &other.uri)
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::IndexConfig;

    struct Workspace {
        folder: tempfile::TempDir,
        index: Index,
        places: Places,
    }

    impl Workspace {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            for path in
                ["w/src/chat/prompt.rs", "w/src/main.rs", "w/.env", "w/target/out.log", "home/notes.md", "w/.git/x"]
            {
                let file = folder.path().join(path);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, "x").unwrap();
            }
            std::fs::write(folder.path().join("w/.gitignore"), "target/\n").unwrap();
            let root = folder.path().join("w");
            let places = Places { roots: vec![root.clone()], home: Some(folder.path().join("home")) };
            Self { index: Index::new([root], &IndexConfig::default()), folder, places }
        }

        fn query<'a>(&'a self, text: &'a str, limit: usize) -> Query<'a> {
            Query { text, limit, places: &self.places }
        }

        /// Relative to the folder; directories with a slash.
        fn shown(&self, hits: &[ContextHit]) -> Vec<String> {
            let path = |path: &Path| match path.strip_prefix(self.folder.path()) {
                Ok(path) => path.display().to_string(),
                Err(_) => path.display().to_string(),
            };
            hits.iter()
                .map(|hit| match hit {
                    ContextHit::RepoMap => "repoMap".into(),
                    ContextHit::Cursor => "cursor".into(),
                    ContextHit::Directory(directory) => format!("{}/", path(directory)),
                    ContextHit::File(file) => path(file),
                    ContextHit::McpResource(resource) => resource.uri.clone(),
                })
                .collect()
        }

        async fn files(&self, text: &str) -> Vec<String> {
            self.shown(&files(&self.index, self.query(text, 100)).await)
        }
    }

    fn resource(name: &str) -> McpResource {
        McpResource { name: name.into(), uri: format!("res://{name}"), ..McpResource::default() }
    }

    #[tokio::test]
    async fn nothing_typed_offers_every_kind() {
        let workspace = Workspace::new();
        let all = contexts(&workspace.index, workspace.query("", 100), &[resource("table")], &[]).await;
        let expected = [
            "repoMap",
            "cursor",
            "w/",
            "w/.env",
            "w/.gitignore",
            "w/src/",
            "w/src/chat/",
            "w/src/main.rs",
            "w/src/chat/prompt.rs",
            "res://table",
        ];
        assert_eq!(workspace.shown(&all), expected);
        let few = contexts(&workspace.index, workspace.query(" ", 2), &[resource("table")], &[]).await;
        assert_eq!(workspace.shown(&few), ["repoMap", "cursor", "w/", "w/.env", "w/.gitignore", "res://table"]);
    }

    #[tokio::test]
    async fn what_is_chosen_is_not_offered_again() {
        let workspace = Workspace::new();
        let root = workspace.places.roots[0].clone();
        let chosen = [
            ContextHit::Cursor,
            ContextHit::Directory(root.clone()),
            ContextHit::File(root.join(".env")),
            ContextHit::McpResource(McpResource { name: "other".into(), ..resource("table") }),
        ];
        let offered = contexts(&workspace.index, workspace.query("", 3), &[resource("table")], &chosen).await;
        assert_eq!(workspace.shown(&offered), ["repoMap", "w/.gitignore", "w/src/"]);
    }

    #[tokio::test]
    async fn what_is_typed_filters_every_kind() {
        let workspace = Workspace::new();
        for (text, expected) in [
            ("chtprm", &["w/src/chat/prompt.rs"][..]),
            ("cur", &["cursor"]),
            ("tab", &["res://table"]),
            ("RES://", &["res://table"]),
        ] {
            let found = contexts(&workspace.index, workspace.query(text, 100), &[resource("table")], &[]).await;
            assert_eq!(workspace.shown(&found), expected, "{text}");
        }
        assert_eq!(workspace.files("chtprm").await, ["w/src/chat/prompt.rs"]);
    }

    #[tokio::test]
    async fn a_path_lists_its_directory() {
        let workspace = Workspace::new();
        let absolute = workspace.folder.path().join("w/sr").display().to_string();
        for (text, expected) in [
            ("~", &["home/notes.md"][..]),
            ("~/", &["home/notes.md"]),
            ("~/NO", &["home/notes.md"]),
            ("~/x", &[]),
            ("./", &["w/src/", "w/target/", "w/.env", "w/.gitignore"]),
            ("../", &["home/", "w/"]),
            ("..", &["home/", "w/"]),
            (&absolute, &["w/src/"]),
            ("./src", &["w/src/", "w/src/chat/", "w/src/main.rs"]),
            ("./nowhere/", &[]),
        ] {
            assert_eq!(workspace.files(text).await, expected, "{text}");
            let found = contexts(&workspace.index, workspace.query(text, 100), &[resource("x")], &[]).await;
            assert_eq!(workspace.shown(&found), expected, "{text}");
        }
    }

    #[tokio::test]
    async fn a_directory_of_the_workspace_is_listed_before_what_fits_otherwise() {
        let workspace = Workspace::new();
        assert_eq!(workspace.files("src/").await, ["w/src/chat/", "w/src/main.rs", "w/src/chat/prompt.rs"]);
        assert_eq!(workspace.files("target/o").await, ["w/target/out.log"], "also when it is ignored");
        assert_eq!(workspace.files("chat/p").await, ["w/src/chat/prompt.rs"]);
    }

    #[test]
    fn letters_fit_in_their_order() {
        for (text, name, expected) in [
            ("", "cursor", true),
            ("CR", "cursor", true),
            ("rm", "repoMap", true),
            ("mr", "repoMap", false),
            ("cursors", "cursor", false),
        ] {
            assert_eq!(fits(text, name), expected, "{text} {name}");
        }
    }
}
