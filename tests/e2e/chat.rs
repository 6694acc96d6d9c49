//! Plain conversations: what a client sees of a prompt, from its echo to the end of its turn.

use custom_methods::chat::{ChatListParams, ChatPromptParams, ChatPromptStatus};
use custom_methods::methods::{ChatList, ChatPrompt};
use serde_json::{Value, json};

use crate::mock_llm::{Gate, MockLlm, Script};
use crate::peer::outline::{contents, text_by};
use crate::peer::{is_finished, outline};
use crate::server::{TestServer, presets, prompt};

const TURN: [&str; 9] = [
    "progress Starting",
    "user \"hi\\n\"",
    "response",
    "status running",
    "progress Waiting model",
    "progress Generating",
    "assistant \"Hello world\"",
    "usage",
    "status idle",
];

#[tokio::test]
async fn a_turn_without_a_chat_id_has_the_order_of_the_protocol() {
    let model = MockLlm::start().await;
    model.push(Script::text_stream(&["Hello", " ", "world"]));
    let mut server = TestServer::with(&model).start().await;
    let id = server.start_prompt(None, " hi \n");
    let finished = |message: &Value| message["params"]["content"]["state"] == "finished";
    let messages = server.everything_until("the end of the turn", finished).await;
    assert_eq!(outline(&messages), [&TURN[..], &["finished"]].concat());
    let response = messages.iter().find(|message| message["id"] == id).unwrap();
    let chat = response["result"]["chatId"].as_str().unwrap();
    assert!(uuid::Uuid::parse_str(chat).is_ok());
    assert!(messages.iter().filter(|m| m.get("method").is_some()).all(|m| m["params"]["chatId"] == chat));
    server.finish().await;
}

#[tokio::test]
async fn a_chat_that_the_client_names_is_opened_once() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["Hello", " world"]));
    let mut server = TestServer::with(&model).start().await;
    for round in 0..2 {
        server.start_prompt(Some("mine"), "hi");
        let messages = server.everything_until("the end", |message| is_finished(message, "mine")).await;
        let opened: &[&str] = if round == 0 { &["chat/opened"] } else { &[] };
        assert_eq!(outline(&messages), [opened, &TURN[..], &["finished"]].concat());
    }
    server.finish().await;
}

#[tokio::test]
async fn the_echo_is_the_trimmed_text_with_a_fresh_content_id() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).start().await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let turn = server.turn("c", "\n  two\nlines\t ").await;
        let echo = turn.iter().find(|message| message["params"]["role"] == "user").unwrap();
        assert_eq!(echo["params"]["content"]["text"], "two\nlines\n");
        ids.push(uuid::Uuid::parse_str(echo["params"]["content"]["contentId"].as_str().unwrap()).unwrap());
    }
    assert_ne!(ids[0], ids[1]);
    server.finish().await;
}

#[tokio::test]
async fn the_response_comes_before_the_first_word_of_the_model() {
    let model = MockLlm::start().await;
    let gate = Gate::new();
    model.push(Script::stream().gate(&gate).text("late").finish("stop"));
    let mut server = TestServer::with(&model).start().await;
    let result = server.prompt(Some("c"), "hi").await;
    assert_eq!((result.model.as_str(), result.status), ("mock/m1", ChatPromptStatus::Prompting));
    assert!(!result.result_message.is_empty());
    gate.open();
    let turn = server.collect_turn("c").await;
    assert_eq!(text_by("assistant", &turn), "late");
    server.finish().await;
}

#[tokio::test]
async fn roles_are_right_and_finished_comes_exactly_once_and_last() {
    let model = MockLlm::start().await;
    let words: Vec<String> = (0..300).map(|number| format!("w{number} ")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    model.push(Script::text_stream(&words));
    let mut server = TestServer::with(&model).start().await;
    let turn = server.turn("c", "hi").await;
    assert_eq!(text_by("assistant", &turn), words.concat());
    assert_eq!(contents("progress", &turn).iter().filter(|content| content["state"] == "finished").count(), 1);
    for message in turn.iter().filter(|message| message["method"] == "chat/contentReceived") {
        let params = &message["params"];
        let expected = match params["content"]["type"].as_str().unwrap() {
            "progress" | "usage" => "system",
            "text" if params["content"].get("contentId").is_some() => "user",
            _ => "assistant",
        };
        assert_eq!(params["role"], expected, "{message}");
    }
    server.finish().await;
}

#[tokio::test]
async fn the_second_prompt_takes_the_history_along() {
    let model = MockLlm::start().await;
    model.push(Script::text_stream(&["first ", "answer"]));
    model.push(Script::text_stream(&["second answer"]));
    let mut server = TestServer::with(&model).start().await;
    server.turn("c", "one").await;
    server.turn("c", "two").await;
    model.next_request().await;
    let request = model.next_request().await;
    assert_eq!(spoken(&request.body), [("user", "one"), ("assistant", "first answer"), ("user", "two")]);
    assert_eq!(request.body["model"], "m1");
    assert_eq!(request.header("authorization"), Some(format!("Bearer {}", crate::server::KEY).as_str()));
    server.finish().await;
}

/// Role and text of what was sent to the model, without its instructions.
pub(crate) fn spoken(body: &Value) -> Vec<(&str, &str)> {
    let messages = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] != "system");
    messages.map(|message| (message["role"].as_str().unwrap(), message["content"].as_str().unwrap_or(""))).collect()
}

#[tokio::test]
async fn two_chats_stream_at_once_and_keep_apart() {
    let model = MockLlm::start().await;
    let gates = [Gate::new(), Gate::new()];
    let answers = gates.clone();
    model.respond_with(move |request| {
        let which = usize::from(request.body["messages"].to_string().contains("\"second\""));
        let mut script = Script::stream();
        for number in 0..10 {
            script = script.gate(&answers[which]).text(&format!("{which}:{number} "));
        }
        script.finish("stop")
    });
    let mut server = TestServer::with(&model).start().await;
    server.prompt(Some("a"), "first").await;
    server.prompt(Some("b"), "second").await;
    for _ in 0..10 {
        gates[1].open();
        gates[0].open();
    }
    let expected = |which: usize| (0..10).map(|number| format!("{which}:{number} ")).collect::<String>();
    for (which, chat) in ["a", "b"].into_iter().enumerate() {
        let turn = server.collect_turn(chat).await;
        assert_eq!(text_by("assistant", &turn), expected(which));
    }
    server.finish().await;
}

#[tokio::test]
async fn invalid_chat_ids_are_refused_without_a_word_and_without_a_trace() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let long = "x".repeat(257);
    for bad in ["", "  ", &long, "a b", "a\u{7}b", "a\nb", "subagent-x"] {
        let result = server.prompt(Some(bad), "hi").await;
        assert_eq!(result.status, ChatPromptStatus::Error, "{bad:?}");
        assert_eq!((result.chat_id.0.as_str(), result.model.as_str()), (bad, "error"));
        assert!(result.result_message.contains("chat id"), "{}", result.result_message);
    }
    assert_eq!(outline(&server.settled().await), Vec::<String>::new());
    assert!(server.request::<ChatList>(ChatListParams::default()).await.chats.is_empty());
    server.finish().await;
}

#[tokio::test]
async fn the_model_is_the_default_then_the_asked_then_the_chats_own() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).start().await;
    for (asked, expected) in [
        (None, "mock/m1"),
        (Some("mock/m2"), "mock/m2"),
        (None, "mock/m2"),
        (Some("auto"), "mock/m1"),
        (Some("m2"), "mock/m2"),
        (Some("mock/unlisted"), "mock/unlisted"),
    ] {
        let params = ChatPromptParams { model: asked.map(str::to_owned), ..prompt(Some("c"), "hi") };
        let result = server.request::<ChatPrompt>(params).await;
        assert_eq!(result.model, expected, "asked for {asked:?}");
        server.collect_turn("c").await;
        assert_eq!(model.next_request().await.body["model"], expected.trim_start_matches("mock/"));
    }
    server.finish().await;
}

#[tokio::test]
async fn an_unknown_model_is_an_error_in_the_chat_and_in_the_response() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let params = ChatPromptParams { model: Some("nobody/knows".into()), ..prompt(Some("c"), "hi") };
    let id = server.start::<ChatPrompt>(params);
    let messages = server.everything_until("the end", |message| is_finished(message, "c")).await;
    assert_eq!(
        outline(&messages),
        ["chat/opened", "progress Starting", "user \"hi\\n\"", "response", "system text", "status idle", "finished"]
    );
    let response = messages.iter().find(|message| message["id"] == id).unwrap();
    assert_eq!(response["result"]["status"], "error");
    assert!(text_by("system", &messages).contains("nobody/knows"));
    assert!(model.try_next_request().await.is_none());
    server.finish().await;
}

#[tokio::test]
async fn without_any_provider_the_built_in_guide_answers() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).config_text(r#"{"localDiscovery": false}"#).start().await;
    let result = server.prompt(Some("c"), "hi").await;
    assert_eq!(result.status, ChatPromptStatus::Prompting);
    let turn = server.collect_turn("c").await;
    assert!(!text_by("assistant", &turn).is_empty());
    assert_eq!(outline(&turn).last().map(String::as_str), Some("finished"));
    server.finish().await;
}

#[tokio::test]
async fn agents_have_old_and_new_names_and_unknown_ones_are_the_default() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).start().await;
    let mut instructions = Vec::new();
    for fields in [
        json!({"agent": "plan"}),
        json!({"behavior": "plan"}),
        json!({"agent": "code"}),
        json!({"behavior": "agent"}),
        json!({"agent": "nobody"}),
        json!({"agent": null, "model": null}),
    ] {
        let mut params = json!({"chatId": "c", "message": "hi"});
        params.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let response = server.request_raw("chat/prompt", Some(params)).await;
        assert_eq!(response["result"]["status"], "prompting");
        server.collect_turn("c").await;
        let request = model.next_request().await;
        instructions.push(request.body["messages"][0]["content"].as_str().unwrap().to_owned());
    }
    assert_eq!(instructions[0], instructions[1]);
    assert_ne!(instructions[0], instructions[2]);
    assert!(instructions[2..].iter().all(|text| *text == instructions[2]));
    server.finish().await;
}

#[tokio::test]
async fn usage_is_told_once_per_call_with_costs_as_texts() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let prices = json!({"providers": {"mock": {"models": {"m1": {
        "cost": {"input": 1000, "output": 2000}, "limit": {"context": 1000, "output": 100}
    }}}}});
    let mut server = TestServer::with(&model).config(prices).start().await;
    for round in 1..=2_u64 {
        let turn = server.turn("c", "hi").await;
        let usage = contents("usage", &turn);
        let [usage] = usage[..] else { panic!("one usage: {usage:?}") };
        assert_eq!(usage["sessionTokens"], 19);
        assert_eq!(usage["totalTokens"], 19 * round);
        assert!(usage["lastMessageCost"].is_string() && usage["sessionCost"].is_string(), "{usage}");
        assert_eq!(usage["limit"], json!({"context": 1000, "output": 100}));
    }
    server.finish().await;
}

#[tokio::test]
async fn reasoning_begins_and_ends_before_the_text() {
    let model = MockLlm::start().await;
    model.push(Script::reasoning(&["let me", " think"], &["done"]));
    let mut server = TestServer::with(&model).start().await;
    let turn = server.turn("c", "hi").await;
    assert_eq!(
        outline(&turn)[5..],
        [
            "progress Generating",
            "reasonStarted",
            "reasonText",
            "reasonFinished",
            "assistant \"done\"",
            "usage",
            "status idle",
            "finished"
        ]
    );
    let id = &contents("reasonStarted", &turn)[0]["id"];
    let pieces = contents("reasonText", &turn);
    assert!(pieces.iter().all(|piece| piece["id"] == *id));
    assert_eq!(pieces.iter().map(|piece| piece["text"].as_str().unwrap()).collect::<String>(), "let me think");
    let end = contents("reasonFinished", &turn)[0];
    assert!(end["id"] == *id && end["totalTimeMs"].is_u64(), "{end}");
    server.finish().await;
}

#[tokio::test]
async fn a_title_is_made_and_is_one_short_line() {
    let model = MockLlm::start().await;
    model.respond_with(|request| match request.body.to_string().contains("Write a title") {
        true => Script::text_stream(&["\"A title that is", " rather longer than forty characters\"\nand more"]),
        false => Script::text_stream(&["answer"]),
    });
    let mut server = TestServer::with(&model).config(json!({"chat": {"title": true}})).start().await;
    server.prompt(Some("c"), "hi").await;
    let title = server
        .expect_content("a title", |params| (params["content"]["type"] == "metadata").then(|| params.clone()))
        .await;
    assert_eq!(title["role"], "system");
    let text = title["content"]["title"].as_str().unwrap();
    assert!(text.starts_with("A title") && text.chars().count() <= 40 && !text.contains('\n'), "{text:?}");
    server.collect_turn("c").await;
    let chats = server.request::<ChatList>(ChatListParams::default()).await.chats;
    assert_eq!(chats[0].title.as_deref(), Some(text));
    server.finish().await;
}

#[tokio::test]
async fn test_mode_is_deterministic() {
    let model = MockLlm::start().await;
    model.respond_with(|request| match request.body.to_string().contains("Write a title") {
        true => Script::text_stream(&["Title"]),
        false => Script::text_stream(&["answer"]),
    });
    let mut server =
        TestServer::with(&model).config(json!({"chat": {"title": true}})).options(json!({"env": "test"})).start().await;
    server.start_prompt(Some("c"), "hi");
    let messages = server.everything_until("the end", |message| is_finished(message, "c")).await;
    assert_eq!(
        outline(&messages),
        [
            "chat/opened",
            "user \"hi\\n\"",
            "response",
            "status running",
            "metadata",
            "progress Waiting model",
            "progress Generating",
            "assistant \"answer\"",
            "usage",
            "status idle",
            "finished"
        ]
    );
    server.finish().await;
}

#[tokio::test]
async fn loose_values_of_real_clients_are_understood() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).client(presets::neovim).start().await;
    // Neovim's first version named chats by numbers and wrote empty lists as tables.
    let params = json!({"chatId": 1, "message": "hi", "contexts": {}, "request-id": 7, "model": null, "agent": null});
    let response = server.request_raw("chat/prompt", Some(params)).await;
    assert_eq!(response["result"]["chatId"], "1");
    let turn = server.collect_turn("1").await;
    assert!(turn.iter().all(|message| message["params"]["chatId"] == "1"));
    server.notify_raw("chat/promptStop", Some(json!({"chat_id": 1})));
    let listed = server.request_raw("chat/list", Some(json!({"sort-by": "updatedAt", "limit": 0}))).await;
    assert_eq!(listed["result"]["chats"].as_array().map(Vec::len), Some(1), "{listed}");
    server.finish().await;
}

#[tokio::test]
async fn a_prompt_without_a_message_names_the_missing_field() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let response = server.request_raw("chat/prompt", Some(json!({"chatId": "c"}))).await;
    assert_eq!(response["error"]["code"], -32602);
    assert!(response["error"]["message"].as_str().unwrap().contains("message"), "{response}");
    server.finish().await;
}

#[tokio::test]
async fn no_frame_of_an_answer_is_too_large_for_any_client() {
    let model = MockLlm::start().await;
    // The worst that can be escaped: each of these becomes six bytes.
    let text = "\u{1}".repeat(100_000);
    let arguments = format!("{{\"text\": \"{}\"}}", "\\\"".repeat(50_000));
    model.push(Script::stream().thought(&text).text(&text).call(0, "call_1", "x", &[&arguments]).hang_here());
    let mut server = TestServer::with(&model).start().await;
    server.prompt(Some("c"), "hi").await;
    let mut shown = String::new();
    while shown.len() < arguments.len() {
        let piece = |params: &Value| params["content"]["argumentsText"].as_str().map(str::to_owned);
        shown += &server.expect_content("the arguments", piece).await;
    }
    assert_eq!(shown, arguments);
    assert!(server.largest_frame() < 64 * 1024, "{} bytes", server.largest_frame());
    let before = server.take_unread();
    assert_eq!(text_by("assistant", &before), text);
    let thoughts = contents("reasonText", &before);
    assert_eq!(thoughts.iter().map(|piece| piece["text"].as_str().unwrap()).collect::<String>(), text);
    server.stop("c");
    server.collect_turn("c").await;
    server.finish().await;
}
