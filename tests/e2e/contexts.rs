//! What the user points at beside the message.

use serde_json::{Value, json};

use crate::mock_llm::{MockLlm, Script};
use crate::peer::outline::text_by;
use crate::peer::{is_finished, outline};
use crate::server::{TestServer, presets};

/// Sends a prompt with these params and returns what the model was sent last, as text, and the turn.
async fn ask(server: &mut TestServer, model: &MockLlm, params: Value) -> (String, Vec<Value>) {
    let mut all = json!({"chatId": "c", "message": "what is this?"});
    all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
    server.start_raw("chat/prompt", Some(all));
    let turn = server.everything_until("the end", |message| is_finished(message, "c")).await;
    let request = model.next_request().await;
    let last = request.body["messages"].as_array().unwrap().last().unwrap().clone();
    (last["content"].as_str().map_or_else(|| last["content"].to_string(), str::to_owned), turn)
}

async fn ready() -> (MockLlm, TestServer) {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let server = TestServer::with(&model).start().await;
    (model, server)
}

#[tokio::test]
async fn a_files_content_reaches_the_model_whole_or_by_lines() {
    let (model, mut server) = ready().await;
    let path = server.dirs.file("code.rs", "line one\nline two\nline three\nline four\n");
    let whole = json!({"contexts": [{"type": "file", "path": path}]});
    let (sent, _) = ask(&mut server, &model, whole).await;
    assert!(sent.contains("line one") && sent.contains("line four") && sent.contains("code.rs"), "{sent}");
    assert!(sent.contains("what is this?"), "{sent}");
    let lines = json!({"contexts": [{"type": "file", "path": path, "linesRange": {"start": 2, "end": 3}}]});
    let (sent, _) = ask(&mut server, &model, lines).await;
    assert!(sent.contains("line two") && sent.contains("line three"), "{sent}");
    assert!(!sent.contains("line one") && !sent.contains("line four"), "{sent}");
    server.finish().await;
}

#[tokio::test]
async fn texts_and_code_reach_the_model() {
    let (model, mut server) = ready().await;
    let contexts = json!({"contexts": [
        {"type": "text", "label": "log", "content": "panicked at 7"},
        {"type": "code", "content": "fn seven() {}", "language": "rust", "description": "the function"},
    ]});
    let (sent, _) = ask(&mut server, &model, contexts).await;
    for part in ["log", "panicked at 7", "fn seven() {}", "the function"] {
        assert!(sent.contains(part), "{part:?} in {sent}");
    }
    server.finish().await;
}

#[tokio::test]
async fn parsing_is_announced_before_the_echo_and_only_with_contexts() {
    let (model, mut server) = ready().await;
    let (_, turn) =
        ask(&mut server, &model, json!({"contexts": [{"type": "text", "label": "l", "content": "c"}]})).await;
    assert_eq!(
        outline(&turn)[..4],
        ["chat/opened", "progress Parsing given context", "user \"what is this?\\n\"", "response"]
    );
    let (_, turn) = ask(&mut server, &model, json!({"contexts": []})).await;
    assert_eq!(outline(&turn)[..3], ["progress Starting", "user \"what is this?\\n\"", "response"]);
    server.finish().await;
}

#[tokio::test]
async fn test_mode_announces_only_contexts() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).options(json!({"env": "test"})).start().await;
    let (_, turn) =
        ask(&mut server, &model, json!({"contexts": [{"type": "text", "label": "l", "content": "c"}]})).await;
    assert_eq!(outline(&turn)[1], "progress Parsing given context");
    let (_, turn) = ask(&mut server, &model, json!({})).await;
    assert_eq!(outline(&turn)[0], "user \"what is this?\\n\"");
    server.finish().await;
}

#[tokio::test]
async fn the_old_and_the_new_key_are_read_together() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).client(presets::vscode).start().await;
    let both = json!({
        "context": [{"type": "text", "label": "a", "content": "from context"}],
        "contexts": [{"type": "text", "label": "b", "content": "from contexts"}],
    });
    let (sent, turn) = ask(&mut server, &model, both).await;
    assert!(sent.contains("from context\n") && sent.contains("from contexts\n"), "{sent}");
    assert!(outline(&turn).contains(&"status running".to_owned()), "a modern client stays modern");
    server.finish().await;
}

#[tokio::test]
async fn what_cannot_be_read_is_named_and_the_rest_is_used() {
    let (model, mut server) = ready().await;
    let contexts = json!({"contexts": [
        {"type": "file", "path": "/nowhere/at/all.rs"},
        {"type": "hologram", "of": "leia"},
        {"type": "text", "label": "good", "content": "still here"},
    ]});
    let (sent, turn) = ask(&mut server, &model, contexts).await;
    assert!(sent.contains("still here"), "{sent}");
    let notice = text_by("system", &turn);
    assert!(notice.contains("/nowhere/at/all.rs") && notice.contains("hologram"), "{notice:?}");
    assert_eq!(text_by("assistant", &turn), "ok");
    server.finish().await;
}

#[tokio::test]
async fn what_has_no_room_is_cut_and_both_sides_are_told() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    // 40 % of it, at four bytes per token, is 32,000 bytes.
    let config = json!({"providers": {"mock": {"models": {"m1": {"limit": {"context": 20_000, "output": 1_000}}}}}});
    let mut server = TestServer::with(&model).config(config).start().await;
    let long = server.dirs.file("long.txt", &format!("{}the end of it", "a line of it\n".repeat(10_000)));
    let small = server.dirs.file("small.txt", "all of this is shown");
    let contexts = json!({"contexts": [{"type": "file", "path": long}, {"type": "file", "path": small}]});
    let (sent, turn) = ask(&mut server, &model, contexts).await;
    assert!(sent.contains("all of this is shown"), "whoever needs little gets it all");
    assert!(
        sent.contains("[cut here: ") && sent.contains(" of 130013 bytes are shown]"),
        "{}",
        &sent[sent.len() - 300..]
    );
    assert!(!sent.contains("the end of it") && (20_000..33_000).contains(&sent.len()), "{}", sent.len());
    let notice = text_by("system", &turn);
    assert!(
        notice.contains("long.txt") && notice.contains("bytes are shown") && !notice.contains("small.txt"),
        "{notice}"
    );
    server.finish().await;
}
