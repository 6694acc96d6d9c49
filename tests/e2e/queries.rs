//! What a client offers while the user types after `@` or `#`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::mock_llm::{HANG_GUARD, MockLlm};
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

/// Asks until the answer is this one: on a busy machine the first answers may be incomplete.
async fn answers(server: &mut TestServer, folder: &Path, method: &str, params: Value, expected: &[&str]) -> Vec<Value> {
    let mut last = Vec::new();
    let asking = async {
        loop {
            last = ask(server, method, params.clone()).await;
            if shown(&last, folder) == expected {
                return;
            }
        }
    };
    let is_so = tokio::time::timeout(HANG_GUARD, asking).await.is_ok();
    assert!(is_so, "{params}: {:?} instead of {expected:?}", shown(&last, folder));
    last
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
    let query = json!({"query": "", "contexts": []});
    let all = answers(&mut server, folder.path(), "chat/queryContext", query, &expected).await;
    assert_eq!(all[1], json!({"type": "cursor"}));
    let file = folder.path().join("README.md");
    let chosen = json!([{"type": "cursor"}, {"type": "file", "path": file}, {"type": "directory", "path": folder.path()},
        {"type": "file", "path": folder.path().join("src/main.rs"), "linesRange": {"start": 1, "end": 2}}]);
    let expected = [
        "repoMap",
        "file .gitignore",
        "directory src",
        "directory src/chat",
        "file src/main.rs",
        "file src/chat/prompt.rs",
    ];
    let query = json!({"query": null, "contexts": chosen});
    answers(&mut server, folder.path(), "chat/queryContext", query, &expected).await;
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
        answers(&mut server, folder.path(), "chat/queryFiles", json!({"query": query}), expected).await;
    }
    server.finish().await;
}

#[tokio::test]
async fn the_configuration_limits_what_is_offered() {
    let folder = workspace();
    let options = json!({"chat": {"queryLimit": 2}, "index": {"ignoreFiles": []}});
    let (_model, mut server) = server(folder.path(), options).await;
    let ignored = json!({"query": "debug/out"});
    answers(&mut server, folder.path(), "chat/queryFiles", ignored, &["file target/debug/out"]).await;
    let files = ask(&mut server, "chat/queryFiles", json!({"query": ""})).await;
    assert_eq!(files.len(), 2, "{files:?}");
    server.finish().await;
}

#[tokio::test]
async fn other_folders_have_other_files() {
    let (first, second) = (workspace(), tempfile::tempdir().unwrap());
    std::fs::write(second.path().join("chatter.rs"), "").unwrap();
    let (_model, mut server) = server(first.path(), json!({})).await;
    let query = json!({"query": "chat"});
    let both = ["directory src/chat", "file src/chat/prompt.rs"];
    answers(&mut server, first.path(), "chat/queryFiles", query.clone(), &both).await;
    change_folders(&mut server, &[second.path()], &[first.path()]);
    let files = answers(&mut server, second.path(), "chat/queryFiles", query, &["file chatter.rs"]).await;
    assert_eq!(shown(&files, first.path()), Vec::<String>::new());
    server.finish().await;
}
