//! Paths that lead where they do not seem to.

use super::*;
use crate::tool::Access;

fn within(path: &str, folder: &str, spelling: Spelling) -> bool {
    is_within(Path::new(path), Path::new(folder), spelling)
}

#[test]
fn names_are_compared_as_the_system_does() {
    for (path, folder, exact, any_case) in [
        ("/w/root", "/w/root", true, true),
        ("/w/root/a/b", "/w/root", true, true),
        ("/w/root-evil/a", "/w/root", false, false),
        ("/w/roo", "/w/root", false, false),
        ("/w", "/w/root", false, false),
        ("/W/Root/a", "/w/root", false, true),
        ("/w/STRASSE", "/w/strasse", false, true),
        ("/w/É/a", "/w/é", false, true),
        ("/anything", "/", true, true),
    ] {
        assert_eq!(within(path, folder, Spelling::Exact), exact, "{path} in {folder}");
        assert_eq!(within(path, folder, Spelling::AnyCase), any_case, "{path} in {folder}");
    }
    for (path, folder, expected) in [
        (r"C:\w\root\a", r"C:\w\root", true),
        (r"c:/W/ROOT/a", r"C:\w\root", true),
        (r"\\?\C:\w\root\a", r"C:\w\root", true),
        (r"C:\w\root\a", r"\\?\C:\w\root", true),
        (r"C:\w\root-evil", r"C:\w\root", false),
        (r"D:\w\root", r"C:\w\root", false),
        (r"\\server\share\root\a", r"\\server\share\root", true),
        (r"\\?\UNC\server\share\root\a", r"\\SERVER\share\root", true),
        (r"\\other\share\root", r"\\server\share\root", false),
        (r"\\.\C:\w\root\a", r"C:\w\root", false),
        (r"C:\w\root.\a", r"C:\w\root", true),
        (r"C:\w\root \a", r"C:\w\root", true),
        (r"C:\w\root\..\x", r"C:\w\root", false),
        (r"C:\w\root\...\x", r"C:\w\root", false),
        (r"C:\w\root\a:stream", r"C:\w\root", false),
        (r"C:w\root\a", r"C:\w\root", false),
        (r"\w\root\a", r"C:\w\root", false),
        ("", r"C:\w\root", false),
        (r"C:\w\root\a", "", false),
    ] {
        assert_eq!(within(path, folder, Spelling::Windows), expected, "{path} in {folder}");
    }
}

#[test]
fn relative_paths_and_no_workspace_are_outside() {
    let place = Roots::default().place(&TouchedPath { path: PathBuf::from("/w/.env"), access: Access::Read });
    assert_eq!((place.is_inside, place.is_key_file), (false, true));
    assert_eq!(resolve(Path::new("a/b")), None);
    assert_eq!(resolve(Path::new("")), None);
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Ground {
        folder: tempfile::TempDir,
        roots: Roots,
    }

    impl Ground {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            for name in ["root/sub", "root-evil", "outside", "outputs", "real"] {
                std::fs::create_dir_all(at(name)).unwrap();
            }
            for name in ["root/file", "outside/file", "outside/.env", "real/file", "outputs/1.txt", "root/.env"] {
                std::fs::write(at(name), "x").unwrap();
            }
            symlink(at("outside"), at("root/out")).unwrap();
            symlink(at("outside/file"), at("root/out-file")).unwrap();
            symlink(at("outside/new"), at("root/dangling")).unwrap();
            symlink("../outside", at("root/relative")).unwrap();
            symlink("sub", at("root/in")).unwrap();
            symlink(at("root/loop-b"), at("root/loop-a")).unwrap();
            symlink(at("root/loop-a"), at("root/loop-b")).unwrap();
            symlink(".env", at("root/notes.txt")).unwrap();
            symlink(at("root/dangling"), at("root/chain")).unwrap();
            symlink(at("root"), at("outside/back")).unwrap();
            symlink(at("real"), at("named")).unwrap();
            let uri = |name: &str| (at(name).to_string_lossy().into_owned(), None);
            let (workspace, _) = Workspace::from_folders(&[uri("root"), uri("named"), uri("missing")]);
            let roots = Roots::of(&workspace, Some(&at("outputs")));
            Self { folder, roots }
        }

        fn place(&self, path: &str) -> Place {
            self.roots.place(&TouchedPath { path: self.folder.path().join(path), access: Access::Write })
        }
    }

    #[test]
    fn a_path_is_where_it_leads() {
        let ground = Ground::new();
        for (path, inside) in [
            ("root", true),
            ("root/file", true),
            ("root/new/deep/file", true),
            ("root/./sub/../file", true),
            ("root/sub/../../root/x", true),
            ("root/new/../x", true),
            ("root/../outside/file", false),
            ("root/..", false),
            ("root/new/../../outside/x", false),
            ("root-evil", false),
            ("root-evil/x", false),
            ("outside/file", false),
            ("root/out", false),
            ("root/out/file", false),
            ("root/out/new", false),
            ("root/out/../root/file", true),
            ("root/out/back/file", true),
            ("root/out/..", false),
            ("root/out-file", false),
            ("root/dangling", false),
            ("root/chain", false),
            ("root/relative/x", false),
            ("root/in/x", true),
            ("root/in/../file", true),
            ("root/loop-a", false),
            ("root/loop-a/x", false),
            ("root/file/x", true),
            ("named/file", true),
            ("real/file", true),
            ("outputs/1.txt", true),
            ("outputs/../outside", false),
            ("missing/file", true),
            ("other", false),
        ] {
            assert_eq!(ground.place(path).is_inside, inside, "{path}");
        }
    }

    #[test]
    fn key_files_are_found_behind_links() {
        let ground = Ground::new();
        for (path, is_key) in [
            ("root/.env", true),
            ("root/notes.txt", true),
            ("root/out/.env", true),
            ("root/new/.env", true),
            ("root/file", false),
            ("root/.env/../file", false),
        ] {
            assert_eq!(ground.place(path).is_key_file, is_key, "{path}");
        }
    }

    #[test]
    fn what_may_not_be_looked_at_is_outside() {
        let ground = Ground::new();
        let long = format!("root/{}", "x".repeat(5000));
        assert!(!ground.place(&long).is_inside, "the system refuses the name");
        use std::os::unix::ffi::OsStrExt;
        let odd = ground.folder.path().join("root").join(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
        assert!(ground.roots.place(&TouchedPath { path: odd, access: Access::Read }).is_inside);
    }

    proptest::proptest! {
        #[test]
        fn no_path_makes_it_panic_and_dots_do_not_help(parts in proptest::collection::vec("(\\.\\.|\\.|a|sub|out|in|dangling|file|é)", 0..12)) {
            let ground = Ground::new();
            let path = format!("root/{}", parts.join("/"));
            let place = ground.place(&path);
            // What the system itself says, as far as it exists.
            if let Ok(real) = dunce::canonicalize(ground.folder.path().join(&path)) {
                let base = dunce::canonicalize(ground.folder.path()).unwrap();
                let inside = ["root", "real", "outputs", "missing"].iter().any(|root| real.starts_with(base.join(root)));
                proptest::prop_assert_eq!(place.is_inside, inside, "{}", path);
            }
        }
    }
}
