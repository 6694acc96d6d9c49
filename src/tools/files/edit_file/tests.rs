//! Edits on real files: what is checked, what is kept, and what others do meanwhile.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::host::HostError;
use crate::tool::{Access, ToolContext, TouchedPath};
use crate::tools::files::testing::{Lab, change, object, said};

fn edit(lab: &Lab, name: &str, original: &str, new: &str) -> Value {
    json!({"path": lab.path(name), "original_content": original, "new_content": new})
}

fn all(lab: &Lab, name: &str, original: &str, new: &str) -> Value {
    let mut arguments = edit(lab, name, original, new);
    arguments["all_occurrences"] = json!("true");
    arguments
}

#[tokio::test]
async fn an_edit_is_previewed_recorded_and_made() {
    let lab = Lab::new();
    let path = lab.put("a.txt", "one\ntwo\nthree\n");
    lab.saw("a.txt");
    let arguments = edit(&lab, "a.txt", "two", "2\nzwei");

    let preview = lab.preview("edit_file", arguments.clone()).await.unwrap();
    assert_eq!(preview.summary.as_deref(), Some("Editing a.txt"));
    assert_eq!(preview.paths, [TouchedPath { path: path.clone(), access: Access::Write }]);
    let shown = change(preview.details);
    assert_eq!(shown.diff, "@@ -1,3 +1,4 @@\n one\n-two\n+2\n+zwei\n three\n");
    assert_eq!((shown.path.as_path(), shown.lines_added, shown.lines_removed), (path.as_path(), 2, 1));
    assert_eq!((shown.before.as_deref(), &*shown.after), (Some("one\ntwo\nthree\n"), "one\n2\nzwei\nthree\n"));
    assert_eq!(lab.text("a.txt"), "one\ntwo\nthree\n", "a preview changes nothing");
    assert!(lab.journal.changes.lock().unwrap().is_empty());

    let output = lab.run("edit_file", arguments).await;
    assert_eq!(said(&output), format!("Edited {} at line 2 (+2 -1).", path.display()));
    assert_eq!(change(output.details), shown);
    assert_eq!(lab.text("a.txt"), "one\n2\nzwei\nthree\n");
    let changes = lab.journal.changes.lock().unwrap();
    assert_eq!(changes[0].before.as_deref(), Some(&b"one\ntwo\nthree\n"[..]));
    assert_eq!(changes[0].after.as_deref(), Some(&b"one\n2\nzwei\nthree\n"[..]));
    assert_eq!((changes.len(), &changes[0].path), (1, &path));
    assert_eq!(lab.context.seen.last(&path).as_deref(), Some("one\n2\nzwei\nthree\n"));
    assert_eq!(lab.names(), ["a.txt"]);
}

#[tokio::test]
async fn what_cannot_be_edited_is_an_error_for_preview_and_run() {
    let lab = Lab::new();
    lab.put("a.txt", "x\ny\nx\n");
    lab.saw("a.txt");
    lab.put("latin.txt", b"gr\xFC\xDFe");
    lab.put("utf16.txt", b"\xFF\xFEa\0b\0");
    lab.put("binary", b"a\0b");
    let cases = [
        (edit(&lab, "a.txt", "x", "z"), "stands in 2 places"),
        (edit(&lab, "a.txt", "x", "z"), "at lines 1, 3;"),
        (edit(&lab, "a.txt", "nothing", "z"), "was not found"),
        (edit(&lab, "a.txt", "", "z"), "original_content is empty"),
        (edit(&lab, "a.txt", "y", "y"), "would not change"),
        (edit(&lab, "b.txt", "x", "z"), "does not exist; the folder has a.txt. Use write_file"),
        (edit(&lab, "no/such.txt", "x", "z"), "there is no folder"),
        (edit(&lab, ".", "x", "z"), "is a folder, not a file"),
        (edit(&lab, "a.txt/b", "x", "z"), "not a folder"),
        (edit(&lab, "latin.txt", "gr", "z"), "is not UTF-8 text (line 1"),
        (edit(&lab, "utf16.txt", "a", "z"), "UTF-16"),
        (edit(&lab, "binary", "a", "z"), "is a binary file"),
        (json!({"path": lab.path("a.txt"), "new_content": "z"}), "`original_content` is missing"),
        (json!({"path": "", "original_content": "x", "new_content": "z"}), "The path is empty"),
    ];
    for (arguments, expected) in cases {
        let preview = lab.preview("edit_file", arguments.clone()).await.unwrap_err();
        let run = lab.bad("edit_file", arguments.clone()).await;
        assert!(preview.contains(expected) && run.contains(expected), "{arguments}: {run}");
    }
    assert!(lab.journal.changes.lock().unwrap().is_empty());
    assert_eq!((lab.bytes("latin.txt").as_slice(), lab.text("a.txt").as_str()), (&b"gr\xFC\xDFe"[..], "x\ny\nx\n"));
}

#[tokio::test]
async fn slips_are_forgiven_only_in_a_file_that_was_seen() {
    let lab = Lab::new();
    let path = lab.put("a.txt", "  a\n  b\n");
    let loose = edit(&lab, "a.txt", "a\nb\n", "c\n");
    let refused = lab.bad("edit_file", loose.clone()).await;
    assert!(refused.contains("You have not read the whole file; read it first."), "{refused}");

    lab.saw("a.txt");
    let done = lab.good("edit_file", loose).await;
    assert!(done.contains("differed in indentation"), "{done}");
    assert_eq!(lab.text("a.txt"), "  c\n");
    assert_eq!(lab.context.seen.last(&path).as_deref(), Some("  c\n"));
}

#[tokio::test]
async fn a_file_that_was_never_seen_takes_the_exact_text_once() {
    let lab = Lab::new();
    lab.put("a.txt", "a b a\nc\n");
    let done = lab.good("edit_file", edit(&lab, "a.txt", "c", "d")).await;
    assert!(done.contains("You had not read the whole file"), "{done}");
    lab.put("b.txt", "a b a\n");
    let refused = lab.bad("edit_file", all(&lab, "b.txt", "a", "x")).await;
    assert!(refused.contains("in 2 places") && refused.contains("read it first"), "{refused}");
    lab.saw("b.txt");
    assert!(lab.good("edit_file", all(&lab, "b.txt", "a", "x")).await.contains("in 2 places (+1 -1)"));
    assert_eq!(lab.text("b.txt"), "x b x\n");
}

#[tokio::test]
async fn what_changed_since_is_told() {
    let lab = Lab::new();
    let path = lab.put("a.txt", "one\n  two\nthree\n");
    lab.saw("a.txt");
    lab.put("a.txt", "one\n  two\nTHREE\n");
    let done = lab.good("edit_file", edit(&lab, "a.txt", "one", "1")).await;
    assert!(done.contains("had changed since you saw it") && done.contains("-three\n+THREE\n"), "{done}");

    lab.put("a.txt", "1\n  two\nthree\n");
    let loose = edit(&lab, "a.txt", "two\n", "zwei\n");
    let found = edit(&lab, "a.txt", "  two \n", "  zwei\n");
    assert!(lab.preview("edit_file", loose).await.is_ok(), "exact");
    let refused = lab.bad("edit_file", found.clone()).await;
    assert!(refused.contains("has changed since you saw it") && refused.contains("-THREE\n+three\n"), "{refused}");
    assert_eq!(lab.context.seen.last(&path).as_deref(), Some("1\n  two\nthree\n"), "it was told all that changed");
    lab.good("edit_file", found).await;
    assert_eq!(lab.text("a.txt"), "1\n  zwei\nthree\n");

    let long: String = (0..5_000).map(|n| format!("line {n}\n")).collect();
    lab.put("a.txt", &long);
    let refused = lab.bad("edit_file", edit(&lab, "a.txt", "nowhere", "x")).await;
    assert!(refused.len() < 6_000 && refused.ends_with("Read it again."), "{refused}");
    assert_ne!(lab.context.seen.last(&path).as_deref(), Some(long.as_str()), "it was not told all");
}

#[tokio::test]
async fn line_ends_mark_and_last_line_are_kept() {
    let lab = Lab::new();
    lab.put("crlf.txt", "\u{FEFF}one\r\ntwo\r\nthree");
    lab.good("read_file", json!({"path": lab.path("crlf.txt")})).await;
    let done = lab.good("edit_file", edit(&lab, "crlf.txt", "one\ntwo\nthree", "1\n2\n3\n4\n")).await;
    assert!(done.ends_with("at line 1 (+4 -3)."), "{done}");
    assert_eq!(lab.text("crlf.txt"), "\u{FEFF}1\r\n2\r\n3\r\n4");
    let before = lab.journal.changes.lock().unwrap()[0].before.clone().unwrap();
    assert_eq!(before, "\u{FEFF}one\r\ntwo\r\nthree".as_bytes(), "the journal has the very bytes");
}

#[cfg(unix)]
#[tokio::test]
async fn mode_and_links_are_kept_and_read_only_files_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let lab = Lab::new();
    let real = lab.put("deep/real.sh", "echo a\n");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o4751)).unwrap();
    symlink("deep/real.sh", lab.path("link")).unwrap();
    symlink("link", lab.path("link2")).unwrap();
    let preview = lab.preview("edit_file", edit(&lab, "link2", "echo a", "echo b")).await.unwrap();
    assert_eq!(preview.paths[0].path, lab.path("link2"), "as the model wrote it");
    lab.good("edit_file", edit(&lab, "link2", "echo a", "echo b")).await;
    assert_eq!(lab.text("deep/real.sh"), "echo b\n");
    assert!(lab.path("link").is_symlink() && lab.path("link2").is_symlink());
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o7777, 0o4751);
    assert_eq!(lab.journal.changes.lock().unwrap()[0].path, real);
    assert!(lab.context.seen.last(&real).is_some());

    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o444)).unwrap();
    let arguments = edit(&lab, "link", "echo b", "echo c");
    for said in [lab.preview("edit_file", arguments.clone()).await.unwrap_err(), lab.bad("edit_file", arguments).await]
    {
        assert!(said.contains("is read-only"), "{said}");
    }
    assert_eq!(lab.text("deep/real.sh"), "echo b\n");

    symlink("circle", lab.path("circle")).unwrap();
    assert!(lab.bad("edit_file", edit(&lab, "circle", "a", "b")).await.contains("circle"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn special_files_never_hold_a_call() {
    let lab = Lab::new();
    let pipe = lab.path("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::from(0o600), 0).unwrap();
    assert!(lab.bad("edit_file", edit(&lab, "pipe", "a", "b")).await.contains("is a pipe"));
    assert!(lab.bad("read_file", json!({"path": pipe})).await.contains("is a pipe"));
    assert!(lab.bad("write_file", json!({"path": pipe, "content": "x"})).await.contains("is a pipe"));
    assert!(lab.bad("grep", json!({"path": pipe, "pattern": "x"})).await.contains("is a pipe"));
    assert!(lab.bad("read_file", json!({"path": "/dev/zero"})).await.contains("is a device"));
    let _socket = std::os::unix::net::UnixListener::bind(lab.path("socket")).unwrap();
    assert!(lab.bad("read_file", json!({"path": lab.path("socket")})).await.contains("is a socket"));
    assert!(lab.good("grep", json!({"path": lab.root, "pattern": "x"})).await.contains("No matches"));
}

#[tokio::test]
async fn without_the_journal_nothing_is_written() {
    let lab = Lab::new();
    lab.put("a.txt", "a\n");
    *lab.journal.refuses.lock().unwrap() = true;
    let refused = lab.bad("edit_file", edit(&lab, "a.txt", "a", "b")).await;
    assert!(refused.contains("was not changed") && refused.contains("the store is closed"), "{refused}");
    let refused = lab.bad("write_file", json!({"path": lab.path("a.txt"), "content": "b"})).await;
    assert!(refused.contains("was not changed"), "{refused}");
    let refused = lab.bad("move_file", json!({"source": lab.path("a.txt"), "destination": lab.path("b.txt")})).await;
    assert!(refused.contains("was not changed"), "{refused}");
    assert_eq!((lab.text("a.txt").as_str(), lab.names()), ("a\n", vec!["a.txt".to_owned()]));
}

#[tokio::test]
async fn a_change_by_others_in_between_is_not_lost() {
    let lab = Lab::new();
    let path = lab.put("a.txt", "one\ntwo\n");
    lab.saw("a.txt");
    let file = path.clone();
    lab.journal.once(move || std::fs::write(&file, "one\ntwo\nthree\n").unwrap());
    let done = lab.good("edit_file", edit(&lab, "a.txt", "one", "1")).await;
    assert!(done.contains("had changed since you saw it"), "{done}");
    assert_eq!(lab.text("a.txt"), "1\ntwo\nthree\n", "theirs and ours");
    assert_eq!(lab.journal.changes.lock().unwrap().last().unwrap().before.as_deref(), Some(&b"one\ntwo\nthree\n"[..]));

    lab.saw("a.txt");
    let file = path.clone();
    lab.journal.once(move || std::fs::write(&file, "1\ntwo \n").unwrap());
    let refused = lab.bad("edit_file", edit(&lab, "a.txt", "1\ntwo\n", "x\n")).await;
    assert!(refused.contains("was not found") && refused.contains("-three"), "{refused}");
    assert_eq!(lab.text("a.txt"), "1\ntwo \n", "no slips are forgiven then");

    let (file, mut n) = (path.clone(), 0);
    lab.journal.always(move || {
        n += 1;
        std::fs::write(&file, format!("head\n{n}\n")).unwrap();
    });
    lab.put("a.txt", "head\n");
    assert!(lab.bad("edit_file", edit(&lab, "a.txt", "head", "x")).await.contains("keeps changing"));

    let file = path.clone();
    lab.journal.once(move || std::fs::remove_file(&file).unwrap());
    lab.put("a.txt", "1\n");
    assert!(lab.bad("edit_file", edit(&lab, "a.txt", "1", "x")).await.contains("does not exist"));
    assert!(lab.names().is_empty(), "{:?}", lab.names());
}

#[tokio::test]
async fn calls_side_by_side_do_not_lose_each_others_changes() {
    let lab = Lab::new();
    let text: String = (0..20).map(|n| format!("<{n}>\n")).collect();
    lab.put("a.txt", &text);
    lab.saw("a.txt");
    let edits = (0..20).map(|n| lab.run("edit_file", edit(&lab, "a.txt", &format!("<{n}>"), &format!("[{n}]"))));
    for output in futures_util::future::join_all(edits).await {
        assert!(!output.error, "{}", said(&output));
    }
    assert_eq!(lab.text("a.txt"), text.replace('<', "[").replace('>', "]"));
}

#[tokio::test]
async fn what_the_user_agreed_to_is_made_if_the_file_is_still_that_one() {
    let lab = Lab::new();
    lab.put("a.txt", "one\ntwo\n");
    lab.saw("a.txt");
    let tool = lab.tool("edit_file");
    let arguments = object(edit(&lab, "a.txt", "two", "2"));
    let preview = tool.preview(&arguments, &lab.context).await.unwrap();
    let context = ToolContext { prepared: preview.prepared, ..lab.context.clone() };
    let output = tool.run(arguments, context).await;
    assert!(!output.error, "{}", said(&output));
    assert_eq!(lab.text("a.txt"), "one\n2\n");

    // Another call of the model was faster: what it wrote is known, so small slips are still forgiven.
    lab.put("b.txt", "  one\n  two\n");
    lab.saw("b.txt");
    let arguments = object(edit(&lab, "b.txt", "two\n", "2\n"));
    let preview = tool.preview(&arguments, &lab.context).await.unwrap();
    lab.good("edit_file", edit(&lab, "b.txt", "one", "1")).await;
    let context = ToolContext { prepared: preview.prepared, ..lab.context.clone() };
    let output = tool.run(arguments.clone(), context).await;
    assert!(!output.error, "{}", said(&output));
    assert_eq!(lab.text("b.txt"), "  1\n  2\n");

    // Somebody else was: what they wrote stays.
    lab.put("b.txt", "  two\n");
    lab.saw("b.txt");
    let preview = tool.preview(&arguments, &lab.context).await.unwrap();
    lab.put("b.txt", "theirs\n");
    let context = ToolContext { prepared: preview.prepared, ..lab.context.clone() };
    let output = tool.run(arguments, context).await;
    assert!(output.error && said(&output).contains("was not found"), "{}", said(&output));
    assert_eq!(lab.text("b.txt"), "theirs\n");
}

#[tokio::test]
async fn the_editor_goes_before_the_disk() {
    let lab = Lab::new();
    let path = lab.put("a.txt", "disk\n");
    lab.host.unsaved.lock().unwrap().insert(path.clone(), "buffer\nmore\n".to_owned());
    assert_eq!(lab.good("read_file", json!({"path": path})).await, "buffer\nmore");
    lab.host.open.lock().unwrap().insert(path.clone());
    let told = lab.good("edit_file", edit(&lab, "a.txt", "buffer", "ours")).await;
    assert!(told.contains("not on the disk"), "{told}");
    assert_eq!(lab.host.written.lock().unwrap()[..], [(path.clone(), "ours\nmore\n".to_owned())]);
    assert_eq!(lab.text("a.txt"), "disk\n", "the editor writes it");
    assert_eq!(lab.journal.changes.lock().unwrap()[0].before.as_deref(), Some(&b"buffer\nmore\n"[..]));

    let marked = lab.put("marked.txt", "\u{FEFF}disk\n");
    lab.host.unsaved.lock().unwrap().insert(marked.clone(), "\u{FEFF}one\n".to_owned());
    lab.host.open.lock().unwrap().insert(marked);
    lab.good("edit_file", edit(&lab, "marked.txt", "one", "two")).await;
    assert_eq!(lab.host.written.lock().unwrap()[1].1, "\u{FEFF}two\n", "its text has the mark");

    // The user types in between: what they typed is kept, and the edit is made on it.
    let (host, name) = (Arc::clone(&lab.host), path.clone());
    lab.journal.once(move || drop(host.unsaved.lock().unwrap().insert(name.clone(), "buffer\ntyped\n".to_owned())));
    lab.good("edit_file", edit(&lab, "a.txt", "buffer", "ours")).await;
    assert_eq!(lab.host.written.lock().unwrap()[2].1, "ours\ntyped\n");

    // It lets go of the document in between: what is on the disk is another text.
    lab.host.open.lock().unwrap().clear();
    let host = Arc::clone(&lab.host);
    lab.journal.once(move || host.unsaved.lock().unwrap().clear());
    let refused = lab.bad("edit_file", edit(&lab, "a.txt", "buffer", "ours")).await;
    assert!(refused.contains("was not found"), "{refused}");
    assert_eq!(lab.text("a.txt"), "disk\n");

    *lab.host.fails.lock().unwrap() = Some(HostError::Timeout);
    let refused = lab.bad("edit_file", edit(&lab, "a.txt", "disk", "ours")).await;
    assert!(refused.contains("was not written: the editor did not answer in time"), "{refused}");
    *lab.host.fails.lock().unwrap() = Some(HostError::Unsupported);
    lab.good("edit_file", edit(&lab, "a.txt", "disk", "ours")).await;
    assert_eq!(lab.text("a.txt"), "ours\n");
}

#[tokio::test]
async fn a_stop_ends_it_before_anything_is_written() {
    let lab = Lab::new();
    lab.put("a.txt", "a\n");
    lab.context.stop.cancel();
    for (tool, arguments) in [
        ("edit_file", edit(&lab, "a.txt", "a", "b")),
        ("write_file", json!({"path": lab.path("a.txt"), "content": "b"})),
        ("read_file", json!({"path": lab.path("a.txt")})),
        ("move_file", json!({"source": lab.path("a.txt"), "destination": lab.path("b.txt")})),
        ("directory_tree", json!({"path": lab.root})),
        ("grep", json!({"path": lab.root, "pattern": "a"})),
    ] {
        assert!(lab.bad(tool, arguments).await.contains("stopped"), "{tool}");
    }
    assert_eq!((lab.text("a.txt").as_str(), lab.names().len()), ("a\n", 1));
}

#[tokio::test]
async fn a_previewed_change_writes_nothing() {
    let lab = Lab::new();
    let path = lab.put("a.txt", "one\n");
    lab.saw("a.txt");
    let arguments = edit(&lab, "a.txt", "one", "two");
    let preview = lab.preview("preview_file_change", arguments.clone()).await.unwrap();
    assert_eq!(preview.summary.as_deref(), Some("Previewing change of a.txt"));
    assert_eq!(preview.paths, [TouchedPath { path, access: Access::Read }]);
    let output = lab.run("preview_file_change", arguments).await;
    assert!(said(&output).ends_with("(+1 -1). Nothing was written."), "{}", said(&output));
    assert_eq!(change(output.details), change(preview.details));
    assert_eq!(lab.text("a.txt"), "one\n");

    let new = lab.run("preview_file_change", edit(&lab, "new.txt", "", "a\nb\n")).await;
    let shown = change(new.details);
    assert_eq!((shown.diff.as_str(), shown.before), ("@@ -0,0 +1,2 @@\n+a\n+b\n", None));
    assert!(lab.bad("preview_file_change", edit(&lab, "new.txt", "x", "y")).await.contains("must be empty"));
    assert!(lab.bad("preview_file_change", edit(&lab, "a.txt", "", "y")).await.contains("original_content is empty"));
    assert!(lab.bad("preview_file_change", edit(&lab, "a.txt", "x", "y")).await.contains("was not found"));
    assert_eq!(lab.names(), ["a.txt"]);
    assert!(lab.journal.changes.lock().unwrap().is_empty());
}
