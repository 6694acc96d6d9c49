//! What can be typed after a slash: what is offered, what is answered here, and what a model gets.

use std::fs;

use serde_json::{Value, json};

use crate::chat::spoken;
use crate::mock_llm::{MockLlm, Script};
use crate::peer::outline::{contents, text_by};
use crate::peer::{is_finished, outline};
use crate::server::TestServer;

fn write(server: &TestServer, name: &str, text: &str) {
    let file = server.dirs.workspace.join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

async fn ready() -> (MockLlm, TestServer) {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["answer"]));
    let server = TestServer::with(&model).start().await;
    (model, server)
}

async fn offered(server: &mut TestServer, query: &str) -> Vec<Value> {
    let response = server.request_raw("chat/queryCommands", Some(json!({"query": query}))).await;
    response["result"]["commands"].as_array().unwrap_or_else(|| panic!("{response}")).clone()
}

/// What a command says.
async fn said(server: &mut TestServer, chat: &str, command: &str) -> String {
    let turn = server.turn(chat, command).await;
    text_by("system", &turn)
}

#[tokio::test]
async fn commands_are_offered_in_the_order_and_shape_that_clients_read() {
    let (_model, mut server) = ready().await;
    write(&server, ".eca/commands/Review.md", "---\ndescription: Look at it\n---\nReview $1.");
    write(&server, ".agents/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Ship it\n---\nPush.");
    let all = offered(&mut server, "").await;
    let names: Vec<&str> = all.iter().map(|command| command["name"].as_str().unwrap()).collect();
    let first = ["init", "login", "model", "skills", "skill-create", "costs", "context", "compact", "fork", "resume"];
    assert_eq!(names[..10], first);
    for name in [
        "search",
        "export",
        "import",
        "config",
        "doctor",
        "prompt-show",
        "rules",
        "hooks",
        "subagents",
        "repo-map-show",
        "debug-chat",
        "sync-system-prompt",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert_eq!(names[names.len() - 2..], ["deploy", "review"], "skills, then the user's commands");
    for command in &all {
        assert!(command["description"].is_string() && command["arguments"].is_array(), "{command}");
        let arguments = command["arguments"].as_array().unwrap();
        assert!(arguments.iter().all(|argument| argument["required"].is_boolean()), "{command}");
    }
    let kinds: Vec<&Value> = all[all.len() - 3..].iter().map(|command| &command["type"]).collect();
    assert_eq!(kinds, [&json!("native"), &json!("skill"), &json!("custom-prompt")]);
    let found = offered(&mut server, "SKILL").await;
    let found: Vec<&Value> = found.iter().map(|command| &command["name"]).collect();
    assert_eq!(found, [&json!("skills"), &json!("skill-create")], "by name or description, in any case");
    server.finish().await;
}

#[tokio::test]
async fn a_command_is_answered_here_without_a_model() {
    let (model, mut server) = ready().await;
    write(&server, "src/main.rs", "fn main() {}");
    server.start_prompt(Some("c"), "/costs");
    let turn = server.everything_until("the end", |message| is_finished(message, "c")).await;
    let expected = [
        "chat/opened",
        "progress Starting",
        "user \"/costs\\n\"",
        "response",
        "system text",
        "status idle",
        "finished",
    ];
    assert_eq!(outline(&turn), expected);
    for (command, needle) in [
        ("/doctor", "### Providers"),
        ("/config", "\"defaultModel\""),
        ("/model", "mock/m2"),
        ("/rules", "There are none"),
        ("/skills", "There are none"),
        ("/hooks", "There are none"),
        ("/subagents", "**explorer**"),
        ("/context", "mock/m1"),
        ("/prompt-show", "Instructions: "),
        ("/repo-map-show", "```text"),
        ("/debug-chat", "model"),
        ("/sync-system-prompt", "next answer"),
        ("/compact", "nothing to compact"),
        ("/fork", "nothing to copy"),
        ("/search", "what to look for"),
        ("/resume 7", "There is no chat 7"),
        ("/import relative.json", "absolute path"),
    ] {
        let text = said(&mut server, "c", command).await;
        assert!(text.contains(needle), "{command}: {text}");
    }
    assert!(model.try_next_request().await.is_none(), "nobody asked a model");
    server.finish().await;
}

#[tokio::test]
async fn what_users_wrote_becomes_a_prompt() {
    let (model, mut server) = ready().await;
    write(&server, ".eca/commands/review.md", "Review $1 and tell $2. All: $ARGS");
    write(&server, ".agents/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Ship it\n---\nPush to $ARGS.");
    for (number, (typed, sent)) in [
        ("/review \"the parser\" me", "Review the parser and tell me. All: \"the parser\" me"),
        ("/deploy", "Load the skill deploy and follow it."),
        ("/nothing like it", "/nothing like it"),
        ("/home/me/file explain", "/home/me/file explain"),
    ]
    .into_iter()
    .enumerate()
    {
        let turn = server.turn(&format!("c{number}"), typed).await;
        assert!(outline(&turn).contains(&format!("user {:?}", format!("{typed}\n"))), "{:?}", outline(&turn));
        let request = model.next_request().await;
        assert_eq!(spoken(&request.body), [("user", sent)], "{typed}");
    }
    server.turn("s", "/skill-create my-skill runs the linters").await;
    let request = model.next_request().await;
    let (_, asked) = spoken(&request.body)[0];
    assert!(asked.contains("skills/my-skill/SKILL.md") && asked.contains("runs the linters"), "{asked}");
    for wrong in ["/skill-create", "/skill-create name", "/skill-create ../up and away"] {
        let text = said(&mut server, "w", wrong).await;
        assert!(text.contains("name"), "{wrong}: {text}");
    }
    server.finish().await;
}

#[tokio::test]
async fn an_earlier_chat_is_found_and_gone_on_with() {
    let (model, mut server) = ready().await;
    server.turn("old", "tell me of the zeppelin").await;
    let dirs = server.dirs.clone();
    server.finish().await;
    let mut server = TestServer::with(&model).dirs(&dirs).start().await;
    let found = said(&mut server, "new", "/search zeppelin").await;
    assert!(found.to_lowercase().contains("zeppelin"), "{found}");
    let listed = said(&mut server, "new", "/resume").await;
    assert!(listed.contains("1. "), "{listed}");
    let turn = server.turn("new", "/resume latest").await;
    assert!(outline(&turn).contains(&"user \"tell me of the zeppelin\\n\"".to_owned()), "{:?}", outline(&turn));
    model.next_request().await;
    server.turn("new", "go on").await;
    let request = model.next_request().await;
    let expected = [("user", "tell me of the zeppelin"), ("assistant", "answer"), ("user", "go on")];
    assert_eq!(spoken(&request.body), expected);
    server.finish().await;
}

#[tokio::test]
async fn a_chat_can_be_written_out_and_read_in() {
    let (_model, mut server) = ready().await;
    server.turn("c", "keep this").await;
    let file = server.dirs.workspace.join("chat.json");
    let text = said(&mut server, "c", &format!("/export {}", file.display())).await;
    assert!(text.contains("chat.json"), "{text}");
    assert!(fs::read_to_string(&file).unwrap().contains("keep this"));
    let text = said(&mut server, "d", &format!("/import {}", file.display())).await;
    assert!(text.contains("is here now"), "{text}");
    let listed = server.request_raw("chat/list", Some(json!({}))).await;
    assert_eq!(listed["result"]["chats"].as_array().unwrap().len(), 2, "{listed}");
    server.finish().await;
}

#[tokio::test]
async fn a_compacted_chat_goes_on_from_its_summary_and_is_shown_whole() {
    let model = MockLlm::start().await;
    model.push(Script::text_stream(&["the first answer"]));
    let mut server = TestServer::with(&model).start().await;
    server.turn("c", "first").await;
    model.push(Script::text_stream(&["all that was said"]));
    let turn = server.turn("c", "/compact keep names").await;
    assert!(!contents("usage", &turn).is_empty(), "{:?}", outline(&turn));
    model.push(Script::text_stream(&["second answer"]));
    server.turn("c", "second").await;
    model.next_request().await;
    let asked = model.next_request().await.body.to_string();
    assert!(asked.contains("keep names"), "{asked}");
    let request = model.next_request().await.body["messages"].to_string();
    assert!(request.contains("all that was said") && !request.contains("the first answer"), "{request}");
    let history = server.request_raw("chat/history", Some(json!({"chatId": "c"}))).await;
    let shown = history["result"]["contents"].to_string();
    assert!(shown.contains("the first answer") && shown.contains("compacted"), "{shown}");
    let found = said(&mut server, "d", "/search first").await;
    assert!(found.contains("first"), "what was compacted is still found: {found}");
    server.finish().await;
}

#[tokio::test]
async fn files_of_other_assistants_stand_in_unless_they_may_not() {
    for (files, config, expected) in [
        (&[("CLAUDE.md", "be-claude")][..], json!({}), Some("be-claude")),
        (&[(".cursor/rules/a.mdc", "---\nalwaysApply: true\n---\nbe-cursor")], json!({}), Some("be-cursor")),
        (&[("CLAUDE.md", "be-claude"), ("AGENTS.md", "be-agents")], json!({}), Some("be-agents")),
        (&[("CLAUDE.md", "be-claude")], json!({"compatRules": false}), None),
    ] {
        let model = MockLlm::start().await;
        model.respond_with(|_| Script::text_stream(&["answer"]));
        let mut server = TestServer::with(&model).config(config).start().await;
        for (name, text) in files {
            write(&server, name, text);
        }
        server.turn("c", "hi").await;
        let request = model.next_request().await.body.to_string();
        for word in ["be-claude", "be-cursor", "be-agents"] {
            assert_eq!(request.contains(word), expected == Some(word), "{files:?}: {word}");
        }
        server.finish().await;
    }
}

#[tokio::test]
async fn an_agents_own_prompts_count_before_the_general_ones() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["answer"]));
    let config = json!({
        "compactPrompt": "sum it up",
        "prompts": {"chat": "general words", "tools": {"eca__grep": "general grep"}},
        "agent": {"mine": {"prompts": {"chat": "my words", "tools": {"eca__grep": "my grep in {{ osName }}"}}}},
    });
    let mut server = TestServer::with(&model).config(config).start().await;
    for (agent, words, grep) in [("code", "general words", "general grep"), ("mine", "my words", "my grep in ")] {
        server.request_raw("chat/prompt", Some(json!({"chatId": agent, "message": "hi", "agent": agent}))).await;
        server.collect_turn(agent).await;
        let body = model.next_request().await.body;
        let system = body["messages"][0]["content"].as_str().unwrap().to_owned();
        assert!(system.contains(words), "{system}");
        let tools = body["tools"].as_array().unwrap().clone();
        let tool = tools.iter().find(|tool| tool["function"]["name"] == "eca__grep").unwrap();
        let description = tool["function"]["description"].as_str().unwrap();
        assert!(description.starts_with(grep) && !description.contains("{{"), "{description}");
    }
    server.turn("code", "/compact").await;
    let asked = model.next_request().await.body.to_string();
    assert!(asked.contains("sum it up"), "the older name counts too");
    server.finish().await;
}

#[tokio::test]
async fn a_full_window_is_made_room_in_and_the_work_goes_on() {
    let config = json!({"providers": {"mock": {"models": {"m1": {"limit": {"context": 24, "output": 5}}}}}});
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).config(config).start().await;
    // It counts nineteen tokens, more than three quarters of the window.
    model.push(Script::text_stream(&["the first answer"]));
    server.turn("c", "first").await;
    model.push(Script::text_stream(&["the summary"]));
    model.push(Script::text_stream(&["the second answer"]));
    let turn = server.turn("c", "second").await;
    assert!(text_by("system", &turn).contains("compacted automatically"), "{:?}", outline(&turn));
    assert_eq!(text_by("assistant", &turn), "the second answer");
    model.next_request().await;
    let asked = model.next_request().await.body;
    assert_eq!(spoken(&asked)[..2], [("user", "first"), ("assistant", "the first answer")]);
    let request = model.next_request().await.body["messages"].to_string();
    assert!(request.contains("the summary") && request.contains("second"), "{request}");
    assert!(!request.contains("the first answer"), "{request}");
    server.finish().await;
}

#[tokio::test]
async fn a_window_that_overflowed_is_compacted_once() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    model.push(Script::text_stream(&["the first answer"]));
    server.turn("c", "first").await;
    let overflow = || {
        let body = json!({"error": {"code": "context_length_exceeded", "message": "too long"}}).to_string();
        Script::status(400, &[("content-type", "application/json")], &body)
    };
    model.push(overflow());
    model.push(Script::text_stream(&["the summary"]));
    model.push(Script::text_stream(&["the second answer"]));
    let turn = server.turn("c", "second").await;
    assert!(text_by("system", &turn).contains("compacted automatically"), "{:?}", outline(&turn));
    assert_eq!(text_by("assistant", &turn), "the second answer");
    model.push(overflow());
    model.push(Script::text_stream(&["a summary"]));
    model.push(overflow());
    let turn = server.turn("c", "third").await;
    assert_eq!(text_by("assistant", &turn), "", "no loop: {:?}", outline(&turn));
    server.finish().await;
}
