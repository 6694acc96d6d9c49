//! What a client offers while the user types after `@` or `#`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::mock_llm::MockLlm;
use crate::server::TestServer;

/// A workspace with an ignored directory.
fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for path in ["src/chat/prompt.rs", "src/main.rs", "target/debug/out", "README.md"] {
        let file = folder.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "x\n").unwrap();
    }
    std::fs::write(folder.path().join(".gitignore"), "target/\n").unwrap();
    folder
}

async fn server(folder: &Path, config: Value) -> (MockLlm, TestServer) {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).options(config).start().await;
    change_folders(&mut server, &[folder], &[]);
    (model, server)
}

fn change_folders(server: &mut TestServer, added: &[&Path], removed: &[&Path]) {
    let folders = |paths: &[&Path]| -> Vec<Value> {
        paths.iter().map(|path| json!({"uri": format!("file://{}", path.display()), "name": "w"})).collect()
    };
    let event = json!({"event": {"added": folders(added), "removed": folders(removed)}});
    server.notify_raw("workspace/didChangeWorkspaceFolders", Some(event));
}

async fn ask(server: &mut TestServer, method: &str, params: Value) -> Vec<Value> {
    let response = server.request_raw(method, Some(params)).await;
    let key = if method.ends_with("Files") { "files" } else { "contexts" };
    response["result"][key].as_array().unwrap_or_else(|| panic!("{response}")).clone()
}

/// The type, and the path below `folder`.
fn shown(contexts: &[Value], folder: &Path) -> Vec<String> {
    let path = |context: &Value| {
        let path = PathBuf::from(context["path"].as_str()?);
        path.strip_prefix(folder).ok().map(|path| path.display().to_string())
    };
    let in_folder = contexts.iter().filter(|context| context["path"].is_null() || path(context).is_some());
    in_folder
        .map(|context| format!("{} {}", context["type"].as_str().unwrap(), path(context).unwrap_or_default()))
        .map(|text| text.trim_end().to_owned())
        .collect()
}

#[tokio::test]
async fn nothing_typed_offers_every_kind_and_leaves_out_what_is_chosen_or_ignored() {
    let folder = workspace();
    let (_model, mut server) = server(folder.path(), json!({})).await;
    let all = ask(&mut server, "chat/queryContext", json!({"query": "", "contexts": []})).await;
    let expected = [
        "repoMap",
        "cursor",
        "directory",
        "file .gitignore",
        "file README.md",
        "directory src",
        "directory src/chat",
        "file src/main.rs",
        "file src/chat/prompt.rs",
    ];
    assert_eq!(shown(&all, folder.path()), expected);
    assert_eq!(all[1], json!({"type": "cursor"}));
    let file = folder.path().join("README.md");
    let chosen = json!([{"type": "cursor"}, {"type": "file", "path": file}, {"type": "directory", "path": folder.path()},
        {"type": "file", "path": folder.path().join("src/main.rs"), "linesRange": {"start": 1, "end": 2}}]);
    let rest = ask(&mut server, "chat/queryContext", json!({"query": null, "contexts": chosen})).await;
    let expected = [
        "repoMap",
        "file .gitignore",
        "directory src",
        "directory src/chat",
        "file src/main.rs",
        "file src/chat/prompt.rs",
    ];
    assert_eq!(shown(&rest, folder.path()), expected);
    server.finish().await;
}

#[tokio::test]
async fn files_are_found_by_letters_and_by_paths() {
    let folder = workspace();
    let (_model, mut server) = server(folder.path(), json!({})).await;
    let absolute = format!("{}/sr", folder.path().display());
    for (query, expected) in [
        ("chtprm", &["file src/chat/prompt.rs"][..]),
        ("src/ma", &["file src/main.rs"]),
        ("./src/", &["directory src/chat", "file src/main.rs"]),
        (&absolute, &["directory src"]),
        ("nosuchthing", &[]),
    ] {
        let files = ask(&mut server, "chat/queryFiles", json!({"query": query})).await;
        assert_eq!(shown(&files, folder.path()), expected, "{query}");
    }
    server.finish().await;
}

#[tokio::test]
async fn the_configuration_limits_what_is_offered() {
    let folder = workspace();
    let options = json!({"chat": {"queryLimit": 2}, "index": {"ignoreFiles": []}});
    let (_model, mut server) = server(folder.path(), options).await;
    let files = ask(&mut server, "chat/queryFiles", json!({"query": ""})).await;
    assert_eq!(files.len(), 2, "{files:?}");
    let ignored = ask(&mut server, "chat/queryFiles", json!({"query": "debug/out"})).await;
    assert_eq!(shown(&ignored, folder.path()), ["file target/debug/out"]);
    server.finish().await;
}

#[tokio::test]
async fn other_folders_have_other_files() {
    let (first, second) = (workspace(), tempfile::tempdir().unwrap());
    std::fs::write(second.path().join("chatter.rs"), "").unwrap();
    let (_model, mut server) = server(first.path(), json!({})).await;
    let files = ask(&mut server, "chat/queryFiles", json!({"query": "chat"})).await;
    assert_eq!(shown(&files, first.path()).len(), 2, "{files:?}");
    change_folders(&mut server, &[second.path()], &[first.path()]);
    let files = ask(&mut server, "chat/queryFiles", json!({"query": "chat"})).await;
    assert_eq!(shown(&files, second.path()), ["file chatter.rs"]);
    assert_eq!(shown(&files, first.path()), Vec::<String>::new());
    server.finish().await;
}
