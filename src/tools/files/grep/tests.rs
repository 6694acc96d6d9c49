//! Searches: what is found, in which order, where it ends.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::search::Search;
use super::{Mode, escape, matcher};
use crate::tools::files::testing::Lab;

/// The output with the folder's own path left out.
async fn grep(lab: &Lab, arguments: Value) -> String {
    lab.good("grep", arguments).await.replace(&format!("{}/", lab.root.display()), "")
}

fn project() -> Lab {
    let lab = Lab::new();
    lab.put("src/main.rs", "fn main() {\n    needle();\n}\n");
    lab.put("src/deep/lib.rs", "// needle and needle\r\nneedle\r\n");
    lab.put("web/app.ts", "needle\n");
    lab.put("web/app.tsx", "Needle\n");
    lab.put("web/none.ts", "nothing\n");
    lab.put(".hidden/x", "needle\n");
    lab.put("built/x.js", "needle\n");
    lab.put(".gitignore", "built\n");
    lab
}

#[tokio::test]
async fn the_three_kinds_of_output() {
    let lab = project();
    let root = &lab.root;
    let files = "src/deep/lib.rs\nsrc/main.rs\nweb/app.ts";
    assert_eq!(grep(&lab, json!({"path": root, "pattern": "needle"})).await, files);
    let content = json!({"path": root, "pattern": "needle", "output_mode": "content"});
    assert_eq!(
        grep(&lab, content).await,
        "src/deep/lib.rs:1:// needle and needle\nsrc/deep/lib.rs:2:needle\nsrc/main.rs:2:    needle();\nweb/app.ts:1:needle"
    );
    let count = json!({"path": root, "pattern": "needle", "output_mode": "count"});
    assert_eq!(grep(&lab, count).await, "src/deep/lib.rs:2\nsrc/main.rs:1\nweb/app.ts:1");
    assert_eq!(grep(&lab, json!({"path": "web", "pattern": "(?i)needle"})).await, "web/app.ts\nweb/app.tsx");
    assert_eq!(grep(&lab, json!({"path": lab.path("src/main.rs"), "pattern": "^fn"})).await, "src/main.rs");
    assert_eq!(grep(&lab, json!({"path": lab.path("built"), "pattern": "needle"})).await, "built/x.js");
    let preview = lab.preview("grep", json!({"path": root, "pattern": "x".repeat(23)})).await.unwrap();
    assert_eq!(preview.summary, Some(format!("Searching: {}…", "x".repeat(22))));
    assert_eq!(&preview.paths[0].path, root);
}

#[tokio::test]
async fn globs_choose_the_files() {
    let lab = project();
    for (include, expected) in [
        ("*.ts", "web/app.ts"),
        ("*.{ts,rs}", "src/deep/lib.rs\nsrc/main.rs\nweb/app.ts"),
        ("*.ts, main.*", "src/main.rs\nweb/app.ts"),
        ("src/**", "src/deep/lib.rs\nsrc/main.rs"),
        ("src/*.rs", "src/main.rs"),
        ("!*.rs", "web/app.ts"),
        ("*.js", "No matches"),
    ] {
        let found = grep(&lab, json!({"path": lab.root, "pattern": "needle", "include": include})).await;
        assert!(found == expected || found.starts_with("No matches") && expected == "No matches", "{include}: {found}");
    }
    let named = json!({"path": lab.path("src/main.rs"), "pattern": "needle", "include": "*.ts"});
    assert_eq!(grep(&lab, named).await, "src/main.rs", "what is named is searched");
    let bad = lab.bad("grep", json!({"path": lab.root, "pattern": "x", "include": "a{b"})).await;
    assert!(bad.contains("not a valid glob"), "{bad}");
}

#[tokio::test]
async fn nothing_found_is_no_error_and_nonsense_is() {
    let lab = project();
    let none = lab.good("grep", json!({"path": lab.root, "pattern": "absent"})).await;
    assert_eq!(none, format!("No matches for absent in {}.", lab.root.display()));
    for (arguments, expected) in [
        (json!({"path": lab.root, "pattern": "a("}), "To search for the text itself, write: a\\("),
        (json!({"path": lab.root, "pattern": "a\\nb"}), "is not usable"),
        (json!({"path": lab.root, "pattern": "(?=x)"}), "is not usable"),
        (json!({"path": lab.root, "pattern": "(\\w{1000}){1000}"}), "is not usable"),
        (json!({"path": lab.root, "pattern": ""}), "`pattern` is empty"),
        (json!({"path": lab.root, "pattern": "a", "output_mode": "all"}), "is not one of"),
        (json!({"path": lab.root, "pattern": "a", "max_results": "many"}), "`max_results` must be"),
        (json!({"path": lab.path("nowhere"), "pattern": "a"}), "does not exist"),
    ] {
        let bad = lab.bad("grep", arguments.clone()).await;
        assert!(bad.contains(expected), "{arguments}: {bad}");
    }
}

#[tokio::test]
async fn binary_files_are_passed_over_and_odd_texts_are_not() {
    let lab = Lab::new();
    lab.put("early", b"needle\0");
    lab.put("late", [&b"needle\n"[..], &b"x".repeat(200_000), b"\0"].concat());
    lab.put("latin", b"gr\xFC\xDFe needle\n");
    lab.put(
        "utf16",
        [&b"\xFF\xFE"[..], &"needle\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()].concat(),
    );
    lab.put("long", format!("{}needle{}", "a".repeat(5_000), "b".repeat(5_000)));
    let found = grep(&lab, json!({"path": lab.root, "pattern": "needle", "output_mode": "content"})).await;
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(
        (lines.len(), lines[0], lines[2]),
        (3, "latin:1:gr\u{FFFD}\u{FFFD}e needle", "utf16:1:needle"),
        "{found}"
    );
    assert!(lines[1].len() < 450 && lines[1].contains("aneedleb"), "{}", lines[1]);
    let named = lab.good("grep", json!({"path": lab.path("early"), "pattern": "needle"})).await;
    assert!(named.starts_with("No matches") && named.ends_with("It is a binary file."), "{named}");
}

#[tokio::test]
async fn the_first_results_are_always_the_same_ones() {
    let lab = Lab::new();
    for n in 0..300 {
        lab.put(&format!("{:02}/{n:03}.txt", n % 30), "needle\nneedle\n");
    }
    let mut paths: Vec<String> = (0..300).map(|n| format!("{:02}/{n:03}.txt", n % 30)).collect();
    paths.sort();
    let note = "\n[There may be more results; narrow the search or raise max_results.]";
    for _ in 0..5 {
        let found = grep(&lab, json!({"path": lab.root, "pattern": "needle", "max_results": 7})).await;
        assert_eq!(found, paths[..7].join("\n") + note);
        let lines = json!({"path": lab.root, "pattern": "needle", "max_results": 3, "output_mode": "content"});
        let expected = format!("{0}:1:needle\n{0}:2:needle\n{1}:1:needle{note}", paths[0], paths[1]);
        assert_eq!(grep(&lab, lines).await, expected);
    }
    assert_eq!(grep(&lab, json!({"path": lab.root, "pattern": "needle"})).await, paths.join("\n"));
}

#[cfg(unix)]
#[tokio::test]
async fn through_a_link_the_paths_are_those_of_the_model() {
    let lab = project();
    std::os::unix::fs::symlink("src", lab.path("link")).unwrap();
    std::os::unix::fs::symlink("..", lab.path("src/loop")).unwrap();
    let found = grep(&lab, json!({"path": lab.path("link"), "pattern": "needle"})).await;
    assert_eq!(found, "link/deep/lib.rs\nlink/main.rs");
}

fn search(root: &Path, stop: &CancellationToken) -> Result<(), String> {
    let search =
        Search { matcher: matcher("x").unwrap(), mode: Mode::Content, most: 10, include: None, stop: stop.clone() };
    search.folder(root).map(drop)
}

#[test]
fn folders_that_vanish_do_no_harm() {
    let lab = Lab::new();
    let (done, root) = (AtomicBool::new(false), lab.root.join("churn"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for n in 0..8 {
                    let _ = std::fs::create_dir_all(root.join(format!("a/{n}")));
                    let _ = std::fs::write(root.join(format!("a/{n}/x")), "x");
                }
                let _ = std::fs::remove_dir_all(&root);
            }
        });
        for _ in 0..50 {
            search(&lab.root, &CancellationToken::new()).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_stop_ends_the_search_of_one_endless_file() {
    let lab = Lab::new();
    // So large that it would take minutes, and without a line end.
    std::fs::File::create(lab.path("sparse")).unwrap().set_len(1 << 40).unwrap();
    let stop = CancellationToken::new();
    stop.cancel();
    assert!(search(&lab.root, &stop).unwrap_err().contains("stopped"));
}

#[test]
fn the_hint_matches_the_text_itself() {
    use grep_matcher::Matcher;
    let text = r#"a.b*c+d?(e)|[f]{g}^h$i\j -"k"/&~#%@'`é"#;
    let matcher = matcher(&escape(text)).unwrap();
    assert!(matcher.is_match(text.as_bytes()).unwrap() && !matcher.is_match(b"aXb").unwrap());
}
