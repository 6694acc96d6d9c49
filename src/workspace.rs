//! The folders a client works in.
//!
//! Clients write folders in many ways: proper `file:` URIs, URIs with one slash, with raw spaces,
//! or plain paths. The working directory of the process is never a folder: VS Code starts the
//! server in the directory of its binary.

mod worktree;

use std::path::{Path, PathBuf};

use crate::base::text::file_name;

/// The folders of one client; immutable, shared by `Arc`, replaced as a whole when they change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workspace {
    roots: Vec<Root>,
}

/// One folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Absolute.
    pub path: PathBuf,
    pub name: String,
    /// As the client wrote it.
    pub uri: String,
}

impl Workspace {
    /// Builds the workspace from pairs of URI and name, in their order and without repetitions.
    /// The second part of the result says which folders could not be used, and why.
    pub fn from_folders(folders: &[(String, Option<String>)]) -> (Self, Vec<String>) {
        let mut roots: Vec<Root> = Vec::new();
        let mut warnings = Vec::new();
        for (uri, name) in folders {
            match path_from_uri(uri) {
                Ok(path) if roots.iter().any(|root| root.path == path) => {}
                Ok(path) => {
                    let name = name.as_deref().map(str::trim).filter(|name| !name.is_empty());
                    let name = name.map_or_else(|| file_name(&path), str::to_owned);
                    roots.push(Root { path, name, uri: uri.clone() });
                }
                Err(reason) => warnings.push(format!("the workspace folder {uri:?} is ignored: {reason}")),
            }
        }
        (Self { roots }, warnings)
    }

    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// What identifies this set of folders, whatever their order and names: the sorted paths,
    /// joined with `:`. Empty without folders.
    pub fn key(&self) -> String {
        key_of(self.roots.iter().map(|root| root.path.clone()))
    }
}

/// What identifies the chats of a workspace: like [`Workspace::key`], but linked worktrees of a
/// git repository count as the repository, so that they share its history. Reads a few small
/// files, so call it where blocking is allowed.
pub fn history_key(workspace: &Workspace) -> String {
    let shared = |root: &Root| worktree::main_worktree(&root.path).unwrap_or_else(|| root.path.clone());
    key_of(workspace.roots.iter().map(shared))
}

fn key_of(paths: impl Iterator<Item = PathBuf>) -> String {
    let mut paths: Vec<String> = paths.map(|path| path.to_string_lossy().into_owned()).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.join(":")
}

/// The absolute path that a client means by `uri`, which may also be a plain path.
pub fn path_from_uri(uri: &str) -> Result<PathBuf, &'static str> {
    let bytes = local_path(uri, cfg!(windows))?;
    if bytes.contains(&0) {
        return Err("it contains a null character");
    }
    #[cfg(unix)]
    let path = PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes));
    #[cfg(not(unix))]
    let path = PathBuf::from(String::from_utf8(bytes).map_err(|_| "it is not UTF-8")?);
    // Collecting the parts drops slashes at the end and `.` in the middle.
    Ok(path.components().collect())
}

/// The URI of a file, in the form that every client reads.
pub fn uri_from_path(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', if cfg!(windows) { "/" } else { "\\" });
    let mut uri = String::from(if text.starts_with('/') { "file://" } else { "file:///" });
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b':' => uri.push(byte.into()),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

/// The bytes of the path; `windows` is a parameter so that both forms are tested everywhere.
fn local_path(uri: &str, windows: bool) -> Result<Vec<u8>, &'static str> {
    if uri.is_empty() {
        return Err("it is empty");
    }
    let decoded = match strip_file_scheme(uri) {
        Some(rest) => match rest.strip_prefix("//") {
            Some(rest) => {
                let (host, path) = rest.split_at(rest.find(['/', '\\']).unwrap_or(rest.len()));
                if host.is_empty() || host.eq_ignore_ascii_case("localhost") {
                    percent_decode(path)
                } else if windows {
                    percent_decode(&format!("//{host}{path}"))
                } else {
                    return Err("it is on another machine");
                }
            }
            None => percent_decode(rest),
        },
        None => uri.as_bytes().to_vec(),
    };
    let path = match decoded.strip_prefix(b"/") {
        Some(rest) if windows && has_drive(rest) => rest.to_vec(),
        _ => decoded,
    };
    let absolute = if windows {
        has_drive(&path) && matches!(path.get(2), Some(b'/' | b'\\'))
            || path.starts_with(b"//")
            || path.starts_with(b"\\\\")
    } else {
        path.starts_with(b"/")
    };
    if absolute { Ok(path) } else { Err("it is neither a file URI nor an absolute path") }
}

fn strip_file_scheme(uri: &str) -> Option<&str> {
    let (scheme, rest) = uri.split_at_checked("file:".len())?;
    scheme.eq_ignore_ascii_case("file:").then_some(rest)
}

fn has_drive(path: &[u8]) -> bool {
    matches!(path, [letter, b':', ..] if letter.is_ascii_alphabetic())
}

/// A percent sign that starts no escape stands for itself: clients send raw paths too.
fn percent_decode(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_and_paths() {
        for (uri, windows, expected) in [
            ("file:///home/u/p", false, Some("/home/u/p")),
            ("file:/home/u", false, Some("/home/u")),
            ("FILE:///home/u", false, Some("/home/u")),
            ("file://localhost/home/u", false, Some("/home/u")),
            ("file:///a%20b/%C3%A9%2B+", false, Some("/a b/é++")),
            ("file:///a b/é", false, Some("/a b/é")),
            ("file:///100%/x%zz%4", false, Some("/100%/x%zz%4")),
            ("file:///a?b#c", false, Some("/a?b#c")),
            ("file:///", false, Some("/")),
            ("/plain/a%20b", false, Some("/plain/a%20b")),
            ("/C:/x", false, Some("/C:/x")),
            ("file:///C:/x", true, Some("C:/x")),
            ("file:///c%3A/x", true, Some("c:/x")),
            ("file:///C:\\x y", true, Some("C:\\x y")),
            ("/C:/x", true, Some("C:/x")),
            ("C:\\x", true, Some("C:\\x")),
            ("file://server/share", true, Some("//server/share")),
            ("\\\\server\\share", true, Some("\\\\server\\share")),
            ("file://server/share", false, None),
            ("file://", false, None),
            ("file:", false, None),
            ("file:relative", false, None),
            ("relative/path", false, None),
            ("C:\\x", false, None),
            ("C:x", true, None),
            ("/unix", true, None),
            ("untitled:Untitled-1", false, None),
            ("https://example.org/x", false, None),
            ("~/x", false, None),
            ("", false, None),
            ("é", false, None),
        ] {
            let path = local_path(uri, windows).ok().map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(path.as_deref(), expected, "{uri} windows={windows}");
        }
    }

    #[cfg(unix)]
    fn folders(pairs: &[(&str, Option<&str>)]) -> (Workspace, Vec<String>) {
        let pairs: Vec<_> = pairs.iter().map(|(uri, name)| ((*uri).to_owned(), name.map(str::to_owned))).collect();
        Workspace::from_folders(&pairs)
    }

    #[cfg(unix)]
    #[test]
    fn bad_folders_are_warnings_and_names_have_defaults() {
        let (workspace, warnings) = folders(&[
            ("file:///w/one/", Some("First")),
            ("vscode-remote://x/y", None),
            ("file:///w/./two//", None),
            ("/w/one", Some("again")),
            ("file:/", Some(" ")),
            ("file:///nul%00", None),
        ]);
        let roots: Vec<_> = workspace.roots().iter().map(|r| (r.path.to_str().unwrap(), r.name.as_str())).collect();
        assert_eq!(roots, [("/w/one", "First"), ("/w/two", "two"), ("/", "/")]);
        assert_eq!(workspace.roots()[0].uri, "file:///w/one/");
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains("vscode-remote://x/y"));
    }

    #[cfg(unix)]
    #[test]
    fn paths_need_not_be_unicode() {
        use std::os::unix::ffi::OsStrExt;
        let path = path_from_uri("file:///a%FF").unwrap();
        assert_eq!(path.as_os_str().as_bytes(), b"/a\xff");
    }

    #[cfg(unix)]
    #[test]
    fn the_key_depends_only_on_the_set_of_paths() {
        let (one, _) = folders(&[("file:///b", None), ("file:///a%20", Some("x"))]);
        let (two, _) = folders(&[("/a ", None), ("file:/b/", Some("y")), ("file:///b", None)]);
        assert_eq!(two.key(), "/a :/b");
        assert_eq!(one.key(), two.key());
        assert_eq!(Workspace::default().key(), "");
        assert_eq!(history_key(&one), one.key(), "without git they are the same");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}", rest in "[%/\\\\:a-f0-9é]{0,20}") {
            for text in [text.clone(), format!("file:{rest}"), format!("file://{text}{rest}")] {
                let _ = (local_path(&text, true), local_path(&text, false));
                let _ = path_from_uri(&text);
            }
        }
    }
}
