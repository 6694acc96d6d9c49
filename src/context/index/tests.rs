//! The index on real trees: what it finds, and how it follows what happens to them.

use std::path::Path;

use super::*;

const HANG: Duration = Duration::from_secs(20);

/// Files by their paths; a path with a slash at its end is an empty directory.
fn tree(paths: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for path in paths {
        add(folder.path(), path);
    }
    folder
}

fn add(root: &Path, path: &str) {
    let file = root.join(path);
    if path.ends_with('/') {
        std::fs::create_dir_all(file).unwrap();
    } else {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "x").unwrap();
    }
}

fn index(root: &Path) -> Index {
    Index::new([root.to_owned()], &IndexConfig::default())
}

/// Everything that is known, with a slash after directories.
async fn all(index: &Index) -> Vec<String> {
    let read = |entries: &mut dyn Iterator<Item = (usize, &str, Kind)>| {
        entries
            .map(|(_, path, kind)| if kind == Kind::Directory { format!("{path}/") } else { path.to_owned() })
            .collect()
    };
    index.read_all(HANG, read).await.unwrap()
}

async fn found(index: &Index, root: &Path, query: &str) -> Vec<String> {
    let hits = index.query(query, 10).await;
    hits.hits.iter().map(|hit| hit.path.strip_prefix(root).unwrap().display().to_string()).collect()
}

/// Waits until the index is as it should be, change by change.
async fn becomes(index: &Index, expected: &[&str]) {
    let mut seen = Vec::new();
    let steps = async {
        loop {
            let before = index.progress();
            seen = all(index).await;
            if seen == expected {
                return;
            }
            index.changed_since(before).await;
        }
    };
    if tokio::time::timeout(HANG, steps).await.is_err() {
        panic!("{seen:?} instead of {expected:?}");
    }
}

#[tokio::test]
async fn everything_is_found_that_is_not_ignored() {
    let folder = tree(&[
        ".git/config",
        ".gitignore",
        ".hidden/a",
        "deep/.gitignore",
        "deep/kept.log",
        "deep/own.tmp",
        "empty/",
        "src/main.rs",
        "target/debug/x",
        "top.log",
    ]);
    std::fs::write(folder.path().join(".gitignore"), "target/\n*.log\n").unwrap();
    std::fs::write(folder.path().join("deep/.gitignore"), "!kept.log\n*.tmp\n").unwrap();
    let expected = [
        ".gitignore",
        ".hidden/",
        ".hidden/a",
        "deep/",
        "deep/.gitignore",
        "deep/kept.log",
        "empty/",
        "src/",
        "src/main.rs",
    ];
    assert_eq!(all(&index(folder.path())).await, expected);
    let unfiltered = Index::new([folder.path().to_owned()], &IndexConfig { ignores: false, ..IndexConfig::default() });
    let everything = all(&unfiltered).await;
    assert!(everything.contains(&"target/debug/x".to_owned()), "{everything:?}");
    assert!(!everything.iter().any(|path| path.starts_with(".git/")), "{everything:?}");
}

#[tokio::test]
async fn a_folder_that_is_no_repository_is_not_ruled_from_above() {
    let folder = tree(&["project/a"]);
    std::fs::write(folder.path().join(".gitignore"), "*\n").unwrap();
    assert_eq!(all(&index(&folder.path().join("project"))).await, ["a"]);
    std::fs::create_dir(folder.path().join(".git")).unwrap();
    assert_eq!(all(&index(&folder.path().join("project"))).await, Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn links_are_offered_and_not_followed_and_odd_files_are_left_out() {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    let folder = tree(&["real/a"]);
    let root = folder.path();
    symlink(root, root.join("real/up")).unwrap();
    symlink("up", root.join("real/up2")).unwrap();
    symlink("round", root.join("round")).unwrap();
    symlink("real/a", root.join("alias")).unwrap();
    symlink("nowhere", root.join("broken")).unwrap();
    std::fs::write(root.join(std::ffi::OsStr::from_bytes(b"not\xffutf8")), "x").unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert_eq!(all(&index(root)).await, ["alias", "real/", "real/a", "real/up/", "real/up2/"]);
    // A root may be a link itself, and its files are named as the client names it.
    let link = root.join("real/up/alias-of-root");
    symlink(root.join("real"), &link).unwrap();
    let linked = Index::new([link.clone()], &IndexConfig::default());
    assert_eq!(found(&linked, &link, "a").await[0], "a");
}

#[tokio::test]
async fn what_happens_in_the_tree_is_followed() {
    let folder = tree(&["a.rs", "dir/old.rs", "dir/deep/x.rs"]);
    let root = folder.path();
    let index = index(root);
    becomes(&index, &["a.rs", "dir/", "dir/deep/", "dir/deep/x.rs", "dir/old.rs"]).await;
    add(root, "dir/new.rs");
    becomes(&index, &["a.rs", "dir/", "dir/deep/", "dir/deep/x.rs", "dir/new.rs", "dir/old.rs"]).await;
    std::fs::rename(root.join("dir/new.rs"), root.join("b.rs")).unwrap();
    becomes(&index, &["a.rs", "b.rs", "dir/", "dir/deep/", "dir/deep/x.rs", "dir/old.rs"]).await;
    std::fs::remove_file(root.join("dir/old.rs")).unwrap();
    becomes(&index, &["a.rs", "b.rs", "dir/", "dir/deep/", "dir/deep/x.rs"]).await;
    std::fs::rename(root.join("dir"), root.join("moved")).unwrap();
    becomes(&index, &["a.rs", "b.rs", "moved/", "moved/deep/", "moved/deep/x.rs"]).await;
    add(root, "moved/deep/later/y.rs");
    becomes(
        &index,
        &["a.rs", "b.rs", "moved/", "moved/deep/", "moved/deep/later/", "moved/deep/later/y.rs", "moved/deep/x.rs"],
    )
    .await;
    assert_eq!(found(&index, root, "later y").await, ["moved/deep/later/y.rs"]);
    std::fs::remove_dir_all(root.join("moved")).unwrap();
    becomes(&index, &["a.rs", "b.rs"]).await;
    std::fs::remove_file(root.join("b.rs")).unwrap();
    add(root, "b.rs/now/a_directory");
    becomes(&index, &["a.rs", "b.rs/", "b.rs/now/", "b.rs/now/a_directory"]).await;
}

#[tokio::test]
async fn rules_that_change_are_followed_too() {
    let folder = tree(&["a.log", "a.rs", "sub/b.log"]);
    let root = folder.path();
    let index = index(root);
    becomes(&index, &["a.log", "a.rs", "sub/", "sub/b.log"]).await;
    std::fs::write(root.join(".gitignore"), "*.log\n").unwrap();
    becomes(&index, &[".gitignore", "a.rs", "sub/"]).await;
    // New files obey the rules that were there before them.
    add(root, "sub/c.log");
    add(root, "sub/c.rs");
    becomes(&index, &[".gitignore", "a.rs", "sub/", "sub/c.rs"]).await;
    std::fs::write(root.join(".gitignore"), "*.rs\n").unwrap();
    becomes(&index, &[".gitignore", "a.log", "sub/", "sub/b.log", "sub/c.log"]).await;
}

#[tokio::test]
async fn an_ignored_directory_costs_no_attention() {
    let folder = tree(&["a.rs", "target/x"]);
    let root = folder.path();
    std::fs::write(root.join(".gitignore"), "target/\n").unwrap();
    let index = index(root);
    becomes(&index, &[".gitignore", "a.rs"]).await;
    let before = index.progress();
    add(root, "target/deep/y");
    add(root, "b.rs");
    let after = index.changed_since(before).await;
    assert_eq!(after.generation, before.generation + 1, "only the second was noticed");
    becomes(&index, &[".gitignore", "a.rs", "b.rs"]).await;
}

#[tokio::test]
async fn a_root_may_come_and_go() {
    let folder = tree(&[]);
    let root = folder.path().join("root");
    let index = Index::new([root.clone()], &IndexConfig::default());
    assert_eq!(index.query("", 10).await, Hits { hits: Vec::new(), is_complete: true });
    // What is not there cannot be watched; it is looked for again when it is asked for, later.
    add(&root, "a.rs");
    *index.shared.unwatched_since.lock().unwrap() = Instant::now().checked_sub(STALE);
    becomes(&index, &["a.rs"]).await;
    std::fs::remove_dir_all(&root).unwrap();
    becomes(&index, &[]).await;
}

#[tokio::test]
async fn without_watches_old_answers_are_renewed() {
    let folder = tree(&["a.rs"]);
    let index = Index::with(vec![folder.path().to_owned()], true, false);
    assert_eq!(found(&index, folder.path(), "rs").await, ["a.rs"]);
    add(folder.path(), "b.rs");
    let before = index.progress();
    assert_eq!(found(&index, folder.path(), "rs").await, ["a.rs"], "not old yet");
    *index.shared.unwatched_since.lock().unwrap() = Instant::now().checked_sub(STALE);
    assert_eq!(found(&index, folder.path(), "rs").await, ["a.rs"], "nobody waits for the walk");
    index.changed_since(before).await;
    assert_eq!(found(&index, folder.path(), "rs").await, ["a.rs", "b.rs"]);
}

#[tokio::test]
async fn more_directories_than_can_be_watched_are_still_found() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..300 {
        std::fs::create_dir(folder.path().join(format!("d{number}"))).unwrap();
    }
    let index = index(folder.path());
    assert_eq!(all(&index).await.len(), 300);
    assert!(index.shared.unwatched_since.lock().unwrap().is_some());
}

#[tokio::test]
async fn a_query_that_grows_searches_only_what_fitted_and_what_came_since() {
    let folder = tree(&["chat/prompt.rs", "chat/other.rs", "main.rs"]);
    let root = folder.path();
    let index = index(root);
    assert_eq!(found(&index, root, "c").await.len(), 3);
    assert_eq!(found(&index, root, "cht").await.len(), 3);
    let fitting = |query: &str| {
        let (_, candidates) = index.shared.candidates(&index.shared.table(), &Needle::new(query));
        candidates.len()
    };
    assert_eq!((fitting("chtp"), fitting("m"), fitting("c h")), (3, 4, 3));
    assert_eq!(found(&index, root, "chtprm").await, ["chat/prompt.rs"]);
    assert_eq!(fitting("chtprmx"), 1);
    let before = index.progress();
    add(root, "chat/prompter.rs");
    index.changed_since(before).await;
    assert_eq!(found(&index, root, "chtprm").await, ["chat/prompt.rs", "chat/prompter.rs"]);
    assert_eq!(found(&index, root, "chtprmter").await, ["chat/prompter.rs"]);
    let before = index.progress();
    std::fs::remove_file(root.join("chat/prompter.rs")).unwrap();
    index.changed_since(before).await;
    assert_eq!(found(&index, root, "chtprm").await, ["chat/prompt.rs"]);
}

#[tokio::test]
async fn several_roots_are_one_and_nothing_comes_twice() {
    let folder = tree(&["a/one.rs", "a/inner/two.rs", "b/one.rs"]);
    let path = |name: &str| folder.path().join(name);
    let index = Index::new([path("a"), path("a/inner"), path("b")], &IndexConfig::default());
    let hits = index.query("rs", 10).await;
    let mut paths: Vec<PathBuf> = hits.hits.into_iter().map(|hit| hit.path).collect();
    paths.sort();
    assert_eq!(paths, [path("a/inner/two.rs"), path("a/one.rs"), path("b/one.rs")]);
    // The same file is below two roots; both notice.
    let before = index.progress();
    std::fs::rename(path("a/inner/two.rs"), path("a/inner/three.rs")).unwrap();
    index.changed_since(before).await;
    let expected = ["inner/", "inner/three.rs", "one.rs", "three.rs", "one.rs"];
    becomes(&index, &expected).await;
}

#[tokio::test]
async fn a_hundred_thousand_paths_are_searched_through() {
    let index = Index::with(Vec::new(), true, false);
    // Nothing is walked, so what is put in stays.
    assert!(index.query("", 1).await.is_complete);
    let mut table = Table::default();
    for number in 0..100_000 {
        table.push(0, &format!("src/part_{}/module_{}/file_{number}.rs", number % 50, number % 700), Kind::File);
    }
    table.push(0, "src/chat/prompt.rs", Kind::File);
    *index.shared.table_mut() = table.tidied();
    let shared = Arc::clone(&index.shared);
    for query in ["", "s", "sr", "src", "chtprm", "chtprmrs", "file_99999", "no such thing", "r s"] {
        let needle = Arc::new(Needle::new(query));
        let (_, is_whole) = Arc::clone(&shared).search(&needle, 100).await.unwrap();
        assert!(is_whole || cfg!(debug_assertions), "{query}");
    }
    let kept: usize = shared.answers.lock().unwrap().iter().map(|answer| answer.fitting.len() * size_of::<Id>()).sum();
    assert!(shared.table().bytes() + kept < 25 * 1024 * 1024);
}

#[tokio::test]
async fn dropping_it_ends_its_work() {
    let folder = tree(&["a.rs"]);
    let index = index(folder.path());
    assert_eq!(all(&index).await, ["a.rs"]);
    let shared = Arc::downgrade(&index.shared);
    drop(index);
    let gone = async {
        while shared.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANG, gone).await.expect("nobody holds it any more");
}

#[tokio::test]
async fn a_walk_that_was_dropped_stops() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..2_000 {
        std::fs::write(folder.path().join(format!("f{number}")), "").unwrap();
    }
    let index = index(folder.path());
    index.start();
    index.shared.is_stopped.store(true, Ordering::Relaxed);
    let shared = Arc::downgrade(&index.shared);
    drop(index);
    let gone = async {
        while shared.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANG, gone).await.expect("the walk ended");
}
