//! What is served of a workspace, what is not, and when a version grows.

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::transport::envelope::INTERNAL_ERROR;
#[cfg(unix)]
use crate::transport::envelope::INVALID_PARAMS;

struct Place {
    files: Files,
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("work/sub")).unwrap();
        let root = folder.path().join("work").display().to_string();
        let workspace = Workspace::from_folders(&[(root, None)]).0;
        Self { files: Files::new(Arc::new(workspace)), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    fn text(&self, path: &str, offset: u64, limit: Option<u64>) -> Result<Value, ResponseError> {
        self.files.shared.look(&FileCall::ReadText { path: path.to_owned(), part: Part { offset, limit } })
    }

    fn bytes(&self, path: &str, offset: u64, limit: Option<u64>) -> Result<Value, ResponseError> {
        self.files.shared.look(&FileCall::ReadBinary { path: path.to_owned(), part: Part { offset, limit } })
    }

    fn stat(&self, path: &str) -> Result<Value, ResponseError> {
        self.files.shared.look(&FileCall::Stat { path: path.to_owned() })
    }
}

#[test]
fn lines_are_counted_from_zero_and_keep_their_ends() {
    let place = Place::new();
    fs::write(place.path("a"), "one\r\ntwo\nthree").unwrap();
    for (offset, limit, expected) in [
        (0, None, "one\r\ntwo\nthree"),
        (1, None, "two\nthree"),
        (0, Some(1), "one\r\n"),
        (1, Some(1), "two\n"),
        (2, Some(9), "three"),
        (3, None, ""),
        (u64::MAX, Some(u64::MAX), ""),
        (1, Some(0), ""),
    ] {
        let found = place.text("a", offset, limit).unwrap();
        assert_eq!(found, json!({"version": 0, "content": expected}), "{offset} {limit:?}");
    }
}

#[test]
fn a_version_is_that_of_the_whole_file_however_it_is_read() {
    let place = Place::new();
    let file = place.path("a");
    fs::write(&file, "one\ntwo\n").unwrap();
    let version = |value: Result<Value, ResponseError>| value.unwrap()["version"].clone();
    let uri = format!("file://{}", file.display());
    let absolute = file.display().to_string();
    for path in ["a", "./a", "sub/../a", &uri, &absolute] {
        assert_eq!(version(place.text(path, 0, Some(1))), 0, "{path}");
    }
    assert_eq!(version(place.bytes("a", 2, Some(1))), 0);
    fs::write(&file, "one\n2\n").unwrap();
    assert_eq!(version(place.text("a", 0, Some(1))), 1, "a line that was not asked for has changed");
    assert_eq!(version(place.bytes("a", 0, None)), 1);
    fs::write(&file, "one\ntwo\n").unwrap();
    assert_eq!(version(place.bytes("a", 0, None)), 2, "back is a change too");
    fs::remove_file(&file).unwrap();
    assert_eq!(place.text("a", 0, None).unwrap_err().code, INTERNAL_ERROR);
    fs::write(&file, "one\ntwo\n").unwrap();
    assert_eq!(version(place.text("a", 0, None)), 2, "the same content is the same version");
}

#[test]
fn bytes_come_in_base64_and_in_parts() {
    let place = Place::new();
    fs::write(place.path("b"), [0, 255, 10, 13]).unwrap();
    let content = |offset, limit| place.bytes("b", offset, limit).unwrap()["content"].clone();
    assert_eq!(content(0, None), "AP8KDQ==");
    assert_eq!(content(1, Some(2)), "/wo=");
    assert_eq!(content(9, None), "");
    let error = place.text("b", 0, None).unwrap_err();
    assert!(error.code == INTERNAL_ERROR && error.message.contains("not UTF-8"), "{error:?}");
    fs::write(place.path("large"), vec![b'x'; usize::try_from(MOST_BYTES).unwrap() + 1]).unwrap();
    assert!(place.text("large", 0, Some(1)).unwrap_err().message.contains("larger than"));
    assert!(place.bytes("large", 0, None).unwrap_err().message.contains("at most"));
    assert_eq!(place.bytes("large", MOST_BYTES, None).unwrap()["content"], "eA==");
    assert_eq!(place.bytes("large", 0, Some(1)).unwrap()["content"], "eA==");
}

#[test]
fn what_is_there_and_what_is_not() {
    let place = Place::new();
    fs::write(place.path("a"), "").unwrap();
    let answer = |exists: bool, folder: bool| Ok(json!({"exists": exists, "isDirectory": folder}));
    assert_eq!(place.stat("a"), answer(true, false));
    assert_eq!(place.stat("sub"), answer(true, true));
    assert_eq!(place.stat("."), answer(true, true));
    for missing in ["no", "no/such/file", "a/below", "sub/no"] {
        assert_eq!(place.stat(missing), answer(false, false), "{missing}");
    }
    assert!(place.text("sub", 0, None).unwrap_err().message.contains("not a file"));
    assert!(place.text("no", 0, None).unwrap_err().message.contains("does not exist"));
}

#[cfg(unix)]
#[test]
fn nothing_outside_of_the_workspace_is_shown() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    fs::write(place.folder.path().join("secret"), "x").unwrap();
    symlink("../secret", place.path("link")).unwrap();
    symlink("..", place.path("up")).unwrap();
    symlink("a", place.path("inner")).unwrap();
    fs::write(place.path("a"), "in").unwrap();
    let secret = place.folder.path().join("secret").display().to_string();
    for path in ["../secret", "link", "up/secret", "sub/../../secret", &secret, "/etc/passwd", "file:///etc/passwd"] {
        for answer in [place.text(path, 0, None), place.bytes(path, 0, None), place.stat(path)] {
            let error = answer.unwrap_err();
            assert!(error.code == INVALID_PARAMS && error.message.contains("outside"), "{path}: {error:?}");
        }
    }
    assert_eq!(place.text("inner", 0, None).unwrap()["content"], "in");
    for path in ["", "a\0b"] {
        assert_eq!(place.stat(path).unwrap_err().code, INVALID_PARAMS, "{path:?}");
    }
    let nowhere = Files::new(Arc::default());
    assert_eq!(nowhere.shared.look(&FileCall::Stat { path: "a".into() }).unwrap_err().code, INVALID_PARAMS);
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_does_not_hold_a_call() {
    let place = Place::new();
    let pipe = place.path("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    assert!(place.text("pipe", 0, None).unwrap_err().message.contains("not a file"));
}

proptest! {
    #[test]
    fn a_part_is_what_it_says(content in prop::collection::vec(any::<u8>(), 0..600), offset in 0..700_u64, limit in 0..700_u64) {
        let (digest, kept, length) = scan(&content[..], Part { offset, limit: Some(limit) }).unwrap();
        let expected: Vec<u8> = content.iter().copied().skip(offset as usize).take(limit as usize).collect();
        prop_assert_eq!((kept, length), (expected, content.len() as u64));
        prop_assert_eq!(digest, scan(&content[..], Part::default()).unwrap().0);
    }

    #[test]
    fn lines_put_together_are_the_text(text in "[a\n\r]{0,60}") {
        let count = text.split_inclusive('\n').count() as u64;
        let joined: String = (0..count).map(|at| lines(&text, Part { offset: at, limit: Some(1) })).collect();
        prop_assert_eq!(joined, text);
    }
}
