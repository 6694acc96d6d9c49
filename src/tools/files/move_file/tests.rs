//! Moves of files, folders and links, and what stands in their way.

use serde_json::{Value, json};

use crate::tool::Access;
use crate::tools::files::testing::Lab;

fn to(lab: &Lab, source: &str, destination: &str) -> Value {
    json!({"source": lab.path(source), "destination": lab.path(destination)})
}

#[tokio::test]
async fn a_file_is_moved_with_what_is_known_of_it() {
    let lab = Lab::new();
    let source = lab.put("a.txt", b"\xFFbytes");
    lab.context.seen.saw(&source, "known");
    let preview = lab.preview("move_file", to(&lab, "a.txt", "new/b.txt")).await.unwrap();
    assert_eq!(preview.summary.as_deref(), Some("Moving a.txt"));
    let touched: Vec<_> = preview.paths.iter().map(|path| (path.path.clone(), path.access)).collect();
    assert_eq!(touched, [(source.clone(), Access::Write), (lab.path("new/b.txt"), Access::Write)]);
    let rename = lab.preview("move_file", to(&lab, "a.txt", "b.txt")).await.unwrap();
    assert_eq!(rename.summary.as_deref(), Some("Renaming a.txt"));
    assert_eq!(lab.names(), ["a.txt"]);

    let said = lab.good("move_file", to(&lab, "a.txt", "new/b.txt")).await;
    assert_eq!(said, format!("Moved {} to {}.", source.display(), lab.path("new/b.txt").display()));
    assert_eq!((lab.names(), lab.bytes("new/b.txt").as_slice()), (vec!["new".to_owned()], &b"\xFFbytes"[..]));
    let changes = lab.journal.changes.lock().unwrap();
    let bytes = Some(bytes::Bytes::from_static(b"\xFFbytes"));
    assert_eq!((&changes[0].path, &changes[0].before, &changes[0].after), (&source, &bytes, &None));
    assert_eq!((&changes[1].path, &changes[1].before, &changes[1].after), (&lab.path("new/b.txt"), &None, &bytes));
    assert_eq!(lab.context.seen.last(&source), None);
    assert_eq!(lab.context.seen.last(&lab.path("new/b.txt")).as_deref(), Some("known"));
}

#[tokio::test]
async fn nothing_is_ever_overwritten() {
    let lab = Lab::new();
    lab.put("a.txt", "a");
    lab.put("b.txt", "b");
    lab.put("folder/c.txt", "c");
    for (source, destination, expected) in [
        ("a.txt", "b.txt", "exists already"),
        ("a.txt", "folder", "Give the name in it too"),
        ("a.txt", "a.txt", "are the same"),
        ("none.txt", "x.txt", "does not exist"),
        ("folder", "folder/below/it", "into itself"),
        ("a.txt", "b.txt/below", "not a folder"),
    ] {
        let preview = lab.preview("move_file", to(&lab, source, destination)).await;
        let run = lab.bad("move_file", to(&lab, source, destination)).await;
        assert!(run.contains(expected), "{run}");
        assert_eq!(preview.unwrap_err(), run, "nobody is asked");
    }
    assert!(lab.bad("move_file", json!({"source": "/", "destination": lab.path("x")})).await.contains("no name"));
    assert_eq!((lab.text("a.txt").as_str(), lab.text("b.txt").as_str()), ("a", "b"));

    let appears = lab.path("late.txt");
    lab.journal.once(move || std::fs::write(&appears, "late").unwrap());
    let refused = lab.bad("move_file", to(&lab, "a.txt", "late.txt")).await;
    assert!(refused.contains("exists already; nothing was moved"), "{refused}");
    assert_eq!((lab.text("a.txt").as_str(), lab.text("late.txt").as_str()), ("a", "late"));
}

#[tokio::test]
async fn folders_move_whole_and_links_as_links() {
    let lab = Lab::new();
    lab.put("folder/deep/a.txt", "a");
    let said = lab.good("move_file", to(&lab, "folder", "other/place")).await;
    assert!(said.contains("cannot be taken back"), "{said}");
    assert_eq!(lab.text("other/place/deep/a.txt"), "a");
    assert!(lab.journal.changes.lock().unwrap().is_empty());
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("other/place/deep/a.txt", lab.path("link")).unwrap();
        lab.good("move_file", to(&lab, "link", "renamed")).await;
        assert!(lab.path("renamed").is_symlink() && !lab.path("link").is_symlink());
        assert_eq!(lab.text("other/place/deep/a.txt"), "a");
        std::fs::hard_link(lab.path("other/place/deep/a.txt"), lab.path("twin")).unwrap();
        assert!(lab.bad("move_file", to(&lab, "twin", "other/place/deep/a.txt")).await.contains("exists already"));
    }
}

#[tokio::test]
async fn what_is_not_saved_is_not_left_behind() {
    let lab = Lab::new();
    let path = lab.put("a.txt", "a");
    lab.host.unsaved.lock().unwrap().insert(path, "more".to_owned());
    let refused = lab.bad("move_file", to(&lab, "a.txt", "b.txt")).await;
    assert!(refused.contains("not saved"), "{refused}");
    assert_eq!(lab.names(), ["a.txt"]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn to_another_file_system() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let lab = Lab::new();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return };
    if other.path().metadata().unwrap().dev() == lab.root.metadata().unwrap().dev() {
        // There is only one file system here.
        return;
    }
    let path = lab.put("a.sh", "a");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    let there = other.path().join("b.sh");
    lab.good("move_file", json!({"source": path, "destination": there})).await;
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "a");
    assert_eq!(there.metadata().unwrap().permissions().mode() & 0o777, 0o751);
    assert!(lab.names().is_empty());
    lab.put("folder/x", "x");
    let refused =
        lab.bad("move_file", json!({"source": lab.path("folder"), "destination": other.path().join("f")})).await;
    assert!(refused.contains("another file system"), "{refused}");
    assert_eq!(lab.text("folder/x"), "x");
}
