//! Vendors, models and variants as a client sees them.

use custom_methods::chat::ChatPromptParams;
use custom_methods::methods::ChatPrompt;
use serde_json::{Value, json};

use crate::mock_llm::{MockLlm, Script};
use crate::peer::outline::text_by;
use crate::server::{TestServer, prompt};

/// The fields of all session-wide `config/updated` so far, later ones over earlier ones.
fn told(messages: &[Value]) -> Value {
    let mut all = json!({});
    for message in messages.iter().filter(|message| message["method"] == "config/updated") {
        for (key, value) in message["params"]["chat"].as_object().unwrap() {
            all[key] = value.clone();
        }
    }
    all
}

fn with_variant(variant: &str) -> ChatPromptParams {
    ChatPromptParams { variant: Some(variant.into()), ..prompt(Some("c"), "hi") }
}

fn heated() -> Value {
    json!({
        "providers": {"mock": {"models": {"m1": {
            "extraPayload": {"temperature": 1, "seed": 7},
            "variants": {"hot": {"temperature": 2}, "default": {"top_p": 0.5}},
        }}}},
        "agent": {"plan": {"defaultModel": "mock/m2", "variant": "hot"}},
    })
}

#[tokio::test]
async fn a_variant_changes_the_request_and_an_unknown_one_is_told() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).config(heated()).start().await;
    let start = told(&server.startup);
    assert_eq!((&start["variants"], &start["selectVariant"]), (&json!(["hot"]), &Value::Null));
    for (variant, temperature, top_p, noted) in
        [("hot", json!(2), Value::Null, false), ("", json!(1), json!(0.5), false), ("cold", json!(1), json!(0.5), true)]
    {
        server.request::<ChatPrompt>(with_variant(variant)).await;
        let texts = text_by("system", &server.collect_turn("c").await);
        assert_eq!(texts.contains("has no variant \"cold\""), noted, "{texts:?}");
        let body = model.next_request().await.body;
        assert_eq!((&body["temperature"], &body["top_p"], &body["seed"]), (&temperature, &top_p, &json!(7)), "{body}");
    }
    server.finish().await;
}

#[tokio::test]
async fn selections_are_answered_with_what_goes_with_them() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).config(heated()).start().await;
    server.notify_raw("chat/selectedModelChanged", Some(json!({"model": "mock/m2"})));
    let message = server.next().await;
    assert_eq!(message["params"], json!({"chat": {"variants": [], "selectVariant": null}}));
    server.notify_raw("chat/selectedModelChanged", Some(json!({"model": "m1", "variant": "hot"})));
    let message = server.next().await;
    assert_eq!(message["params"], json!({"chat": {"variants": ["hot"], "selectVariant": "hot"}}));

    server.notify_raw("chat/selectedAgentChanged", Some(json!({"agent": "plan"})));
    let message = server.next().await;
    assert_eq!(message["params"], json!({"chat": {"selectModel": "mock/m2", "variants": [], "selectVariant": null}}));
    assert_eq!(server.next().await["method"], "tool/serverUpdated");

    server.turn("c", "hi").await;
    server.notify_raw("chat/selectedBehaviorChanged", Some(json!({"chatId": "c", "behavior": "plan"})));
    let message = server.next().await;
    assert_eq!(
        message["params"],
        json!({"chatId": "c", "chat": {"selectModel": "mock/m1", "variants": ["hot"], "selectVariant": "hot"}}),
        "the chat keeps its model and takes the agent's variant"
    );
    assert_eq!(server.next().await["method"], "tool/serverUpdated");
    server.finish().await;
}

#[tokio::test]
async fn an_agent_brings_its_model_into_a_new_chat() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).config(heated()).start().await;
    let planned = ChatPromptParams { agent: Some("plan".into()), ..prompt(Some("c"), "hi") };
    assert_eq!(server.request::<ChatPrompt>(planned.clone()).await.model, "mock/m2");
    server.collect_turn("c").await;
    let chosen = ChatPromptParams { model: Some("mock/m1".into()), ..planned.clone() };
    assert_eq!(server.request::<ChatPrompt>(chosen).await.model, "mock/m1");
    server.collect_turn("c").await;
    assert_eq!(server.request::<ChatPrompt>(planned).await.model, "mock/m1", "the chat has a model now");
    server.collect_turn("c").await;
    server.finish().await;
}

#[tokio::test]
async fn a_vendor_with_its_key_in_the_environment_needs_no_configuration() {
    let model = MockLlm::start().await;
    model.respond_with(|request| match request.path.ends_with("/models") {
        true => Script::models(&["llama-9", "whisper-1"]),
        false => Script::text_stream(&["ok"]),
    });
    let mut server = TestServer::with(&model)
        .config_text(r#"{"localDiscovery": false, "modelsDev": false, "chat": {"title": false}}"#)
        .variable("GROQ_API_KEY", "sk-of-groq")
        .variable("GROQ_API_URL", model.url())
        .start()
        .await;
    let start = told(&server.startup);
    assert_eq!(start["models"], json!(["groq/llama-9", "eca/guide"]), "{start}");
    assert_eq!(start["selectModel"], "groq/llama-9", "the guide was replaced before the first prompt");
    assert_eq!(server.prompt(Some("c"), "hi").await.model, "groq/llama-9");
    server.collect_turn("c").await;
    let list = model.next_request().await;
    assert_eq!((list.method.as_str(), list.header("authorization")), ("GET", Some("Bearer sk-of-groq")));
    let listed = server.request_raw("providers/list", None).await;
    let rows = listed["result"]["providers"].as_array().unwrap();
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("no {id}: {listed}"));
    let auth = json!({"status": "authenticated", "type": "api-key", "source": "env", "envVar": "GROQ_API_KEY"});
    assert_eq!((&row("groq")["auth"], &row("groq")["models"][0]["id"]), (&auth, &json!("llama-9")));
    assert_eq!(row("anthropic")["auth"]["status"], "unauthenticated");
    assert!(row("github-copilot")["settings"]["reason"].as_str().unwrap().contains("another product"));
    server.finish().await;
}

#[tokio::test]
async fn prices_and_limits_reach_the_client() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let config = json!({"providers": {"mock": {"models": {"gpt-5.2": {
        "limit": {"context": 1000}, "cost": {"input": 1, "output": 1}
    }}}}});
    let mut server = TestServer::with(&model).config(config).start().await;
    let known = ChatPromptParams { model: Some("mock/gpt-5.2".into()), ..prompt(Some("c"), "hi") };
    server.request::<ChatPrompt>(known).await;
    let messages = server.collect_turn("c").await;
    let usage = messages.iter().map(|message| &message["params"]["content"]).find(|content| content["type"] == "usage");
    let usage = usage.expect("usage");
    assert_eq!(usage["limit"]["context"], 1000, "{usage}");
    assert!(usage["sessionCost"].is_string(), "{usage}");
    server.finish().await;
}

#[tokio::test]
async fn the_selected_model_is_always_among_those_to_choose_from() {
    let model = MockLlm::start().await;
    let wish = json!({"defaultModel": "mock/m0-that-nobody-lists"});
    let server = TestServer::with(&model).config(wish).start().await;
    let first = server.startup.iter().find(|message| message["method"] == "config/updated").expect("what there is");
    let chat = &first["params"]["chat"];
    assert_eq!(chat["selectModel"], "mock/m0-that-nobody-lists");
    assert_eq!(chat["models"], json!(["mock/m0-that-nobody-lists", "mock/m1", "mock/m2", "eca/guide"]));
    server.finish().await;
}
