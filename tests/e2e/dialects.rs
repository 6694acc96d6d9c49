//! Clients that speak otherwise: the first version of the protocol, and plain LSP.

use serde_json::{Value, json};

use crate::mock_llm::{Gate, MockLlm, Script};
use crate::peer::outline;
use crate::peer::outline::text_by;
use crate::server::{Handshake, TestServer, presets};

fn completes(message: &Value) -> bool {
    message["params"]["isComplete"] == true
}

#[tokio::test]
async fn the_first_version_gets_texts_of_which_the_last_is_complete() {
    let model = MockLlm::start().await;
    model.push(Script::text_stream(&["look:\n```ru", "st\nfn main() {}\n``", "`\ndone"]));
    let mut server = TestServer::with(&model).client(presets::seed_000).start().await;
    let path = server.dirs.file("a.rs", "one\ntwo\nthree\n");
    let context = json!([{"type": "file", "path": path, "selection": {"startLine": 2, "endLine": 2}, "cursor": {"line": 2, "character": 1}}]);
    let id = server.start_raw("chat/prompt", Some(json!({"message": "hi", "model": "auto", "context": context})));
    let messages = server.everything_until("the complete message", completes).await;
    let response = &messages[0];
    assert_eq!(response["id"], id, "the response comes before the first text");
    assert_eq!(response["result"]["status"], "success");
    assert!(response["result"]["resultMessage"].as_str().is_some_and(|text| !text.is_empty()));
    let chat = &response["result"]["chatId"];
    let texts = &messages[1..];
    assert!(texts.iter().all(|m| m["method"] == "chat/contentReceived" && m["params"]["chatId"] == *chat));
    assert!(texts.iter().all(|message| message["params"]["content"]["type"] == "text"), "{texts:?}");
    assert_eq!(text_by("assistant", texts), "look:\n```rust\nfn main() {}\n```\ndone");
    let complete: Vec<&Value> = texts.iter().map(|message| &message["params"]["isComplete"]).collect();
    assert_eq!(complete.iter().filter(|flag| **flag == &json!(true)).count(), 1);
    assert!(complete.iter().all(|flag| flag.is_boolean()));
    assert_eq!(texts.last().unwrap()["params"]["metadata"]["tokensUsed"], 19);
    let blocks: Vec<&Value> = texts.iter().filter_map(|m| m["params"]["content"].get("codeBlocks")).collect();
    assert_eq!(blocks, [&json!([{"code": "fn main() {}\n", "language": "rust"}])]);
    let sent = model.next_request().await.body.to_string();
    assert!(sent.contains("two") && !sent.contains("three"), "{sent}");
    server.finish().await;
}

#[tokio::test]
async fn the_first_version_waits_for_the_provider_and_learns_of_a_failed_connection() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut server = TestServer::at(&format!("http://{free}")).client(presets::seed_000).start().await;
    let id = server.start_prompt(None, "hi");
    let messages = server.everything_until("the complete message", completes).await;
    let response = messages.iter().find(|message| message["id"] == id).unwrap();
    assert_eq!(response["result"]["status"], "connection-error", "{response}");
    assert!(response["result"]["resultMessage"].as_str().unwrap().contains(&free.to_string()), "{response}");
    assert!(text_by("system", &messages).contains(&free.to_string()));
    assert_eq!(messages.iter().filter(|message| completes(message)).count(), 1);
    server.finish().await;
}

#[tokio::test]
async fn a_refused_prompt_of_the_first_version_is_a_connection_error() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).client(presets::seed_000).start().await;
    let result = server.prompt(Some("bad id"), "hi").await;
    assert_eq!(json!(result.status), "connection-error");
    server.finish().await;
}

#[tokio::test]
async fn a_prompt_with_context_reveals_the_first_version() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).client(presets::cli).start().await;
    let context = json!([{"type": "code", "content": "x", "language": "c"}]);
    server.start_raw("chat/prompt", Some(json!({"message": "hi", "context": context})));
    let messages = server.everything_until("the complete message", completes).await;
    assert_eq!(messages[0]["result"]["status"], "success", "{:?}", outline(&messages));
    server.finish().await;
}

#[tokio::test]
async fn the_first_version_can_be_asked_for_by_name() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model)
        .client(|dirs| {
            let mut preset = presets::vscode(dirs);
            preset.announced = crate::server::Announced::Plain;
            preset
        })
        .options(json!({"ecaCompat": "v0"}))
        .start()
        .await;
    server.start_prompt(None, "hi");
    server.everything_until("the complete message", completes).await;
    server.finish().await;
}

#[tokio::test]
async fn stopping_the_first_version_completes_the_turn_once() {
    let model = MockLlm::start().await;
    model.push(Script::stream().text("half").gate(&Gate::new()).finish("stop"));
    let mut server = TestServer::with(&model).client(presets::seed_000).start().await;
    let chat = server.prompt(None, "hi").await.chat_id.0;
    server.everything_until("half", |message| message["params"]["content"]["text"] == "half").await;
    server.stop(&chat);
    let messages = server.everything_until("the complete message", completes).await;
    assert!(!text_by("system", &messages).is_empty());
    server.finish().await;
}

#[tokio::test]
async fn an_lsp_client_never_gets_our_progress() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).client(presets::plain_lsp).start().await;
    assert_eq!(outline(&server.startup), ["config/updated", "tool/serverUpdated"]);
    assert!(server.initialize_response["result"]["capabilities"].is_object());
    let turn = server.turn("c", "hi").await;
    assert_eq!(text_by("assistant", &turn), "ok");
    // `finish` fails on a progress that comes late.
    server.finish().await;
}

#[tokio::test]
async fn an_lsp_client_with_eca_capabilities_is_still_an_lsp_client() {
    let model = MockLlm::start().await;
    let server = TestServer::with(&model)
        .client(presets::plain_lsp)
        .capabilities(json!({"codeAssistant": {"chat": true}, "general": {}}))
        .start()
        .await;
    assert_eq!(outline(&server.startup), ["config/updated", "tool/serverUpdated"]);
    server.finish().await;
}

#[tokio::test]
async fn an_lsp_client_that_announced_it_gets_work_done_progress() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model)
        .client(presets::plain_lsp)
        .capabilities(json!({"window": {"workDoneProgress": true}}))
        .start()
        .await;
    let create = server.next().await;
    assert_eq!(create["method"], "window/workDoneProgress/create");
    assert!(create["id"].is_i64());
    let token = create["params"]["token"].clone();
    server.answer(&create, Value::Null);
    for kind in ["begin", "end"] {
        let progress = server.next().await;
        assert_eq!(progress["method"], "$/progress");
        assert_eq!(progress["params"]["token"], token);
        assert_eq!(progress["params"]["value"]["kind"], kind);
    }
    server.finish().await;
}

#[tokio::test]
async fn an_lsp_client_that_refuses_the_progress_gets_none() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model)
        .client(presets::plain_lsp)
        .capabilities(json!({"window": {"workDoneProgress": true}}))
        .start()
        .await;
    let create = server.next().await;
    server.send(&json!({"jsonrpc": "2.0", "id": create["id"], "error": {"code": -32601, "message": "no", "extra": 1}}));
    assert_eq!(outline(&server.settled().await), Vec::<String>::new());
    server.finish().await;
}

#[tokio::test]
async fn the_usual_traffic_of_an_lsp_client_is_taken_in_silence() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).client(presets::plain_lsp).start().await;
    let document = json!({"uri": "file:///a.rs", "languageId": "rust", "version": 1, "text": "fn main() {}"});
    for (method, params) in [
        ("textDocument/didOpen", json!({"textDocument": document})),
        (
            "textDocument/didChange",
            json!({"textDocument": {"uri": "file:///a.rs", "version": 2}, "contentChanges": []}),
        ),
        ("textDocument/didSave", json!({"textDocument": {"uri": "file:///a.rs"}})),
        ("textDocument/didClose", json!({"textDocument": {"uri": "file:///a.rs"}})),
        ("workspace/didChangeConfiguration", json!({"settings": {}})),
        ("workspace/didChangeWatchedFiles", json!({"changes": []})),
        ("$/setTrace", json!({"value": "off"})),
    ] {
        server.notify_raw(method, Some(params));
    }
    assert_eq!(outline(&server.settled().await), Vec::<String>::new());
    server.finish().await;
}

const BROKEN: &str = "{\n  \"chat\": {\"title\": false},\n  \"localDiscovery\": false,\n  \"providers\": oops\n}\n";

#[tokio::test]
async fn a_broken_configuration_is_reported_once_with_file_and_line() {
    let model = MockLlm::start().await;
    let server = TestServer::with(&model).config_text(BROKEN).start().await;
    let shown: Vec<&Value> = server.startup.iter().filter(|message| message["method"] == "$/showMessage").collect();
    let [shown] = shown[..] else { panic!("{shown:?}") };
    let text = shown["params"]["message"].as_str().unwrap();
    let place = format!("{}:4", server.dirs.eca.config.join("config.json").display());
    assert!(text.contains(&place), "{text}");
    assert_eq!(shown["params"]["type"], "warning");
    assert_eq!(outline(&server.startup)[..2], ["config/updated", "tool/serverUpdated"]);
    server.finish().await;
}

#[tokio::test]
async fn an_lsp_client_is_shown_the_same_in_its_own_words() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model)
        .config_text(BROKEN)
        .client(presets::plain_lsp)
        .handshake(Handshake::Full)
        .start()
        .await;
    let own = server.find("$/showMessage", |message| message["method"] == "$/showMessage").await;
    let standard = server.find("window/showMessage", |message| message["method"] == "window/showMessage").await;
    assert_eq!(own["params"]["message"], standard["params"]["message"]);
    assert_eq!(standard["params"]["type"], 2);
    server.finish().await;
}

#[tokio::test]
async fn a_wrong_value_is_reported_and_the_rest_counts() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).config(json!({"chat": {"maxSteps": "many"}})).start().await;
    let shown: Vec<String> = server
        .startup
        .iter()
        .filter(|message| message["method"] == "$/showMessage")
        .map(|message| message["params"]["message"].as_str().unwrap().to_owned())
        .collect();
    assert!(shown.len() == 1 && shown[0].contains("maxSteps"), "{shown:?}");
    assert_eq!(text_by("assistant", &server.turn("c", "hi").await), "ok");
    server.finish().await;
}
