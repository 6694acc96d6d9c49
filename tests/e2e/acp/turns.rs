//! Turns: text, thoughts, tool calls, diffs, plans, usage, errors, and how they end.

use std::fs;

use serde_json::{Value, json};

use super::{Acp, is_update, selected, text_in};
use crate::mock_llm::{Gate, MockLlm, Script};

#[tokio::test]
async fn text_streams_in_order_as_one_message_and_the_response_is_last() {
    let model = MockLlm::start().await;
    let gate = Gate::new();
    model.push(Script::stream().text("Hel").gate(&gate).text("lo ").text("\"wörld\"\n").finish("stop"));
    let mut acp = Acp::with(&model).await;
    let session = acp.session().await;
    let id = acp.start_prompt(&session, "hi");
    let first = acp.find("the first chunk", |message| is_update(message, &json!(session), "agent_message_chunk")).await;
    assert_eq!(first["params"]["update"]["content"], json!({"type": "text", "text": "Hel"}));
    gate.open();
    let turn = acp.rest_of(id).await;
    assert_eq!(turn.stop_reason(), "end_turn");
    assert_eq!(turn.text(), "lo \"wörld\"\n");
    let message = &first["params"]["update"]["messageId"];
    assert!(message.is_string());
    assert!(turn.updates("agent_message_chunk").iter().all(|chunk| chunk["messageId"] == *message));
    assert!(turn.messages.iter().all(|message| message["params"]["sessionId"] == session), "{:?}", turn.messages);
    assert!(turn.updates("user_message_chunk").is_empty(), "the client knows what the user wrote");
    acp.finish().await;
}

#[tokio::test]
async fn thoughts_are_chunks_of_their_own() {
    let model = MockLlm::start().await;
    model.push(Script::reasoning(&["hm, ", "well"], &["yes"]));
    let mut acp = Acp::with(&model).await;
    let session = acp.session().await;
    let turn = acp.turn(&session, "hi").await;
    assert_eq!(turn.outline(), ["agent_thought_chunk", "agent_message_chunk"]);
    let thoughts = turn.updates("agent_thought_chunk");
    assert_eq!(text_in(&thoughts), "hm, well");
    assert_ne!(thoughts[0]["messageId"], turn.updates("agent_message_chunk")[0]["messageId"]);
    acp.finish().await;
}

#[tokio::test]
async fn a_call_goes_from_pending_to_completed() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let file = acp.dirs.file("a.txt", "one\ntwo\n");
    model.push(
        Script::stream()
            .text("Let me look.")
            .call(0, "r", "eca__read_file", &[&json!({"path": file}).to_string()])
            .finish("tool_calls"),
    );
    model.push(Script::text_stream(&["It says one."]));
    let session = acp.session().await;
    let turn = acp.turn(&session, "read it").await;
    assert_eq!(
        turn.outline(),
        [
            "agent_message_chunk",
            "tool_call r pending",
            "tool_call_update r",
            "tool_call_update r in_progress",
            "tool_call_update r completed",
            "agent_message_chunk",
        ]
    );
    let call = turn.call("r");
    assert_eq!((&call[0]["kind"], &call[0]["name"]), (&json!("read"), &json!("read_file")));
    assert_eq!(call[1]["title"], "Reading a.txt");
    assert_eq!(call[1]["rawInput"], json!({"path": file}));
    assert_eq!(call[1]["locations"], json!([{"path": file}]));
    assert!(call[3]["content"][0]["content"]["text"].as_str().unwrap().contains("one"), "{}", call[3]);
    let ids: Vec<&Value> = turn.updates("agent_message_chunk").iter().map(|chunk| &chunk["messageId"]).collect();
    assert_ne!(ids.first(), ids.last(), "what is said behind a call is another message");
    acp.finish().await;
}

#[tokio::test]
async fn a_diff_has_both_texts_whole() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let old = "one\ntwo\nthree\n";
    let file = acp.dirs.file("a.txt", old);
    let new = acp.workspace().join("new.txt").display().to_string();
    let edit = json!({"path": file, "original_content": "two", "new_content": "2"}).to_string();
    let write = json!({"path": new, "content": "fresh\n"}).to_string();
    model.push(Script::tool_call("e", "eca__edit_file", &[&edit]));
    model.push(Script::tool_call("w", "eca__write_file", &[&write]));
    model.push(Script::text_stream(&["done"]));
    let session = acp.session().await;
    let id = acp.start_prompt(&session, "change it");
    let turn = acp.rest_with(id, |_| Ok(selected("allow_once"))).await;
    assert_eq!(turn.stop_reason(), "end_turn", "{:?}", turn.messages);
    let diff = |call: &str| {
        let updates = turn.call(call);
        let mut content = updates.iter().flat_map(|update| update["content"].as_array().into_iter().flatten());
        content.find(|content| content["type"] == "diff").cloned().unwrap_or_else(|| panic!("{updates:?}"))
    };
    let changed = "one\n2\nthree\n";
    assert_eq!(diff("e"), json!({"type": "diff", "path": file, "oldText": old, "newText": changed}));
    assert_eq!(diff("w"), json!({"type": "diff", "path": new, "newText": "fresh\n"}));
    assert_eq!(turn.call("e")[0]["kind"], "edit");
    assert_eq!(fs::read_to_string(&file).unwrap(), changed);
    assert_eq!(fs::read_to_string(&new).unwrap(), "fresh\n");
    acp.finish().await;
}

#[tokio::test]
async fn tasks_are_a_plan() {
    let model = MockLlm::start().await;
    let tasks = json!({"op": "plan", "tasks": [
        {"subject": "Look", "description": "d", "priority": "high"}, {"subject": "Fix", "description": "d"}]});
    model.push(Script::tool_call("t", "eca__task", &[&tasks.to_string()]));
    model.push(Script::text_stream(&["planned"]));
    let mut acp = Acp::with(&model).await;
    let session = acp.session().await;
    let turn = acp.turn(&session, "plan it").await;
    let plans = turn.updates("plan");
    assert_eq!(
        plans.last().unwrap_or_else(|| panic!("{:?}", turn.messages))["entries"],
        json!([
            {"content": "Look", "priority": "high", "status": "pending"},
            {"content": "Fix", "priority": "medium", "status": "pending"},
        ])
    );
    acp.finish().await;
}

#[tokio::test]
async fn usage_is_told_when_the_window_is_known() {
    let model = MockLlm::start().await;
    let config = json!({"providers": {"mock": {"models": {"m1": {"limit": {"context": 1000, "output": 100},
        "cost": {"input": 1, "output": 2}}}}}});
    model.push(Script::text_stream(&["hi"]));
    let mut acp = Acp::configured(&model, json!({}), config).await;
    let session = acp.session().await;
    let turn = acp.turn(&session, "hi").await;
    let usage = turn.updates("usage_update");
    let usage = usage.last().unwrap_or_else(|| panic!("{:?}", turn.messages));
    assert_eq!(usage["size"], 1000);
    assert!(usage["used"].as_u64().unwrap() > 0, "{usage}");
    acp.finish().await;
}

#[tokio::test]
async fn each_reason_to_stop_has_its_word() {
    let model = MockLlm::start().await;
    let config = json!({"chat": {"maxSteps": 1}});
    let mut acp = Acp::configured(&model, json!({}), config).await;
    let session = acp.session().await;
    model.push(Script::stream().text("and so").finish("length"));
    assert_eq!(acp.turn(&session, "hi").await.stop_reason(), "max_tokens");
    model.push(Script::stream().text("no").finish("content_filter"));
    assert_eq!(acp.turn(&session, "hi").await.stop_reason(), "refusal");
    let file = acp.dirs.file("a.txt", "x");
    model.push(Script::tool_call("r", "eca__read_file", &[&json!({"path": file}).to_string()]));
    assert_eq!(acp.turn(&session, "hi").await.stop_reason(), "max_turn_requests");
    acp.finish().await;
}

#[tokio::test]
async fn a_provider_that_fails_is_an_error_of_one_line_and_the_session_goes_on() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let session = acp.session().await;
    model.push(Script::status(401, &[], "{\"error\":{\"message\":\"bad key\"}}"));
    let turn = acp.turn(&session, "hi").await;
    let error = &turn.response["error"];
    assert_eq!(error["code"], -32603, "{}", turn.response);
    let message = error["message"].as_str().unwrap();
    assert!(!message.is_empty() && !message.contains('\n'), "{message:?}");
    assert_eq!(turn.text(), "", "what went wrong is said once");
    model.push(Script::text_stream(&["better"]));
    let turn = acp.turn(&session, "again").await;
    assert_eq!((turn.stop_reason(), turn.text().as_str()), ("end_turn", "better"));
    acp.finish().await;
}

#[tokio::test]
async fn images_and_embedded_resources_reach_the_model() {
    let model = MockLlm::start().await;
    let config = json!({"providers": {"mock": {"models": {"m1": {"imageInput": true}}}}});
    let mut acp = Acp::configured(&model, json!({}), config).await;
    let file = acp.dirs.file("linked.txt", "the linked text");
    model.push(Script::text_stream(&["seen"]));
    let session = acp.session().await;
    let id = acp.start_blocks(
        &session,
        json!([
            {"type": "text", "text": "compare "},
            {"type": "resource_link", "uri": format!("file://{file}"), "name": "linked.txt"},
            {"type": "text", "text": " with "},
            {"type": "resource", "resource": {"uri": "file:///buffer.py", "text": "print('embedded')", "mimeType": "text/x-python"}},
            {"type": "image", "mimeType": "image/png", "data": PIXEL},
        ]),
    );
    let turn = acp.rest_of(id).await;
    assert_eq!(turn.stop_reason(), "end_turn");
    let told = model.next_request().await.body["messages"].to_string();
    for part in ["the linked text", "print('embedded')", "compare `", "/buffer.py"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let note = turn.text();
    assert!(told.contains("image_url"), "{told}\n{note}");
    acp.finish().await;
}

/// A PNG of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[tokio::test]
async fn commands_are_answered_without_a_model() {
    let model = MockLlm::start().await;
    let mut acp = Acp::with(&model).await;
    let session = acp.session().await;
    let turn = acp.turn(&session, "/costs").await;
    assert_eq!(turn.stop_reason(), "end_turn");
    assert!(turn.text().contains("tokens"), "{}", turn.text());
    assert!(model.try_next_request().await.is_none());
    acp.finish().await;
}

#[tokio::test]
async fn a_compaction_is_told_where_it_can_be_shown() {
    let model = MockLlm::start().await;
    let mut acp = Acp::capable(&model, json!({"session": {"compaction": {}}})).await;
    let session = acp.session().await;
    model.push(Script::text_stream(&["hello"]));
    acp.turn(&session, "hi").await;
    model.push(Script::text_stream(&["They said hello."]));
    let turn = acp.turn(&session, "/compact").await;
    let updates = turn.updates("compaction_update");
    let statuses: Vec<&Value> = updates.iter().map(|update| &update["status"]).collect();
    assert_eq!(statuses, ["in_progress", "completed"], "{:?}", turn.messages);
    assert_eq!(updates[0]["compactionId"], updates[1]["compactionId"]);
    assert!(updates[1]["summary"][0]["text"].as_str().unwrap().contains("They said hello."), "{}", updates[1]);
    acp.finish().await;
}

#[tokio::test]
async fn a_title_is_news_about_the_session() {
    let model = MockLlm::start().await;
    model.respond_with(|request| match request.body["messages"].to_string().to_lowercase().contains("title") {
        true => Script::text_stream(&["Greeting"]),
        false => Script::text_stream(&["hello"]),
    });
    let mut acp = Acp::configured(&model, json!({}), json!({"chat": {"title": true}})).await;
    let session = acp.session().await;
    acp.start_prompt(&session, "hi");
    let info = acp.find("the title", |message| is_update(message, &json!(session), "session_info_update")).await;
    assert_eq!(info["params"]["update"]["title"], "Greeting");
    assert!(info["params"]["update"]["updatedAt"].is_string());
    acp.find("the response", |message| message["result"]["stopReason"] == "end_turn").await;
    acp.take_unread();
    acp.finish().await;
}

#[tokio::test]
async fn two_sessions_talk_at_the_same_time_and_do_not_mix() {
    let model = MockLlm::start().await;
    let gates = [Gate::new(), Gate::new()];
    for (gate, name) in gates.iter().zip(["first", "second"]) {
        model.push(Script::stream().text(name).gate(gate).text(" done").finish("stop"));
    }
    let mut acp = Acp::with(&model).await;
    let (one, two) = (acp.session().await, acp.session().await);
    let first = acp.start_prompt(&one, "a");
    acp.find("one", |message| is_update(message, &json!(one), "agent_message_chunk")).await;
    let second = acp.start_prompt(&two, "b");
    acp.find("two", |message| is_update(message, &json!(two), "agent_message_chunk")).await;
    gates[1].open();
    let messages = acp.everything_until("the second", |message| message["id"] == second).await;
    assert!(messages.iter().all(|message| message["params"]["sessionId"] != one), "{messages:?}");
    gates[0].open();
    assert_eq!(acp.rest_of(first).await.text(), " done");
    acp.finish().await;
}
