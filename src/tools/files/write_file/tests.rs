//! Whole files: new ones, replaced ones, and those that cannot be.

use serde_json::{Value, json};

use crate::tool::Access;
use crate::tools::files::testing::{Lab, change, said};

fn write(lab: &Lab, name: &str, content: &str) -> Value {
    json!({"path": lab.path(name), "content": content})
}

#[tokio::test]
async fn a_new_file_with_its_folders() {
    let lab = Lab::new();
    let arguments = write(&lab, "a/b/c.txt", "one\ntwo\n");
    let preview = lab.preview("write_file", arguments.clone()).await.unwrap();
    assert_eq!((preview.summary.as_deref(), preview.paths[0].access), (Some("Creating c.txt"), Access::Write));
    assert_eq!(change(preview.details).diff, "@@ -0,0 +1,2 @@\n+one\n+two\n");
    assert!(lab.names().is_empty(), "a preview makes no folders");

    let output = lab.run("write_file", arguments).await;
    assert_eq!(said(&output), format!("Created {} (2 lines).", lab.path("a/b/c.txt").display()));
    assert_eq!(change(output.details).before, None);
    assert_eq!(lab.text("a/b/c.txt"), "one\ntwo\n");
    let changes = lab.journal.changes.lock().unwrap();
    assert_eq!((&changes[0].before, changes[0].after.as_deref()), (&None, Some(&b"one\ntwo\n"[..])));
    assert_eq!(lab.context.seen.last(&lab.path("a/b/c.txt")).as_deref(), Some("one\ntwo\n"));
    assert_eq!(std::fs::read_dir(lab.path("a/b")).unwrap().count(), 1, "nothing is left over");
}

#[tokio::test]
async fn the_diff_of_an_old_file_is_against_what_it_was() {
    let lab = Lab::new();
    lab.put("a.txt", "one\r\ntwo\r\nthree\r\n");
    let output = lab.run("write_file", write(&lab, "a.txt", "one\n2\nthree")).await;
    assert!(said(&output).contains("(+1 -1). You had not read what was there before."), "{}", said(&output));
    let shown = change(output.details);
    assert_eq!(shown.diff, "@@ -1,3 +1,3 @@\n one\r\n-two\r\n+2\r\n three\r\n");
    assert_eq!(lab.text("a.txt"), "one\r\n2\r\nthree\r\n", "line ends and the last one are kept");

    lab.put("a.txt", "other\n");
    assert!(lab.good("write_file", write(&lab, "a.txt", "x\n")).await.contains("It had changed since you saw it"));
    assert!(lab.good("write_file", write(&lab, "a.txt", "y\n")).await.ends_with("(+1 -1)."));
    let count = lab.journal.changes.lock().unwrap().len();
    assert!(lab.good("write_file", write(&lab, "a.txt", "y\n")).await.contains("has this content already"));
    assert_eq!(lab.journal.changes.lock().unwrap().len(), count, "nothing to take back");

    lab.put("marked.txt", "\u{FEFF}a\n");
    lab.good("write_file", write(&lab, "marked.txt", "b\n")).await;
    assert_eq!(lab.text("marked.txt"), "\u{FEFF}b\n");
    lab.put("empty.txt", "");
    lab.good("write_file", write(&lab, "empty.txt", "b")).await;
    assert_eq!(lab.text("empty.txt"), "b");
    lab.good("write_file", write(&lab, "empty.txt", "")).await;
    assert_eq!(lab.text("empty.txt"), "");
}

#[tokio::test]
async fn what_cannot_be_written() {
    let lab = Lab::new();
    lab.put("file", "x");
    lab.put("binary", b"\0\x01");
    lab.put("latin", b"\xE9");
    let name = "n".repeat(300);
    for (arguments, expected) in [
        (write(&lab, ".", "x"), "is a folder"),
        (write(&lab, "file/below", "x"), "not a folder"),
        (write(&lab, "binary", "x"), "is a binary file"),
        (write(&lab, "latin", "x"), "is not UTF-8"),
        (write(&lab, &name, "x"), "name is too long"),
        (json!({"path": "/proc/self/no/such", "content": "x"}), ""),
        (json!({"path": "relative/\0", "content": "x"}), "null character"),
        (json!({"path": lab.path("a")}), "`content` is missing"),
        (json!({"path": lab.path("a"), "content": 7}), "`content` must be a string"),
        (json!({"path": lab.path("a"), "content": "x".repeat(65 << 20)}), "too large"),
    ] {
        let refused = lab.bad("write_file", arguments).await;
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
    assert_eq!(lab.names(), ["binary", "file", "latin"]);
    assert_eq!(lab.bytes("latin"), b"\xE9");
}

#[cfg(unix)]
#[tokio::test]
async fn links_lead_to_the_file_that_is_written() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let lab = Lab::new();
    std::fs::create_dir(lab.path("real")).unwrap();
    symlink("real", lab.path("folder")).unwrap();
    symlink("real/later.txt", lab.path("dangling")).unwrap();
    lab.good("write_file", write(&lab, "folder/a.txt", "a\n")).await;
    lab.good("write_file", write(&lab, "dangling", "b\n")).await;
    assert_eq!((lab.text("real/a.txt").as_str(), lab.text("real/later.txt").as_str()), ("a\n", "b\n"));
    assert!(lab.path("dangling").is_symlink() && lab.path("folder").is_symlink());
    assert_eq!(lab.journal.changes.lock().unwrap()[1].path, lab.path("real/later.txt"));

    // A new file gets the rights that any program would give it.
    let plain = lab.put("plain", "");
    let mode = |name: &str| lab.path(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("real/a.txt"), plain.metadata().unwrap().permissions().mode() & 0o777);

    // Only those who may give files away can keep the owner of a stranger's file.
    if std::os::unix::fs::chown(lab.path("real/a.txt"), Some(1234), Some(1235)).is_ok() {
        lab.good("write_file", write(&lab, "real/a.txt", "c\n")).await;
        let metadata = lab.path("real/a.txt").metadata().unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (1234, 1235));
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_goes_with_a_file_stays_with_it() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    let lab = Lab::new();
    let path = lab.put("a.txt", "a\n");
    if setxattr(&path, "user.eca-test", b"kept", XattrFlags::empty()).is_err() {
        // This file system has no such attributes, so there is nothing to keep.
        return;
    }
    lab.good("write_file", write(&lab, "a.txt", "b\n")).await;
    let mut value = [0; 16];
    let length = getxattr(&path, "user.eca-test", &mut value[..]).unwrap();
    assert_eq!(&value[..length], b"kept");
}

#[tokio::test]
async fn a_file_that_comes_into_being_meanwhile_is_not_lost() {
    let lab = Lab::new();
    let path = lab.path("a.txt");
    let file = path.clone();
    lab.journal.once(move || std::fs::write(&file, "theirs\n").unwrap());
    let said = lab.good("write_file", write(&lab, "a.txt", "ours\n")).await;
    assert!(said.starts_with("Replaced"), "{said}");
    let before = lab.journal.changes.lock().unwrap()[1].before.clone();
    assert_eq!(before.as_deref(), Some(&b"theirs\n"[..]), "it can be taken back");
    assert_eq!(lab.text("a.txt"), "ours\n");

    let (file, mut n) = (path, 0);
    lab.journal.always(move || {
        n += 1;
        std::fs::write(&file, format!("{n}")).unwrap();
    });
    assert!(lab.bad("write_file", write(&lab, "a.txt", "ours again\n")).await.contains("keeps changing"));
    assert_eq!(lab.names(), ["a.txt"]);
}

#[tokio::test]
async fn paths_as_models_write_them() {
    let lab = Lab::new();
    let uri = format!("file://{}/with%20space.txt", lab.root.display());
    lab.good("write_file", json!({"path": uri, "content": "x"})).await;
    lab.good("write_file", json!({"path": "./sub/new.txt", "content": "x"})).await;
    assert!(lab.bad("write_file", json!({"path": "no/../new.txt", "content": "x"})).await.contains("does not exist"));
    assert!(lab.bad("write_file", json!({"path": "~/x", "content": "x"})).await.contains("`~` is not expanded"));
    assert!(lab.bad("write_file", json!({"path": "file://other/x", "content": "x"})).await.contains("another machine"));
    assert_eq!(lab.names(), ["sub", "with space.txt"]);
}
