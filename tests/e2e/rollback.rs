//! Files that are too large for the database of the history come back as well.

use std::fs;
use std::path::{Path, PathBuf};

use custom_methods::chat::ChatRollbackParams;
use custom_methods::methods::ChatRollback;
use serde_json::json;

use crate::mock_llm::{MockLlm, Script};
use crate::peer::outline::contents;
use crate::server::{TestDirs, TestServer};

const LINES: usize = 20_000;

fn large_text() -> String {
    let mut text = String::from("\u{feff}");
    for number in 0..LINES {
        text.push_str(&format!("this is line {number}, like many others\r\n"));
    }
    text + "no line end"
}

/// The files with large contents.
fn kept(dirs: &TestDirs) -> Vec<PathBuf> {
    let entries = fs::read_dir(dirs.eca.data.join("chats.db-contents")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn edit(path: &Path, from: &str, to: &str) -> String {
    json!({"path": path, "original_content": from, "new_content": to}).to_string()
}

/// Two turns that change a large file, and a small one in between; the id of the first prompt.
async fn two_turns(model: &MockLlm, server: &mut TestServer, large: &Path, small: &Path) -> String {
    model.push(
        Script::stream()
            .call(0, "", "eca__edit_file", &[&edit(large, "line 5,", "LINE 5,")])
            .call(1, "", "eca__write_file", &[&json!({"path": small, "content": "new"}).to_string()])
            .finish("tool_calls"),
    );
    model.push(Script::text_stream(&["done"]));
    model.push(Script::stream().call(0, "", "eca__edit_file", &[&edit(large, "LINE 5,", "")]).finish("tool_calls"));
    model.push(Script::text_stream(&["done"]));
    let turn = server.turn("c", "one").await;
    server.turn("c", "two").await;
    contents("text", &turn)[0]["contentId"].as_str().unwrap().to_owned()
}

fn to_the_start(content_id: &str) -> ChatRollbackParams {
    ChatRollbackParams { chat_id: "c".into(), content_id: content_id.into(), include: Vec::new(), force: None }
}

fn paths(dirs: &TestDirs) -> (PathBuf, PathBuf) {
    (dirs.workspace.join("large.txt"), dirs.workspace.join("small.txt"))
}

#[tokio::test]
async fn a_large_file_is_restored_byte_for_byte_after_a_restart() {
    let model = MockLlm::start().await;
    let allowed = json!({"toolCall": {"approval": {"byDefault": "allow"}}});
    let mut server = TestServer::with(&model).config(allowed.clone()).start().await;
    let dirs = server.dirs.clone();
    let (large, small) = paths(&dirs);
    fs::write(&large, large_text()).unwrap();
    let content_id = two_turns(&model, &mut server, &large, &small).await;
    assert!(fs::read_to_string(&large).unwrap() == large_text().replace("line 5,", ""));
    assert_eq!(kept(&dirs).len(), 2);
    server.finish().await;

    let mut server = TestServer::with(&model).config(allowed).dirs(&dirs).start().await;
    let id = server.start::<ChatRollback>(to_the_start(&content_id));
    server.response::<ChatRollback>(id).await.unwrap();
    assert!(fs::read(&large).unwrap() == large_text().into_bytes(), "not what it was");
    assert!(!small.exists());
    server.ignore_rest();
    server.finish().await;
    assert_eq!(kept(&dirs), Vec::<PathBuf>::new(), "what was undone is not kept");
}

#[tokio::test]
async fn nothing_is_restored_when_one_content_is_lost() {
    let model = MockLlm::start().await;
    let allowed = json!({"toolCall": {"approval": {"byDefault": "allow"}}});
    let mut server = TestServer::with(&model).config(allowed).start().await;
    let dirs = server.dirs.clone();
    let (large, small) = paths(&dirs);
    fs::write(&large, large_text()).unwrap();
    let content_id = two_turns(&model, &mut server, &large, &small).await;
    let now = fs::read(&large).unwrap();
    // The oldest change is undone last, when it is too late to find out.
    let oldest = kept(&dirs).into_iter().find(|path| fs::read(path).unwrap() == large_text().into_bytes());
    fs::remove_file(oldest.expect("the content before the first change")).unwrap();
    for force in [None, Some(true)] {
        let id = server.start::<ChatRollback>(ChatRollbackParams { force, ..to_the_start(&content_id) });
        let refused = server.response::<ChatRollback>(id).await.unwrap_err();
        assert!(refused.message.contains("large.txt") && refused.message.contains("kept"), "{refused:?}");
        assert!(fs::read(&large).unwrap() == now && small.exists(), "nothing is restored then");
    }
    server.ignore_rest();
    server.finish().await;
}
