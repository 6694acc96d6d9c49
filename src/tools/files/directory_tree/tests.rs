//! Trees: what is in them, in which order, and how they are cut.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::layout::{Kind, Room, Tree};
use super::{MOST_NODES, walk};
use crate::tools::files::testing::Lab;

async fn tree(lab: &Lab, path: &str, depth: Option<usize>) -> String {
    let mut arguments = json!({"path": lab.path(path)});
    if let Some(depth) = depth {
        arguments["max_depth"] = json!(depth);
    }
    lab.good("directory_tree", arguments).await
}

#[tokio::test]
async fn sorted_indented_and_without_what_is_ignored() {
    let lab = Lab::new();
    for name in ["b/z.txt", "b/a/deep.txt", "a.txt", "c.log", "target/x", ".hidden/y", ".dot", "b/.ignore", "b/no.txt"]
    {
        lab.put(name, "");
    }
    lab.put(".gitignore", "*.log\ntarget/\n");
    lab.put("b/.ignore", "no.txt\n");
    std::fs::create_dir(lab.path("empty")).unwrap();
    let expected =
        format!("{}\n a.txt\n b/\n  a/\n   deep.txt\n  z.txt\n empty/\n\n3 directories, 3 files", lab.root.display());
    assert_eq!(tree(&lab, ".", None).await, expected);
    std::fs::create_dir(lab.path(".git")).unwrap();
    assert_eq!(tree(&lab, ".", None).await, expected, "in a repository too");
    assert!(tree(&lab, ".", Some(1)).await.ends_with(" a.txt\n b/\n empty/\n\n2 directories, 1 files"));
    assert!(tree(&lab, "target", None).await.contains("\n x\n"), "what is asked for is shown");
    let preview = lab.preview("directory_tree", json!({"path": lab.path("b/a")})).await.unwrap();
    assert_eq!(preview.summary.as_deref(), Some("Listing tree: b/a"));
}

#[tokio::test]
async fn what_is_no_folder() {
    let lab = Lab::new();
    lab.put("a.txt", "");
    for (name, expected) in [("a.txt", "is a file, not a folder"), ("b", "does not exist"), ("a.txt/b", "not a folder")]
    {
        let said = lab.bad("directory_tree", json!({"path": lab.path(name)})).await;
        assert!(said.contains(expected), "{said}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn links_are_shown_and_not_followed() {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    let lab = Lab::new();
    lab.put("a/x", "");
    symlink("..", lab.path("a/up")).unwrap();
    symlink("a", lab.path("z")).unwrap();
    lab.put("line\nbreak", "");
    std::fs::write(lab.root.join(std::ffi::OsStr::from_bytes(b"bad\xFF")), "").unwrap();
    let text = tree(&lab, ".", None).await;
    assert!(
        text.contains(" a/\n  up -> ..\n  x\n bad\u{FFFD}\n line\\nbreak\n z -> a\n\n1 directories, 5 files"),
        "{text}"
    );
    assert!(tree(&lab, "z", None).await.starts_with(&format!("{}\n up -> ..\n x\n", lab.path("z").display())));
}

#[tokio::test]
async fn large_trees_are_summed_up() {
    let lab = Lab::new();
    for folder in 0..30 {
        for file in 0..120 {
            lab.put(&format!("d{folder:02}/f{file:03}"), "");
        }
    }
    let text = tree(&lab, ".", None).await;
    assert!(text.ends_with("\n30 directories, 3600 files"), "{}", &text[text.len() - 200..]);
    assert!(text.lines().count() <= 2_000 && text.len() <= 50 * 1024);
    assert!(
        text.contains("\n  … 21 more\n") && text.contains("Not everything is shown"),
        "a folder shows its first ones"
    );
    assert!(text.contains("\n d29/ (120 entries)\n"), "and every folder of the top is there");
}

#[test]
fn the_top_goes_before_the_deep() {
    let mut tree = Tree::default();
    let deep = tree.add(Tree::ROOT, Some("deep"), Kind::Folder);
    let deeper = tree.add(deep, Some("deeper"), Kind::Folder);
    for n in 0..50 {
        tree.add(deeper, Some(format!("{n:02}")), Kind::File);
    }
    tree.add(Tree::ROOT, Some("last"), Kind::File);
    let (text, all) = tree.render(Room { entries: 6, bytes: 1_000 });
    assert_eq!(text, " deep/\n  deeper/\n   00\n   01\n   … 48 more\n last\n");
    assert!(!all);
    let (text, _) = tree.render(Room { entries: 3, bytes: 1_000 });
    assert_eq!(text, " deep/\n  deeper/ (50 entries)\n last\n");
    let (text, _) = tree.render(Room { entries: 1, bytes: 1_000 });
    assert_eq!(text, " … 53 more\n");
    let (text, all) = tree.render(Room { entries: 53, bytes: 10_000 });
    assert!(all && text.lines().count() == 53);
    let (text, _) = tree.render(Room { entries: 53, bytes: 120 });
    assert!(text.len() <= 120 && text.contains(" last\n"), "{text}");
    for _ in 0..10 {
        tree.add(deeper, None::<&str>, Kind::File);
    }
    let (text, _) = tree.render(Room { entries: 60, bytes: 10_000 });
    assert!(text.contains("   49\n   … 10 more\n"), "those that were only counted: {text}");
}

#[test]
fn what_is_not_kept_is_counted() {
    let lab = Lab::new();
    for n in 0..20 {
        lab.put(&format!("d{}/e/f{n}", n % 4), "");
    }
    let stop = CancellationToken::new();
    let walked = walk(&lab.root, 10, 5, &stop).unwrap();
    assert_eq!((walked.tree.len(), walked.tree.counts()), (5, (8, 20)));
    assert_eq!(walk(&lab.root, 10, MOST_NODES, &stop).unwrap().tree.len(), 29);
}

#[test]
fn folders_that_vanish_do_no_harm() {
    let lab = Lab::new();
    let (done, root) = (AtomicBool::new(false), lab.root.join("churn"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = std::fs::create_dir_all(root.join("a/b/c/d"));
                let _ = std::fs::write(root.join("a/b/c/d/x"), "");
                let _ = std::fs::remove_dir_all(&root);
            }
        });
        for _ in 0..50 {
            walk(&lab.root, 10, MOST_NODES, &CancellationToken::new()).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}
