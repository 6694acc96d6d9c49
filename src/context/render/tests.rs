//! Contexts of every kind, and what is left of them when there is little room.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::http::Settings;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and so on";
const ROOM: Budget = Budget { bytes: 200_000 };

struct World {
    folder: tempfile::TempDir,
    sources: Sources,
}

struct Library;

impl Resources for Library {
    fn read<'a>(&'a self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<String, String>> {
        let found = if uri == "res://one" { Ok(format!("from {server}")) } else { Err("is not there".to_owned()) };
        Box::pin(std::future::ready(found))
    }
}

impl World {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let file = folder.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
        let roots = vec![folder.path().to_owned()];
        let config = IndexConfig::default();
        let sources = Sources {
            index: Some(Arc::new(Index::new(roots.clone(), &config))),
            places: Places { roots, home: None },
            config,
            http: Client::new(Settings { connect_timeout: Duration::from_secs(5) }),
            resources: Arc::new(Library),
            prepare_image: plain_image,
            sees_images: true,
        };
        Self { folder, sources }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn file(&self, name: &str) -> Context {
        Context::File { path: self.path(name), lines: None }
    }

    async fn render(&self, message: &str, contexts: &[Context], budget: Budget) -> Rendered {
        render(message, contexts, &self.sources, budget).await
    }

    /// The texts without the name of the folder.
    async fn texts(&self, message: &str, contexts: &[Context]) -> Vec<String> {
        let rendered = self.render(message, contexts, ROOM).await;
        assert_eq!(rendered.problems, Vec::<String>::new());
        self.short(&rendered)
    }

    fn short(&self, rendered: &Rendered) -> Vec<String> {
        let folder = format!("{}/", self.folder.path().display());
        let text = |part: &Part| match part {
            Part::Text(text) => text.replace(&folder, ""),
            Part::Image(image) => format!("{} {}", image.media_type, image.base64.len()),
            other => panic!("{other:?}"),
        };
        rendered.parts.iter().map(text).collect()
    }
}

#[tokio::test]
async fn every_kind_of_context_becomes_a_part() {
    let world = World::new(&[("a.rs", b"one\ntwo\nthree\n"), ("b.png", PNG), ("d/x.txt", b"x"), ("d/y.txt", b"y")]);
    let path = |name: &str| world.path(name);
    for (context, expected) in [
        (world.file("a.rs"), &["<file name=\"a.rs\">\none\ntwo\nthree\n\n</file>"][..]),
        (
            Context::File { path: path("a.rs"), lines: Some((2, 3)) },
            &["<file name=\"a.rs\" lines=\"2-3\">\ntwo\nthree\n</file>"],
        ),
        (
            Context::File { path: "a.rs".into(), lines: Some((1, 1)) },
            &["<file name=\"a.rs\" lines=\"1-1\">\none\n</file>"],
        ),
        (world.file("b.png"), &["<image name=\"b.png\"/>", "image/png 24"]),
        (
            Context::Directory { path: path("d") },
            &["<file name=\"d/x.txt\">\nx\n</file>", "<file name=\"d/y.txt\">\ny\n</file>"],
        ),
        (
            Context::Cursor { path: path("a.rs"), start: (2, 7), end: (2, 7) },
            &["<cursor path=\"a.rs\" position=\"2:7\"/>"],
        ),
        (
            Context::Cursor { path: path("a.rs"), start: (2, 7), end: (3, 1) },
            &["<cursor path=\"a.rs\" position=\"2:7 to 3:1\"/>"],
        ),
        (
            Context::Text { label: "a \"log\"\n".into(), content: "lines".into() },
            &["<context name=\"a 'log' \">\nlines\n</context>"],
        ),
        (
            Context::Code { language: "rust".into(), description: Some("main".into()), content: "fn".into() },
            &["<code language=\"rust\" description=\"main\">\nfn\n</code>"],
        ),
        (
            Context::Code { language: "rust".into(), description: None, content: "fn".into() },
            &["<code language=\"rust\">\nfn\n</code>"],
        ),
        (Context::Image { media_type: "image/x".into(), base64: STANDARD.encode(PNG) }, &["image/png 24"]),
        (
            Context::Image { media_type: "image/bmp".into(), base64: "data:image/bmp;base64,QUJD".into() },
            &["image/bmp 4"],
        ),
        (
            Context::McpResource { server: "s".into(), uri: "res://one".into(), name: "one".into() },
            &["<resource server=\"s\" uri=\"res://one\">\nfrom s\n</resource>"],
        ),
    ] {
        assert_eq!(world.texts("hi", std::slice::from_ref(&context)).await, expected, "{context:?}");
    }
    let map = world.texts("hi", &[Context::RepoMap]).await;
    assert!(map[0].starts_with("<repository-map>\n") && map[0].contains("\n d/\n  x.txt\n"), "{map:?}");
}

#[tokio::test]
async fn web_pages_are_read() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 2048]).await;
        let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<title>T</title><p>Hello";
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    let world = World::new(&[]);
    let texts = world.texts("hi", &[Context::Web { url: url.clone() }]).await;
    assert_eq!(texts, [format!("<web url=\"{url}\" title=\"T\">\nHello\n</web>")]);
}

#[tokio::test]
async fn files_that_are_mentioned_come_too_and_only_once() {
    let world = World::new(&[("src/a.rs", b"one\ntwo"), ("b.md", b"text")]);
    let message = format!("Compare @src/a.rs:L2 with @{}, and ask me@b.md.", world.path("b.md"));
    let contexts = [Context::File { path: world.path("b.md"), lines: None }];
    let expected = ["<file name=\"b.md\">\ntext\n</file>", "<file name=\"src/a.rs\" lines=\"2-2\">\ntwo\n</file>"];
    assert_eq!(world.texts(&message, &contexts).await, expected);
    assert_eq!(world.texts("look into @./src", &[]).await, ["<file name=\"src/a.rs\">\none\ntwo\n</file>"]);
}

#[tokio::test]
async fn files_that_were_sent_whole_were_seen() {
    let world =
        World::new(&[("whole.rs", b"all of it\n"), ("lines.rs", b"a\nb\n"), ("odd.rs", b"\xe9"), ("d/in.rs", b"x")]);
    let contexts = [
        world.file("whole.rs"),
        Context::File { path: world.path("lines.rs"), lines: Some((1, 1)) },
        world.file("odd.rs"),
        Context::Directory { path: world.path("d") },
    ];
    let rendered = world.render("hi", &contexts, ROOM).await;
    let real = |name: &str| dunce::canonicalize(world.path(name)).unwrap();
    let seen = |name: &str, content: &str| SeenFile { path: real(name), content: content.into() };
    assert_eq!(rendered.seen, [seen("whole.rs", "all of it\n"), seen("d/in.rs", "x")]);
    assert!(world.short(&rendered)[2].contains("note=\"not UTF-8;"), "{:?}", rendered.parts);
    assert_eq!(rendered.problems.len(), 1, "the user is told too: {:?}", rendered.problems);
}

#[tokio::test]
async fn what_cannot_be_used_is_named_and_the_rest_is_used() {
    let world = World::new(&[("bin", b"\0\x01"), ("no.png", b"text"), ("empty/.git/x", b""), ("good", b"still here")]);
    let contexts = [
        world.file("missing.rs"),
        world.file("bin"),
        world.file("no.png"),
        world.file("empty"),
        Context::Directory { path: world.path("empty") },
        Context::Directory { path: world.path("good") },
        Context::File { path: world.path("good"), lines: Some((9, 10)) },
        Context::File { path: String::new(), lines: None },
        Context::Image { media_type: "image/png".into(), base64: "!".into() },
        Context::Web { url: "ftp://x/".into() },
        Context::McpResource { server: "s".into(), uri: "res://two".into(), name: String::new() },
        Context::Unsupported { kind: "hologram".into() },
        world.file("good"),
    ];
    let rendered = world.render("hi", &contexts, ROOM).await;
    let folder = format!("{}/", world.folder.path().display());
    let problems: Vec<String> = rendered.problems.iter().map(|problem| problem.replace(&folder, "")).collect();
    assert_eq!(
        problems,
        [
            "missing.rs: does not exist",
            "bin: is a binary file",
            "no.png: is no image that can be shown",
            "empty: is a directory",
            "empty: there are no files in it",
            "good: is no directory",
            "good: has only 1 lines",
            ": is no path",
            "an image of type image/png: is not written in base64",
            "ftp://x/: the url is not valid: it must start with http:// or https://",
            "res://two: is not there",
            "contexts of type \"hologram\": not known to this version",
        ]
    );
    assert_eq!(world.short(&rendered), ["<file name=\"good\">\nstill here\n</file>"]);
}

#[tokio::test]
async fn little_room_is_shared_and_cuts_are_told_to_both() {
    let world = World::new(&[("large", &[b'x'; 50_000]), ("small", b"all of this"), ("larger", &[b'y'; 90_000])]);
    let contexts = [world.file("large"), world.file("small"), world.file("larger")];
    let rendered = world.render("hi", &contexts, Budget { bytes: 20_000 }).await;
    let texts = world.short(&rendered);
    assert!(texts[0].contains("[cut here: ") && texts[2].contains("[cut here: "), "{texts:?}");
    assert_eq!(texts[1], "<file name=\"small\">\nall of this\n</file>");
    assert!(texts[0].len().abs_diff(texts[2].len()) < 100, "evenly");
    assert!(texts.iter().map(String::len).sum::<usize>() < 20_000);
    assert_eq!(rendered.seen.len(), 1);
    assert_eq!(rendered.problems.len(), 2, "{:?}", rendered.problems);
    assert!(rendered.problems[0].contains("bytes are shown"), "{:?}", rendered.problems);
}

#[tokio::test]
async fn a_directory_is_bounded_and_says_what_is_missing() {
    let mut files: Vec<(String, Vec<u8>)> =
        (0..300).map(|number| (format!("d/f{number:03}.txt"), vec![b'x'; 1_000])).collect();
    files.push(("d/a.bin".into(), vec![0]));
    files.push(("d/p.png".into(), PNG.to_vec()));
    files.push(("d/.gitignore".into(), b"*.log\n".to_vec()));
    files.push(("d/z.log".into(), b"ignored".to_vec()));
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, content)| (path.as_str(), &content[..])).collect();
    let world = World::new(&files);
    let directory = [Context::Directory { path: world.path("d") }];
    let rendered = world.render("hi", &directory, Budget { bytes: 1_000_000 }).await;
    assert_eq!(rendered.parts.len(), 257, "files that were read, and the note");
    assert!(rendered.problems[0].ends_with("d: 256 of 303 files were sent"), "{:?}", rendered.problems);
    let texts = world.short(&rendered);
    let note = texts.last().unwrap();
    assert!(note.contains("d/a.bin: is a binary file") && note.contains("d/p.png: is an image"), "{note}");
    assert!(note.contains("d/f299.txt: no room") && !note.contains("z.log"), "{note}");
    let tight = world.render("hi", &directory, Budget { bytes: 20_000 }).await;
    let total: usize = world.short(&tight).iter().map(String::len).sum();
    assert!(total < 40_000 && !tight.seen.is_empty(), "{total}");
}

#[cfg(unix)]
#[tokio::test]
async fn links_to_files_and_directories_are_followed_once() {
    let world = World::new(&[("d/a.rs", b"x")]);
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, world.folder.path().join(name)).unwrap();
    link("d", "link");
    link("../d", "d/round");
    link("a.rs", "d/b.rs");
    let texts = world.texts("", &[Context::Directory { path: world.path("link") }]).await;
    assert_eq!(texts, ["<file name=\"link/a.rs\">\nx\n</file>", "<file name=\"link/b.rs\">\nx\n</file>"]);
    let rendered = world.render("", &[world.file("link/b.rs")], ROOM).await;
    assert_eq!(rendered.seen[0].path, dunce::canonicalize(world.path("d/a.rs")).unwrap());
}

#[tokio::test]
async fn images_need_a_model_that_sees_and_go_through_one_hook() {
    let mut world = World::new(&[("b.png", PNG)]);
    world.sources.prepare_image =
        |bytes, media_type| Ok(Image { media_type: format!("{media_type} prepared"), base64: bytes.len().to_string() });
    let contexts =
        [world.file("b.png"), Context::Image { media_type: "image/png".into(), base64: STANDARD.encode(PNG) }];
    let rendered = world.render("", &contexts, ROOM).await;
    let prepared = Part::Image(Image { media_type: "image/png prepared".into(), base64: PNG.len().to_string() });
    assert_eq!(rendered.parts[1..], [prepared.clone(), prepared]);
    world.sources.sees_images = false;
    let rendered = world.render("", &contexts, ROOM).await;
    assert_eq!((rendered.parts.len(), rendered.problems.len()), (0, 2), "{:?}", rendered.problems);
    assert!(rendered.problems[0].ends_with("b.png: the model cannot look at images"));
}

#[tokio::test]
async fn too_many_contexts_are_counted() {
    let world = World::new(&[]);
    let contexts: Vec<Context> =
        (0..300).map(|number| Context::Text { label: format!("{number}"), content: "x".into() }).collect();
    let rendered = world.render("", &contexts, ROOM).await;
    assert_eq!(rendered.parts.len(), MOST_CONTEXTS);
    assert_eq!(rendered.problems, ["44 of 300 contexts: too many for one message"]);
}
